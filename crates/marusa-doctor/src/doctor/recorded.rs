//! Findings from a recording of a JVM that may be gone: the few rules that need only areas over time and the cgroup. They have
//! the ids and the thresholds of the rules of a running JVM, so `marusa doctor --explain ID` explains them too.

use super::facts::percent;
use super::filled::Filled;
use super::recorded_pools;
use super::rules::{container_limit, malloc_freed_held, unattributed_large};
use super::{Cost, Evidence, Finding, Level, Remedy};
use crate::base::printable::escaped;
use crate::base::{Bytes, human};
use crate::map::Area;
use crate::record::compiled;
use crate::record::headline::{self, Headline};
use crate::record::history::History;
use crate::record::key::{Measure, Named};
use crate::record::leak_row::{Row, What};
use crate::record::leaks;
use crate::record::writer::Ending;

/// How long before its end a killed JVM is looked at for who took the memory.
const BEFORE_MS: u64 = 60_000;

pub fn find(history: &History) -> Vec<Finding> {
    let limit = killed(history).or_else(|| near(history));
    let mut findings: Vec<Finding> =
        [limit, freed(history), unattributed(history), recorded_pools::find(history)]
            .into_iter()
            .flatten()
            .collect();
    findings.extend(growing(history, &leaks::judge(history, 0.0, f64::INFINITY, false)));
    findings.iter_mut().for_each(Finding::name_its_process);
    findings
}

/// What the headline of `leak` names, and nothing else.
fn growing(history: &History, rows: &[Row]) -> Vec<Finding> {
    let (headline, named) = headline::of(rows);
    let finding = |row: &&Row| {
        let (growth, pace) = (&row.growth, row.pace().max(0.0) as Bytes);
        let what = what_grows(row);
        let level = if headline == Headline::Early { Level::Info } else { Level::Warn };
        let how = match (headline, growth.bound_bytes) {
            (Headline::Early, _) => ", too early to call it unbounded".to_string(),
            (_, Some(bound)) => format!(", towards its bound of {}", human(bound)),
            _ => " without bound".to_string(),
        };
        let with = row.with.as_ref().map(|with| {
            let name = with.name.as_ref().map_or(String::new(), |name| format!(", {}", escaped(name)));
            let what = format!("{} more{name}", with.count.title());
            Evidence::count(what, with.grown.max(0) as u64, "the recording")
        });
        let held_by = row.held_by.iter().map(|holder| {
            let (how, from) = match holder.kind {
                Named::Holder => ("held by", "the accounts with holders"),
                Named::Class => ("objects of", "the class histograms"),
                _ => ("held by", "the recording"),
            };
            let what = format!("{how} {}, grown in an hour", escaped(&holder.name));
            Evidence::bytes(what, holder.pace() as Bytes, from)
        });
        let jumps = (row.what == What::Area(Area::JitWork)).then(|| compiled::jumps(history));
        let compiled = jumps.into_iter().flatten().map(|jump| {
            let what = format!("grown at once, while compiling {}", escaped(&jump.methods_in_words()));
            Evidence::bytes(what, jump.grown_bytes, "the recording")
        });
        let sizes = [
            Evidence::bytes("at the end", growth.level_bytes, "the recording"),
            Evidence::bytes("grown in an hour", pace, "the recording, as marusa leak judges it"),
        ];
        let title = format!(
            "{what} grows by {}/h{how}, seen since {:.0} s after the first sample",
            human(pace),
            growth.steady_from_seconds
        );
        let evidence = sizes.into_iter().chain(with).chain(held_by).chain(compiled);
        let remedies = [Remedy::advice(
            "marusa leak FILE --parts says which part grows; a size that is set now is reached later",
        )];
        Finding::on_jvm(history.facts.pid, level, title, evidence, remedies).of_rule("memory-grows")
    };
    named.iter().map(finding).collect()
}

fn what_grows(row: &Row) -> &'static str {
    match &row.what {
        What::Area(area) => area.title(),
        What::HeapInUse => "the live Java heap",
        _ => "all memory except the Java heap",
    }
}

fn killed(history: &History) -> Option<Finding> {
    let Some((_, Ending::KilledForMemory)) = history.ending else { return None };
    let last = history.len().checked_sub(1)?;
    let process = |measure| history.process(measure, last);
    let resident = process(Measure::KernelResident);
    let had = resident.map_or(String::new(), |bytes| format!("; it had {} at the last sample", human(bytes)));
    let mut evidence: Vec<Evidence> = [
        ("in memory, at the last sample", resident, "/proc/PID/status"),
        ("limit of its cgroup", process(Measure::GroupLimit), "the recording"),
        ("used of it, by all", process(Measure::GroupCurrent), "the recording"),
    ]
    .into_iter()
    .filter_map(|(what, bytes, source)| Some(Evidence::bytes(what, bytes?, source)))
    .collect();
    let since = history.at_or_before(history.moments[last].steady_ms.saturating_sub(BEFORE_MS))?;
    for (area, grown) in grown(history, since, last).into_iter().take(3) {
        evidence.push(Evidence::bytes(
            format!(
                "{}, grown in the {:.0} s before",
                area.title(),
                history.seconds(last) - history.seconds(since)
            ),
            grown,
            "the recording",
        ));
    }
    let title = format!("it ended when the kernel OOM-killed in its cgroup{had}");
    let remedies = filled(history, last).remedies();
    Some(
        Finding::on_jvm(history.facts.pid, Level::Critical, title, evidence, remedies)
            .of_rule(container_limit::ID),
    )
}

/// What was known at a moment of a limit and of who holds memory under it.
fn filled(history: &History, at: usize) -> Filled {
    let process = |measure| history.process(measure, at);
    let area = |area: &Area| Some((*area, history.resident(*area, at)?));
    let lately = history.moments.get(at).map_or(0, |moment| moment.steady_ms.saturating_sub(BEFORE_MS));
    let first = history.accounts().first().copied().unwrap_or(0);
    let held = |current: Bytes| current.saturating_sub(process(Measure::GroupReclaimable).unwrap_or(0));
    Filled {
        limit: process(Measure::GroupLimit).unwrap_or(0),
        held: process(Measure::GroupCurrent).map(held),
        resident: process(Measure::KernelResident),
        areas: Area::ALL.iter().filter_map(area).collect(),
        grown_lately: history.at_or_before(lately).map_or(Vec::new(), |since| grown(history, since, at)),
        grown_in_all: grown(history, first, at),
    }
}

/// The areas that grew, the most first.
fn grown(history: &History, since: usize, last: usize) -> Vec<(Area, Bytes)> {
    let grown = |area: &Area| {
        // Before the first account nothing is known: that is not growth from 0.
        history.process(Measure::AccountAt, since)?;
        let (before, after) = (history.resident(*area, since).unwrap_or(0), history.resident(*area, last)?);
        Some((*area, after.checked_sub(before).filter(|bytes| *bytes > 0)?))
    };
    let mut all: Vec<(Area, Bytes)> = Area::ALL.iter().filter_map(grown).collect();
    all.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    all
}

/// What cannot be reclaimed came near to the limit.
fn near(history: &History) -> Option<Finding> {
    let of_limit = |at: usize| {
        let limit = history.process(Measure::GroupLimit, at).filter(|limit| *limit > 0)?;
        Some((at, history.group_held(at)?, limit))
    };
    let (at, held, limit) = (0..history.len())
        .filter_map(of_limit)
        .max_by(|one, other| percent(one.1, one.2).total_cmp(&percent(other.1, other.2)))?;
    let share = percent(held, limit);
    if share < container_limit::NEAR_PERCENT {
        return None;
    }
    let title = format!(
        "{share:.0} % of its cgroup's limit of {} were taken, {:.0} s after the first sample",
        human(limit),
        history.seconds(at)
    );
    let evidence = [
        Evidence::bytes("taken, without what can be reclaimed", held, "the recording"),
        Evidence::bytes("limit", limit, "the recording"),
    ];
    let remedies = filled(history, at).remedies();
    Some(
        Finding::on_jvm(history.facts.pid, Level::Warn, title, evidence, remedies)
            .of_rule(container_limit::ID),
    )
}

/// An area at the last account, and its share of what was in memory.
fn last_of(history: &History, area: Area) -> Option<(Bytes, f64)> {
    let last = *history.accounts().last()?;
    let of = |area: Area| history.resident(area, last);
    let total = Area::ALL.iter().filter_map(|area| of(*area)).fold(0, Bytes::saturating_add);
    let bytes = of(area)?;
    Some((bytes, percent(bytes, total)))
}

fn freed(history: &History) -> Option<Finding> {
    let (bytes, share) = last_of(history, Area::MallocFreed)?;
    if bytes < malloc_freed_held::WORTH_BYTES || share < malloc_freed_held::INFO_PERCENT {
        return None;
    }
    let level = if share >= malloc_freed_held::WARN_PERCENT { Level::Warn } else { Level::Info };
    let title =
        format!("malloc held {} that the program freed, {share:.0} % of what was in memory", human(bytes));
    let evidence = [Evidence::bytes("freed, yet in memory", bytes, "the last account")];
    let remedies = [match history.ending {
        Some((_, ending)) if ending.is_gone() => malloc_freed_held::interval(false),
        _ => Remedy::Command(format!("marusa trim {} --dry-run", history.facts.pid)),
    }];
    let finding = Finding::on_jvm(history.facts.pid, level, title, evidence, remedies);
    Some(finding.of_rule("malloc-freed-held").costing(Cost::bytes(bytes)))
}

fn unattributed(history: &History) -> Option<Finding> {
    let (bytes, share) = last_of(history, Area::Unattributed)?;
    let is_large = bytes >= unattributed_large::WORTH_BYTES && share >= unattributed_large::WORTH_PERCENT;
    let title =
        format!("of {}, {share:.0} % of what was in memory, it is not known whose they were", human(bytes));
    let evidence = [Evidence::bytes("unattributed, in memory", bytes, "the last account")];
    let finding = Finding::on_jvm(history.facts.pid, Level::Info, title, evidence, []);
    is_large.then(|| finding.of_rule("unattributed-large").costing(Cost::bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::key::{Key, Subject as Of};
    use crate::record::writer::{JvmFacts, Scope, Session, Writer};
    use crate::record::{Moment, reader};

    const MIB: Bytes = 1 << 20;

    /// Two minutes of a JVM: what an area and the group had at first and at last, of a limit of 1 GiB.
    fn recorded(area: Area, bytes: [Bytes; 2], group: Bytes, ending: Option<Ending>) -> Vec<Finding> {
        recorded_of_group(area, bytes, group, Some(0), ending)
    }

    fn recorded_of_group(
        area: Area,
        bytes: [Bytes; 2],
        group: Bytes,
        reclaimable: Option<Bytes>,
        ending: Option<Ending>,
    ) -> Vec<Finding> {
        let mut writer = Writer::new(&Session::default());
        let jvm = writer.jvm(JvmFacts { pid: 7, ..JvmFacts::default() });
        let key = |area, measure| Key { subject: Of::Area(area), measure };
        let at = |steady_ms: u64| Moment { steady_ms, wall_ms: steady_ms as i64 };
        for (steady_ms, bytes) in [(0, bytes[0]), (119_000, bytes[1])] {
            let figures = [
                (Key::process(Measure::AccountAt), Some(steady_ms)),
                (Key::process(Measure::KernelResident), Some(400 * MIB + bytes)),
                (Key::process(Measure::GroupLimit), Some(1024 * MIB)),
                (Key::process(Measure::GroupCurrent), Some(group)),
                (Key::process(Measure::GroupReclaimable), reclaimable),
                (key(Area::JavaHeap, Measure::Resident), Some(400 * MIB)),
                (key(area, Measure::Resident), Some(bytes)),
            ];
            writer.sample(jvm, at(steady_ms), Scope::Account, &figures);
        }
        if let Some(ending) = ending {
            writer.ended(jvm, at(120_000), ending);
        }
        let recording = reader::read(&[&writer.take()]).expect("a recording");
        recording.jvms.iter().flat_map(find).collect()
    }

    #[test]
    fn a_quiet_recording_has_no_findings() {
        assert_eq!(recorded(Area::Stack, [MIB, MIB], 500 * MIB, Some(Ending::Ended)), []);
    }

    /// The prepared recordings, as a whole and as they were at two earlier times.
    #[test]
    fn an_area_is_said_to_grow_exactly_where_the_headline_of_leak_names_it() {
        for (name, jvm) in crate::record::prepared::jvms() {
            let history = jvm.history();
            for to in [180.0, 500.0, f64::INFINITY] {
                let rows = leaks::judge(&history, 0.0, to, false);
                let (headline, named) = headline::of(&rows);
                let found = growing(&history, &rows);
                let is_same = |(row, finding): (&&Row, &Finding)| {
                    finding.title.starts_with(&format!("{} grows by", what_grows(row)))
                        && (finding.level == Level::Warn) == (headline != Headline::Early)
                };
                assert_eq!(found.len(), named.len(), "{name}: {found:?} {named:?}");
                assert!(named.iter().zip(&found).all(is_same), "{name}: {found:?} {named:?}");
            }
        }
    }

    #[test]
    fn who_grew_before_a_kill_is_named() {
        let found =
            recorded(Area::DirectBuffers, [MIB, 301 * MIB], 1020 * MIB, Some(Ending::KilledForMemory));
        let [killed] = &found[..] else { panic!("one finding, not the limit once more: {found:?}") };
        assert_eq!((killed.id, killed.level), ("container-limit", Level::Critical));
        let grown = killed.evidence.last().expect("evidence");
        assert!(grown.what.starts_with("direct buffers, grown"), "{grown:?}");
        assert_eq!(grown.number, Some(300.0 * MIB as f64));
    }

    #[test]
    fn a_native_leak_gets_no_advice_of_a_smaller_heap() {
        let remedy = |found: Vec<Finding>| found[0].remedies[0].text().to_string();
        let killed = Some(Ending::KilledForMemory);
        let leak = [MIB, 590 * MIB];
        for ending in [killed, None] {
            let text = remedy(recorded(Area::MallocUnknown, leak, 1020 * MIB, ending));
            assert!(text.contains("'malloc, owner unknown' grew by 589.0 MiB"), "{text}");
            assert!(!text.starts_with("a smaller heap"), "{text}");
        }
        let quiet = remedy(recorded(Area::Stack, [90 * MIB, 90 * MIB], 900 * MIB, killed));
        assert!(
            quiet.starts_with("a smaller heap (-Xmx) or a larger limit: the Java heap had 400.0 MiB"),
            "{quiet}"
        );
        let others = remedy(recorded(Area::Stack, [MIB, MIB], 1020 * MIB, killed));
        assert!(others.contains("it had 401.0 MiB of the 1020 MiB"), "{others}");
    }

    #[test]
    fn a_limit_that_came_near_and_memory_that_malloc_held() {
        let found = recorded(Area::Stack, [MIB, MIB], 1000 * MIB, None);
        assert_eq!(
            found.iter().map(|one| (one.id, one.level)).collect::<Vec<_>>(),
            [("container-limit", Level::Warn)]
        );
        let of_group =
            |reclaimable| recorded_of_group(Area::Stack, [MIB, MIB], 1000 * MIB, reclaimable, None).len();
        assert_eq!((of_group(Some(600 * MIB)), of_group(None)), (0, 0), "page cache; or an unknown amount");
        let held = |bytes| recorded(Area::MallocFreed, [0, bytes], 0, None).first().map(|one| one.level);
        assert_eq!(
            (held(47 * MIB), held(50 * MIB), held(100 * MIB)),
            (None, Some(Level::Info), Some(Level::Warn))
        );
        let unknown = recorded(Area::Unattributed, [0, 100 * MIB], 0, None);
        assert_eq!(unknown.first().map(|one| one.id), Some("unattributed-large"));
    }
}
