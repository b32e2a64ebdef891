//! The account as rows: what (a subject), which figure of it (a measure), and the figure. Recordings, comparisons and exports take
//! these, so that a new subject is a line in `named` and a reader that makes its rows. The numbers of subjects and measures stand
//! in files: they are never given anew.

use super::area::Area;
use super::model::{Account, Amounts, ArenaAccount};
use super::sums::group_of;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// The sums of the kernel, of the runtime and of the cgroup.
    Process,
    Area(Area),
    Part(Area, String),
    /// By the address of its `malloc_state`.
    Arena(u64),
    /// By its path.
    Library(String),
    /// By what their names have in common (`sums::group_of`).
    Threads(String),
    /// One of many of a kind.
    Named(Named, String),
}

macro_rules! named {
    ($($number:literal $variant:ident $word:literal $title:literal;)*) => {
        /// Subjects that only have a name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Named { $($variant),* }

        impl Named {
            pub const ALL: &'static [Named] = &[$(Named::$variant),*];
            /// In files: `NAMED_MIN` and above.
            pub fn number(self) -> u8 {
                match self { $(Named::$variant => $number),* }
            }
            pub fn of_number(number: u8) -> Option<Named> {
                match number { $($number => Some(Named::$variant),)* _ => None }
            }
            /// The word of `--by` and of what is exported.
            pub fn word(self) -> &'static str {
                match self { $(Named::$variant => $word),* }
            }
            pub fn title(self) -> &'static str {
                match self { $(Named::$variant => $title),* }
            }
        }
    };
}

/// From this number on, a subject is a name: a reader that does not know the number can pass it over.
pub const NAMED_MIN: u8 = 16;

named! {
    16 CgroupRow "cgroup" "memory.stat of the cgroup";
    17 Holder "holder" "holders of malloc's blocks";
    18 Loader "loader" "class loaders";
    19 Compiled "compiled" "methods that were being compiled when JIT work jumped";
    20 Class "class" "classes of the Java heap's objects";
    21 Finding "finding" "findings of the doctor";
}

impl Named {
    /// By which they are sorted. The area of class metadata grows by what is committed.
    pub fn size(self) -> Measure {
        if self == Named::Loader { Measure::Committed } else { Measure::InUse }
    }

    pub fn count(self) -> Measure {
        match self {
            Named::Loader => Measure::ClassLoaders,
            Named::Class => Measure::Instances,
            _ => Measure::Blocks,
        }
    }
}

macro_rules! measures {
    ($($number:literal $variant:ident $name:literal;)*) => {
        /// What is measured. Names have their units last; they are the columns of what is exported.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Measure { $($variant),* }

        impl Measure {
            pub const ALL: &'static [Measure] = &[$(Measure::$variant),*];
            /// In files.
            pub fn number(self) -> u8 {
                match self { $(Measure::$variant => $number),* }
            }
            pub fn name(self) -> &'static str {
                match self { $(Measure::$variant => $name),* }
            }
            pub fn of_number(number: u8) -> Option<Measure> {
                match number { $($number => Some(Measure::$variant),)* _ => None }
            }
        }
    };
}

measures! {
    // Of the account, and so as old as it.
    1 Reserved "reserved_bytes";
    2 Committed "committed_bytes";
    3 Resident "resident_bytes";
    4 InUse "in_use_bytes";
    5 Swapped "swapped_bytes";
    6 Freed "freed_bytes";
    7 Number "arena";
    8 Threads "threads";
    9 ClassLoaders "class_loaders";
    10 Mappings "mappings";
    11 Arenas "malloc_arenas";
    12 Blocks "blocks";
    // Of a class: all objects, and the ones that are older than the last collection.
    13 Instances "instances";
    14 SurvivedBytes "survived_bytes";
    15 SurvivedInstances "survived_instances";
    // Of an area: bytes in 2 MiB pages and larger ones.
    16 Huge "huge_bytes";
    // Of a finding: how serious it is, from 1 on, and what it costs.
    17 Level "level";
    18 Cost "cost_bytes";
    // What malloc could give back.
    19 Trimmable "trimmable_bytes";
    // Of the kernel, each time (/proc/PID/status).
    20 KernelResident "kernel_resident_bytes";
    21 KernelAnonymous "kernel_anonymous_bytes";
    22 KernelFile "kernel_file_bytes";
    23 KernelShared "kernel_shared_bytes";
    24 KernelHugetlb "kernel_hugetlb_bytes";
    25 KernelSwapped "kernel_swapped_bytes";
    26 PageTables "page_table_bytes";
    27 Virtual "virtual_bytes";
    28 Tasks "tasks";
    // Of the runtime, each time; the VM itself brings them up to date at collections and class loads.
    40 HeapUsed "heap_used_bytes";
    41 HeapCapacity "heap_capacity_bytes";
    42 MetaspaceUsed "metaspace_used_bytes";
    43 MetaspaceCapacity "metaspace_capacity_bytes";
    44 ClassesLoaded "classes_loaded";
    45 ClassesUnloaded "classes_unloaded";
    46 Collections "collections";
    47 CollectionTime "collection_time_us";
    48 JavaThreads "java_threads";
    49 OldCollections "old_collections";
    // Of the cgroup whose limit is nearest, each time.
    60 GroupLimit "group_limit_bytes";
    61 GroupCurrent "group_current_bytes";
    62 GroupReclaimable "group_reclaimable_bytes";
    63 GroupMaxEvents "group_max_events";
    64 GroupHighEvents "group_high_events";
    65 GroupOomKills "group_oom_kills";
    66 PressureSome "pressure_some_us";
    67 PressureFull "pressure_full_us";
    // Of the reading itself.
    80 AccountAt "account_at_ms";
    81 AccountTook "account_took_us";
    82 AccountGaps "account_gaps";
    // When the holders were read: less often than the account, with a time of their own.
    83 HoldersAt "holders_at_ms";
    84 ClassesAt "classes_at_ms";
}

impl Measure {
    /// The ones that say when something was read.
    pub const CLOCKS: [Measure; 3] = [Measure::AccountAt, Measure::HoldersAt, Measure::ClassesAt];

    /// Whether it belongs to the account, which is read less often than the rest.
    pub fn is_of_account(self) -> bool {
        self.number() < 20 || matches!(self, Measure::AccountAt | Measure::AccountTook | Measure::AccountGaps)
    }
}

impl Subject {
    /// In files.
    pub fn number(&self) -> u8 {
        match self {
            Subject::Process => 0,
            Subject::Area(_) => 1,
            Subject::Part(..) => 2,
            Subject::Arena(_) => 3,
            Subject::Library(_) => 4,
            Subject::Threads(_) => 5,
            Subject::Named(kind, _) => kind.number(),
        }
    }

    /// The word of what is exported.
    pub fn word(&self) -> &'static str {
        match self {
            Subject::Process => "process",
            Subject::Area(_) => "area",
            Subject::Part(..) => "part",
            Subject::Arena(_) => "arena",
            Subject::Library(_) => "library",
            Subject::Threads(_) => "threads",
            Subject::Named(kind, _) => kind.word(),
        }
    }

    pub fn area(&self) -> Option<Area> {
        match self {
            Subject::Area(area) | Subject::Part(area, _) => Some(*area),
            _ => None,
        }
    }

    pub fn is_holder(&self) -> bool {
        self.is_named(Named::Holder)
    }

    /// What says when its figures were read.
    pub fn clock(&self) -> Measure {
        match self {
            Subject::Named(Named::Holder, _) => Measure::HoldersAt,
            Subject::Named(Named::Class, _) => Measure::ClassesAt,
            _ => Measure::AccountAt,
        }
    }

    pub fn is_named(&self, kind: Named) -> bool {
        matches!(self, Subject::Named(of, _) if *of == kind)
    }

    /// The text that distinguishes it from others of its word and area.
    pub fn name(&self) -> Option<String> {
        match self {
            Subject::Process | Subject::Area(_) => None,
            Subject::Arena(at) => Some(format!("{at:#x}")),
            Subject::Part(_, name)
            | Subject::Library(name)
            | Subject::Threads(name)
            | Subject::Named(_, name) => Some(name.clone()),
        }
    }
}

/// One figure; `None`: not known.
pub type Row = (Subject, Measure, Option<u64>);

impl Account {
    /// Everything that is compared and recorded. The kernel's own sums come with each sample, and not from here.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for area in &self.areas {
            add_amounts(&mut rows, Subject::Area(area.area), &area.amounts);
            rows.push((Subject::Area(area.area), Measure::Huge, area.amounts.huge_bytes()));
            if area.area == Area::MappedFile {
                rows.push((Subject::Area(area.area), Measure::Mappings, area.mappings));
            }
            for part in &area.parts {
                add_amounts(&mut rows, Subject::Part(area.area, part.part.clone()), &part.amounts);
            }
        }
        for library in &self.libraries {
            add_amounts(&mut rows, Subject::Library(library.path.clone()), &library.amounts);
        }
        for arena in self.malloc.iter().flat_map(|malloc| &malloc.arenas) {
            add_arena(&mut rows, arena);
        }
        let arenas = self.malloc.as_ref().map(|malloc| malloc.arenas.len() as u64).filter(|count| *count > 0);
        rows.push((
            Subject::Process,
            Measure::ClassLoaders,
            self.jvm.as_ref().and_then(|jvm| jvm.classes.as_ref()?.loaders),
        ));
        rows.push((Subject::Process, Measure::Arenas, arenas));
        rows.push((Subject::Process, Measure::Trimmable, self.trimmable_bytes()));
        self.add_threads(&mut rows);
        self.add_holders(&mut rows);
        self.add_loaders(&mut rows);
        self.add_compilations(&mut rows);
        rows
    }

    fn add_loaders(&self, rows: &mut Vec<Row>) {
        for group in self.loaders.iter().flatten() {
            let subject = Subject::Named(Named::Loader, group.title());
            rows.push((subject.clone(), Measure::InUse, group.metaspace_bytes));
            rows.push((subject.clone(), Measure::Committed, group.metaspace_committed_bytes));
            rows.push((subject, Measure::ClassLoaders, Some(group.loaders)));
        }
    }

    fn add_compilations(&self, rows: &mut Vec<Row>) {
        let mut sums: BTreeMap<String, (u64, Option<u64>)> = BTreeMap::new();
        for (_, compiling) in self.compilations() {
            let (threads, arenas) = sums.entry(compiling.title()).or_default();
            *threads += 1;
            *arenas =
                arenas.map_or(compiling.arena_bytes, |sum| Some(sum + compiling.arena_bytes.unwrap_or(0)));
        }
        for (name, (threads, arenas)) in sums {
            let subject = Subject::Named(Named::Compiled, name);
            rows.push((subject.clone(), Measure::Threads, Some(threads)));
            rows.push((subject, Measure::InUse, arenas));
        }
    }

    /// A library holds blocks in several ways: those of one name are one.
    fn add_holders(&self, rows: &mut Vec<Row>) {
        let mut sums: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
        for held in self.holders.iter().flatten() {
            let sum = sums.entry(&held.holder).or_default();
            *sum = [sum[0].saturating_add(held.bytes), sum[1].saturating_add(held.blocks)];
        }
        for (name, [bytes, blocks]) in sums {
            let subject = Subject::Named(Named::Holder, name.to_string());
            rows.push((subject.clone(), Measure::InUse, Some(bytes)));
            rows.push((subject, Measure::Blocks, Some(blocks)));
        }
    }

    /// Threads come and go under new numbers: those of alike names are one.
    fn add_threads(&self, rows: &mut Vec<Row>) {
        let mut groups: BTreeMap<String, [u64; 3]> = BTreeMap::new();
        for thread in &self.threads {
            let stack =
                thread.stack.as_ref().map_or((0, 0), |stack| (stack.reserved_bytes, stack.resident_bytes));
            let sums = groups.entry(group_of(&thread.name)).or_default();
            for (sum, more) in sums.iter_mut().zip([1, stack.0, stack.1]) {
                *sum = sum.saturating_add(more);
            }
        }
        for (name, sums) in groups {
            let measures = [Measure::Threads, Measure::Reserved, Measure::Resident];
            rows.extend(
                measures
                    .into_iter()
                    .zip(sums)
                    .map(|(measure, sum)| (Subject::Threads(name.clone()), measure, Some(sum))),
            );
        }
    }
}

fn add_amounts(rows: &mut Vec<Row>, subject: Subject, amounts: &Amounts) {
    for (measure, value) in [
        (Measure::Reserved, Some(amounts.reserved_bytes)),
        (Measure::Committed, Some(amounts.committed_bytes)),
        (Measure::Resident, Some(amounts.resident_bytes)),
        (Measure::InUse, amounts.in_use_bytes),
        (Measure::Swapped, amounts.swapped_bytes),
    ] {
        rows.push((subject.clone(), measure, value));
    }
}

/// Without its address it cannot be followed.
fn add_arena(rows: &mut Vec<Row>, arena: &ArenaAccount) {
    if arena.address.is_null() {
        return;
    }
    for (measure, value) in [
        (Measure::Number, Some(arena.arena as u64)),
        (Measure::Resident, Some(arena.resident_bytes)),
        (Measure::Freed, arena.sums.held_resident_bytes),
        (Measure::InUse, arena.sums.in_use_resident_bytes),
    ] {
        rows.push((Subject::Arena(arena.address.0), measure, value));
    }
}
