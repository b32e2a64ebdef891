//! Whether a heap of another size fits: `doctor TARGET --if-xmx 1g`. The sum of `container-limit`, with that maximum in the place
//! of -Xmx; where no cgroup limits the JVM, the limit is the memory of the host.

use super::budget::Budget;
use super::facts::{Facts, GroupMemory, JvmFacts};
use super::rules::container_limit;
use super::{Finding, HostFacts, Level, Remedy};
use crate::base::{Bytes, human};
use schemars::JsonSchema;
use serde::Serialize;

/// The answer. `needs_bytes`: of the limit, with the heap full, and all else as it is now.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct IfXmx {
    pub xmx_bytes: Bytes,
    pub needs_bytes: Bytes,
    pub limit_bytes: Bytes,
    pub limit_file: String,
    pub fits: bool,
    /// The largest -Xmx that leaves a tenth of the limit (64 MiB at least) for growth outside the heap.
    pub largest_xmx_bytes: Option<Bytes>,
    #[serde(skip)]
    pub finding: Finding,
}

/// `None`: the limit, the heap or the memory of the JVM was not read.
pub fn answer(facts: &Facts, xmx_bytes: Bytes) -> Option<IfXmx> {
    let jvm = facts.jvms.first()?;
    let group = match jvm.group.as_ref().ok()? {
        Some(group) if group.limit_bytes > 0 => group.clone(),
        _ => of_host(&facts.host)?,
    };
    let budget = Budget::with_heap(jvm, &group, Some(xmx_bytes))?;
    let (needs_bytes, limit_bytes) = (budget.full_bytes(), group.limit_bytes);
    // No memory limit counts pages of the kernel's pool.
    let is_counted = !jvm.has_pool_heap();
    let largest_xmx_bytes = budget.heap_for(limit_bytes).filter(|_| is_counted);
    Some(IfXmx {
        xmx_bytes,
        needs_bytes,
        limit_bytes,
        limit_file: group.limit_file.clone(),
        fits: needs_bytes <= limit_bytes,
        largest_xmx_bytes,
        finding: finding(jvm, &budget, &group, xmx_bytes, largest_xmx_bytes),
    })
}

/// All of its memory, of which is taken what is not available.
fn of_host(host: &HostFacts) -> Option<GroupMemory> {
    let (all, available) = (*host.meminfo.get("MemTotal")?, *host.meminfo.get("MemAvailable")?);
    Some(GroupMemory {
        path: "/proc/meminfo".to_string(),
        limit_file: "/proc/meminfo: MemTotal".to_string(),
        limit_bytes: all,
        current_bytes: all.saturating_sub(available),
        ..GroupMemory::default()
    })
}

fn finding(
    jvm: &JvmFacts,
    budget: &Budget,
    group: &GroupMemory,
    xmx: Bytes,
    largest: Option<Bytes>,
) -> Finding {
    let (full, limit) = (budget.full_bytes(), group.limit_bytes);
    let needs = format!("with -Xmx{} it needs {}", option(xmx), human(full));
    let has_room = budget.limit_bytes() <= limit;
    let (level, title) = match full.checked_sub(limit) {
        Some(missing @ 1..) => {
            (Level::Warn, format!("{needs}, {} more than the limit of {}", human(missing), human(limit)))
        }
        _ if has_room => (Level::Info, format!("{needs}, and fits in the limit of {}", human(limit))),
        _ => {
            let left = human(limit.saturating_sub(full));
            (Level::Info, format!("{needs}, and leaves {left} of the limit of {}", human(limit)))
        }
    };
    let largest = largest.filter(|_| !has_room).map(|bytes| {
        Remedy::Advice(format!(
            "-Xmx{}m leaves a tenth of the limit, 64 MiB at least, for the rest",
            bytes >> 20
        ))
    });
    let pool = jvm
        .has_pool_heap()
        .then(|| Remedy::advice("the heap is on pages of the kernel's pool, which no memory limit counts"));
    let record = Remedy::Advice(container_limit::ONE_LOOK.to_string());
    let evidence = budget.evidence(jvm, group);
    let remedies = largest.into_iter().chain(pool).chain([record]);
    Finding::on_jvm(jvm.pid, level, title, evidence, remedies).of_rule(container_limit::ID)
}

/// As the JVM takes it.
fn option(bytes: Bytes) -> String {
    match bytes {
        bytes if bytes % (1 << 30) == 0 => format!("{}g", bytes >> 30),
        bytes if bytes % (1 << 20) == 0 => format!("{}m", bytes >> 20),
        bytes => format!("{bytes}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{G, M, healthy_jvm};

    /// The healthy JVM has -Xmx2g, 900 MiB of heap, and 350 MiB outside it.
    fn of(limit: Bytes, xmx: Bytes) -> IfXmx {
        let mut facts = Facts::default();
        let mut jvm = healthy_jvm();
        jvm.group =
            Ok(Some(GroupMemory { limit_bytes: limit, current_bytes: 1250 * M, ..GroupMemory::default() }));
        facts.jvms.push(jvm);
        answer(&facts, xmx).expect("known")
    }

    #[test]
    fn a_heap_fits_up_to_the_limit_less_what_is_outside_it() {
        let fits = of(2 * G, G);
        assert!(fits.fits && fits.finding.level == Level::Info, "{fits:?}");
        assert!(fits.finding.title.ends_with("and fits in the limit of 2.0 GiB"), "{}", fits.finding.title);
        let tight = of(2 * G, 1640 * M);
        assert!(tight.fits && tight.finding.title.contains("and leaves"), "{}", tight.finding.title);
        assert!(tight.finding.remedies[0].text().starts_with("-Xmx1"), "{tight:?}");
        let no = of(2 * G, 2 * G);
        assert_eq!((no.fits, no.finding.level), (false, Level::Warn));
        assert!(
            no.finding.title.starts_with("with -Xmx2g")
                && no.finding.title.contains("more than the limit of 2.0 GiB"),
            "{}",
            no.finding.title
        );
        assert!(no.largest_xmx_bytes < Some(2 * G) && no.largest_xmx_bytes > Some(G), "{no:?}");
    }

    #[test]
    fn without_a_limit_the_memory_of_the_host_counts() {
        let mut facts = Facts { jvms: vec![healthy_jvm()], ..Facts::default() };
        assert_eq!(answer(&facts, G), None, "not read");
        facts.host.meminfo = [("MemTotal".to_string(), 4 * G), ("MemAvailable".to_string(), 2 * G)].into();
        let of_host = answer(&facts, G).expect("known");
        assert_eq!((of_host.limit_bytes, of_host.fits), (4 * G, true));
        assert!(!answer(&facts, 3 * G).expect("known").fits);
        assert_eq!(answer(&Facts::default(), G), None);
    }
}
