//! From an account, and from a look between two accounts, to series, and back to the account of one moment.

use super::glance::Counters;
use super::history::History;
use super::key::{Key, Measure, Subject};
use crate::base::Bytes;
use crate::map::Area;
use crate::map::sums::{ArenaSum, Sum, Sums, ThreadSum, old};
use crate::os::group_memory::GroupMemory;
use crate::os::pressure::Pressure;
use crate::os::status::Status;

/// What a sample has.
pub type Figures = Vec<(Key, Option<u64>)>;

/// An account that was read at `at_ms` of the steady clock.
pub fn of_account(sums: &Sums, at_ms: u64, took_us: u64, gaps: usize) -> Figures {
    let mut figures = vec![
        (Key::process(Measure::AccountAt), Some(at_ms)),
        (Key::process(Measure::AccountTook), Some(took_us)),
        (Key::process(Measure::AccountGaps), Some(gaps as u64)),
    ];
    for (area, sum) in &sums.areas {
        add_sum(&mut figures, Subject::Area(*area), sum);
    }
    for ((area, part), sum) in &sums.parts {
        add_sum(&mut figures, Subject::Part(*area, part.clone()), sum);
    }
    for (path, sum) in &sums.libraries {
        add_sum(&mut figures, Subject::Library(path.clone()), sum);
    }
    for (at, arena) in &sums.arenas {
        let subject = Subject::Arena(*at);
        let mut add = |measure, value| figures.push((Key::of(&subject, measure), value));
        add(Measure::Number, Some(arena.number));
        add(Measure::Resident, Some(arena.resident));
        add(Measure::Freed, arena.freed);
        add(Measure::InUse, arena.in_use);
    }
    for (name, threads) in &sums.threads {
        let subject = Subject::Threads(name.clone());
        let mut add = |measure, value| figures.push((Key::of(&subject, measure), Some(value)));
        add(Measure::Threads, threads.threads);
        add(Measure::Reserved, threads.reserved);
        add(Measure::Resident, threads.resident);
    }
    figures
}

fn add_sum(figures: &mut Figures, subject: Subject, sum: &Sum) {
    for (measure, value) in [
        (Measure::Reserved, Some(sum.reserved)),
        (Measure::Committed, Some(sum.committed)),
        (Measure::Resident, Some(sum.resident)),
        (Measure::InUse, sum.in_use),
        (Measure::Swapped, sum.swapped),
    ] {
        figures.push((Key::of(&subject, measure), value));
    }
}

/// The kernel's own sums.
pub fn of_status(status: &Status) -> Figures {
    let of = |measure, value| (Key::process(measure), value);
    vec![
        of(Measure::KernelResident, status.resident_with_hugetlb_bytes()),
        of(Measure::KernelAnonymous, status.resident_anon_bytes),
        of(Measure::KernelFile, status.resident_file_bytes),
        of(Measure::KernelShared, status.resident_shmem_bytes),
        of(Measure::KernelHugetlb, status.hugetlb_bytes),
        of(Measure::KernelSwapped, status.swapped_bytes),
        of(Measure::PageTables, status.page_table_bytes),
        of(Measure::Virtual, status.vm_size_bytes),
        of(Measure::Tasks, status.threads),
    ]
}

/// What the runtime counts of itself.
pub fn of_counters(counters: &Counters) -> Figures {
    let of = |measure, value| (Key::process(measure), value);
    vec![
        of(Measure::HeapUsed, counters.heap_used_bytes),
        of(Measure::HeapCapacity, counters.heap_capacity_bytes),
        of(Measure::MetaspaceUsed, counters.metaspace_used_bytes),
        of(Measure::MetaspaceCapacity, counters.metaspace_capacity_bytes),
        of(Measure::ClassesLoaded, counters.classes_loaded),
        of(Measure::ClassesUnloaded, counters.classes_unloaded),
        of(Measure::Collections, counters.collections),
        of(Measure::CollectionTime, counters.collection_time_us),
        of(Measure::JavaThreads, counters.java_threads),
    ]
}

/// The control group whose limit is nearest; `None`: there is none.
pub fn of_group(group: Option<&GroupMemory>, pressure: Option<&Pressure>) -> Figures {
    let of = |measure, value| (Key::process(measure), value);
    let event = |name: &str| group.and_then(|group| group.events.get(name).copied());
    vec![
        of(Measure::GroupLimit, group.map(|group| group.limit_bytes)),
        of(Measure::GroupCurrent, group.map(|group| group.current_bytes)),
        of(Measure::GroupReclaimable, group.map(|group| group.reclaimable_bytes)),
        of(Measure::GroupMaxEvents, event("max")),
        of(Measure::GroupHighEvents, event("high")),
        of(Measure::GroupOomKills, event("oom_kill")),
        of(Measure::PressureSome, pressure.map(|pressure| pressure.some_us)),
        of(Measure::PressureFull, pressure.map(|pressure| pressure.full_us)),
    ]
}

/// The account of one moment, as old as it was then. `None`: none had been read.
pub fn sums(history: &History, at: usize) -> Option<Sums> {
    history.process(Measure::AccountAt, at)?;
    let mut sums = Sums {
        kernel_resident: history.process(Measure::KernelResident, at),
        page_tables: history.process(Measure::PageTables, at),
        ..Sums::default()
    };
    for key in history.keys() {
        let Some(value) = history.value(key, at) else { continue };
        match &key.subject {
            Subject::Process => {}
            Subject::Area(area) => set_sum(sums.areas.entry(*area).or_default(), key.measure, value),
            Subject::Part(area, part) => {
                set_sum(sums.parts.entry((*area, part.clone())).or_default(), key.measure, value);
            }
            Subject::Library(path) => {
                set_sum(sums.libraries.entry(path.clone()).or_default(), key.measure, value);
            }
            Subject::Arena(address) => {
                set_arena(sums.arenas.entry(*address).or_default(), key.measure, value);
            }
            Subject::Threads(name) => {
                set_threads(sums.threads.entry(name.clone()).or_default(), key.measure, value);
            }
        }
    }
    old::renew(&mut sums);
    Some(sums)
}

fn set_sum(sum: &mut Sum, measure: Measure, value: Bytes) {
    match measure {
        Measure::Reserved => sum.reserved = value,
        Measure::Committed => sum.committed = value,
        Measure::Resident => sum.resident = value,
        Measure::InUse => sum.in_use = Some(value),
        Measure::Swapped => sum.swapped = Some(value),
        _ => {}
    }
}

fn set_arena(arena: &mut ArenaSum, measure: Measure, value: u64) {
    match measure {
        Measure::Number => arena.number = value,
        Measure::Resident => arena.resident = value,
        Measure::Freed => arena.freed = Some(value),
        Measure::InUse => arena.in_use = Some(value),
        _ => {}
    }
}

fn set_threads(threads: &mut ThreadSum, measure: Measure, value: u64) {
    match measure {
        Measure::Threads => threads.threads = value,
        Measure::Reserved => threads.reserved = value,
        Measure::Resident => threads.resident = value,
        _ => {}
    }
}

/// The resident bytes of each area, one figure a moment: what is drawn.
pub fn areas(history: &History) -> Vec<(Area, Vec<Option<Bytes>>)> {
    let of = |area: &Area| {
        let series = history.series(&Key::of(&Subject::Area(*area), Measure::Resident));
        series.iter().any(Option::is_some).then_some((*area, series))
    };
    Area::ALL.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Moment;
    use crate::record::reader;
    use crate::record::writer::{JvmFacts, Scope, Session, Writer};

    fn account() -> Sums {
        let sum = Sum { reserved: 9, committed: 8, resident: 7, in_use: None, swapped: Some(0) };
        Sums {
            kernel_resident: Some(70),
            page_tables: Some(3),
            areas: [(Area::JavaHeap, Sum { in_use: Some(5), ..sum }), (Area::Gc, sum)].into(),
            parts: [((Area::JavaHeap, "eden".to_string()), sum)].into(),
            arenas: [(0x30, ArenaSum { number: 2, resident: 6, freed: None, in_use: Some(1) })].into(),
            libraries: [("/lib/libc.so.6".to_string(), sum)].into(),
            threads: [("pool-#".to_string(), ThreadSum { threads: 4, reserved: 40, resident: 12 })].into(),
        }
    }

    #[test]
    fn an_account_comes_back_from_its_file_with_what_is_not_known_still_unknown() {
        let status = Status {
            resident_bytes: Some(70),
            page_table_bytes: Some(3),
            swapped_bytes: None,
            ..Status::default()
        };
        let mut writer = Writer::new(&Session::default());
        let jvm = writer.jvm(JvmFacts::default());
        let figures = [of_account(&account(), 40, 17_000, 2), of_status(&status)].concat();
        writer.sample(jvm, Moment { steady_ms: 50, wall_ms: 50 }, Scope::Account, &figures);
        let recording = reader::read(&[&writer.take()]).expect("a recording");
        let history = &recording.jvms[0];
        assert_eq!(sums(history, 0), Some(account()));
        assert_eq!(history.account_age_ms(0), Some(10));
        assert_eq!(history.process(Measure::KernelSwapped, 0), None);
        assert_eq!(areas(history), [(Area::JavaHeap, vec![Some(7)]), (Area::Gc, vec![Some(7)])]);
    }

    #[test]
    fn without_an_account_there_is_none() {
        let mut writer = Writer::new(&Session::default());
        let jvm = writer.jvm(JvmFacts::default());
        writer.sample(jvm, Moment::default(), Scope::Glance, &of_status(&Status::default()));
        let recording = reader::read(&[&writer.take()]).expect("a recording");
        assert_eq!((recording.jvms[0].len(), sums(&recording.jvms[0], 0)), (1, None));
    }
}
