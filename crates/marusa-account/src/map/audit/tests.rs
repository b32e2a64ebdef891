use super::*;
use crate::base::Range;
use crate::jvm::hotspot::report::{heap_info, nmt, system_map};
use crate::map::types::{Balance, Figures, Instance, Owner, Share, Span};

/// An account of (start, end, area, part, resident); everything is committed.
fn account(spans: &[(u64, u64, Area, &str, u64)]) -> MemoryMap {
    let owner = |area, part: &str| Owner {
        area,
        part: part.to_string(),
        instance: if part.starts_with("malloc") { Instance::Arena(0) } else { Instance::None },
        how: String::new(),
    };
    MemoryMap {
        owners: spans.iter().map(|(_, _, area, part, _)| owner(*area, part)).collect(),
        in_use: spans.iter().map(|(_, _, _, _, resident)| Some(*resident)).collect(),
        spans: spans
            .iter()
            .enumerate()
            .map(|(index, (start, end, _, _, resident))| Span {
                range: Range::of(*start, *end),
                mapping: index,
                shares: vec![Share {
                    owner: index,
                    figures: Figures {
                        reserved: end - start,
                        committed: end - start,
                        resident: *resident,
                        ..Figures::default()
                    },
                }],
            })
            .collect(),
        balance: Balance::default(),
        gaps: Vec::new(),
    }
}

const HEADER: &str = "from to vsize prot rss hugetlb pgsz notes info file\n";

fn labels(rows: &str) -> Vec<Label> {
    let rows = system_map::parse(&format!("{HEADER}{rows}")).expect("a good report");
    rows.iter().map(Label::from).collect()
}

#[test]
fn a_mapping_with_several_tags_agrees_with_any_of_them() {
    let map = account(&[
        (0x1000, 0x3000, Area::JitCode, "code heap", 0x2000),
        (0x3000, 0x4000, Area::Gc, "card table", 0x1000),
        (0x4000, 0x5000, Area::MappedFile, "x", 0x1000),
        (0x5000, 0x6000, Area::Unattributed, "anonymous memory", 0x1000),
    ]);
    let labels = labels(
        "0x1000-0x5000 16384 rw-p 16384 0 4K com CODE,GC -\n\
         0x5000-0x6000 4096 rw-p 4096 0 4K com - -\n",
    );
    let agreement = ranges::compare(&map, &labels);
    assert_eq!((agreement.labelled_bytes, agreement.agreed_bytes), (0x4000, 0x3000));
    assert_eq!(agreement.share(), Some(0.75));
    assert_eq!(agreement.disagreements.len(), 1, "what neither labels is none");
    assert_eq!(agreement.disagreements[0].ours, "mapped_file/x");
    assert_eq!(agreement.disagreements[0].theirs, "CODE,GC");
}

#[test]
fn a_block_of_malloc_in_a_merged_mapping_is_no_disagreement_but_a_whole_mapping_of_it_is() {
    let map = account(&[
        (0x1000, 0x3000, Area::MallocUnknown, "malloc mmapped chunks", 0x2000),
        (0x3000, 0x4000, Area::Gc, "card table", 0x1000),
    ]);
    let merged = ranges::compare(&map, &labels("0x1000-0x4000 12288 rw-p 12288 0 4K com GC -\n"));
    assert_eq!((merged.share(), merged.merged_bytes), (Some(1.0), 0x2000));
    let whole = ranges::compare(&map, &labels("0x1000-0x3000 8192 rw-p 8192 0 4K com GC -\n"));
    assert_eq!((whole.share(), whole.merged_bytes), (Some(0.0), 0));
    let region = Label { range: Range::of(0x1000, 0x4000), tags: vec!["GC".to_string()], exact: true };
    assert_eq!(ranges::compare(&map, &[region]).labelled_bytes, 0x3000, "the detail report means every byte");
}

#[test]
fn what_we_alone_call_the_heap_is_listed_and_a_mapping_that_moved_is_prorated() {
    let map = account(&[(0x1000, 0x5000, Area::JavaHeap, "eden", 0x4000)]);
    let labels = labels(
        "0x1000-0x3000 8192 rw-p 8192 0 4K com JAVAHEAP -\n\
         0x3000-0x4000 4096 rw-p 4096 0 4K com - -\n",
    );
    let agreement = ranges::compare(&map, &labels);
    assert_eq!((agreement.labelled_bytes, agreement.agreed_bytes), (0x2000, 0x2000));
    assert_eq!(agreement.ours_alone_bytes, 0x1000);
    assert_eq!(ranges::compare(&map, &[]).share(), None, "nothing labelled is not full agreement");
}

#[test]
fn the_summary_is_held_against_areas() {
    let map = account(&[
        (0x100000, 0x200000, Area::JavaHeap, "heap", 0x80000),
        (0x200000, 0x300000, Area::ClassMetadata, "class space", 0x1000),
        (0x300000, 0x301000, Area::JitWork, "segment map", 0x1000),
        (0x301000, 0x311000, Area::JitCode, "code heap", 0x1000),
        (0x400000, 0x500000, Area::Stack, "java thread", 0x3000),
        (0x500000, 0x600000, Area::MallocUnknown, "malloc main arena", 0x9000),
    ]);
    let nmt = nmt::summary(
        "Total: reserved=1, committed=1\n\
         - Java Heap (reserved=1048576, committed=1048576)\n (mmap: reserved=1048576, committed=1048576)\n\
         - Class (reserved=100, committed=100)\n (malloc=100 #1)\n\
         - Thread (reserved=1048676, committed=12388)\n (stack: reserved=1048576, committed=12288)\n (malloc=100 #1)\n\
         - Code (reserved=69632, committed=69632)\n (mmap: reserved=69632, committed=69632)\n\
         - Unknown (reserved=1048576, committed=4096)\n (mmap: reserved=1048576, committed=4096)\n",
    )
    .expect("a good report");
    let rows = audit(&map, &Said { nmt: Some(nmt), ..Said::default() }).rows;
    let row =
        |area, figure| rows.iter().find(|row| row.area == area && row.ours == figure).expect("there").clone();
    assert_eq!(row(Some(Area::JavaHeap), Figure::Reserved).difference_bytes, Some(0));
    assert_eq!(row(Some(Area::JitCode), Figure::Committed).difference_bytes, Some(0), "with the segment map");
    let class = row(Some(Area::ClassMetadata), Figure::Reserved);
    assert_eq!((class.difference_bytes, class.theirs.as_str()), (Some(0), "NMT Class + Unknown"));
    let stack = row(Some(Area::Stack), Figure::Resident);
    assert_eq!((stack.difference_bytes, stack.agrees(0.0)), (Some(0), Some(true)));
    let malloc = row(None, Figure::Resident);
    assert_eq!((malloc.ours_bytes, malloc.theirs_bytes), (Some(0x9000), 200));
    assert!(malloc.reason.is_some());
}

#[test]
fn the_heap_is_held_against_the_collectors_word() {
    let map = account(&[(0x1000, 0x101000, Area::JavaHeap, "eden", 0x400)]);
    let heap = heap_info::parse(" garbage-first heap   total 1024K, used 1K [0x1000, 0x101000)\n")
        .expect("a good report");
    let rows = audit(&map, &Said { heap: Some(heap), ..Said::default() }).rows;
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row.difference_bytes == Some(0)));
}
