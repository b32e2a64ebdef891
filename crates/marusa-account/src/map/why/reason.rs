//! Why bytes are on a page smaller than it could be, in words, and what would change it.

use super::cause::CauseId;
use crate::base::{Bytes, size};
use crate::map::Area;
use crate::map::page_claims::Asked;
use crate::os::machine::huge_page;

/// One reason. Each byte on a small page has exactly one: the first that prevents a larger one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The mapping is smaller than a huge page.
    TooSmall,
    /// It is large enough, but holds no aligned huge page.
    Unaligned,
    /// The mapping has aligned huge pages; these bytes lie before the first or after the last.
    Edge,
    /// Memory of the kernel or of a device.
    Special,
    /// MADV_NOHUGEPAGE; the kernel does so for stacks since 6.7.
    AdvisedAgainst { stack: bool },
    /// `THP_enabled: 0`.
    ProcessDisabled,
    /// The kernel has no transparent huge pages.
    NoTransparent,
    /// A file below /sys/kernel/mm says never.
    PolicyOff { file: String, mode: String },
    /// The file says madvise, and this memory was not advised.
    NotAdvised { file: String, mode: String, known_by: KnownBy },
    /// hugetlb was asked for, and the kernel has no pages of this size.
    NoHugetlb { page_bytes: Bytes },
    /// hugetlb was asked for; there is no pool.
    PoolOff { page_bytes: Bytes },
    /// hugetlb was asked for, and the pool had too few pages when the JVM started.
    PoolShort { page_bytes: Bytes, available: u64 },
    /// hugetlb was asked for, and a cgroup allows less.
    GroupLimit { page_bytes: Bytes, limit_bytes: Bytes, left_bytes: Bytes, file: String },
    /// thp is wanted, and the JVM asks for hugetlb; `behind`: what else prevents thp.
    HugetlbInstead { behind: Option<Box<Reason>> },
    /// Pages of hugetlb of this size are wanted, and the JVM does not ask for them; ZGC cannot for all sizes.
    HugetlbNotAsked { page_bytes: Bytes, zgc: bool },
    /// The same, of memory for which no JVM asks for them.
    NoHugetlbForIt { page_bytes: Bytes },
    /// Pages of a file, and a kernel without the option for them, or one that does not report it.
    NoKernelOption { known: bool },
    /// Pages of a file whose file system gives no huge ones.
    FileSystem,
    /// Pages of a file that were written to, so that the process has its own copy.
    PrivateCopy,
    /// A file of tmpfs: the mount decides.
    Tmpfs,
    /// Another size of pages was chosen.
    OtherSize { page_bytes: Bytes },
    /// A huge page that is mapped in small pieces.
    Split,
    /// Too much of the huge page was never touched.
    Hole,
    /// Nothing prevents it: a fault found no huge page, or it was touched before it could have one.
    NotYet { fallbacks: bool },
    /// The settings of the host are not known (a core, an old frozen file).
    NotKnown,
    /// Committed, but not in memory: no page of any size.
    NeverTouched,
}

/// How it is known that memory was not advised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KnownBy {
    /// The kernel's VmFlags.
    Kernel,
    /// The same, of memory for which the JVM's flag is on.
    DespiteFlag,
    /// -XX:UseTransparentHugePages is off.
    Flag,
    /// The JVM advises its heap, code cache and tables only.
    Habit,
}

impl Reason {
    /// Whether hugetlb was asked for and not given.
    pub fn is_of_hugetlb(&self) -> bool {
        matches!(
            self,
            Reason::NoHugetlb { .. }
                | Reason::PoolOff { .. }
                | Reason::PoolShort { .. }
                | Reason::GroupLimit { .. }
        )
    }

    pub fn id(&self) -> CauseId {
        match self {
            Reason::TooSmall => CauseId::TooSmall,
            Reason::Unaligned => CauseId::Unaligned,
            Reason::Edge => CauseId::Edge,
            Reason::Special => CauseId::Special,
            Reason::AdvisedAgainst { .. } => CauseId::AdvisedAgainst,
            Reason::ProcessDisabled => CauseId::ProcessDisabled,
            Reason::NoTransparent => CauseId::NoTransparent,
            Reason::PolicyOff { .. } => CauseId::PolicyOff,
            Reason::NotAdvised { .. } => CauseId::NotAdvised,
            Reason::NoHugetlb { .. } => CauseId::NoHugetlb,
            Reason::PoolOff { .. } => CauseId::PoolEmpty,
            Reason::PoolShort { .. } => CauseId::PoolShort,
            Reason::GroupLimit { .. } => CauseId::CgroupLimit,
            Reason::HugetlbInstead { .. } => CauseId::HugetlbInstead,
            Reason::HugetlbNotAsked { .. } => CauseId::HugetlbNotAsked,
            Reason::NoHugetlbForIt { .. } => CauseId::NoHugetlbForIt,
            Reason::NoKernelOption { .. } => CauseId::NoKernelOption,
            Reason::FileSystem => CauseId::FileSystem,
            Reason::PrivateCopy => CauseId::PrivateCopy,
            Reason::Tmpfs => CauseId::Tmpfs,
            Reason::OtherSize { .. } => CauseId::OtherSize,
            Reason::Split => CauseId::Split,
            Reason::Hole => CauseId::Hole,
            Reason::NotYet { .. } => CauseId::NotYet,
            Reason::NotKnown => CauseId::NotKnown,
            Reason::NeverTouched => CauseId::NeverTouched,
        }
    }

    /// What is so, short enough for a column.
    pub fn text(&self) -> String {
        match self {
            Reason::TooSmall => "its mapping is smaller than a huge page".into(),
            Reason::Unaligned => "its mapping holds no aligned huge page".into(),
            Reason::Edge => "head or tail of its mapping, outside whole huge pages".into(),
            Reason::Special => "memory of the kernel or of a device".into(),
            Reason::AdvisedAgainst { stack: true } => "a stack: the kernel keeps huge pages from it".into(),
            Reason::AdvisedAgainst { stack: false } => "advised against (MADV_NOHUGEPAGE)".into(),
            Reason::ProcessDisabled => "THP_enabled: 0 (/proc/PID/status)".into(),
            Reason::NoTransparent => "no transparent huge pages in this kernel".into(),
            Reason::PolicyOff { file, mode } => format!("transparent_hugepage/{file} is {mode}"),
            Reason::NotAdvised { file, mode, known_by } => {
                let by = match known_by {
                    KnownBy::Kernel => "",
                    KnownBy::DespiteFlag => " (flag on)",
                    KnownBy::Flag => " (flags)",
                    KnownBy::Habit => " (assumed)",
                };
                let directory = if file.contains('/') { "" } else { "transparent_hugepage/" };
                format!("not advised{by}; {directory}{file} is {mode}")
            }
            Reason::NoHugetlb { page_bytes } => format!("this kernel has no {} pages", size(*page_bytes)),
            Reason::PoolOff { page_bytes } => format!("no pool of {} pages", size(*page_bytes)),
            Reason::PoolShort { page_bytes, available } => {
                format!("pool of {} pages too small at start; now {available} left", size(*page_bytes))
            }
            Reason::GroupLimit { page_bytes, limit_bytes, file, .. } => {
                let name = file.rsplit('/').next().unwrap_or(file);
                format!("{name} allows {} of {} pages", size(*limit_bytes), size(*page_bytes))
            }
            Reason::HugetlbInstead { .. } => "-XX:+UseLargePages asks for HugeTLB, not for thp".into(),
            Reason::HugetlbNotAsked { page_bytes, zgc: true } => {
                format!("ZGC takes no {} pages", size(*page_bytes))
            }
            Reason::HugetlbNotAsked { page_bytes, .. } => {
                format!("the JVM asks for no HugeTLB {} pages", size(*page_bytes))
            }
            Reason::NoHugetlbForIt { .. } => "no JVM asks HugeTLB pages for it".into(),
            Reason::NoKernelOption { known: true } => "CONFIG_READ_ONLY_THP_FOR_FS is not set".into(),
            Reason::NoKernelOption { known: false } => "a file; the kernel's options cannot be read".into(),
            Reason::FileSystem => "its file system has no huge pages for it".into(),
            Reason::PrivateCopy => "private copies of pages of a file".into(),
            Reason::Tmpfs => "a file of tmpfs, whose mount has no huge pages".into(),
            Reason::OtherSize { page_bytes } => format!("{} pages were chosen", size(*page_bytes)),
            Reason::Split => "huge pages, but mapped in small pieces".into(),
            Reason::Hole => "huge pages of which too much was never touched".into(),
            Reason::NotYet { fallbacks: false } => {
                "allowed, but touched before; khugepaged has not come".into()
            }
            Reason::NotYet { fallbacks: true } => {
                "allowed; at the fault none was free, or khugepaged to come".into()
            }
            Reason::NotKnown => "the host's settings are not recorded".into(),
            Reason::NeverTouched => "never touched: no page of any size".into(),
        }
    }

    /// What would change it, one sentence; never what is already so.
    pub fn remedy(&self, area: Area, asked: &Asked) -> String {
        match self {
            Reason::TooSmall | Reason::Unaligned | Reason::Edge
                if is_vms(area) && area != Area::JavaHeap && asked.is_for_large() =>
            {
                "none: the JVM lays it out so, with large pages asked for".into()
            }
            Reason::TooSmall | Reason::Unaligned | Reason::Edge if is_vms(area) && area != Area::JavaHeap => {
                "with large pages asked for, the JVM lays it out in whole huge pages".into()
            }
            Reason::TooSmall | Reason::Special => "none: only a larger mapping can hold one".into(),
            Reason::Unaligned => "a mapping that starts at a multiple of the huge page".into(),
            Reason::Edge if area == Area::JavaHeap => {
                "sizes that are multiples of the huge page: -Xms, -Xmx, -Xmn".into()
            }
            Reason::Edge => "none worth it: less than two huge pages a mapping".into(),
            Reason::AdvisedAgainst { stack: true } => {
                "none needed: huge pages would make stacks larger".into()
            }
            Reason::AdvisedAgainst { stack: false } => {
                "the program's own choice; undone only by itself".into()
            }
            Reason::ProcessDisabled => {
                "start it without PR_SET_THP_DISABLE (systemd: MemoryTHP=; a wrapper; the runtime)".into()
            }
            Reason::NoTransparent => "hugetlb: a pool, then -XX:+UseLargePages".into(),
            Reason::PolicyOff { file, .. } => policy_remedy(file, area, asked),
            Reason::NotAdvised { known_by: KnownBy::DespiteFlag, file, .. } => format!(
                "the JVM's flag is on, but it did not advise this; always in transparent_hugepage/{file}, or MADV_COLLAPSE"
            ),
            Reason::NotAdvised { file, .. } => advice_remedy(file, area, asked),
            Reason::NoHugetlb { page_bytes } => at_boot(*page_bytes),
            Reason::PoolOff { page_bytes } | Reason::PoolShort { page_bytes, .. } => format!(
                "before the JVM starts: enough in /sys/kernel/mm/hugepages/hugepages-{}kB/nr_hugepages, \
                 the code cache takes its part first",
                page_bytes >> 10
            ),
            Reason::HugetlbInstead { behind } => transparent_remedy(behind.as_deref()),
            Reason::HugetlbNotAsked { page_bytes, zgc } => hugetlb_remedy(*page_bytes, *zgc, asked),
            Reason::NoHugetlbForIt { page_bytes } if is_mallocs(area) => format!(
                "malloc takes them with GLIBC_TUNABLES=glibc.malloc.hugetlb={page_bytes} (glibc 2.35), from a pool"
            ),
            Reason::NoHugetlbForIt { .. } => {
                "none: heap, GC tables and JIT code are what a JVM puts on HugeTLB pages".into()
            }
            Reason::GroupLimit { file, .. } => format!("raise {file}, then restart the JVM"),
            Reason::NoKernelOption { .. } | Reason::FileSystem => {
                "a copy of the file on a tmpfs mounted with huge=always".into()
            }
            Reason::PrivateCopy => "none: the kernel has no huge copies of a file's pages".into(),
            Reason::Tmpfs => "mount it with huge=within_size or huge=always".into(),
            Reason::OtherSize { page_bytes } => format!(
                "never in transparent_hugepage/hugepages-{}kB/enabled, always or madvise in hugepages-2048kB",
                page_bytes >> 10
            ),
            Reason::Split => "khugepaged puts it together again; MADV_COLLAPSE does it now".into(),
            Reason::Hole => {
                "khugepaged/max_ptes_none above the holes; it costs the memory of the holes".into()
            }
            Reason::NotYet { .. } if area == Area::JavaHeap => {
                "-XX:+AlwaysPreTouch with -Xms = -Xmx, or MADV_COLLAPSE on the running JVM".into()
            }
            Reason::NotYet { .. } => "time, or MADV_COLLAPSE on the running process".into(),
            Reason::NotKnown => "look at the live process".into(),
            Reason::NeverTouched => "none needed; -XX:+AlwaysPreTouch would touch a heap at start".into(),
        }
    }
}

/// How pages of a size are set aside before the host starts.
pub fn at_boot(page_bytes: Bytes) -> String {
    format!("on the kernel's command line: hugepagesz={} hugepages=N", size(page_bytes))
}

fn policy_remedy(file: &str, area: Area, asked: &Asked) -> String {
    let shared = file.ends_with("shmem_enabled");
    let word = if shared { "advise" } else { "madvise" };
    let flag = match is_vms(area) {
        true if asked.is_for_transparent() => ", then restart the JVM",
        true => ", then start with -XX:+UseTransparentHugePages",
        false if shared => "",
        false => " (always covers memory without advice)",
    };
    format!("{word} in /sys/kernel/mm/transparent_hugepage/{file}{flag}")
}

fn advice_remedy(file: &str, area: Area, asked: &Asked) -> String {
    match area {
        // It may have found another policy when it started (os_linux.cpp, `os::large_page_init`).
        area if is_vms(area) && asked.is_for_transparent() => {
            "restart the JVM: it found no transparent huge pages at start and switched its flag off".into()
        }
        area if is_vms(area) => "start the JVM with -XX:+UseTransparentHugePages".into(),
        Area::Code | Area::MappedFile => "a copy of the file on a tmpfs mounted with huge=always".into(),
        area if is_mallocs(area) => {
            "malloc advises with GLIBC_TUNABLES=glibc.malloc.hugetlb=1 (glibc 2.35)".into()
        }
        _ => format!("only always in transparent_hugepage/{file} reaches it"),
    }
}

/// What would bring thp to a JVM that asks for hugetlb.
fn transparent_remedy(behind: Option<&Reason>) -> String {
    let flag = "start the JVM with -XX:+UseTransparentHugePages, which asks for thp";
    match behind {
        None => flag.into(),
        Some(Reason::NoTransparent) => "none: this kernel has no transparent huge pages".into(),
        Some(reason @ Reason::PolicyOff { .. }) => reason.remedy(Area::JavaHeap, &Asked::default()),
        Some(reason) => format!("{flag}; and {}", reason.remedy(Area::JavaHeap, &Asked::default())),
    }
}

/// What would bring hugetlb of one size to a JVM that does not ask for it; only the flags that it lacks.
fn hugetlb_remedy(page_bytes: Bytes, zgc: bool, asked: &Asked) -> String {
    let mut flags = Vec::new();
    if zgc {
        flags.push("another collector (ZGC takes 2M only)".to_string());
    }
    if !asked.hugetlb {
        flags.push("-XX:+UseLargePages".to_string());
    }
    if asked.page_bytes.unwrap_or_else(huge_page) != page_bytes {
        let (large, gigabytes) = (page_bytes >> 20, page_bytes >> 30);
        let text = if gigabytes > 0 { format!("{gigabytes}g") } else { format!("{large}m") };
        flags.push(format!("-XX:LargePageSizeInBytes={text}"));
    }
    if page_bytes > huge_page() {
        flags.push(format!("-Xms = -Xmx of whole {}", size(page_bytes)));
    }
    let without = if asked.is_for_transparent() { " and without -XX:+UseTransparentHugePages" } else { "" };
    format!(
        "enough in /sys/kernel/mm/hugepages/hugepages-{}kB/nr_hugepages, then start the JVM with {}{without}",
        page_bytes >> 10,
        flags.join(", ")
    )
}

fn is_mallocs(area: Area) -> bool {
    matches!(
        area,
        Area::DirectBuffers
            | Area::JvmWork
            | Area::MallocUnknown
            | Area::JitWork
            | Area::MallocFreed
            | Area::Overhead
            | Area::NativeLibrary
    )
}

/// What a JVM asks large pages for.
pub fn is_vms(area: Area) -> bool {
    matches!(area, Area::JavaHeap | Area::Gc | Area::JitCode)
}
