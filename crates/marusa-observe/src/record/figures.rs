//! From an account, and from a sample between two accounts, to series, and back to the account of one moment.

use super::glance::Counters;
use super::history::History;
use super::key::{Key, Measure, Subject};
use super::moment::Moment;
use crate::base::Bytes;
use crate::map::Sums;
use crate::map::rows::{Named, Row};
use crate::os::group_memory::GroupMemory;
use crate::os::pressure::Pressure;
use crate::os::status::Status;

/// What a sample has.
pub type Figures = Vec<(Key, Option<u64>)>;

/// An account that was read at `at_ms` of the steady clock.
pub fn of_account(rows: Vec<Row>, at_ms: u64, took_us: u64, gaps: usize) -> Figures {
    let of_it = [
        (Key::process(Measure::AccountAt), Some(at_ms)),
        (Key::process(Measure::AccountTook), Some(took_us)),
        (Key::process(Measure::AccountGaps), Some(gaps as u64)),
    ];
    let rows = rows.into_iter().map(|(subject, measure, value)| (Key { subject, measure }, value));
    of_it.into_iter().chain(rows).collect()
}

/// The classes of a heap that was read at `at_ms` of the steady clock.
pub fn of_classes(rows: Vec<Row>, at_ms: u64) -> Figures {
    let rows = rows.into_iter().map(|(subject, measure, value)| (Key { subject, measure }, value));
    std::iter::once((Key::process(Measure::ClassesAt), Some(at_ms))).chain(rows).collect()
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
        of(Measure::OldCollections, counters.old_collections),
        of(Measure::CollectionTime, counters.collection_time_us),
        of(Measure::JavaThreads, counters.java_threads),
    ]
}

/// The cgroup whose limit is nearest; `None`: there is none.
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

/// What fills the cgroup whose limit is nearest, with the account.
pub fn of_group_rows(group: Option<&GroupMemory>) -> Figures {
    let row = |(name, bytes): (&String, &Bytes)| {
        let subject = Subject::Named(Named::CgroupRow, name.clone());
        (Key { subject, measure: Measure::Resident }, Some(*bytes))
    };
    group.iter().flat_map(|group| &group.rows).map(row).collect()
}

/// The account of one moment, as old as it was then. `None`: none had been read.
pub fn sums(history: &History, at: usize) -> Option<Sums> {
    history.process(Measure::AccountAt, at)?;
    let mut sums = Sums {
        kernel_resident: history.process(Measure::KernelResident, at),
        page_tables: history.process(Measure::PageTables, at),
        ..Sums::default()
    };
    let near = [Measure::HoldersAt, Measure::ClassesAt].map(|clock| (clock, near(history, clock, at)));
    for key in history.keys() {
        let clock = key.subject.clock();
        let at = near.iter().find(|(of, _)| *of == clock).map_or(Some(at), |(_, at)| *at);
        if let Some(value) = at.and_then(|at| history.value(key, at)) {
            sums.add(&key.subject, key.measure, value);
        }
    }
    Some(sums)
}

/// The moment whose holders, or classes, are the nearest to those of another: as read last, or, before the first time, first.
fn near(history: &History, clock: Measure, at: usize) -> Option<usize> {
    let reads = history.reads(clock);
    let before = reads.partition_point(|read| *read <= at).checked_sub(1);
    reads.get(before.unwrap_or(0)).copied()
}

/// When what has this clock in `sums` was read, by the clock on the wall.
pub fn read_at(history: &History, clock: Measure, at: usize) -> Option<String> {
    let near = near(history, clock, at)?;
    let (moment, age) = (history.moments.get(near)?, history.age_ms(clock, near)?);
    let wall_ms = moment.wall_ms.saturating_sub(i64::try_from(age).unwrap_or(0));
    Some(Moment { wall_ms, ..*moment }.wall())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Area;
    use crate::record::reader;
    use crate::record::writer::{JvmFacts, Scope, Session, Writer};

    fn rows() -> Vec<Row> {
        let (heap, gc) = (Subject::Area(Area::JavaHeap), Subject::Area(Area::Gc));
        let anon = Subject::Named(Named::CgroupRow, "anon".to_string());
        vec![
            (heap.clone(), Measure::Resident, Some(7)),
            (heap, Measure::InUse, None),
            (gc, Measure::Resident, Some(7)),
            (Subject::Part(Area::JavaHeap, "eden".to_string()), Measure::Swapped, Some(0)),
            (Subject::Arena(0x30), Measure::Number, Some(2)),
            (Subject::Arena(0x30), Measure::Freed, None),
            (Subject::Library("/lib/libc.so.6".to_string()), Measure::Reserved, Some(9)),
            (Subject::Threads("pool-#".to_string()), Measure::Threads, Some(4)),
            (anon, Measure::Resident, Some(5)),
        ]
    }

    fn account() -> Sums {
        let mut sums = Sums { kernel_resident: Some(70), page_tables: Some(3), ..Sums::default() };
        for (subject, measure, value) in rows() {
            value.into_iter().for_each(|value| sums.add(&subject, measure, value));
        }
        assert_eq!(sums.areas[&Area::JavaHeap].in_use, None);
        assert_eq!((sums.arenas[&0x30].freed, sums.named.len()), (None, 1));
        sums
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
        let figures = [of_account(rows(), 40, 17_000, 2), of_status(&status)].concat();
        writer.sample(jvm, Moment { steady_ms: 50, wall_ms: 50 }, Scope::Account, &figures);
        let recording = reader::read(&[&writer.take()]).expect("a recording");
        let history = &recording.jvms[0];
        assert_eq!(sums(history, 0), Some(account()));
        assert_eq!(history.account_age_ms(0), Some(10));
        assert_eq!(history.process(Measure::KernelSwapped, 0), None);
    }

    #[test]
    fn without_an_account_there_is_none() {
        let mut writer = Writer::new(&Session::default());
        let jvm = writer.jvm(JvmFacts::default());
        writer.sample(jvm, Moment::default(), Scope::Glance, &of_status(&Status::default()));
        let recording = reader::read(&[&writer.take()]).expect("a recording");
        assert_eq!((recording.jvms[0].len(), sums(&recording.jvms[0], 0)), (1, None));
    }

    /// Accounts each second, the holders with the second and the fourth.
    #[test]
    fn holders_are_those_read_last_and_before_the_first_time_those_read_first() {
        let mut writer = Writer::new(&Session::default());
        let jvm = writer.jvm(JvmFacts::default());
        let held = Subject::Named(Named::Holder, "a.B.c".to_string());
        for second in 0..5 {
            let at = Moment { steady_ms: second * 1000, wall_ms: second as i64 * 1000 };
            let mut figures = vec![(Key::process(Measure::AccountAt), Some(at.steady_ms))];
            let mut scope = Scope::Account;
            if second % 2 == 1 {
                scope = Scope::AccountWithHolders;
                figures.push((Key::process(Measure::HoldersAt), Some(at.steady_ms)));
                figures.push((Key::of(&held, Measure::InUse), Some(second)));
            }
            writer.sample(jvm, at, scope, &figures);
        }
        let recording = reader::read(&[&writer.take()]).expect("a recording");
        let history = &recording.jvms[0];
        let of = |at: usize| {
            let sum = sums(history, at).expect("an account").named.into_values().next().expect("a holder");
            (sum.in_use.expect("bytes"), read_at(history, Measure::HoldersAt, at).expect("a time"))
        };
        let (first, last) =
            ((1, "1970-01-01T00:00:01Z".to_string()), (3, "1970-01-01T00:00:03Z".to_string()));
        assert_eq!([0, 1, 2, 3, 4].map(of), [first.clone(), first.clone(), first, last.clone(), last]);
    }
}
