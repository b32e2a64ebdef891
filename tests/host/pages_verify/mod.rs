//! `marusa pages verify` against real JVMs: promises that are kept, and each way in which one is not, with the cause and the
//! next step that it must name.

mod code;
mod jvm;

use crate::common::host::{HUGETLB, Host, THP};
use crate::common::*;
use jvm::*;
use serde_json::{Value, json};
use std::process::Command;
use std::time::Instant;

const MIB: u64 = 1 << 20;
const HEAP: &[&str] = &["-Xms64m", "-Xmx64m", "-XX:ReservedCodeCacheSize=48m"];
/// The pages of a heap of 64 MiB and a code cache of 48.
const PAGES: u64 = 56;

fn pool(pages: u64) -> (String, String) {
    (format!("{HUGETLB}/hugepages-2048kB/nr_overcommit_hugepages"), pages.to_string())
}
fn thp(file: &str, word: &str) -> (String, String) {
    (format!("{THP}/{file}"), word.to_string())
}

/// Exit status, answer and what went to standard error.
fn verify(pid: &str, more: &[&str]) -> (Option<i32>, Value, String) {
    let output = marusa(&[&["pages", "verify", pid, "--json"], more].concat());
    let answer = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code(), answer, text(&output.stderr))
}

/// The text form, for people: no line is too long.
fn shown(pid: &str, more: &[&str]) -> String {
    let output = marusa(&[&["pages", "verify", pid], more].concat());
    let shown = text(&output.stdout);
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    shown
}

fn codes(answer: &Value, key: &str) -> Vec<String> {
    let causes = answer[key].as_array().expect("a list");
    causes.iter().map(|cause| cause["code"].as_str().unwrap_or_default().to_string()).collect()
}

fn row<'a>(answer: &'a Value, part: &str) -> &'a Value {
    let rows = answer["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["part"] == part).unwrap_or_else(|| panic!("no row {part}: {rows:#?}"))
}

#[test]
fn a_pool_that_is_exact_is_enough_and_one_page_less_is_not() {
    for (jdk, gc) in [("25", "parallel"), ("17", "parallel"), ("11", "serial"), ("21", "serial")] {
        let Some(mut host) = Host::with(&[pool(PAGES)]) else { return };
        let plan = Plan::new(jdk, gc, 64 * MIB).write("exact");
        let options = [HEAP, &["-XX:+UseLargePages", collector(gc)]].concat();
        let Some(jvm) = Logging::start(jdk, &options) else { return };
        let (status, answer, errors) = verify(&jvm.pid(), &[plan.as_str()]);
        assert_eq!(status, Some(0), "JDK {jdk} {gc}: {errors} {answer:#}");
        assert_eq!(answer["totals"][0]["found_pages"], PAGES, "JDK {jdk} {gc}");
        assert_eq!(codes(&answer, "causes"), Vec::<String>::new());
        drop(jvm);

        let (file, pages) = pool(PAGES - 1);
        host.set(file, &pages).expect("a smaller pool");
        let Some(jvm) = Logging::start(jdk, &options) else { return };
        let (status, answer, errors) = verify(&jvm.pid(), &[plan.as_str()]);
        assert_eq!(status, Some(1), "JDK {jdk} {gc}: {errors}");
        assert_eq!(codes(&answer, "causes"), ["pool_short"], "JDK {jdk} {gc}");
        let cause = &answer["causes"][0];
        let (what, next) = (cause["what"].as_str().expect("text"), cause["next"].as_str().expect("text"));
        assert!(what.contains("too small by 1 (32 missing, 31 free)"), "JDK {jdk} {gc}: {what}");
        assert!(what.contains("CodeCache 24 of 24, Java heap 0 of 32"), "JDK {jdk} {gc}: {what}");
        assert!(next.contains("56 in ") && next.contains("marusa pages apply"), "JDK {jdk} {gc}: {next}");
        assert_eq!(row(&answer, "Java heap")["verdict"], "not_met");
        assert_eq!(answer["messages"][0]["id"], "reservation_failed", "JDK {jdk}: {:#}", answer["messages"]);
        assert_eq!(answer["messages"][0]["part"], "Java heap", "JDK {jdk}");
        let shown = shown(&jvm.pid(), &[plan.as_str()]);
        assert!(shown.contains("NOT MET: 32 of 56 pages of 2M are missing"), "{shown}");
    }
}

/// The heap and the code cache have their pages; the last table that is reserved has not.
#[test]
fn one_page_less_and_a_table_is_on_small_pages() {
    let Some(_host) = Host::with(&[pool(PAGES * 4 + 27)]) else { return };
    let options =
        ["-Xms256m", "-Xmx256m", "-XX:ReservedCodeCacheSize=240m", "-XX:+UseLargePages", "-XX:+UseG1GC"];
    let Some(jvm) = Logging::start("17", &options) else { return };
    let mut plan = Plan::new("17", "g1", 256 * MIB);
    plan.needs = vec![
        need("jit_code", "CodeCache", 240 * MIB),
        need("java_heap", "Java heap", 256 * MIB),
        need("gc", "mark bitmap", 4 * MIB),
        need("gc", "mark bitmap", 4 * MIB),
    ];
    let (status, answer, errors) = verify(&jvm.pid(), &[plan.write("table").as_str()]);
    assert_eq!(status, Some(1), "{errors}");
    assert_eq!(row(&answer, "Java heap")["verdict"], "met");
    let bitmaps = row(&answer, "mark bitmap");
    assert_eq!(
        (&bitmaps["verdict"], &bitmaps["missing_pages"]),
        (&json!("not_met"), &json!(2)),
        "{bitmaps:#}"
    );
    let what = answer["causes"][0]["what"].as_str().expect("text");
    assert!(what.contains("too small by 1 (2 missing, 1 free)"), "{what}");
}

#[test]
fn no_pool_at_all_and_no_plan() {
    let Some(_host) = Host::with(&[pool(0)]) else { return };
    let Some(jvm) = Logging::start("25", &[HEAP, &["-XX:+UseLargePages", "-XX:+UseSerialGC"]].concat())
    else {
        return;
    };
    let (status, answer, errors) = verify(&jvm.pid(), &[]);
    assert_eq!(status, Some(1), "{errors}");
    assert_eq!(codes(&answer, "causes"), ["switched_off", "pool_empty"]);
    assert_eq!(answer["messages"][0]["id"], "no_pool");
    let Some(jvm) = Logging::start("25", &[HEAP, &["-XX:+UseSerialGC"]].concat()) else { return };
    let (status, answer, _) = verify(&jvm.pid(), &[]);
    assert_eq!((status, &answer["promise"]), (Some(0), &Value::Null));
    assert!(shown(&jvm.pid(), &[]).contains("asks for no large pages"));
}

#[test]
fn transparent_pages_with_madvise_touched_or_not() {
    let Some(_host) = Host::with(&[thp("enabled", "madvise")]) else { return };
    let plan = Plan::new("25", "parallel", 64 * MIB).thp().write("thp");
    let options = [HEAP, &["-XX:+UseTransparentHugePages", "-XX:+UseParallelGC"]].concat();
    let Some(jvm) = Logging::start("25", &[&options[..], &["-XX:+AlwaysPreTouch"]].concat()) else { return };
    let (status, answer, errors) = verify(&jvm.pid(), &[plan.as_str()]);
    assert_eq!(status, Some(0), "{errors} {answer:#}");
    assert_eq!(row(&answer, "Java heap")["verdict"], "met");
    drop(jvm);
    let Some(jvm) = Logging::start("25", &[&options[..], &["-Xms16m"]].concat()) else { return };
    let (status, answer, errors) = verify(&jvm.pid(), &[plan.as_str()]);
    assert_eq!(status, Some(0), "{errors} {answer:#}");
    drop(jvm);
    let Some(jvm) = Logging::start_with("25", &options, Start::ThpDisabled) else { return };
    let (status, answer, _) = verify(&jvm.pid(), &[plan.as_str()]);
    assert_eq!((status, codes(&answer, "causes")), (Some(1), vec!["process_disabled".to_string()]));
}

#[test]
fn the_heap_of_zgc_where_shared_memory_gets_no_huge_pages() {
    let Some(_host) = Host::with(&[thp("enabled", "madvise"), thp("shmem_enabled", "never")]) else { return };
    for jdk in ["17", "25"] {
        let options =
            [HEAP, &["-XX:+UseTransparentHugePages", "-XX:+UseZGC", "-XX:+AlwaysPreTouch"]].concat();
        let Some(jvm) = Logging::start(jdk, &options) else { return };
        let gc = if jdk == "25" { "z_generational" } else { "z" };
        let plan = Plan::new(jdk, gc, 64 * MIB).thp().write("zgc");
        let (status, answer, errors) = verify(&jvm.pid(), &[plan.as_str()]);
        assert_eq!(status, Some(1), "JDK {jdk}: {errors}");
        assert_eq!(codes(&answer, "causes"), ["policy_off"], "JDK {jdk}");
        let what = answer["causes"][0]["what"].as_str().expect("text");
        assert!(what.starts_with("transparent_hugepage/shmem_enabled is never"), "JDK {jdk}: {what}");
        let messages = answer["messages"].as_array().expect("messages");
        assert_eq!(
            messages.iter().any(|said| said["id"] == "shmem_off"),
            jdk == "25",
            "JDK {jdk}: {messages:#?}"
        );
    }
}

#[test]
fn a_plan_for_another_jvm_is_not_kept_whatever_the_pages_are() {
    let Some(_host) = Host::with(&[thp("enabled", "madvise")]) else { return };
    let options =
        [HEAP, &["-XX:+UseParallelGC", "-XX:+UseTransparentHugePages", "-XX:+AlwaysPreTouch"]].concat();
    let Some(jvm) = Logging::start("17", &options) else { return };
    let cases = [
        (Plan::new("25", "parallel", 64 * MIB).thp(), "other_jdk"),
        (Plan::new("17", "g1", 64 * MIB).thp(), "other_gc"),
        (Plan::new("17", "parallel", 512 * MIB).thp(), "other_heap"),
    ];
    for (plan, code) in cases {
        let (status, answer, errors) = verify(&jvm.pid(), &[plan.write(code).as_str()]);
        assert_eq!((status, codes(&answer, "causes")), (Some(1), vec![code.to_string()]), "{errors}");
        assert!(
            answer["causes"][0]["next"].as_str().expect("text").contains("marusa pages plan"),
            "{answer:#}"
        );
    }
    let Some(plain) = Logging::start("17", &[HEAP, &["-XX:+UseParallelGC", "-XX:+AlwaysPreTouch"]].concat())
    else {
        return;
    };
    let plan = Plan::new("17", "parallel", 64 * MIB).thp().write("options");
    let (status, answer, errors) = verify(&plain.pid(), &[plan.as_str()]);
    assert_eq!(
        (status, codes(&answer, "causes")),
        (Some(1), vec!["options_missing".to_string()]),
        "{errors}"
    );
    assert_eq!(answer["causes"][0]["next"], "restart it with -XX:+UseTransparentHugePages");
}

#[test]
fn a_log_that_the_jvm_writes_and_one_that_the_user_names() {
    let Some(_host) = Host::with(&[pool(PAGES - 1)]) else { return };
    let directory = env!("CARGO_TARGET_TMPDIR");
    let log = format!("-Xlog:pagesize:file={directory}/verify-log-%p.log");
    let options = [HEAP, &["-XX:+UseLargePages", "-XX:+UseSerialGC", &log]].concat();
    let Some(jvm) = Logging::start("21", &options) else { return };
    let (_, answer, _) = verify(&jvm.pid(), &[]);
    let file = format!("{directory}/verify-log-{}.log", jvm.pid());
    let of_log = answer["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter(|said| said["log"].as_str().is_some_and(|log| log.contains(&file)));
    let of_log: Vec<&Value> = of_log.collect();
    assert_eq!(of_log.len(), 1, "{:#}", answer["messages"]);
    assert!(of_log[0]["text"].as_str().is_some_and(|text| text.contains("(errno = 12)")), "{:#}", of_log[0]);
    std::fs::remove_file(file).expect("the JVM's log");

    let named = format!("{directory}/verify-named-{}.log", std::process::id());
    std::fs::write(
        &named,
        "UseLargePages disabled, no large pages configured and available on the system.\n",
    )
    .expect("a log");
    let (_, answer, _) = verify(&jvm.pid(), &["--log", &named]);
    let messages = answer["messages"].as_array().expect("messages");
    assert!(
        messages.iter().any(|said| said["log"] == named.as_str() && said["id"] == "no_pool"),
        "{messages:#?}"
    );
    std::fs::remove_file(&named).expect("ours");
    let (status, _, errors) = verify(&jvm.pid(), &["--log", &named]);
    assert!(status == Some(2) && errors.contains(&named), "{errors}");
}

#[test]
fn a_target_that_ends_in_the_middle() {
    let Some(jvm) = Logging::start("17", &[HEAP, &["-XX:+UseSerialGC", "-XX:+AlwaysPreTouch"]].concat())
    else {
        return;
    };
    let plan = Plan::new("17", "serial", 64 * MIB).thp().write("ends");
    let pid = jvm.pid();
    let took = Instant::now();
    verify(&pid, &[&plan]);
    let took = took.elapsed();
    let mut seen = Vec::new();
    for tenths in (0..10).step_by(if is_long() { 1 } else { 3 }) {
        let Some(jvm) = Logging::start("17", &[HEAP, &["-XX:+UseSerialGC"]].concat()) else { return };
        let (pid, delay) = (jvm.pid(), took * tenths / 10);
        let ending = std::thread::spawn(move || {
            std::thread::sleep(delay);
            drop(jvm);
        });
        let (status, _, errors) = verify(&pid, &[&plan]);
        ending.join().expect("ended");
        assert!(matches!(status, Some(1 | 3)), "{status:?} {errors}");
        assert_eq!(status == Some(3), errors.starts_with("marusa: "), "{errors}");
        seen.push(status);
    }
    assert_eq!(verify("999999999", &[&plan]).0, Some(3), "{seen:?}");
}

#[test]
fn an_ordinary_user_learns_which_right_is_missing() {
    if !is_root() {
        return skip("only root may become nobody");
    }
    let Some(jvm) = Logging::start("17", &[HEAP, &["-XX:+UseSerialGC"]].concat()) else { return };
    let plan = Plan::new("17", "serial", 64 * MIB).thp().write("nobody");
    let binary = readable_copy();
    for arguments in [vec!["pages", "verify", &jvm.pid()], vec!["pages", "verify", &jvm.pid(), &plan]] {
        let mut command = Command::new(&binary);
        let output = as_nobody(&mut command).args(&arguments).output().expect("it runs");
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{errors}");
        assert!(errors.contains("CAP_SYS_PTRACE"), "{errors}");
    }
    std::fs::remove_file(binary).expect("ours");
}

#[test]
fn files_that_are_no_plans() {
    let Some(jvm) = Logging::start("17", &[HEAP, &["-XX:+UseSerialGC"]].concat()) else { return };
    let file = format!("{}/no-plan-{}.json", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let whole = std::fs::read_to_string(Plan::new("17", "serial", 64 * MIB).write("whole")).expect("a plan");
    let huge = whole.replace("\"pages\":32", "\"pages\":18446744073709551615");
    assert_ne!(huge, whole);
    for (bad, expected) in [
        ("", Some(2)),
        ("{", Some(2)),
        ("[]", Some(2)),
        ("{\"schema\": \"marusa/map/1\"}", Some(2)),
        ("{\"schema\": \"marusa/pages-plan/2\"}", Some(2)),
        (&whole[..whole.len() / 2], Some(2)),
        (&huge, Some(1)),
    ] {
        std::fs::write(&file, bad).expect("written");
        let (status, _, errors) = verify(&jvm.pid(), &[&file]);
        assert_eq!(status, expected, "{errors}");
        assert_eq!(status == Some(2), errors.contains(&file), "{errors}");
    }
    std::fs::remove_file(&file).expect("ours");
    let (status, _, errors) = verify(&jvm.pid(), &["/no/such/plan"]);
    assert!(status == Some(2) && errors.contains("/no/such/plan"), "{errors}");
}
