//! Against the formats of Linux 6.18, and bytes that it wrote.

use super::super::format::{Field, PageForm};
use super::super::ring;
use super::*;

/// Each after a line "@SYSTEM/NAME", as `events/SYSTEM/NAME/format` gives it; long lists of flags are cut.
const FORMATS: &str = include_str!("../../../../../tests/data/trace/formats-6.18.txt");

fn formats() -> BTreeMap<Source, Format> {
    let parts: BTreeMap<&str, &str> = FORMATS.split('@').filter_map(|part| part.split_once('\n')).collect();
    let format = |source: Source| Some((source, Format::parse(parts[source.directory().as_str()])?));
    Source::all().filter_map(format).collect()
}

fn decoder() -> Decoder {
    let (decoder, gaps) = Decoder::new(&formats()).expect("a decoder");
    assert_eq!(gaps, []);
    decoder
}

fn what(decoder: &Decoder, bytes: &[u8]) -> (i32, What) {
    match decoder.decode(5, 1, bytes) {
        Ok(Some(Record::Event(Event { at_ns: 5, cpu: 1, tid, what }))) => (tid, what),
        other => panic!("{other:?}"),
    }
}

/// The bytes of an event with these numbers at these offsets, as the kernel lays them out.
fn record(source: Source, fields: &[(&str, i64)]) -> Vec<u8> {
    let format = &formats()[&source];
    let length = format.fields.values().map(|field| field.offset + field.bytes).max().unwrap_or(0);
    let mut bytes = vec![0; length.next_multiple_of(4)];
    let own = [("common_type", i64::from(format.id)), ("common_pid", 77)];
    for (name, number) in own.iter().chain(fields) {
        let Field { offset, bytes: size, .. } = format.field(name).expect("a field");
        bytes[offset..offset + size].copy_from_slice(&number.to_le_bytes()[..size]);
    }
    bytes
}

#[test]
fn each_tracepoint_is_at_its_place_in_the_table() {
    for (index, source) in Source::all().enumerate() {
        assert_eq!(source as usize, index, "{}", source.name());
    }
    assert_eq!(Source::ScanPmd.directory(), "huge_memory/mm_khugepaged_scan_pmd");
}

#[test]
fn every_event_says_what_happened() {
    let decoder = decoder();
    let said = |source, fields: &[(&str, i64)]| what(&decoder, &record(source, fields)).1;
    let ok = "succeeded";
    assert_eq!(said(Source::CompactionBegin, &[("sync", 1)]), What::CompactionBegin { is_sync: true });
    let end = said(Source::CompactionEnd, &[("sync", 0), ("status", 7)]);
    assert_eq!(end, What::CompactionEnd { is_sync: false, status: "contended" });
    assert_eq!(said(Source::CompactionTry, &[("order", 9)]), What::CompactionTry { order: 9 });
    assert_eq!(said(Source::CompactionDeferred, &[("order", 4)]), What::CompactionDeferred { order: 4 });
    assert_eq!(said(Source::ReclaimBegin, &[("order", 3)]), What::ReclaimBegin { order: 3 });
    assert_eq!(said(Source::ReclaimEnd, &[("nr_reclaimed", 62)]), What::ReclaimEnd { pages: 62 });
    assert_eq!(said(Source::GroupReclaimBegin, &[("order", 0)]), What::GroupReclaimBegin { order: 0 });
    assert_eq!(said(Source::GroupReclaimEnd, &[("nr_reclaimed", 5)]), What::GroupReclaimEnd { pages: 5 });
    assert_eq!(said(Source::Throttled, &[("usec_delayed", 999)]), What::Throttled { delayed_us: 999 });
    let page = |pfn| said(Source::PageAlloc, &[("order", 9), ("pfn", pfn)]);
    assert_eq!(page(512), What::PageAlloc { order: 9, is_failed: false });
    assert_eq!(page(-1), What::PageAlloc { order: 9, is_failed: true });
    assert_eq!(said(Source::PageAlloc, &[("order", 0), ("pfn", 1)]), What::PageTable);
    let spoiled = said(Source::ExtFrag, &[("alloc_order", 0), ("fallback_order", 8)]);
    assert_eq!(spoiled, What::ExtFrag { order: 0, fallback_order: 8, is_fragmenting: true });
    let mm = Mm(-9_i64 as u64);
    let scan = said(Source::ScanPmd, &[("mm", -9), ("status", 5)]);
    let none = "exceed_none_pte";
    assert_eq!(scan, What::KhugepagedScan { status: none, is_file: false, mm });
    let scan = said(Source::ScanFile, &[("mm", -9), ("result", 99)]);
    assert_eq!(scan, What::KhugepagedScan { status: "other", is_file: true, mm });
    let collapse = said(Source::Collapse, &[("mm", -9), ("status", 1)]);
    assert_eq!(collapse, What::Collapse { status: ok, is_file: false, mm });
    let collapse = said(Source::CollapseFile, &[("mm", -9), ("result", 1)]);
    assert_eq!(collapse, What::Collapse { status: ok, is_file: true, mm });
    assert_eq!(
        said(Source::KcompactdWake, &[("nid", 1), ("order", 9)]),
        What::KcompactdWake { node: 1, order: 9 }
    );
    assert_eq!(said(Source::KcompactdSleep, &[("nid", 1)]), What::KcompactdSleep { node: 1 });
    assert_eq!(said(Source::KswapdWake, &[("nid", 0), ("order", 2)]), What::KswapdWake { node: 0, order: 2 });
    assert_eq!(said(Source::KswapdSleep, &[("nid", 2)]), What::KswapdSleep { node: 2 });
}

#[test]
fn what_an_interrupt_allocates_is_nobodys() {
    let page = |flags| record(Source::PageAlloc, &[("order", 3), ("common_flags", flags)]);
    let tids = [0x01, 0x08, 0x10, 0x84].map(|flags| what(&decoder(), &page(flags)).0);
    assert_eq!(tids, [77, 0, 0, 77]);
}

#[test]
fn the_lives_of_threads() {
    let decoder = decoder();
    let named = |source, fields: &[(&str, i64)], name: &str| {
        let mut bytes = record(source, fields);
        let field = formats()[&source].field(source.row().3[1]).expect("a name");
        bytes[field.offset..field.offset + name.len()].copy_from_slice(name.as_bytes());
        decoder.decode(5, 0, &bytes)
    };
    let life = |life| Ok(Some(Record::Life { at_ns: 5, life }));
    let born = named(Source::Born, &[("pid", 78), ("clone_flags", 0x3d_0f00)], "java");
    assert_eq!(born, life(Life::Born { tid: 78, parent: 77, is_thread: true, name: "java".into() }));
    let forked = named(Source::Born, &[("pid", 79), ("clone_flags", 0x120_0000)], "sh");
    assert_eq!(forked, life(Life::Born { tid: 79, parent: 77, is_thread: false, name: "sh".into() }));
    let renamed = named(Source::Renamed, &[("pid", 78)], "C2 CompilerThre");
    assert_eq!(renamed, life(Life::Renamed { tid: 78, name: "C2 CompilerThre".into() }));
    let exited = named(Source::Exited, &[("pid", 78)], "C2 CompilerThre");
    assert_eq!(exited, life(Life::Exited { tid: 78, name: "C2 CompilerThre".into() }));
}

#[test]
fn the_filter_lets_page_tables_through_by_the_bits_of_this_kernel() {
    let formats = formats();
    let filter = |source: Source| source.filter(&formats[&source]);
    let expected =
        "order >= 2 || (order == 0 && migratetype == 0 && gfp_flags & 0x400000 && gfp_flags & 0x100)";
    assert_eq!(filter(Source::PageAlloc).as_deref(), Some(expected));
    assert_eq!(filter(Source::CompactionBegin), None);
    assert_eq!(Source::PageAlloc.filter(&Format::default()).as_deref(), Some("order >= 2"));
}

#[test]
fn what_a_kernel_lacks_is_a_gap_and_the_rest_is_read() {
    let mut formats = formats();
    formats.remove(&Source::CollapseFile);
    let scan = formats.get_mut(&Source::ScanPmd).expect("a format");
    scan.fields.remove("status");
    let (decoder, gaps) = Decoder::new(&formats).expect("a decoder");
    let whats: Vec<&str> = gaps.iter().map(|gap| gap.what.as_str()).collect();
    assert_eq!(
        whats,
        [
            "field status of tracepoint huge_memory:mm_khugepaged_scan_pmd",
            "tracepoint huge_memory:mm_khugepaged_collapse_file"
        ]
    );
    assert_eq!(decoder.sources().count(), 20);
    assert_eq!(decoder.decode(0, 0, &record(Source::ScanPmd, &[])), Ok(None));
    assert!(Decoder::new(&BTreeMap::new()).is_err_and(|gap| gap.why == Why::NotInThisKernel));
}

#[test]
fn events_that_are_cut_or_strange_are_counted_and_no_more() {
    let decoder = decoder();
    for source in Source::all() {
        let bytes = record(source, &[]);
        assert_ne!(decoder.decode(0, 0, &bytes), Ok(None), "{}", source.name());
        assert_eq!(decoder.decode(0, 0, &bytes[..9]), Err(Undecoded), "{}", source.name());
    }
    assert_eq!(decoder.decode(0, 0, &[]), Err(Undecoded));
    assert_eq!(decoder.decode(0, 0, &[0xff; 64]), Ok(None), "an event of an unknown thread");
    assert_eq!(decoder.decode(0, 0, &record(Source::CompactionTry, &[("order", -1)])), Err(Undecoded));
}

/// The bytes that one CPU had after `echo 1 > /proc/sys/vm/compact_memory` and `true`, and the kernel's own text for them.
#[test]
fn a_page_of_linux_6_18_says_what_the_kernel_prints_of_it() {
    let page = include_bytes!("../../../../../tests/data/trace/page-6.18.bin");
    let form = FORMATS.split("@header_page\n").nth(1).and_then(PageForm::parse).expect("a form");
    let decoder = decoder();
    let mut said = Vec::new();
    let found = ring::events(page, &form, |at_ns, bytes| {
        let record = decoder.decode(at_ns, 1, bytes).expect("as it is described").expect("one of ours");
        let us = |at_ns: u64| (at_ns + 500) / 1000 - 49_975_000_000;
        said.push(match record {
            Record::Event(event) => format!("{} {} {:?}", us(event.at_ns), event.tid, event.what),
            Record::Life { at_ns, life } => format!("{} {life:?}", us(at_ns)),
        });
    });
    assert!(found.is_some_and(|page| !page.is_broken && !page.has_hole));
    assert_eq!(
        said,
        [
            "440069 31551 CompactionBegin { is_sync: true }",
            "440117 31551 CompactionEnd { is_sync: true, status: \"complete\" }",
            "440117 31551 CompactionBegin { is_sync: true }",
            "442536 31551 CompactionEnd { is_sync: true, status: \"complete\" }",
            "442537 31551 CompactionBegin { is_sync: true }",
            "442718 31551 CompactionEnd { is_sync: true, status: \"contended\" }",
            "442877 Born { tid: 31594, parent: 31551, is_thread: false, name: \"python3\" }",
            "448064 28034 KhugepagedScan { status: \"page_pmd_mapped\", is_file: false, mm: Mm }",
            "452213 Renamed { tid: 31594, name: \"sh\" }",
            "464880 Exited { tid: 31594, name: \"sh\" }",
            "465192 28034 KhugepagedScan { status: \"succeeded\", is_file: false, mm: Mm }",
        ]
    );
}
