//! The rows of a ledger: the figures of the cgroup, divided among the processes, files and mounts that were seen.

use super::model::{Item, Ledger, Part, Row, reclaim};
use crate::base::Bytes;
use crate::map::split::apportion;
use crate::os::group_files::{GroupFile, TmpfsMount};
use crate::os::group_stat::GroupStat;
use std::cmp::Reverse;

/// A process of the cgroup.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    pub pid: i32,
    pub command: String,
    /// Its part of pages that it shares with others counts once where that is known.
    pub anon_bytes: Bytes,
    pub page_table_bytes: Bytes,
    pub threads: u64,
    /// The areas of a JVM: their anonymous memory.
    pub areas: Vec<Part>,
}

/// Who may have the memory of a cgroup.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    pub members: Vec<Member>,
    pub files: Vec<GroupFile>,
    pub mounts: Vec<TmpfsMount>,
    /// The kernel stack of one thread; `None`: not known.
    pub kernel_stack_bytes: Option<Bytes>,
    /// Rows that no figure of a cgroup has.
    pub others: Vec<Row>,
}

impl Ledger {
    /// With the `top` largest rows of each item; the smaller ones are one row.
    pub fn of(stat: &GroupStat, seen: &Seen, top: usize) -> Ledger {
        let mut rows = anonymous(stat, &seen.members);
        rows.extend(page_cache(stat, &seen.files));
        rows.extend(shared_memory(stat, seen));
        rows.extend(kernel(stat, seen));
        rows.extend(seen.others.iter().cloned());
        let mut ledger = Ledger {
            version: Some(stat.version),
            cgroup_bytes: Some(stat.usage_bytes),
            total_bytes: stat.usage_bytes,
            working_set_bytes: Some(stat.working_set_bytes()),
            reclaim: reclaim(stat),
            events: stat.events.clone(),
            outside: outside(stat),
            processes: seen.members.len() as u64,
            ..Ledger::default()
        };
        ledger.close(rows, top, "memory that is charged ahead, 64 pages a CPU, and what no counter names");
        ledger
    }

    /// Sorts and folds the rows, and adds what is left of the sum as the last.
    pub fn close(&mut self, mut rows: Vec<Row>, top: usize, rest: &str) {
        rows.retain(|row| row.bytes != 0 || row.seen_bytes.is_some_and(|bytes| bytes > 0));
        rows.sort_by_key(|row| (row.item, Reverse(row.bytes), Reverse(row.seen_bytes), row.pid));
        let named: i128 = rows.iter().map(|row| i128::from(row.bytes)).sum();
        let rest_bytes = i128::from(self.total_bytes) - named;
        self.rows = folded(rows, top);
        self.rows.push(row(Item::Remainder, i64::try_from(rest_bytes).unwrap_or(i64::MIN), rest));
    }
}

pub fn row(item: Item, bytes: i64, how: &str) -> Row {
    Row { item, name: None, pid: None, bytes, seen_bytes: None, how: how.to_string(), parts: Vec::new() }
}

fn source(stat: &GroupStat) -> &'static str {
    if stat.version == 0 { "/proc/meminfo" } else { "memory.stat" }
}

/// Bytes of the kernel are below 2^63.
pub fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The `top` largest of each item, and the rest of them as one. `rows` are sorted.
fn folded(rows: Vec<Row>, top: usize) -> Vec<Row> {
    let mut kept: Vec<Row> = Vec::new();
    for of_item in rows.chunk_by(|a, b| a.item == b.item) {
        let (shown, rest) = of_item.split_at(of_item.len().min(top));
        kept.extend_from_slice(shown);
        kept.extend(match rest {
            [] => None,
            [only] => Some(only.clone()),
            [first, ..] => Some(folded_into(first, rest)),
        });
    }
    kept
}

fn folded_into(first: &Row, rest: &[Row]) -> Row {
    let bytes = rest.iter().map(|row| row.bytes).sum();
    let seen = |row: &Row| row.seen_bytes.unwrap_or(row.bytes.unsigned_abs());
    let seen = rest.iter().fold(0, |sum: Bytes, row| sum.saturating_add(seen(row)));
    Row {
        name: Some(format!("{} more", rest.len())),
        seen_bytes: rest.iter().any(|row| row.seen_bytes.is_some()).then_some(seen),
        ..row(first.item, bytes, &first.how)
    }
}

/// One row for each claim, cut to `most` together, and what of `most` they leave.
fn divided(claims: Vec<(Row, Bytes)>, most: Bytes) -> (Vec<Row>, Bytes) {
    let all: Vec<Bytes> = claims.iter().map(|(_, bytes)| *bytes).collect();
    let sum: u128 = all.iter().map(|bytes| u128::from(*bytes)).sum();
    let given = if sum <= u128::from(most) { all } else { apportion(most, &all) };
    let left = most - given.iter().sum::<Bytes>();
    let fill = |((row, claimed), bytes): ((Row, Bytes), Bytes)| Row {
        bytes: signed(bytes),
        seen_bytes: (claimed != bytes).then_some(claimed),
        ..row
    };
    (claims.into_iter().zip(given).map(fill).collect(), left)
}

fn anonymous(stat: &GroupStat, members: &[Member]) -> Vec<Row> {
    let claim = |member: &Member| {
        let name = Some(member.command.clone());
        let row = Row { name, pid: Some(member.pid), ..row(Item::Anonymous, 0, "/proc/PID/status") };
        (Row { parts: member.areas.clone(), ..row }, member.anon_bytes)
    };
    let (mut rows, left) = divided(members.iter().map(claim).collect(), stat.anon_bytes);
    rows.push(row(Item::AnonymousOther, signed(left), source(stat)));
    let unmapped = stat.unmapped_anon_bytes();
    rows.push(row(Item::AnonymousUnmapped, signed(unmapped), source(stat)));
    rows
}

fn files(files: &[GroupFile], item: Item, is_shmem: bool) -> Vec<(Row, Bytes)> {
    let claim = |file: &GroupFile| {
        let row = Row { name: Some(file.path.clone()), pid: Some(file.pid), ..row(item, 0, file.how) };
        (row, file.cached_bytes)
    };
    files.iter().filter(|file| file.is_shmem == is_shmem).map(claim).collect()
}

fn page_cache(stat: &GroupStat, seen: &[GroupFile]) -> Vec<Row> {
    let (mut rows, left) = divided(files(seen, Item::PageCache, false), stat.page_cache_bytes());
    rows.push(row(Item::PageCacheOther, signed(left), source(stat)));
    rows
}

/// Files that are open or mapped, then by mount what else their file systems have.
fn shared_memory(stat: &GroupStat, seen: &Seen) -> Vec<Row> {
    let (mut rows, left) = divided(files(&seen.files, Item::SharedMemory, true), stat.shmem_bytes);
    let claim = |mount: &TmpfsMount| {
        let row = Row { name: Some(mount.at.clone()), ..row(Item::Tmpfs, 0, "statfs") };
        (row, mount.used_bytes.saturating_sub(mount.named_bytes))
    };
    let (mounts, left) = divided(seen.mounts.iter().map(claim).collect(), left);
    rows.extend(mounts);
    rows.push(row(Item::SharedMemoryOther, signed(left), source(stat)));
    rows
}

/// The kernel's memory. Version 1 has its sum alone, version 2 no page tables before Linux 5.11: stacks and page tables are
/// counted by the processes.
fn kernel(stat: &GroupStat, seen: &Seen) -> Vec<Row> {
    let threads: u64 = seen.members.iter().map(|member| member.threads).sum();
    let stacks = seen.kernel_stack_bytes.map(|each| each.saturating_mul(threads));
    let tables: Bytes =
        seen.members.iter().fold(0, |sum, member| sum.saturating_add(member.page_table_bytes));
    let mut left = stat.kernel_bytes.unwrap_or(Bytes::MAX);
    let mut rows = Vec::new();
    let mut take = |item, counted: Option<Bytes>, of_processes: Option<Bytes>, how: &str| {
        let (bytes, how) = match (counted, of_processes) {
            (Some(bytes), _) => (bytes, source(stat)),
            (None, Some(bytes)) => (bytes, how),
            (None, None) => return,
        };
        let bytes = bytes.min(left);
        left -= bytes;
        rows.push(row(item, signed(bytes), how));
    };
    take(Item::KernelStacks, stat.kernel_stack_bytes, stacks, "by the number of threads");
    take(Item::PageTables, stat.page_table_bytes, Some(tables), "/proc/PID/status");
    take(Item::SecondaryPageTables, stat.secondary_page_table_bytes, None, "");
    take(Item::Percpu, stat.percpu_bytes, None, "");
    take(Item::Vmalloc, stat.vmalloc_bytes, None, "");
    take(Item::SlabReclaimable, stat.slab_reclaimable_bytes, None, "");
    take(Item::SlabUnreclaimable, stat.slab_unreclaimable_bytes, None, "");
    take(Item::Zswap, stat.zswap_bytes, None, "");
    if stat.kernel_bytes.is_some() {
        let how = if stat.version == 1 {
            "memory.kmem.usage_in_bytes: slab, per-CPU and other"
        } else {
            source(stat)
        };
        rows.push(row(Item::KernelOther, signed(left), how));
    }
    let sockets = stat.socket_bytes.filter(|_| stat.version != 1);
    rows.extend(sockets.map(|bytes| row(Item::Sockets, signed(bytes), source(stat))));
    rows.extend(stat.hugetlb_bytes.map(|bytes| row(Item::Hugetlb, signed(bytes), source(stat))));
    rows
}

fn outside(stat: &GroupStat) -> Vec<Row> {
    let tcp = stat.socket_bytes.filter(|bytes| stat.version == 1 && *bytes > 0);
    let tcp = tcp
        .map(|bytes| row(Item::Sockets, signed(bytes), "memory.kmem.tcp.usage_in_bytes: a limit of its own"));
    tcp.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Ledger {
        /// The ledger of the figures alone, without a reading of the processes.
        pub fn of_stat(stat: &GroupStat) -> Ledger {
            Ledger::of(stat, &Seen::default(), usize::MAX)
        }

        pub fn rows_of(&self, item: Item) -> impl Iterator<Item = &Row> {
            self.rows.iter().filter(move |row| row.item == item)
        }
    }

    fn member(pid: i32, anon_bytes: Bytes) -> Member {
        Member {
            pid,
            command: format!("p{pid}"),
            anon_bytes,
            page_table_bytes: 10,
            threads: 2,
            ..Member::default()
        }
    }
    fn file(path: &str, cached_bytes: Bytes, is_shmem: bool) -> GroupFile {
        GroupFile { path: path.to_string(), cached_bytes, is_shmem, pid: 1, how: "cachestat" }
    }
    fn sum(ledger: &Ledger) -> i128 {
        ledger.rows.iter().map(|row| i128::from(row.bytes)).sum()
    }
    fn of(ledger: &Ledger, item: Item) -> Vec<(Option<&str>, i64)> {
        ledger.rows_of(item).map(|row| (row.name.as_deref(), row.bytes)).collect()
    }

    const STAT: GroupStat = GroupStat {
        version: 2,
        usage_bytes: 2_000,
        anon_bytes: 700,
        file_bytes: 900,
        shmem_bytes: 300,
        swap_cache_bytes: 50,
        kernel_bytes: Some(200),
        kernel_stack_bytes: Some(32),
        page_table_bytes: Some(40),
        secondary_page_table_bytes: Some(0),
        percpu_bytes: Some(8),
        vmalloc_bytes: Some(0),
        slab_reclaimable_bytes: Some(60),
        slab_unreclaimable_bytes: Some(20),
        zswap_bytes: Some(15),
        socket_bytes: Some(70),
        hugetlb_bytes: None,
        inactive_anon_bytes: 600,
        active_anon_bytes: 430,
        inactive_file_bytes: 100,
        active_file_bytes: 450,
        unevictable_bytes: 0,
        swapped_bytes: Some(0),
        events: std::collections::BTreeMap::new(),
        moved_bytes: 0,
    };

    #[test]
    fn before_5_11_page_tables_are_those_of_the_processes() {
        let stat = GroupStat { kernel_bytes: None, page_table_bytes: None, ..STAT };
        let seen = Seen { members: vec![member(1, 100), member(2, 100)], ..Seen::default() };
        let ledger = Ledger::of(&stat, &seen, 10);
        assert_eq!(of(&ledger, Item::PageTables), [(None, 20)]);
    }

    #[test]
    fn rows_sum_to_the_figure_and_the_rest_is_the_last() {
        let seen = Seen {
            members: vec![member(1, 500), member(2, 100)],
            files: vec![file("/a", 400, false), file("/b", 50, false), file("/dev/shm/x", 100, true)],
            mounts: vec![TmpfsMount { at: "/tmp".to_string(), used_bytes: 180, named_bytes: 100 }],
            kernel_stack_bytes: Some(16_384),
            ..Seen::default()
        };
        let ledger = Ledger::of(&STAT, &seen, 10);
        assert_eq!(sum(&ledger), 2_000);
        assert_eq!(
            ledger.rows.last().map(|row| (row.item, row.bytes)),
            Some((Item::Remainder, 2_000 - 700 - 30 - 550 - 300 - 200 - 70))
        );
        assert_eq!(of(&ledger, Item::Anonymous), [(Some("p1"), 500), (Some("p2"), 100)]);
        assert_eq!(of(&ledger, Item::AnonymousOther), [(None, 100)]);
        assert_eq!(of(&ledger, Item::AnonymousUnmapped), [(None, 30)]);
        assert_eq!(of(&ledger, Item::PageCacheOther), [(None, 100)]);
        assert_eq!(of(&ledger, Item::Tmpfs), [(Some("/tmp"), 80)]);
        assert_eq!(of(&ledger, Item::SharedMemoryOther), [(None, 120)]);
        assert_eq!(of(&ledger, Item::KernelOther), [(None, 25)]);
        assert_eq!(ledger.working_set_bytes, Some(1_900));
    }

    #[test]
    fn processes_and_files_get_no_more_than_the_cgroup_was_charged() {
        let seen = Seen {
            members: vec![member(1, 1_000), member(2, 400)],
            files: vec![file("/lib", 5_000, false)],
            ..Seen::default()
        };
        let ledger = Ledger::of(&STAT, &seen, 10);
        assert_eq!(sum(&ledger), 2_000);
        assert_eq!(of(&ledger, Item::Anonymous), [(Some("p1"), 500), (Some("p2"), 200)]);
        let file = ledger.rows_of(Item::PageCache).next().expect("a row");
        assert_eq!((file.bytes, file.seen_bytes), (550, Some(5_000)));
        assert_eq!(of(&ledger, Item::AnonymousOther), []);
    }

    #[test]
    fn version_1_has_one_sum_for_the_kernel_and_tcp_outside() {
        let stat = GroupStat {
            version: 1,
            usage_bytes: 1_000,
            kernel_bytes: Some(100_000),
            socket_bytes: Some(7),
            anon_bytes: 1_500,
            ..GroupStat::default()
        };
        let seen = Seen { members: vec![member(1, 9)], kernel_stack_bytes: Some(16_384), ..Seen::default() };
        let ledger = Ledger::of(&stat, &seen, 10);
        assert_eq!(sum(&ledger), 1_000, "the remainder is negative where the counters moved");
        assert!(ledger.remainder_bytes() < 0);
        assert_eq!(of(&ledger, Item::KernelStacks), [(None, 32_768)]);
        assert_eq!(of(&ledger, Item::PageTables), [(None, 10)]);
        assert_eq!(of(&ledger, Item::KernelOther), [(None, 100_000 - 32_768 - 10)]);
        assert_eq!((of(&ledger, Item::Sockets).len(), ledger.outside[0].bytes), (0, 7));
    }

    #[test]
    fn small_rows_are_folded_into_one() {
        let files = (0..1_000).map(|at| file(&format!("/f{at}"), if at < 2 { 100 } else { 0 }, false));
        let seen = Seen {
            files: files.collect(),
            members: (1..7).map(|pid| member(pid, 10)).collect(),
            ..Seen::default()
        };
        let ledger = Ledger::of(&STAT, &seen, 3);
        assert_eq!(sum(&ledger), 2_000);
        assert_eq!(
            of(&ledger, Item::PageCache),
            [(Some("/f0"), 100), (Some("/f1"), 100)],
            "files without a page are not rows"
        );
        let rows = of(&ledger, Item::Anonymous);
        assert_eq!(rows[3..], [(Some("3 more"), 30)]);
    }

    #[test]
    fn the_figures_alone() {
        let ledger = Ledger::of_stat(&STAT);
        assert_eq!((sum(&ledger), of(&ledger, Item::PageCacheOther)), (2_000, vec![(None, 550)]));
        assert_eq!(Ledger::of_stat(&GroupStat::default()).rows.len(), 1);
    }
}
