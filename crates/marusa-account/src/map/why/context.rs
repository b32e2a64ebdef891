//! What prevents huge pages in a whole mapping, for every block of it: the process, the host's
//! policy, advice, the pool. The order is that of the kernel (mm/huge_memory.c, `__thp_vma_allowable_orders`, Linux 6.18).

use super::reason::{KnownBy, Reason, is_vms};
use crate::base::Bytes;
use crate::map::Area;
use crate::map::bloat::is_since;
use crate::map::page_claims::Asked;
use crate::os::host_pages::HostPages;
use crate::os::machine::{base_page, huge_page};
use crate::os::maps::Mapping;
use crate::os::page_kind::{Backing, PageKind};
use crate::os::thp::{Policy, Thp};
use crate::snapshot::Snapshot;
use crate::snapshot::page_settings::{Advice, PageSettings};

pub struct Context<'a> {
    settings: Option<&'a PageSettings>,
    pub asked: Asked,
    thp_enabled: Option<bool>,
    stacks_are_kept_small: bool,
    pub pmd_bytes: Bytes,
}

/// What backs the pages of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    Private,
    /// memfd, SysV, shared anonymous memory.
    Shared,
    Tmpfs,
    File,
    /// A page of a file that was written to in a private mapping.
    Copy,
    Special,
}

fn backing(mapping: &Mapping, is_file_page: bool) -> Memory {
    let path = mapping.path.as_str();
    let is_shared_memory =
        ["/memfd:", "/SYSV", "/dev/zero", "[anon_shmem:"].iter().any(|at| path.starts_with(at));
    match () {
        () if path.starts_with("[vvar") || path == "[vdso]" || path == "[vsyscall]" => Memory::Special,
        () if path.starts_with("/dev/shm/") => Memory::Tmpfs,
        () if is_shared_memory && mapping.rights.shared => Memory::Shared,
        () if mapping.is_file() && is_file_page => Memory::File,
        () if mapping.is_file() => Memory::Copy,
        () => Memory::Private,
    }
}

impl<'a> Context<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Context<'a> {
        let settings = snapshot.taken.page_settings.as_ref();
        Context {
            settings,
            asked: Asked::of(snapshot),
            thp_enabled: snapshot.os.status.thp_enabled,
            stacks_are_kept_small: is_since(&snapshot.taken.kernel, (6, 7)),
            pmd_bytes: settings.map_or_else(huge_page, |settings| settings.host.pmd_bytes()),
        }
    }

    fn advice(&self, mapping: &Mapping) -> Option<Option<Advice>> {
        let advice = self.settings?.advice.as_ref()?;
        Some(advice.get(&mapping.range.start).copied())
    }

    /// What keeps huge pages out of the whole mapping. `None`: nothing does.
    pub fn obstacle(&self, mapping: &Mapping, is_file_page: bool, area: Area) -> Option<Reason> {
        let backing = backing(mapping, is_file_page);
        if backing == Memory::Special {
            return Some(Reason::Special);
        }
        if self.asked.hugetlb && is_vms(area) {
            let page_bytes = self.asked.page_bytes.unwrap_or(self.pmd_bytes);
            return Some(self.no_hugetlb(page_bytes, mapping.range.bytes()));
        }
        let Some(settings) = self.settings else { return Some(Reason::NotKnown) };
        let Some(thp) = &settings.host.thp else { return Some(Reason::NoTransparent) };
        if self.thp_enabled == Some(false) {
            return Some(Reason::ProcessDisabled);
        }
        let advised_against = self.advice(mapping) == Some(Some(Advice::NoHugePages));
        let stack = area == Area::Stack || mapping.path.starts_with("[stack");
        let stack_is_kept_small =
            area == Area::Stack && self.advice(mapping).is_none() && self.stacks_are_kept_small;
        if advised_against || stack_is_kept_small {
            return Some(Reason::AdvisedAgainst { stack });
        }
        match backing {
            Memory::Private => self.by_policy(&thp.private(self.pmd_bytes), mapping, area),
            Memory::Shared => self.by_policy(&thp.shared(self.pmd_bytes), mapping, area),
            Memory::Tmpfs => Some(Reason::Tmpfs),
            Memory::Copy => Some(Reason::PrivateCopy),
            Memory::File => self.of_file(&settings.host, thp, mapping, area),
            Memory::Special => Some(Reason::Special),
        }
    }

    fn by_policy(&self, policy: &Policy, mapping: &Mapping, area: Area) -> Option<Reason> {
        let (file, mode) = (policy.file.clone(), policy.mode.clone());
        match mode.as_str() {
            "always" | "force" | "within_size" => None,
            "madvise" | "advise" => {
                let known_by = self.not_advised(mapping, area)?;
                Some(Reason::NotAdvised { file, mode, known_by })
            }
            _ => Some(Reason::PolicyOff { file, mode }),
        }
    }

    /// How it is known that a mapping was not advised; `None`: it was.
    fn not_advised(&self, mapping: &Mapping, area: Area) -> Option<KnownBy> {
        match self.advice(mapping) {
            Some(Some(Advice::HugePages)) => None,
            Some(_) if is_vms(area) && self.asked.transparent => Some(KnownBy::DespiteFlag),
            Some(_) => Some(KnownBy::Kernel),
            None if is_vms(area) && self.asked.transparent => None,
            None if is_vms(area) => Some(KnownBy::Flag),
            None => Some(KnownBy::Habit),
        }
    }

    /// mm/huge_memory.c, `file_thp_enabled`: pages of regular files that no process may write to.
    fn of_file(&self, host: &HostPages, thp: &Thp, mapping: &Mapping, area: Area) -> Option<Reason> {
        match host.file_huge_pages {
            _ if mapping.rights.shared && mapping.rights.write => Some(Reason::FileSystem),
            Some(true) => self.by_policy(&thp.private(self.pmd_bytes), mapping, area),
            Some(false) => Some(Reason::NoKernelOption { known: true }),
            None => Some(Reason::NoKernelOption { known: false }),
        }
    }

    /// Large pages of hugetlb were asked for, and these bytes have none.
    pub fn no_hugetlb(&self, page_bytes: Bytes, needed_bytes: Bytes) -> Reason {
        let Some(settings) = self.settings else { return Reason::NotKnown };
        let host = &settings.host;
        let Some(pool) = host.pool(page_bytes) else { return Reason::NoHugetlb { page_bytes } };
        match host.tightest(page_bytes) {
            Some(limit) if limit.left_bytes() < needed_bytes => Reason::GroupLimit {
                page_bytes,
                limit_bytes: limit.limit_bytes,
                left_bytes: limit.left_bytes(),
                file: limit.file.clone(),
            },
            _ if pool.is_off() => Reason::PoolOff { page_bytes },
            _ => Reason::PoolShort { page_bytes, available: pool.available() },
        }
    }

    /// What would prevent transparent pages if the JVM asked for them.
    pub fn against_transparent(&self, shared: bool) -> Option<Reason> {
        let Some(thp) = &self.settings?.host.thp else { return Some(Reason::NoTransparent) };
        if self.thp_enabled == Some(false) {
            return Some(Reason::ProcessDisabled);
        }
        let policy = if shared { thp.shared(self.pmd_bytes) } else { thp.private(self.pmd_bytes) };
        let is_on = ["always", "force", "within_size", "madvise", "advise"].contains(&policy.mode.as_str());
        (!is_on).then_some(Reason::PolicyOff { file: policy.file, mode: policy.mode })
    }

    /// Memory that is on a folio of another size, or on a huge one that is mapped in pieces. The page cache has its own
    /// reasons for the folios of files.
    pub fn of_kind(&self, kind: PageKind) -> Option<Reason> {
        match kind {
            PageKind { backing: Backing::File, .. } => None,
            PageKind { entry_bytes, .. } if entry_bytes >= self.pmd_bytes => None,
            PageKind { folio_bytes, .. } if folio_bytes >= self.pmd_bytes => Some(Reason::Split),
            PageKind { folio_bytes, .. } if folio_bytes == base_page() => None,
            PageKind { folio_bytes, .. } => Some(Reason::OtherSize { page_bytes: folio_bytes }),
        }
    }

    /// What prevents a huge page in one block of a mapping that may have them.
    pub fn of_block(&self, is_file_page: bool, resident: Bytes) -> Reason {
        let Some(host) = self.settings.map(|settings| &settings.host) else { return Reason::NotKnown };
        let knob = host.thp.as_ref().and_then(|thp| thp.khugepaged.get("max_ptes_none").copied());
        let allowed = knob.unwrap_or(huge_page() / base_page() - 1).saturating_mul(base_page());
        if self.pmd_bytes.saturating_sub(resident) > allowed && !is_file_page {
            return Reason::Hole;
        }
        Reason::NotYet { fallbacks: host.vmstat.get("thp_fault_fallback").is_some_and(|count| *count > 0) }
    }
}
