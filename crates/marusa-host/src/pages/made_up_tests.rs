//! Hosts and requests that tests make up, of this crate and of others.

use super::feasible::Preference;
use super::request::Request;
use super::subject::Wanted;
use super::types::Subject;
use super::{HostId, Mode, Vm};
use crate::base::Bytes;
use crate::jvm::Gc;
use crate::os::buddyinfo::FreeBlocks;
use crate::os::host_memory::HostMemory;
use crate::os::host_pages::HostPages;
use crate::os::hugetlb::Pool;
use crate::os::meminfo::Meminfo;
use crate::os::pagetypeinfo::{BlockTypes, ZoneBlocks};
use crate::os::thp;
use crate::os::zoneinfo::Kept;

const GIB: Bytes = 1 << 30;

/// A host of 16 GiB, 8 of them free in 1,000 blocks of 4 MiB and in small pieces, with both sizes of pages and nothing set.
pub fn host() -> HostMemory {
    let pool = |page_bytes| Pool { page_bytes, ..Pool::default() };
    let mut blocks = vec![1 << 20; 11];
    blocks.fill(0);
    (blocks[0], blocks[10]) = (1 << 20, 1000);
    let normal = FreeBlocks { node: 0, zone: "Normal".into(), blocks };
    HostMemory {
        meminfo: Meminfo {
            total_bytes: 16 * GIB,
            free_bytes: 8 * GIB,
            available_bytes: Some(10 * GIB),
            default_huge_bytes: Some(2 << 20),
        },
        pages: HostPages {
            thp: Some(thp::tests::host("madvise", "never", "inherit", "never")),
            pools: vec![pool(2 << 20), pool(GIB)],
            ..HostPages::default()
        },
        free: vec![normal],
        kept: vec![Kept { node: 0, zone: "Normal".into(), bytes: 64 << 20 }],
        blocks: Ok(BlockTypes {
            block_bytes: 2 << 20,
            zones: vec![ZoneBlocks { node: 0, zone: "Normal".into(), movable: 7000, all: 8000 }],
        }),
        nodes: Vec::new(),
        fragmentation: None,
        group_left_bytes: None,
        group_counts_hugetlb: false,
        locked: None,
        settings: Vec::new(),
        shm: Default::default(),
    }
}

pub fn request<'a>(host: &'a HostMemory, vm: Vm, feature: u32, gc: Gc, heap: Bytes) -> Request<'a> {
    let wanted = Wanted { heap_bytes: heap, cpus: 4, ..Wanted::default() };
    let subject = Subject { gc, ..wanted.by_name(vm, feature, 64 << 30).expect("a subject") };
    Request {
        subject,
        mode: Some(Mode::HugeTlb2M),
        preference: Preference::Auto,
        instances: 1,
        name: None,
        host,
        host_id: HostId {
            machine: "m".into(),
            kernel: "6.18.44".into(),
            memory_bytes: host.meminfo.total_bytes,
        },
        made_at: "2026-01-01T00:00:00Z".into(),
        made_by: "marusa 0.1.0".into(),
        launch: vec!["-Xmx1g".into()],
        recommended: Vec::new(),
        running: None,
        shm: false,
        group: None,
        unit: None,
        gaps: Vec::new(),
    }
}
