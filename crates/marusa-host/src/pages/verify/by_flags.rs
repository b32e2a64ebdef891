//! What a running JVM's own flags ask for, as a promise: the sizes of its reservations follow from them.

use super::Promise;
use crate::base::{Bytes, Gap, Known};
use crate::jvm::JvmView;
use crate::map::Area;
use crate::map::page_claims::Asked;
use crate::os::cpus::Cpus;
use crate::os::machine::huge_page;
use crate::pages::types::{Mode, Need};
use crate::pages::{need, subject};
use crate::snapshot::Snapshot;

/// Where not every reservation of such a JVM is known, the ones that flags name, and the gap.
pub fn by_flags(snapshot: &Snapshot, cpus: Known<Cpus>) -> Option<(Promise, Option<Gap>)> {
    let mode = Promise::mode_of(&Asked::of(snapshot))?;
    let jvm = snapshot.jvm.as_ref().ok()?;
    let needs = cpus.and_then(|cpus| need::need(&subject::of_jvm(jvm, cpus.count())?, mode));
    let (needs, gap) = match needs {
        Ok(needs) => (needs, None),
        Err(gap) => (named_by_flags(jvm, mode), Some(gap)),
    };
    Some((Promise { plan: None, mode, needs, subject: None, jvm_options: Vec::new() }, gap))
}

fn named_by_flags(jvm: &JvmView, mode: Mode) -> Vec<Need> {
    let large = mode.page_bytes();
    let need = |area: Area, part: &str, flag: &str, page_bytes: Bytes| {
        let bytes = jvm.flags.get(flag)?.parse::<Bytes>().ok()?;
        Some(Need::new(area, part, bytes, page_bytes, &format!("-XX:{flag}")))
    };
    let needs = [
        need(Area::JitCode, "code cache", "ReservedCodeCacheSize", large.min(huge_page())),
        need(Area::JavaHeap, "heap", "MaxHeapSize", large),
    ];
    needs.into_iter().flatten().collect()
}
