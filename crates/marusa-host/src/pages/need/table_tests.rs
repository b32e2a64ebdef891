//! The tables that real JVMs gave (docs/large-pages-need.md), cell by cell.

use super::*;
use crate::map::Area;
use crate::pages::gc_threads;
use crate::pages::types::{PAGE_1G, PAGE_2M, Without};
use std::collections::BTreeMap;

const M: Bytes = 1 << 20;

pub fn subject(feature: u32, gc: Gc, heap_mib: u64, flags: &[(&str, &str)]) -> Subject {
    // The JDKs that were measured: 25.0.2 rounds the code cache as before, 25.0.3 as from then on.
    let version = (feature == 25).then(|| "25.0.2+10".to_string());
    Subject {
        vm: Vm::HotSpot,
        feature,
        version,
        java_home: None,
        gc,
        heap_initial_bytes: heap_mib * M,
        heap_max_bytes: heap_mib * M,
        cpus: 2,
        flags: flags
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect::<BTreeMap<_, _>>(),
    }
}

fn needs(subject: &Subject) -> Vec<Need> {
    need(subject, Mode::HugeTlb2M).expect("known")
}

/// Pages of one size over all needs.
fn pages_of(needs: &[Need], page_bytes: Bytes) -> u64 {
    needs.iter().filter(|need| need.page_bytes == page_bytes).map(|need| need.pages).sum()
}

/// What `feature` would print for these flags, without large pages, if nothing was set by hand.
fn default_flags(feature: u32, gc: Gc, heap: Bytes, cpus: u32) -> BTreeMap<String, String> {
    let subject = Subject {
        vm: Vm::HotSpot,
        feature,
        version: None,
        java_home: None,
        gc,
        heap_initial_bytes: heap,
        heap_max_bytes: heap,
        cpus,
        flags: BTreeMap::new(),
    };
    let mut printed = BTreeMap::new();
    let mut set = |name: &str, value: u64| printed.insert(name.to_string(), value.to_string());
    let sizes = code::sized(&subject, code::Given::of(&subject), crate::os::machine::base_page());
    set("ReservedCodeCacheSize", sizes.reserved);
    if let Some(segments) = sizes.segments {
        set("NonNMethodCodeHeapSize", segments.non_nmethod);
        set("ProfiledCodeHeapSize", segments.profiled);
        set("NonProfiledCodeHeapSize", segments.non_profiled);
    }
    match gc {
        Gc::G1 => {
            set("G1HeapRegionSize", sizing::g1_region(&subject));
        }
        Gc::Shenandoah | Gc::ShenandoahGenerational => {
            set("ShenandoahRegionSize", sizing::shenandoah_region(&subject, crate::base::PAGE));
        }
        _ => {}
    }
    let threads = gc_threads::by_formula(feature, gc, cpus, heap);
    if let Some(parallel) = threads.parallel {
        set("ParallelGCThreads", u64::from(parallel));
    }
    if let Some(concurrent) = threads.concurrent {
        set("ConcGCThreads", u64::from(concurrent));
    }
    printed
}

/// Least and most 2M pages.
fn pages(subject: &Subject) -> (u64, u64) {
    let needs = needs(subject);
    let large = || needs.iter().filter(|need| need.page_bytes == PAGE_2M);
    (large().map(|need| need.pages_at_least).sum(), large().map(|need| need.pages).sum())
}

#[test]
fn every_cell_of_the_table_comes_out() {
    let gcs = [Gc::Serial, Gc::Parallel, Gc::G1, Gc::Z, Gc::Shenandoah];
    // As taken by real JVMs with 512M and 2G; 11's may take a page more, by where a mapping lies.
    let table: [(u32, [[u64; 2]; 5]); 4] = [
        (11, [[376, 1144], [376, 1176], [384, 1182], [376, 1144], [385, 1177]]),
        (17, [[376, 1145], [376, 1177], [384, 1182], [376, 1144], [393, 1209]]),
        (21, [[376, 1145], [376, 1177], [380, 1164], [376, 1144], [393, 1209]]),
        (25, [[376, 1145], [376, 1161], [380, 1164], [376, 1144], [393, 1209]]),
    ];
    for (feature, row) in table {
        for (gc, cells) in gcs.iter().zip(row) {
            for (heap_mib, taken) in [512, 2048].iter().zip(cells) {
                let (least, most) = pages(&subject(feature, *gc, *heap_mib, &[]));
                let name = format!("{feature} {} {heap_mib}", gc.name());
                assert_eq!(least, taken, "{name}");
                let by_place =
                    u64::from(feature == 11 && taken > 1100 && matches!(gc, Gc::Serial | Gc::Parallel));
                assert_eq!(most, taken + by_place, "{name}");
            }
        }
    }
}

#[test]
fn from_25_0_3_the_code_cache_grows_with_its_segments() {
    // Cells of the table for 25.0.3: one page more throughout.
    let taken = [(Gc::Serial, 377, 1146), (Gc::Parallel, 377, 1162), (Gc::G1, 381, 1165), (Gc::Z, 377, 1145)];
    for (gc, small, large) in taken.into_iter().chain([(Gc::Shenandoah, 394, 1210)]) {
        for (heap, taken) in [(512, small), (2048, large)] {
            let mut jvm = subject(25, gc, heap, &[]);
            jvm.version = Some("25.0.3+9".to_string());
            assert_eq!(pages(&jvm), (taken, taken), "{} {heap}", gc.name());
            jvm.version = None;
            assert_eq!(pages(&jvm), (taken - 1, taken), "both are given for an unknown update");
        }
    }
    // ReservedCodeCacheSize that 25.0.3 prints, by -XX:ActiveProcessorCount.
    for (cpus, printed) in [
        (2, 253_755_392),
        (8, 253_755_392),
        (16, 255_852_544),
        (32, 255_852_544),
        (64, 253_755_392),
        (128, 253_755_392),
    ] {
        let mut jvm = subject(25, Gc::Serial, 64, &[]);
        (jvm.version, jvm.cpus) = (Some("25.0.3".to_string()), cpus);
        assert_eq!(needs(&jvm)[0].bytes, printed, "{cpus}");
    }
}

#[test]
fn the_code_cache_comes_first_so_a_pool_of_the_heap_alone_leaves_the_heap_on_4k() {
    let needs = needs(&subject(17, Gc::Serial, 256, &[]));
    assert_eq!((needs[0].area, needs[0].pages), (Area::JitCode, 120));
    let short = shortfall(&needs, 130, 0);
    assert_eq!(short.len(), 1, "{short:?}");
    assert_eq!((short[0].need.area, short[0].gets_page_bytes), (Area::JavaHeap, Some(4096)));
    assert!(short[0].certain);
    assert_eq!(shortfall(&needs, 248, 0), []);
}

#[test]
fn what_comes_later_still_fits_where_something_large_did_not() {
    let needs = needs(&subject(17, Gc::G1, 2048, &[]));
    let parts = |pages| {
        shortfall(&needs, pages, 0).into_iter().map(|short| short.need.part.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(parts(1182), [] as [&str; 0]);
    assert_eq!(parts(1181), ["mark bitmap"]);
    assert_eq!(parts(1143), ["heap",] as [&str; 1], "and the tables go to large pages");
    assert_eq!(parts(119), ["code cache", "heap"]);
    assert_eq!(parts(0).len(), 7);
}

#[test]
fn zgc_does_not_start_with_too_few_and_refuses_1g() {
    let needs = needs(&subject(21, Gc::ZGenerational, 512, &[]));
    let short = shortfall(&needs, 375, 0);
    assert_eq!((short.len(), short[0].need.without, short[0].gets_page_bytes), (1, Without::VmExits, None));
    let refused = need(&subject(17, Gc::Z, 1024, &[]), Mode::HugeTlb1G).expect_err("2M only");
    assert!(refused.hint.as_ref().is_some_and(|hint| hint.contains("2M pages only")), "{refused:?}");
}

#[test]
fn one_gigabyte_pages_for_the_heap_and_2m_ones_beside() {
    let needs = need(&subject(21, Gc::G1, 2048, &[]), Mode::HugeTlb1G).expect("known");
    assert_eq!((pages_of(&needs, PAGE_1G), pages_of(&needs, PAGE_2M)), (2, 140));
    // Where the 1G pages lack, 21 takes 2M ones, if there are enough.
    let short = shortfall(&needs, 1164, 1);
    assert_eq!((short.len(), short[0].gets_page_bytes), (1, Some(PAGE_2M)));
    let short = shortfall(&needs, 140, 1);
    assert_eq!((short.len(), short[0].gets_page_bytes), (1, Some(4096)));
    assert!(need(&subject(11, Gc::G1, 2048, &[]), Mode::HugeTlb1G).is_err());
    // Every collector rounds its heap up to the page, as 17 was seen to ask for.
    let needs = need(&subject(17, Gc::Serial, 512, &[]), Mode::HugeTlb1G).expect("known");
    assert_eq!((pages_of(&needs, PAGE_1G), pages_of(&needs, PAGE_2M)), (1, 120));
    assert_eq!(shortfall(&needs, 4000, 0)[0].gets_page_bytes, Some(4096), "17 has one try");
}

#[test]
fn hostile_flags_and_sizes_do_not_panic() {
    for value in ["", "0", "1", "18446744073709551615", "16777215t", "x", "-1", "9999999999g"] {
        let names = [
            "ReservedCodeCacheSize",
            "InitialCodeCacheSize",
            "NonNMethodCodeHeapSize",
            "ProfiledCodeHeapSize",
            "G1HeapRegionSize",
            "ShenandoahRegionSize",
            "ShenandoahTargetNumRegions",
            "MaxNewSize",
            "NewSize",
            "NewRatio",
            "MarkStackSize",
            "GCCardSizeInBytes",
            "ObjectAlignmentInBytes",
            "CodeCacheSegmentSize",
            "ParallelGCThreads",
        ];
        let flags: Vec<_> = names.iter().map(|name| (*name, value)).collect();
        for (feature, gc) in
            [(8, Gc::Cms), (11, Gc::G1), (17, Gc::Shenandoah), (21, Gc::Parallel), (25, Gc::Z), (25, Gc::G1)]
        {
            for heap in [0, 1, 4096, 1 << 45, u64::MAX] {
                let mut jvm = subject(feature, gc, 1, &flags);
                (jvm.heap_max_bytes, jvm.heap_initial_bytes, jvm.cpus) = (heap, u64::MAX, u32::MAX);
                for mode in [Mode::HugeTlb2M, Mode::HugeTlb1G, Mode::Thp] {
                    if let Ok(needs) = need(&jvm, mode) {
                        shortfall(&needs, u64::MAX, u64::MAX);
                        shortfall(&needs, 1, 1);
                    }
                }
            }
        }
    }
}

/// The flags that options come to.
fn flags_of(options: &str) -> Vec<(String, String)> {
    let mut flags = Vec::new();
    let mut set = |name: &str, value: &str| flags.push((name.to_string(), value.to_string()));
    for option in options.split_whitespace() {
        match option.strip_prefix("-XX:") {
            Some(option) if option.starts_with('-') => set(&option[1..], "false"),
            Some(option) if option.starts_with('+') => set(&option[1..], "true"),
            Some(option) => option.split_once('=').into_iter().for_each(|(name, value)| set(name, value)),
            None if option == "-Xint" => set("UseCompiler", "false"),
            None if option.starts_with("-Xmn") => {
                set("MaxNewSize", &option[4..]);
                set("NewSize", &option[4..]);
            }
            None => {}
        }
    }
    flags
}

/// tests/data/pages-need.tsv: what real JVMs took (docs/large-pages-need.md says how it was made).
#[test]
fn every_measured_variant_comes_out() {
    let text = include_str!("../../../../../tests/data/pages-need.tsv");
    let mut wrong = Vec::new();
    for line in text.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [feature, gc, heap, options, taken] = columns[..] else { panic!("{line}") };
        let gc = match gc {
            "serial" => Gc::Serial,
            "parallel" => Gc::Parallel,
            "g1" => Gc::G1,
            "cms" => Gc::Cms,
            "z" => Gc::Z,
            _ => Gc::Shenandoah,
        };
        let size = |text: &str| {
            flag_bytes(&BTreeMap::from([("it".to_string(), text.to_string())]), "it").expect("a size")
        };
        let flags = flags_of(options);
        let flags: Vec<(&str, &str)> =
            flags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut jvm = subject(feature.parse().expect("a release"), gc, size(heap) / M, &flags);
        if let Some(initial) = options.split_whitespace().find_map(|option| option.strip_prefix("-Xms")) {
            jvm.heap_initial_bytes = size(initial);
        }
        let (least, most) = pages(&jvm);
        let taken: u64 = taken.parse().expect("pages");
        let exact = jvm.feature >= 17 && (gc != Gc::Z || !options.contains("-Xms"));
        if !(least..=most).contains(&taken) || (exact && least != most) {
            wrong.push(format!("{line}: {least} to {most}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What -XX:+PrintFlagsFinal prints with G1 and -Xms3g -Xmx3g, for 2 and 16 CPUs; `default_flags` says the same without a JDK.
#[test]
fn the_default_flags_are_those_that_the_jdks_print() {
    // Release, CPUs, region, non-nmethods, profiled, non-profiled, reserved.
    let printed: [(u32, u32, [u64; 5]); 10] = [
        (8, 2, [1 << 20, 0, 0, 0, 251_658_240]),
        (8, 16, [1 << 20, 0, 0, 0, 251_658_240]),
        (11, 2, [1 << 20, 5_825_164, 122_916_538, 122_916_538, 251_658_240]),
        (11, 16, [1 << 20, 7_594_288, 122_031_976, 122_031_976, 251_658_240]),
        (17, 2, [2 << 20, 5_826_188, 122_916_026, 122_916_026, 251_658_240]),
        (17, 16, [2 << 20, 7_602_480, 122_027_880, 122_027_880, 251_658_240]),
        (21, 2, [2 << 20, 5_826_188, 122_916_026, 122_916_026, 251_658_240]),
        (21, 16, [2 << 20, 7_602_480, 122_027_880, 122_027_880, 251_658_240]),
        // 25.0.3.
        (25, 2, [2 << 20, 5_828_608, 122_916_864, 122_916_864, 251_662_336]),
        (25, 16, [2 << 20, 7_606_272, 122_028_032, 122_028_032, 251_662_336]),
    ];
    let names =
        ["G1HeapRegionSize", "NonNMethodCodeHeapSize", "ProfiledCodeHeapSize", "NonProfiledCodeHeapSize"];
    for (feature, cpus, values) in printed {
        let flags = default_flags(feature, Gc::G1, 3 << 30, cpus);
        for (name, value) in names.iter().chain(&["ReservedCodeCacheSize"]).zip(values) {
            assert_eq!(flag_bytes(&flags, name).unwrap_or(0), value, "{feature} {cpus} {name}");
        }
        assert_eq!(flags["ParallelGCThreads"], if cpus == 2 { "2" } else { "13" });
        assert_eq!(flags["ConcGCThreads"], if cpus == 2 { "1" } else { "3" });
    }
}

/// A JVM that was asked tells every flag as if it had been set; the need is the same.
#[test]
fn flags_that_a_jvm_tells_of_itself_change_nothing() {
    for (cpus, pages_of_code) in [(2, 121), (16, 122), (64, 121)] {
        let mut jvm = subject(25, Gc::G1, 1024, &[]);
        (jvm.version, jvm.cpus) = (Some("25.0.3+9-LTS".to_string()), cpus);
        jvm.flags = default_flags(25, Gc::G1, 1 << 30, cpus);
        jvm.flags.insert("MaxNewSize".to_string(), "643825664".to_string());
        assert_eq!(needs(&jvm)[0].pages, pages_of_code, "{cpus}");
    }
    // As 25.0.3 prints them on large pages with 16 CPUs.
    let on_large_pages = [
        ("ReservedCodeCacheSize", "255852544"),
        ("NonNMethodCodeHeapSize", "8388608"),
        ("ProfiledCodeHeapSize", "123731968"),
        ("NonProfiledCodeHeapSize", "123731968"),
    ];
    let mut jvm = subject(25, Gc::G1, 1024, &on_large_pages);
    (jvm.version, jvm.cpus) = (Some("25.0.3+9-LTS".to_string()), 16);
    assert_eq!(needs(&jvm)[0].pages, 122);
    // 25.0.2, as asked without large pages.
    let without = [
        ("ReservedCodeCacheSize", "251658240"),
        ("NonNMethodCodeHeapSize", "5824512"),
        ("ProfiledCodeHeapSize", "122912768"),
        ("NonProfiledCodeHeapSize", "122920960"),
    ];
    assert_eq!(needs(&subject(25, Gc::G1, 1024, &without))[0].pages, 120);
}
