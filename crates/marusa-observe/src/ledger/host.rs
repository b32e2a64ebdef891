//! The ledger of the host: MemTotal less everything that the kernel has a counter for. What is left has no counter: most of the
//! time pages of drivers and of a hypervisor's balloon.

use super::model::{Item, Ledger, Row};
use super::read::{Want, look};
use super::rows::{row, signed};
use crate::base::{Bytes, Gap, Known, Why};
use crate::os::group_stat::GroupStat;
use crate::os::machine::base_page;
use crate::os::{host, meminfo};
use std::collections::BTreeMap;

const SOURCE: &str = "/proc/meminfo";

/// Within the budget of the caller.
pub fn read_host(want: Want) -> Known<Ledger> {
    let text = |file: &str| host::text(file).unwrap_or_default();
    let pids = host::pids().map_err(|error| Gap::new("/proc", Why::Failed).hint(error.to_string()))?;
    let (looked, mut gaps) = look(pids, want);
    let fields = meminfo::fields(&text(SOURCE));
    if !fields.contains_key("MemTotal") {
        return Err(Gap::new(SOURCE, Why::NotInThisKernel).hint("is /proc mounted?"));
    }
    let sockets = sockets(&text("/proc/net/sockstat"));
    let stat = stat(&fields, sockets);
    let ledger = looked.ledger(&stat, others(&fields), &mut gaps, want.top);
    Ok(Ledger { cgroup_bytes: None, version: None, working_set_bytes: None, ..ledger.with_gaps(&gaps) })
}

/// The counters of the host, in the words of a cgroup's. Documentation/filesystems/proc.rst, "meminfo".
fn stat(fields: &BTreeMap<String, Bytes>, socket_bytes: Option<Bytes>) -> GroupStat {
    let field = |name: &str| fields.get(name).copied();
    let all = |name: &str| field(name).unwrap_or(0);
    let stacks = all("KernelStack");
    GroupStat {
        version: 0,
        usage_bytes: all("MemTotal"),
        anon_bytes: all("AnonPages"),
        // Without the swap cache, as fs/proc/meminfo.c subtracts it.
        file_bytes: all("Cached"),
        shmem_bytes: all("Shmem"),
        kernel_stack_bytes: field("KernelStack"),
        page_table_bytes: field("PageTables"),
        secondary_page_table_bytes: field("SecPageTables"),
        percpu_bytes: field("Percpu"),
        // Stacks of threads are made by vmalloc, and counted there too (CONFIG_VMAP_STACK; kernel/fork.c).
        vmalloc_bytes: field("VmallocUsed").map(|bytes| bytes.saturating_sub(stacks)),
        slab_reclaimable_bytes: field("SReclaimable"),
        slab_unreclaimable_bytes: field("SUnreclaim"),
        zswap_bytes: field("Zswap"),
        socket_bytes,
        hugetlb_bytes: field("Hugetlb"),
        inactive_anon_bytes: all("Inactive(anon)"),
        active_anon_bytes: all("Active(anon)"),
        inactive_file_bytes: all("Inactive(file)"),
        active_file_bytes: all("Active(file)"),
        unevictable_bytes: all("Unevictable"),
        ..GroupStat::default()
    }
}

/// What only a host has.
fn others(fields: &BTreeMap<String, Bytes>) -> Vec<Row> {
    let named = |item, name: &str, bytes: Bytes| Row {
        name: Some(name.to_string()),
        ..row(item, signed(bytes), SOURCE)
    };
    let field = |name: &str| fields.get(name).copied().unwrap_or(0);
    let reclaimable = field("KReclaimable").saturating_sub(field("SReclaimable"));
    vec![
        row(Item::Free, signed(field("MemFree")), SOURCE),
        row(Item::Buffers, signed(field("Buffers")), SOURCE),
        named(Item::KernelOther, "reclaimable, not slab", reclaimable),
        named(Item::KernelOther, "bounce buffers", field("Bounce")),
        named(Item::KernelOther, "pages that FUSE writes", field("WritebackTmp")),
        named(Item::KernelOther, "balloon of the hypervisor", field("Balloon")),
    ]
}

/// "TCP: inuse 4 orphan 0 tw 0 alloc 9 mem 12": pages, of the host whatever the network namespace (net/ipv4/proc.c,
/// `proto_memory_allocated`).
fn sockets(text: &str) -> Option<Bytes> {
    let pages = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip_while(|word| *word != "mem");
        words.nth(1)?.parse::<u64>().ok()
    };
    let found: Vec<u64> = text.lines().filter_map(pages).collect();
    (!found.is_empty()).then(|| {
        found.iter().fold(0, |sum: u64, pages| sum.saturating_add(pages.saturating_mul(base_page())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::PAGE;
    use crate::ledger::Seen;

    #[test]
    fn the_rows_of_a_host_sum_to_its_memory() {
        let text = "MemTotal: 1000 kB\nMemFree: 400 kB\nBuffers: 10 kB\nCached: 200 kB\nShmem: 50 kB\nAnonPages: 150 kB\n\
                    KReclaimable: 35 kB\nSReclaimable: 30 kB\nSUnreclaim: 20 kB\nKernelStack: 16 kB\nVmallocUsed: 20 kB\n\
                    Inactive(anon): 210 kB\n";
        let fields = meminfo::fields(text);
        let seen = Seen { others: others(&fields), ..Seen::default() };
        let ledger = Ledger::of(&stat(&fields, Some(4096)), &seen, 10);
        assert_eq!(ledger.rows.iter().map(|row| row.bytes).sum::<i64>(), 1000 << 10);
        let kilobytes = |item| ledger.sum_of(&[item]) >> 10;
        assert_eq!(
            (kilobytes(Item::Free), kilobytes(Item::Vmalloc), kilobytes(Item::AnonymousUnmapped)),
            (400, 4, 10)
        );
        assert_eq!(kilobytes(Item::Remainder), 1000 - 400 - 10 - 200 - 150 - 10 - 35 - 20 - 16 - 4 - 4);
    }

    #[test]
    fn pages_of_sockets() {
        let text = "sockets: used 30\nTCP: inuse 4 orphan 0 tw 0 alloc 9 mem 12\nUDP: inuse 1 mem 3\nFRAG: inuse 0 memory 0\n";
        assert_eq!(sockets(text), Some(15 * PAGE));
        assert_eq!(sockets("sockets: used 30\n"), None);
    }
}
