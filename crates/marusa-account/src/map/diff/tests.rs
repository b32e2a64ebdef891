use super::*;

const MB: u64 = 1 << 20;

fn sums(areas: &[(Area, &[(&str, u64)])]) -> Sums {
    let mut sums = Sums::default();
    for (area, parts) in areas {
        let of = |resident: u64| Sum { resident, committed: resident, ..Sum::default() };
        sums.areas.insert(*area, of(parts.iter().map(|(_, bytes)| bytes).sum()));
        for (part, bytes) in *parts {
            sums.parts.insert((*area, part.to_string()), of(*bytes));
        }
    }
    sums
}

fn arena(number: u64, freed: u64) -> Sum {
    Sum { number, resident: freed + MB, freed: Some(freed), in_use: Some(MB), ..Sum::default() }
}

#[test]
fn freed_memory_is_named_by_its_arena_though_the_arena_got_another_number() {
    let mut before = sums(&[
        (Area::MallocFreed, &[("unsorted", 10 * MB)]),
        (Area::ClassMetadata, &[("metaspace", 50 * MB)]),
    ]);
    before.arenas = [(0x10, arena(0, 5 * MB)), (0x20, arena(1, 5 * MB))].into();
    let mut now = sums(&[
        (Area::MallocFreed, &[("unsorted", 390 * MB)]),
        (Area::ClassMetadata, &[("metaspace", 82 * MB)]),
    ]);
    now.arenas = [(0x10, arena(0, 5 * MB)), (0x30, arena(1, 0)), (0x20, arena(2, 385 * MB))].into();
    let diff = diff(&before, &now);
    assert_eq!(diff.resident(), 412 * MB as i64);
    assert_eq!(diff.grown(Some(Area::ClassMetadata)), Ok(32 * MB as i64));
    let named: Vec<(i64, What)> = diff.causes.causes.iter().map(|it| (it.bytes, it.what.clone())).collect();
    let metaspace = What::Part { area: Area::ClassMetadata, part: "metaspace".to_string() };
    let freed = What::FreedInArena { area: Area::MallocFreed, arena: 2 };
    assert_eq!(named, [(380 * MB as i64, freed), (32 * MB as i64, metaspace)]);
    assert_eq!(diff.causes.rest, 0);
    assert_eq!(diff.arenas[0].row.key, ArenaKey { at: 0x20, number: 2 });
    assert_eq!(diff.arenas[0].freed, Some(380 * MB as i64));
}

#[test]
fn freed_memory_in_many_arenas_and_parts_that_share_an_area() {
    let before = sums(&[(Area::JvmWork, &[("symbols", MB), ("internal", MB)])]);
    let mut now = sums(&[
        (Area::JvmWork, &[("symbols", 11 * MB), ("internal", 10 * MB)]),
        (Area::MallocFreed, &[("unsorted", 20 * MB)]),
    ]);
    now.arenas = (0..4).map(|number| (number, arena(number, 5 * MB))).collect();
    let found = diff(&before, &now).causes;
    let named: Vec<What> = found.causes.into_iter().map(|cause| cause.what).collect();
    let freed = What::FreedInArenas { area: Area::MallocFreed, arenas: 4 };
    assert_eq!(named, [freed, What::Area { area: Area::JvmWork }]);
    assert_eq!((found.rest, found.against), (0, None));
}

#[test]
fn threads_are_named_and_what_went_the_other_way_is_reported() {
    let mut before = sums(&[(Area::Stack, &[("stack", MB)]), (Area::JavaHeap, &[("eden", 40 * MB)])]);
    before
        .threads
        .insert("pool-#".to_string(), Sum { threads: 1, reserved: MB, resident: MB, ..Sum::default() });
    let mut now = sums(&[(Area::Stack, &[("stack", 101 * MB)]), (Area::JavaHeap, &[("eden", 20 * MB)])]);
    now.threads.insert(
        "pool-#".to_string(),
        Sum { threads: 101, reserved: 101 * MB, resident: 101 * MB, ..Sum::default() },
    );
    let found = diff(&before, &now);
    assert_eq!(found.causes.total, 80 * MB as i64);
    let threads =
        What::Threads { area: Area::Stack, threads_named: "pool-#".to_string(), threads_grown: 100 };
    assert_eq!(found.causes.causes[0].what, threads);
    let against = found.causes.against.expect("a fifth went away");
    assert_eq!(
        (against.bytes, against.what),
        (-20 * MB as i64, What::Part { area: Area::JavaHeap, part: "eden".to_string() })
    );
    assert_eq!((found.threads[0].threads_before, found.threads[0].threads_now), (1, 101));
}

#[test]
fn what_shrank_is_said_as_such_and_what_is_alike_has_no_row() {
    let large = sums(&[(Area::JavaHeap, &[("old", 90 * MB)]), (Area::Code, &[("text", MB)])]);
    let small = sums(&[(Area::JavaHeap, &[("old", 30 * MB)]), (Area::Code, &[("text", MB)])]);
    let found = diff(&large, &small);
    assert_eq!(found.areas.len(), 1, "code did not change");
    assert_eq!(found.causes.causes[0].bytes, -60 * MB as i64);
    let nothing = diff(&large, &large);
    assert!(nothing.areas.is_empty() && nothing.causes.causes.is_empty() && nothing.causes.against.is_none());
}

#[test]
fn what_is_not_known_at_one_moment_has_no_difference() {
    let mut before = sums(&[(Area::Gc, &[("cards", MB)])]);
    let mut now = sums(&[(Area::Gc, &[("cards", 2 * MB)])]);
    (before.kernel_resident, now.kernel_resident) = (Some(MB), None);
    let found = diff(&before, &now);
    assert_eq!((found.kernel_resident, found.areas[0].grown.in_use), (None, None));
    assert_eq!(difference(u64::MAX, 0), -(1 << 55));
}

/// What a JVM has whose runtime and malloc were read.
fn deep(heap: u64, freed: u64, unknown: u64) -> Sums {
    let mut sums = sums(&[
        (Area::JavaHeap, &[("eden", heap)]),
        (Area::ClassMetadata, &[("metaspace", 50 * MB)]),
        (Area::JitCode, &[("code", 10 * MB)]),
        (Area::Stack, &[("stack", 5 * MB)]),
        (Area::Code, &[("text", 20 * MB)]),
        (Area::MallocFreed, &[("unsorted", freed)]),
        (Area::MallocUnknown, &[("malloc, owner unknown", unknown)]),
        (Area::Overhead, &[("malloc, chunk headers and rounding", MB)]),
    ]);
    sums.arenas = [(0x10, arena(0, freed))].into();
    sums.threads =
        [("pool-#".to_string(), Sum { threads: 1, reserved: MB, resident: MB, ..Sum::default() })].into();
    sums
}

#[test]
fn what_malloc_has_is_one_sum_where_its_chunks_were_read_at_one_moment_only() {
    let before = deep(100 * MB, 200 * MB, 100 * MB);
    // The same memory, with an unknown part that is freed; and 30 MiB more of heap.
    let mut now = deep(130 * MB, 0, 0);
    for area in [Area::MallocFreed, Area::MallocUnknown, Area::Overhead] {
        now.areas.remove(&area);
        now.parts.retain(|(of, _), _| *of != area);
    }
    let whole = sums(&[(Area::MallocUnknown, &[("malloc thread arenas", 301 * MB)])]);
    now.areas.extend(whole.areas);
    now.parts.extend(whole.parts);
    now.arenas.get_mut(&0x10).expect("an arena").freed = None;
    let found = diff(&before, &now);
    let [lost] = &found.lost[..] else { panic!("{:?}", found.lost) };
    assert_eq!(lost.why, "malloc's chunks could not be read at the second moment");
    let rows: Vec<(Area, i64)> = found.areas.iter().map(|row| (row.key, row.grown.resident)).collect();
    assert_eq!(rows, [(Area::JavaHeap, 30 * MB as i64)], "nothing else moved");
    assert_eq!((found.resident(), found.causes.causes.len()), (30 * MB as i64, 1));
    assert_eq!(found.grown(Some(Area::JavaHeap)), Ok(30 * MB as i64));
    assert!(found.grown(Some(Area::MallocFreed)).is_err(), "it is not known, and not 0");
    assert_eq!((found.arenas[0].freed, found.threads.len()), (None, 0));
    assert!(diff(&before, &before).lost.is_empty() && diff(&now, &now).lost.is_empty());
}

#[test]
fn without_the_runtime_at_one_moment_only_the_sum_and_the_code_are_compared() {
    let now = deep(130 * MB, 20 * MB, 10 * MB);
    let before = sums(&[
        (Area::Code, &[("text", 19 * MB)]),
        (Area::Unattributed, &[("anonymous memory", 200 * MB)]),
        (Area::Overhead, &[("malloc, chunk headers and rounding", MB)]),
    ]);
    let found = diff(&before, &now);
    assert!(found.lost[0].why.contains("the Java runtime could not be read at the first moment"));
    let rows: Vec<(Area, i64)> = found.areas.iter().map(|row| (row.key, row.grown.resident)).collect();
    assert_eq!(rows, [(Area::Unattributed, 25 * MB as i64), (Area::Code, MB as i64)]);
    assert_eq!(found.parts[0].key.1, NOT_DISTINGUISHED);
    assert!(found.threads.is_empty() && found.libraries.is_empty());
}

#[test]
fn an_area_that_could_not_be_read_did_not_shrink() {
    let before = deep(100 * MB, MB, MB);
    let mut now = deep(100 * MB, MB, MB);
    now.areas.remove(&Area::JavaHeap);
    now.parts.retain(|(of, _), _| *of != Area::JavaHeap);
    let whole = sums(&[(Area::Unattributed, &[("anonymous memory", 101 * MB)])]);
    now.areas.extend(whole.areas);
    now.parts.extend(whole.parts);
    let found = diff(&before, &now);
    let rows: Vec<(Area, i64)> = found.areas.iter().map(|row| (row.key, row.grown.resident)).collect();
    assert_eq!(rows, [(Area::Unattributed, MB as i64)]);
    assert!(found.lost[0].why.contains("'Java heap'"), "{:?}", found.lost);
}
