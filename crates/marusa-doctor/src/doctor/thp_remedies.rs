//! What may be done about huge pages where they are not wanted, the same for every finding of that kind.

use super::facts::Facts;
use super::types::Remedy;
use crate::os::thp::DIRECTORY;

/// What Meta uses where huge pages are on for all processes: a page that is four fifths empty is not worth it (the commit message
/// of dafff3f4c850, "mm: split underused THPs").
const PTES_NONE: u64 = 409;
/// The default: khugepaged makes a huge page for a single small one.
const PTES_NONE_ALL: u64 = 511;

/// The setting of the host, where it gives huge pages to who did not ask; for one service; and for the process alone.
pub fn not_unasked(facts: &Facts) -> Vec<Remedy> {
    if facts.host.thp_mode() != "always" {
        return Vec::new();
    }
    vec![
        Remedy::Setting(format!("echo madvise > {DIRECTORY}/enabled")),
        Remedy::advice("in the unit of the service: MemoryTHP=madvise (systemd 260, Linux 6.18)"),
    ]
}

/// khugepaged puts together again what was split, as long as it may fill as many holes as there are.
pub fn not_refilled(facts: &Facts) -> Option<Remedy> {
    let thp = facts.host.pages.thp.as_ref()?;
    let fills = thp.enabled != "never" && thp.khugepaged.get("max_ptes_none") == Some(&PTES_NONE_ALL);
    fills.then(|| Remedy::Setting(format!("echo {PTES_NONE} > {DIRECTORY}/khugepaged/max_ptes_none")))
}
