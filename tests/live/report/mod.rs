//! The page in a real browser: everything is drawn and answers to keys, nothing is asked of a network, and the words of a hostile
//! program stay words.

pub mod browser;
pub mod fits;

use crate::common::*;
use browser::{Browser, Facts};
use marusa::map::Area;
use marusa::measure::history::{Event, History, Row};
use marusa::measure::peak::Others;
use marusa::show::html::{self, Page};
use std::path::PathBuf;

pub const HOSTILE: &str = "</script><img src=x onerror=document.title='owned'>\u{1b}[2J\u{202e}";
pub const NONCE: &str = "0123456789abcdef";

/// All areas and some parts each; a saw-tooth, growth, and a hostile name among them.
fn recording(moments: usize) -> History {
    let all = Area::ALL.iter().flat_map(|area| (0..5).map(move |part| (*area, part))).enumerate();
    let bytes = |index: usize, at: usize| {
        ((10 + index as u64 + at as u64 % 60) << 18) + (at as u64 * index as u64 * 100)
    };
    let rows: Vec<Row> = all
        .map(|(index, (area, part))| Row {
            area,
            part: format!("part {part} {HOSTILE}"),
            resident_bytes: (0..moments).map(|at| Some(bytes(index, at))).collect(),
        })
        .collect();
    let sum = |at: usize| Some((0..rows.len()).map(|index| bytes(index, at)).sum::<u64>());
    let kernel = (0..moments).map(sum).collect();
    let times = (0..moments).map(|at| 1.76e9 + at as f64).collect();
    let events = vec![Event { at: 1.76e9 + moments as f64 / 2.0, text: HOSTILE.to_string() }];
    History::of_rows(4711, HOSTILE.to_string(), "21.0.8, g1".to_string(), times, kernel, rows, events)
}

fn page_of(histories: &[History]) -> String {
    page_with(histories, None)
}

fn page_with(histories: &[History], others: Option<&Others>) -> String {
    let page = Page {
        title: HOSTILE.to_string(),
        made_at: "2026-01-01T00:00:00Z".to_string(),
        moment: None,
        histories,
        others,
        growth: &[],
        findings: None,
        gaps: &[],
        nonce: NONCE.to_string(),
    };
    let mut out = Vec::new();
    html::page(&mut out, &page).expect("memory takes all");
    String::from_utf8(out).expect("UTF-8")
}

fn assert_quiet(facts: &Facts) {
    assert_eq!(
        facts.console,
        Vec::<String>::new(),
        "nothing on the console: no error, no request that was refused"
    );
    assert_ne!(facts.value["title"], "owned", "a name was run");
    assert_eq!(facts.value["images"], 0);
}

#[test]
fn an_hour_of_a_hostile_program_is_drawn_and_answers_to_keys() {
    let Some(browser) = Browser::find() else { return };
    let facts = browser.facts("hour", &page_of(&[recording(3600)]), NONCE, include_str!("probe_time.js"));
    assert_quiet(&facts);
    let value = &facts.value;
    assert_eq!(value["charts"], 1, "{value}");
    assert!(
        value["painted"].as_f64().is_some_and(|share| share > 0.2),
        "areas cover much of the chart: {value}"
    );
    let range = |name: &str| value[name].as_f64().expect("seconds");
    assert!((range("all") - 3599.0).abs() < 1.0, "{value}");
    assert!(range("zoomed") < 0.8 * range("all"), "+ zooms: {value}");
    assert!(range("moved") > 0.0, "an arrow moves: {value}");
    assert!((range("again") - range("all")).abs() < 1.0, "0 shows all: {value}");
    assert_eq!(value["rows"], 5 * Area::ALL.len(), "a row a part: {value}");
    assert_eq!(value["rows_of_stacks"], 5, "the filter: {value}");
    assert_ne!(value["sum_before"], value["sum_after"], "another moment, another difference: {value}");
    assert_eq!(value["sorted"], true, "{value}");
    assert_eq!(
        (&value["taken_away"], &value["has_focus"]),
        (&"false".into(), &true.into()),
        "Enter in the legend, and the focus stays: {value}"
    );
    assert!(value["legend"].as_str().is_some_and(|text| text.contains("iB")), "the last figure: {value}");
    assert_ne!(value["paper_light"], value["paper_dark"], "the theme changes: {value}");
}

#[test]
fn of_many_jvms_the_largest_are_shown_and_the_others_open() {
    let Some(browser) = Browser::find() else { return };
    let histories: Vec<History> = (0..6).map(|more| recording(60 + more)).collect();
    let facts = browser.facts("many", &page_of(&histories), NONCE, include_str!("probe_many.js"));
    assert_quiet(&facts);
    let value = &facts.value;
    let counts = (&value["jvms"], &value["open"], &value["bars"]);
    assert_eq!(counts, (&6.into(), &3.into(), &6.into()), "{value}");
    assert_eq!((&value["revealed"], &value["drawn"]), (&true.into(), &1.into()), "a link opens one: {value}");
}

#[test]
fn one_jvm_has_a_picture_of_its_pages() {
    let Some(browser) = Browser::find() else { return };
    let Some(jvm) =
        Jvm::under_load(&row("17", "g1"), &[], &["heap=64m", "threads=5", "classes=50", "quiet=1"])
    else {
        return;
    };
    let file = std::env::temp_dir().join(format!("marusa-test-report-{}.html", std::process::id()));
    let output = marusa(&["map", &jvm.pid.to_string(), "--html", &file.to_string_lossy()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty());
    let html = std::fs::read_to_string(&file).expect("it was written");
    std::fs::remove_file(&file).expect("ours");
    assert!(html.contains("id=\"held\"") && html.contains(">HotSpot</td>"), "the holders");
    let nonce =
        html.split("script-src 'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).expect("a nonce");
    let facts = browser.facts("pages", &html, nonce, include_str!("probe_pages.js"));
    assert_quiet(&facts);
    let value = &facts.value;
    assert!(
        value["blocks"].as_u64().is_some_and(|blocks| blocks > 32),
        "64 MiB of heap are 32 blocks: {value}"
    );
    assert!(value["painted"].as_f64().is_some_and(|share| share > 0.1), "{value}");
    assert_ne!(value["by_owner"], value["by_size"], "other colours, another picture: {value}");
    assert!(value["at"].as_str().is_some_and(|text| text.starts_with("0x")), "{value}");
    assert_eq!(
        (&value["opened"], &value["closed"]),
        (&true.into(), &true.into()),
        "Enter and Escape: {value}"
    );
    assert!(value["areas"].as_u64().is_some_and(|areas| areas >= 8), "the treemap: {value}");
    assert!(value["tip"].as_str().is_some_and(|text| text.starts_with("Java heap: ")), "{value}");
    let colours = value["colours"].as_array().expect("colours");
    assert!(
        colours.iter().all(|colour| colour == "rgb(0, 94, 158)"),
        "the Java heap has one colour: {value}"
    );
    assert_eq!(
        (&value["drilled"], &value["back"]),
        (&true.into(), &true.into()),
        "an area opens into its parts, and Escape leads back: {value}"
    );
    assert!(value["leaves"].as_u64().is_some_and(|leaves| leaves > 1), "keys reach its parts: {value}");
    assert!(value["tables"].as_u64().is_some_and(|tables| tables >= 5), "{value}");
}

#[test]
fn every_frozen_jvm_makes_a_page_whose_pages_are_those_of_the_account() {
    let directory = root().join("tests/data/frozen");
    let files = std::fs::read_dir(directory).expect("recorded JVMs").flatten().map(|entry| entry.path());
    let frozen: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "frozen")).collect();
    assert!(frozen.len() > 10, "{frozen:?}");
    for path in frozen {
        let output = marusa(&["report", &path.to_string_lossy(), "-o", "-"]);
        let html = text(&output.stdout);
        assert!(output.status.success(), "{}: {}", path.display(), text(&output.stderr));
        for wanted in
            ["id=\"grid\"", "class=\"treemap\"", "id=\"parts\"", "id=\"findings\"", "</body></html>"]
        {
            assert!(html.contains(wanted), "{}: no {wanted}", path.display());
        }
        let data =
            html.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script>").next()).expect("data");
        let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
        let json = marusa(&["map", "--from", &path.to_string_lossy(), "--json"]);
        let account: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
        let totals = &account["totals"];
        // Memory that is mapped twice is drawn at each address.
        let expected = number(&totals["resident_bytes"]) + number(&totals["aliased_bytes"]);
        assert_eq!(drawn_bytes(&data["grid"]), expected, "{}", path.display());
    }
}

/// The bytes in memory by the runs of the picture.
fn drawn_bytes(grid: &serde_json::Value) -> u64 {
    let words: Vec<&str> = grid["runs"].as_str().expect("runs").split(' ').collect();
    let read = |word: &str| i64::from_str_radix(word, 36).expect("base 36");
    let pages = |run: &[&str]| match (read(run[1]), read(run[3])) {
        (_, counted @ ..0) => -counted,
        (pages, 2..) => pages,
        _ => 0,
    };
    words.chunks_exact(4).map(|run| pages(run) as u64).sum::<u64>() * number(&grid["page"])
}

#[test]
fn files_that_hold_no_page_are_said_to() {
    let file: PathBuf = std::env::temp_dir().join(format!("marusa-test-report-{}.bad", std::process::id()));
    let path = file.to_string_lossy().to_string();
    let cases: [(&[u8], &[&str]); 3] =
        [(b"nonsense", &[]), (b"marusa-record 2\n", &["newer"]), (b"marusa-record 1\n", &["no samples"])];
    for (bytes, words) in cases {
        std::fs::write(&file, bytes).expect("written");
        let output = marusa(&["report", &path, "-o", "/dev/null"]);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{error}");
        assert!(words.iter().all(|word| error.contains(word)) && !error.contains("panicked"), "{error}");
    }
    std::fs::remove_file(&file).expect("ours");
    let output = marusa(&["report", &path, "-o", "/dev/null"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
}
