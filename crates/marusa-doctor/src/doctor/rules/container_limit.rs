//! The memory limit of the cgroup (a container, a service) against the account: whether the JVM fits in it when its
//! heap is full, and which limit or heap would.

use crate::base::{Bytes, counted, human};
use crate::doctor::budget::Budget;
use crate::doctor::facts::{GroupMemory, percent};
use crate::doctor::filled;
use crate::doctor::{Finding, JvmFacts, Level, Remedy};
use crate::map::Area;
use crate::map::model::AreaAccount;

pub const ID: &str = "container-limit";
/// Percentage of the limit from which the next burst of buffers or code brings the OOM killer.
pub const NEAR_PERCENT: f64 = 95.0;
/// Whether something grows is not known from one sample, so no size is more than a bound.
pub const ONE_LOOK: &str =
    "by what is used now, looked at once only: record it for an hour (`marusa record PID`) before setting it";

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let group = jvm.group.as_ref().ok()?.as_ref().filter(|group| group.limit_bytes > 0)?;
    let budget = Budget::of(jvm, group)?;
    let (full, limit, held) = (budget.full_bytes(), group.limit_bytes, group.held_bytes());
    let killed = group.events.get("oom_kill").copied().unwrap_or(0);
    let (is_near, does_not_fit) = (percent(held, limit) >= NEAR_PERCENT, full > limit);
    let level = match () {
        () if is_near || killed > 0 && does_not_fit => Level::Critical,
        () if does_not_fit || killed > 0 => Level::Warn,
        () => Level::Info,
    };
    let title = title(&budget, group, is_near, killed);
    let evidence = budget.evidence(jvm, group);
    let remedies = remedies(jvm, &budget, group, level);
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies))
}

fn title(budget: &Budget, group: &GroupMemory, is_near: bool, killed: u64) -> String {
    let (full, limit) = (human(budget.full_bytes()), human(group.limit_bytes));
    let before = if killed > 0 {
        format!("the kernel killed {} here before; ", counted(killed, "process"))
    } else {
        String::new()
    };
    match budget.heap_when_killed(group.limit_bytes) {
        _ if is_near => format!(
            "{before}{} of the limit of {limit} are taken now: the kernel kills when nothing is left",
            human(group.held_bytes())
        ),
        Some(heap) => format!(
            "{before}with its heap full it needs {full}, the limit is {limit}: it will be killed at {} of {} of heap",
            human(heap),
            human(budget.heap_max_bytes)
        ),
        None => format!(
            "{before}fits in {full} with its heap full, and the limit is {limit}; {} are taken now",
            human(group.held_bytes())
        ),
    }
}

fn remedies(jvm: &JvmFacts, budget: &Budget, group: &GroupMemory, level: Level) -> Vec<Remedy> {
    let limit = budget.limit_bytes();
    let assumed = "as measured, heap full, and a tenth (64 MiB at least) for what grows next to the heap";
    let mut remedies = Vec::new();
    if level > Level::Info {
        // A smaller heap does not make room that something else takes.
        let is_native = budget.outside_bytes > group.limit_bytes / 2;
        if let Some((area, bytes)) = largest_outside_heap(jvm).filter(|_| is_native) {
            remedies.extend(filled::of_area(
                area,
                &format!("has {}, the most of all next to the heap", human(bytes)),
            ));
        }
        let is_enough =
            |heap: &Bytes| *heap < budget.heap_max_bytes && (!is_native || *heap >= budget.heap_bytes);
        if let Some(heap) = budget.heap_for(group.limit_bytes).filter(is_enough) {
            remedies.push(Remedy::Advice(format!("-Xmx{}m at most, {ONE_LOOK}", heap >> 20)));
        }
    }
    let size = format!("a limit of {} at least for this -Xmx ({assumed}), {ONE_LOOK}", human(limit));
    remedies.push(Remedy::Advice(size));
    remedies
}

/// By private memory, as the limit counts it.
fn largest_outside_heap(jvm: &JvmFacts) -> Option<(Area, Bytes)> {
    let private = |area: &AreaAccount| Some((area.area, area.amounts.anonymous_bytes?));
    jvm.areas_outside_the_heap().filter_map(private).max_by_key(|(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{G, M, healthy_jvm, set_resident};

    /// The healthy JVM has -Xmx2g and 1.2 GiB in memory.
    fn with(limit: Bytes, current: Bytes, killed: u64) -> JvmFacts {
        let mut jvm = healthy_jvm();
        jvm.group = Ok(Some(GroupMemory {
            path: "/sys/fs/cgroup/app".to_string(),
            limit_file: "/sys/fs/cgroup/app/memory.max".to_string(),
            limit_bytes: limit,
            current_bytes: current,
            events: [("oom_kill".to_string(), killed)].into(),
            ..GroupMemory::default()
        }));
        jvm
    }

    fn level(limit: Bytes, current: Bytes, killed: u64) -> Option<Level> {
        find(&with(limit, current, killed)).map(|finding| finding.level)
    }

    #[test]
    fn no_limit_no_word() {
        assert_eq!(find(&healthy_jvm()), None);
        assert_eq!(level(0, G, 0), None);
    }

    #[test]
    fn what_fits_what_will_not_and_what_is_about_to_be_killed() {
        let current = 1250 * M;
        assert_eq!(level(4 * G, current, 0), Some(Level::Info));
        assert_eq!(level(4 * G, current, 1), Some(Level::Warn));
        assert_eq!(level(2 * G, current, 0), Some(Level::Warn));
        assert_eq!(level(2 * G, current, 1), Some(Level::Critical));
        assert_eq!(level(1280 * M, current, 0), Some(Level::Critical), "97 %");
        let finding = find(&with(2 * G, current, 0)).expect("limited");
        assert!(finding.title.ends_with("of 2.0 GiB of heap"), "{}", finding.title);
        let texts: Vec<&str> = finding.remedies.iter().map(Remedy::text).collect();
        assert!(texts[0].starts_with("-Xmx14"), "{texts:?}");
        assert!(texts[1].starts_with("a limit of ") && texts[1].contains(" at least"), "{texts:?}");
        assert!(texts.iter().all(|text| text.contains("record it for an hour")), "{texts:?}");
        let mut native = with(2 * G, 1950 * M, 1);
        set_resident(&mut native, Area::MallocUnknown, 1100 * M);
        let texts: Vec<String> =
            find(&native).expect("limited").remedies.iter().map(|remedy| remedy.text().to_string()).collect();
        assert!(texts[0].contains("'malloc, owner unknown' has 1.1 GiB"), "{texts:?}");
        assert!(!texts.iter().any(|text| text.starts_with("-Xmx")), "the heap has more already: {texts:?}");
        let fits = find(&with(4 * G, current, 0)).expect("limited");
        assert!(fits.title.starts_with("fits in 2.4 GiB"), "{}", fits.title);
        assert_eq!(fits.remedies.len(), 1);
    }
}
