//! Whether the host can give the pages of a plan now, by which way, and what is left for other processes. Pure over what
//! `os::host_memory` read.
//!
//! The lower bound are free blocks that are large enough already; what compaction and reclaim may add is a range, never a
//! promise. A pool (`nr_hugepages`) takes the memory now and keeps it; overcommit (`nr_overcommit_hugepages`) lets the kernel take
//! it when the JVM asks, and gives it back when the JVM ends (mm/hugetlb.c, `gather_surplus_pages`). So the pool is the default:
//! only of a pool can be known now that the JVM will have its pages, at every start. Overcommit is chosen where the running JVM
//! itself holds the memory that a pool would need next to it.

use super::types::{Feasible, How, MemoryOutlook, NodeOutlook, PAGE_2M, PoolNeed, SizeOutlook};
pub use crate::base::size as size_name;
use crate::base::{Bytes, Refused};
use crate::os::buddyinfo::{FreeBlocks, is_for_devices};
use crate::os::host_memory::HostMemory;
use crate::os::hugetlb::Pool;

/// HotSpot after JDK 25 uses only sizes of which pages are set aside: src/hotspot/os/linux/hugepages.cpp,
/// `filter_pre_allocated_hugepages` (in the sources of 2026; JDK 25's has no such reading of nr_hugepages).
const FILTERS_AFTER: u32 = 25;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preference {
    #[default]
    Auto,
    Pool,
    Overcommit,
}

/// What is asked of the host.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// Size and number, of all instances together.
    pub pages: Vec<(Bytes, u64)>,
    pub preference: Preference,
    /// HotSpot's release, for what it refuses; 0 where that does not matter.
    pub feature: u32,
    /// Huge pages that the running JVM has now and gives back before the new one starts.
    pub held: Vec<(Bytes, u64)>,
    /// Other memory that it gives back.
    pub released_bytes: Bytes,
    /// The JVM can only use the default size (JDK 8 and 11, OpenJ9), so that size must be the default.
    pub default_only: bool,
}

/// What the host answers.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub pools: Vec<PoolNeed>,
    pub feasible: Feasible,
    pub why: String,
    pub memory: MemoryOutlook,
    pub sizes: Vec<SizeOutlook>,
    pub boot: Vec<String>,
}

/// Memory that is left to the rest of the host at least: a twentieth, and no less than 256 MiB.
pub fn reserve_bytes(total: Bytes) -> Bytes {
    (total / 20).max(256 << 20)
}

/// `Err`: this kernel has no such pages at all.
pub fn answer(host: &HostMemory, ask: &Ask) -> Result<Answer, Refused> {
    let total = host.meminfo.total_bytes;
    let mut answer = Answer { feasible: Feasible::Yes, ..Answer::default() };
    answer.memory = MemoryOutlook {
        total_bytes: total,
        available_bytes: host.available_bytes(),
        taken_bytes: 0,
        left_bytes: host.available_bytes(),
        reserve_bytes: reserve_bytes(total),
        nodes: nodes(host),
    };
    for (page_bytes, pages) in &ask.pages {
        let pool = host.pages.pool(*page_bytes).ok_or_else(|| no_such_pages(host, *page_bytes))?;
        let size = size_outlook(host, ask, *page_bytes, answer.memory.left_bytes);
        let one = One { host, ask, pool, size: &size, pages: *pages, left: answer.memory.left_bytes };
        let chosen = one.choose();
        let take = chosen.need.add_pages.saturating_mul(*page_bytes);
        if matches!(chosen.need.how, How::Pool | How::Overcommit) {
            answer.memory.taken_bytes = answer.memory.taken_bytes.saturating_add(take);
            answer.memory.left_bytes = answer.memory.left_bytes.saturating_sub(take);
        }
        if chosen.feasible <= answer.feasible {
            answer.feasible = chosen.feasible;
            answer.why = chosen.need.why.clone();
        }
        if chosen.boot {
            answer.boot.extend(boot_words(host, ask, pool, chosen.need.add_pages));
        }
        answer.pools.push(chosen.need);
        answer.sizes.push(size);
    }
    Ok(answer)
}

fn no_such_pages(host: &HostMemory, page_bytes: Bytes) -> String {
    let name = size_name(page_bytes);
    if host.pages.pools.is_empty() {
        return format!(
            "there is no hugetlb here: /sys/kernel/mm/hugepages has no pools (a kernel without CONFIG_HUGETLBFS, or a \
             container that hides them), so no {name} pages; --mode thp needs none"
        );
    }
    let has: Vec<String> = host.pages.pools.iter().map(|pool| size_name(pool.page_bytes)).collect();
    format!("this host has no {name} huge pages, only of {}", has.join(", "))
}

/// Pages of one size that zones give at once: large enough blocks, above what the kernel keeps.
fn at_once(host: &HostMemory, page_bytes: Bytes, of: impl Fn(&FreeBlocks) -> bool) -> u64 {
    let zones = host.free.iter().filter(|zone| !is_for_devices(&zone.zone) && of(zone));
    let in_zone = |zone: &FreeBlocks| {
        let kept = host.kept.iter().find(|kept| kept.node == zone.node && kept.zone == zone.zone);
        let above = zone.free_bytes().saturating_sub(kept.map_or(0, |kept| kept.bytes));
        zone.pages_of(page_bytes).min(above / page_bytes)
    };
    zones.map(in_zone).fold(0, u64::saturating_add)
}

fn nodes(host: &HostMemory) -> Vec<NodeOutlook> {
    let of_node = |node: &crate::os::numa::Node| NodeOutlook {
        node: node.number,
        free_bytes: node.free_bytes,
        at_once_pages: at_once(host, PAGE_2M, |zone| zone.node == node.number),
    };
    host.nodes.iter().map(of_node).collect()
}

/// The pages of one size that the available memory allows.
pub fn size_outlook(host: &HostMemory, ask: &Ask, page_bytes: Bytes, available: Bytes) -> SizeOutlook {
    let at_once_pages = at_once(host, page_bytes, |_| true).min(available / page_bytes);
    let movable = host.blocks.as_ref().ok().map(|types| {
        let blocks = types.zones.iter().filter(|zone| !is_for_devices(&zone.zone)).map(|zone| zone.movable);
        let blocks = blocks.fold(0, u64::saturating_add);
        blocks.saturating_mul(types.block_bytes) / page_bytes
    });
    let at_most = (available / page_bytes).min(movable.unwrap_or(u64::MAX));
    let limit = host.pages.tightest(page_bytes);
    SizeOutlook {
        page_bytes,
        at_once_pages,
        at_most_pages: at_most.max(at_once_pages),
        fragmentation_index: host.fragmentation.filter(|_| page_bytes == PAGE_2M),
        limit_pages: limit.map(|limit| limit.left_bytes() / page_bytes + held(ask, page_bytes)),
        limit_file: limit.map(|limit| limit.file.clone()),
    }
}

fn held(ask: &Ask, page_bytes: Bytes) -> u64 {
    ask.held.iter().filter(|(bytes, _)| *bytes == page_bytes).map(|(_, pages)| *pages).sum()
}

/// The words for the kernel's command line. They are the sum of what is set aside now and what is added, since they replace it.
fn boot_words(host: &HostMemory, ask: &Ask, pool: &Pool, add: u64) -> Vec<String> {
    let size = size_name(pool.page_bytes);
    let mut words = Vec::new();
    let default = host.meminfo.default_huge_bytes.unwrap_or(PAGE_2M);
    if ask.default_only && default != pool.page_bytes {
        words.push(format!("default_hugepagesz={size}"));
    }
    words.push(format!("hugepagesz={size}"));
    let now = pool.pages.saturating_sub(pool.surplus);
    words.push(format!("hugepages={}", now.saturating_add(add)));
    words
}

/// One size.
struct One<'a> {
    host: &'a HostMemory,
    ask: &'a Ask,
    pool: &'a Pool,
    size: &'a SizeOutlook,
    pages: u64,
    left: Bytes,
}

struct Chosen {
    need: PoolNeed,
    feasible: Feasible,
    boot: bool,
}

impl One<'_> {
    fn page_bytes(&self) -> Bytes {
        self.pool.page_bytes
    }
    /// Above the largest block of the page allocator: 1 GiB.
    fn is_gigantic(&self) -> bool {
        self.page_bytes() >= 1 << 30
    }
    fn free_pages(&self) -> u64 {
        let free = self.pool.free.saturating_sub(self.pool.reserved);
        let held = held(self.ask, self.page_bytes());
        // Pages beyond the pool are gone with the JVM that has them.
        let stays = self.pool.pages.saturating_sub(self.pool.surplus);
        let held = if self.ask.preference == Preference::Pool { held.min(stays) } else { held };
        free.saturating_add(held)
    }
    /// Pages that others hold beyond the pool: a pool that grows counts them in first (mm/hugetlb.c, `set_max_huge_pages`),
    /// so it must grow by as many more to have free ones.
    fn lent(&self) -> u64 {
        self.pool.surplus.saturating_sub(held(self.ask, self.page_bytes()))
    }
    fn headroom(&self) -> u64 {
        self.pool.overcommit.saturating_sub(self.pool.surplus)
    }
    fn filters(&self) -> bool {
        self.ask.feature > FILTERS_AFTER && self.pool.pages.saturating_sub(self.pool.surplus) == 0
    }

    fn choose(&self) -> Chosen {
        let (name, pages) = (size_name(self.page_bytes()), self.pages);
        let free = self.free_pages();
        if let (Some(limit), Some(file)) = (self.size.limit_pages, &self.size.limit_file)
            && limit < pages
        {
            let why = format!("the cgroup may have {limit} pages of {name}: raise {file}");
            return self.chosen(How::Pool, pages.saturating_sub(free), Feasible::No, why);
        }
        let default = self.host.meminfo.default_huge_bytes;
        if self.ask.default_only && default != Some(self.page_bytes()) {
            let has = default.map_or("none".to_string(), size_name);
            let why = format!("this JVM uses huge pages of the default size only, and that is {has} here");
            return Chosen {
                boot: true,
                ..self.chosen(How::Boot, pages.saturating_sub(free), Feasible::No, why)
            };
        }
        if free >= pages {
            let own = held(self.ask, self.page_bytes());
            let why = match own {
                0 => format!("{free} pages of {name} are free in the pool and not reserved"),
                own => format!("{free} pages of {name} are free, {own} of them when the running JVM ends"),
            };
            return self.chosen(How::Free, 0, Feasible::Yes, why);
        }
        match self.ask.preference {
            Preference::Overcommit => {
                self.overcommit("as asked: taken when the JVM starts, given back when it ends")
            }
            Preference::Pool => self.pool("as asked: taken now, kept until undo"),
            Preference::Auto => self.automatic(),
        }
    }

    fn automatic(&self) -> Chosen {
        let covered = self.free_pages().saturating_add(self.headroom()) >= self.pages;
        if covered && !self.filters() {
            return self.overcommit("allowed already");
        }
        let pool = self.pool("a pool is taken now and kept: the JVM has its pages at every start");
        if pool.feasible == Feasible::No && !self.is_gigantic() && !self.filters() {
            let later = self.overcommit(
                "the running JVM holds the memory that a pool would need next to it; overcommit takes it when that has ended",
            );
            if later.feasible != Feasible::No {
                return later;
            }
        }
        pool
    }

    fn pool(&self, reason: &str) -> Chosen {
        let add = self.pages.saturating_sub(self.free_pages()).saturating_add(self.lent());
        let name = size_name(self.page_bytes());
        let take = add.saturating_mul(self.page_bytes());
        let total = self.host.meminfo.total_bytes;
        let reserve = reserve_bytes(total);
        if take.saturating_add(reserve) > self.left {
            let fits = take.saturating_add(reserve) <= total;
            let what = format!(
                "{} would leave {} to the rest of the host, less than {}",
                mib(take),
                mib(self.left.saturating_sub(take)),
                mib(reserve)
            );
            let more = if fits { "free memory, or set them aside at boot" } else { "this host is too small" };
            let why = format!("{what}: {more}");
            let how = if fits { How::Boot } else { How::Pool };
            return Chosen { boot: fits, ..self.chosen(how, add, Feasible::No, why) };
        }
        let (once, most) = (self.size.at_once_pages, self.size.at_most_pages);
        let now = format!("{once} of {name} available at once");
        match () {
            () if add <= once => self.chosen(How::Pool, add, Feasible::Yes, format!("{reason}; {now}")),
            () if add <= most => {
                let more = match self.is_gigantic() {
                    true => format!(
                        "memory must be moved for each; up to {most} if that succeeds; at boot it is sure"
                    ),
                    false => format!("{now}, up to {most} if compaction succeeds"),
                };
                let chosen = self.chosen(How::Pool, add, Feasible::Perhaps, format!("{reason}; {more}"));
                Chosen { boot: self.is_gigantic(), ..chosen }
            }
            () => {
                let why = format!("memory is in pieces: {now}, at most {most}; set them aside at boot");
                Chosen { boot: true, ..self.chosen(How::Boot, add, Feasible::No, why) }
            }
        }
    }

    fn overcommit(&self, reason: &str) -> Chosen {
        let missing = self.pages.saturating_sub(self.free_pages());
        let add = missing.saturating_sub(self.headroom());
        if self.is_gigantic() {
            let why = "1G pages cannot be overcommitted: the kernel refuses (EINVAL); leave --overcommit out";
            return self.chosen(How::Overcommit, add, Feasible::No, why.to_string());
        }
        if self.filters() {
            let why = format!(
                "HotSpot after JDK {FILTERS_AFTER} uses only sizes whose nr_hugepages is not 0 \
                 (filter_pre_allocated_hugepages): leave --overcommit out"
            );
            return self.chosen(How::Overcommit, add, Feasible::No, why);
        }
        let bytes = missing.saturating_mul(self.page_bytes());
        let reserve = reserve_bytes(self.host.meminfo.total_bytes);
        let later = self.left.saturating_add(self.ask.released_bytes);
        let more = self.ask.released_bytes / self.page_bytes();
        let (once, most) = (self.size.at_once_pages, self.size.at_most_pages.saturating_add(more));
        let fits = |left: Bytes| bytes.saturating_add(reserve) <= left;
        let (feasible, now) = match () {
            () if missing <= once && fits(self.left) => (Feasible::Yes, format!("{once} available now")),
            () if missing <= most && fits(later) => {
                (Feasible::Perhaps, format!("{once} available now, at most {most} then"))
            }
            () => (Feasible::No, format!("only {once} available now, at most {most}")),
        };
        self.chosen(How::Overcommit, add, feasible, format!("{reason}; not guaranteed: {now}"))
    }

    fn chosen(&self, how: How, add_pages: u64, feasible: Feasible, why: String) -> Chosen {
        let need = PoolNeed {
            page_bytes: self.page_bytes(),
            pages: self.pages,
            free_pages: self.free_pages(),
            add_pages,
            how,
            why,
        };
        Chosen { need, feasible, boot: false }
    }
}

pub fn mib(bytes: Bytes) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
#[path = "feasible_tests.rs"]
mod tests;
