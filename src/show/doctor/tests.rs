use super::*;
use crate::base::Why;
use crate::doctor::facts::made_up::healthy;
use crate::doctor::{Cost, Facts, Find, Rule};
use serde_json::{Value, json};

fn nothing(_: &Facts) -> Vec<Finding> {
    Vec::new()
}

const RULE: Rule = Rule {
    id: "malloc-freed",
    title: "Memory that was freed and is not given back",
    find: Find::Facts(nothing),
};
const CATALOG: &[Entry] =
    &[Entry { rule: &RULE, levels: &[Level::Info, Level::Warn], page: "# Freed memory\n\nmalloc-freed\n" }];

fn patient(pid: i32, unread: Option<Gap>) -> Patient {
    Patient {
        pid,
        main: Some("com.example.Main".to_string()),
        server: None,
        user: "app".to_string(),
        container: None,
        version: Some("21.0.8+9".to_string()),
        gc: Some("g1".to_string()),
        resident_bytes: Some(1 << 30),
        unread,
    }
}

fn finding() -> Finding {
    Finding {
        id: "malloc-freed",
        level: Level::Warn,
        subject: Subject::Jvm(4711),
        title: "412.3 MiB that the JVM freed are still resident, 31 % of what it has.".to_string(),
        evidence: vec![
            Evidence::bytes("malloc-then-freed, resident", 432_327_884, "account: malloc_freed"),
            Evidence::percent("of what is resident", 31.25, "account"),
            Evidence::state("TrimNativeHeapInterval", "0: off", "flag of the VM"),
        ],
        cost: Cost { bytes: Some(432_327_884), cpu_percent: None, stall_ms: Some(3.5) },
        remedies: vec![
            Remedy::command("marusa trim 4711"),
            Remedy::jvm_option("-XX:TrimNativeHeapInterval=5000"),
            Remedy::Advice("fewer threads that allocate at once leave less behind, ".repeat(4)),
        ],
    }
}

fn gathered(unread: Option<Gap>) -> Gathered {
    let patients = vec![patient(4711, None), patient(4712, unread)];
    Gathered { facts: healthy(), patients, ..Gathered::default() }
}

fn shown<'a>(gathered: &'a Gathered, findings: &'a [Finding]) -> Shown<'a> {
    Shown { gathered, findings, ignored: &[], catalog: CATALOG, if_xmx: None, has_host: true }
}

fn text_of(shown: &Shown) -> String {
    let mut out = Vec::new();
    text(&mut out, shown).expect("written");
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn a_severity_has_its_colour_and_its_word() {
    let gathered = gathered(None);
    for (level, word) in
        [(Level::Critical, "1;31mCRITICAL"), (Level::Warn, "33mWARN"), (Level::Info, "36mINFO")]
    {
        let findings = [Finding { level, ..finding() }];
        let seen = crate::show::paint::seen(|out| text(out, &shown(&gathered, &findings)));
        assert!(seen.contains(&format!("\u{1b}[0;{word}\u{1b}[0m ")), "{seen:?}");
    }
}

#[test]
fn on_a_narrow_terminal_words_are_wrapped_and_only_what_is_pasted_is_longer() {
    let (gathered, findings) = (gathered(None), [finding()]);
    let text = crate::show::width::within(40, || text_of(&shown(&gathered, &findings)));
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 40).collect();
    assert_eq!(wide, Vec::<&str>::new(), "{text}");
    assert!(text.contains("\nWARN      malloc-freed\n          pid 4711 com.example.Main\n"), "{text}");
    assert!(text.contains("\n  JVM option\n    -XX:TrimNativeHeapInterval=5000\n"), "{text}");
    assert!(text.contains("malloc-t…-freed, resident  412.3 MiB"), "{text}");
}

#[test]
fn a_finding_has_all_that_is_needed_to_act() {
    let (gathered, findings) = (gathered(None), [finding()]);
    let text = text_of(&shown(&gathered, &findings));
    let expected = "\
1 warn: the host and 2 JVMs examined by 1 rule, watched for 1.0 s

WARN      malloc-freed  pid 4711 com.example.Main
  412.3 MiB that the JVM freed are still resident, 31 % of what it has.
    malloc-then-freed, resident  412.3 MiB  account: malloc_freed
    of what is resident             31.2 %  account
    TrimNativeHeapInterval       0: off     flag of the VM
  costs 412.3 MiB, 3.5 ms of waiting while it was watched
  run         marusa trim 4711
  JVM option  -XX:TrimNativeHeapInterval=5000
";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.ends_with("marusa doctor --explain malloc-freed says more\n"), "{text}");
}

#[test]
fn every_line_has_room_in_a_narrow_terminal_but_what_is_to_be_pasted() {
    let (gathered, findings) = (gathered(None), [finding()]);
    for columns in [60, 80, 100] {
        let text = super::super::width::within(columns, || text_of(&shown(&gathered, &findings)));
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
    }
}

#[test]
fn nothing_found_says_what_was_examined_and_what_was_not() {
    let gap = Gap::new("/proc/PID/maps", Why::Denied).hint("run marusa as root");
    let healthy = gathered(None);
    let text = text_of(&shown(&healthy, &[]));
    let line = "nothing found: the host and 2 JVMs examined by 1 rule, watched for 1.0 s\n";
    assert_eq!(text, line);
    let unread = gathered(Some(gap));
    let text = text_of(&shown(&unread, &[]));
    assert!(text.contains("1 JVM (1 more could not be read)"), "{text}");
    assert!(text.ends_with("  pid 4712: /proc/PID/maps: denied\n    run marusa as root\n"), "{text}");
}

#[test]
fn programs_get_figures_and_subjects() {
    let (gathered, findings) = (gathered(None), [finding()]);
    let json = serde_json::to_value(DoctorDocument::of(&shown(&gathered, &findings))).expect("JSON");
    assert_eq!((&json["schema"], &json["counts"]["warn"]), (&json!("marusa/doctor/2"), &json!(1)));
    let found = &json["findings"][0];
    assert_eq!(found["subject"], json!({"kind": "jvm", "pid": 4711, "main": "com.example.Main"}));
    assert_eq!(found["evidence"][0]["value"], "412.3 MiB");
    assert_eq!(found["cost"]["cpu_percent"], Value::Null);
    assert_eq!(found["remedies"][1]["kind"], "jvm_option");
    let sarif = serde_json::to_value(sarif(&shown(&gathered, &findings))).expect("JSON");
    let run = &sarif["runs"][0];
    assert_eq!(
        (&run["results"][0]["level"], &run["results"][0]["ruleIndex"]),
        (&json!("warning"), &json!(0))
    );
    assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "malloc-freed");
    let rules = serde_json::to_value(RulesDocument::of(CATALOG)).expect("JSON");
    assert_eq!(rules["rules"][0]["levels"], json!(["info", "warn"]));
}

#[test]
fn a_container_says_which_figures_are_the_hosts() {
    let mut gathered = gathered(None);
    gathered.facts.host.view.is_container = true;
    gathered.facts.host.view.covered = vec!["/proc/meminfo".to_string()];
    let text = text_of(&shown(&gathered, &[])).replace('\n', " ");
    assert!(text.contains("are the host's; /proc/meminfo may be the container's"), "{text}");
}
