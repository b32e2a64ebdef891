//! The answer of `leak` in words and as JSON.

use super::*;
use crate::map::Area;
use crate::map::rows::Named;
use crate::record::leak_row::Holder;
use serde_json::json;

fn row(what: What, verdict: Verdict, needs_minutes: Option<f64>) -> Row {
    let mib = 1024.0 * 1024.0;
    let rate =
        Rate { bytes_per_hour: 60.0 * mib, low_bytes_per_hour: 58.0 * mib, high_bytes_per_hour: 61.0 * mib };
    let growth = Growth {
        verdict,
        caveat: (verdict == Verdict::CannotTellYet).then_some(Caveat::Noise),
        needs_minutes,
        rate: Some(rate),
        level_bytes: 300 << 20,
        steady_from_seconds: 60.0,
        steady_seconds: 3000.0,
        grown_bytes: 50 << 20,
        grown_seconds: 3060.0,
        is_small: false,
        bound_bytes: (verdict == Verdict::GrowsToBound).then_some(600 << 20),
    };
    Row { what, growth, with: None, held_by: Vec::new() }
}

fn fresh() -> Since {
    Since { account: Some("2026-01-01T00:00:00Z".to_string()), seconds: 5.0, ..Since::default() }
}

fn rows() -> Vec<Row> {
    let part = What::Part(
        Area::JvmWork,
        "a part with a name of more letters than there is room for\u{1b}[1m".to_string(),
    );
    vec![
        row(What::All, Verdict::GrowsWithoutBound, None),
        row(What::Area(Area::MallocFreed), Verdict::GrowsWithoutBound, None),
        row(part, Verdict::CannotTellYet, Some(12.0)),
        row(What::HeapInUse, Verdict::LevelsOff, None),
    ]
}

#[test]
fn a_jump_of_jit_work_names_what_was_compiled() {
    let recorded = crate::record::made_up::recorded(&[(1, &[]), (100, &[("a.B::run, level 4", 90)])]);
    let judged: [Judged; 1] = [(&recorded, Vec::new(), fresh())];
    let mut out = Vec::new();
    text(&mut out, &judged).expect("memory takes all");
    let words = String::from_utf8(out).expect("UTF-8").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("JIT work jumped by up to 99.0 MiB, as read at 1970-01-01T00:00:01"), "{words}");
    assert!(words.contains("compiled then: a.B::run, level 4 (arenas 90.0 MiB)"), "{words}");
    let value = serde_json::to_value(LeakDocument::of(&judged)).expect("JSON");
    assert_eq!(value["jvms"][0]["jit_work_jumps"][0]["grown_bytes"], 99 << 20);
}

#[test]
fn the_three_verdicts_in_words() {
    let mut out = Vec::new();
    text(&mut out, &[(&History::default(), rows(), fresh())]).expect("memory");
    let text = String::from_utf8(out).expect("text");
    assert!(text.contains("Grows without bound: malloc-then-freed (+60.0 MiB/h)."), "{text}");
    assert!(
        text.contains("needs 12 min more") && text.contains("at most 61.0 MiB/h more, seen for 50 min"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 100) && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn of_several_jvms_the_answer_to_each() {
    let history = History::default();
    let mut out = Vec::new();
    text(&mut out, &[(&history, rows(), fresh()), (&history, Vec::new(), fresh())]).expect("memory");
    let text = String::from_utf8(out).expect("text");
    assert!(
        text.contains("malloc-then-freed") && text.contains("could be judged") && text.contains("--jvm"),
        "{text}"
    );
}

#[test]
fn an_answer_to_each_case() {
    let all = rows();
    assert!(answer(&all[..1], &fresh()).contains("no single area"));
    assert!(answer(&all[2..], &fresh()).contains("12 min more"));
    let early = row(What::Area(Area::ClassMetadata), Verdict::CannotTellYet, Some(7.0));
    assert_eq!(
        answer(&[early], &fresh()),
        "Class metadata: +50.0 MiB in 51 min, too early to call it unbounded; 7 min more may settle it."
    );
    let heap = row(What::HeapInUse, Verdict::GrowsToBound, None);
    assert_eq!(
        answer(&[heap], &fresh()),
        "Java heap after collections: grows by +60.0 MiB/h towards its bound of 600.0 MiB, reached in 5.0 h."
    );
    assert_eq!(answer(&all[3..], &fresh()), "Nothing grows without bound.");
    assert!(answer(&[], &fresh()).contains("could be judged"));
    assert_eq!([0.5, 60.0, 240.0, 5000.0].map(time), ["30 s", "60 min", "4.0 h", "4 d"]);
}

#[test]
fn an_old_account_and_the_end_are_part_of_the_answer() {
    let still = [row(What::HeapInUse, Verdict::LevelsOff, None)];
    let old = Since { seconds: 720.0, resident_since_bytes: Some(1 << 30), ..fresh() };
    assert_eq!(
        answer(&still, &old),
        "Nothing grew without bound until the last account. Not read since 2026-01-01T00:00:00Z, 12 min before the last \
         sample: +1.0 GiB resident since, owner not read."
    );
    let never = Since { account: None, resident_since_bytes: Some(0), ..old.clone() };
    assert!(answer(&[], &never).ends_with("No account was read."));
    let early = [row(What::Area(Area::ClassMetadata), Verdict::CannotTellYet, Some(7.0))];
    let killed = Since { ending: Some((Default::default(), Ending::KilledForMemory)), ..fresh() };
    assert_eq!(
        answer(&early, &killed),
        "The kernel killed it for lack of memory. Class metadata: +50.0 MiB in 51 min, until it ended."
    );
    let full = Since { full_heap: Some((250 << 20, 256 << 20)), ..fresh() };
    assert!(answer(&still, &full).starts_with("It ended with a full heap: 250.0 MiB of 256.0 MiB"));
}

#[test]
fn the_json() {
    let history = History::default();
    let judged = [(&history, rows(), fresh()), (&history, Vec::new(), fresh())];
    let value = serde_json::to_value(LeakDocument::of(&judged)).expect("JSON");
    assert_eq!(value["schema"], "marusa/leak/2");
    let value = &value["jvms"][0];
    assert_eq!(value["headline"]["kind"], "grows");
    assert_eq!(value["headline"]["named"][0]["area"], "malloc_freed");
    assert_eq!(
        (&value["rows"][1]["area"], &value["rows"][1]["verdict"]),
        (&json!("malloc_freed"), &json!("grows_without_bound"))
    );
    assert_eq!(
        (&value["rows"][2]["caveat"], &value["rows"][2]["needs_minutes"]),
        (&json!("noise"), &json!(12.0))
    );
}

#[test]
fn who_holds_what_grows_is_part_of_the_answer() {
    let mut grows = row(What::Area(Area::MallocUnknown), Verdict::GrowsWithoutBound, None);
    let growth = grows.growth;
    let name = "org.rocksdb.ReadOptions.nativeHandle_".to_string();
    grows.held_by = vec![Holder { kind: Named::Holder, name, growth, count_grown: Some(1_200_000) }];
    let text = answer(&[grows.clone()], &fresh());
    assert!(
        text.ends_with(
            "Held by org.rocksdb.ReadOptions.nativeHandle_: +60.0 MiB/h, +1.2 M blocks in 51 min."
        ),
        "{text}"
    );
    let name = "com.example.PluginLoader".to_string();
    grows.held_by.push(Holder { kind: Named::Loader, name, growth, count_grown: Some(41) });
    let loader = answer(&[grows.clone()], &fresh());
    assert!(loader.ends_with("; com.example.PluginLoader: +60.0 MiB/h, +41 loaders in 51 min."), "{loader}");
    let since = fresh();
    let judged = [(&History::default(), vec![grows.clone()], since)];
    let value = serde_json::to_value(LeakDocument::of(&judged)).expect("JSON");
    let loader = &value["jvms"][0]["rows"][0]["held_by"][1];
    assert_eq!(
        (&loader["kind"], &loader["loaders_grown"], &loader["blocks_grown"]),
        (&json!("loader"), &json!(41), &json!(null))
    );
    let mut heap = row(What::HeapInUse, Verdict::GrowsToBound, None);
    let name = "com.app.Session".to_string();
    heap.held_by = vec![Holder { kind: Named::Class, name, growth, count_grown: Some(1_200_000) }];
    let class = "com.app.Session: +60.0 MiB/h, +1.2 M instances in 51 min.";
    let text = answer(&[heap.clone()], &fresh());
    assert!(text.ends_with(&format!(" Classes that grow: {class}")), "{text}");
    heap.what = What::Area(Area::JavaHeap);
    let text = answer(&[heap], &fresh());
    assert!(text.contains("What is alive of the Java heap is not known") && text.ends_with(class), "{text}");
    let history = History::default();
    let mut out = Vec::new();
    self::text(&mut out, &[(&history, vec![grows], fresh())]).expect("memory");
    let out = String::from_utf8(out).expect("text");
    assert!(out.contains("--holders-every"), "no holders are in the recording: {out}");
}
