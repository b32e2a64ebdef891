use super::*;
use crate::base::{Gap, Why};
use crate::doctor::{Cost, Evidence, Level, Remedy, Subject};
use crate::jvm::Held;
use crate::jvm::Kind;
use crate::map::join;
use crate::map::made_up::{extent, run, snapshot};
use crate::map::{Area, grid};
use crate::measure::history::{Detail, Row};

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\u{1b}[2J\u{202e}";

fn history(moments: usize) -> History {
    let eden = |at: usize| (10 + at as u64 % 10) << 20;
    let row = |area, part: &str, bytes: &dyn Fn(usize) -> u64| Row {
        area,
        part: part.to_string(),
        resident_bytes: (0..moments).map(|at| Some(bytes(at))).collect(),
    };
    let rows = vec![row(Area::JavaHeap, "eden", &eden), row(Area::NativeLibrary, HOSTILE, &|_| 1 << 20)];
    let times = (0..moments).map(|at| 1.7e9 + at as f64).collect();
    let kernel = (0..moments).map(|at| Some(eden(at) + (1 << 20))).collect();
    History::of_rows(4711, HOSTILE.to_string(), "21, g1".to_string(), times, kernel, rows, Vec::new())
}

fn rendered(made: &Page) -> String {
    let mut out = Vec::new();
    page(&mut out, made).expect("memory takes all");
    String::from_utf8(out).expect("UTF-8")
}

fn with_histories(histories: &[History]) -> String {
    rendered(&Page {
        title: HOSTILE.to_string(),
        made_at: "2026-01-01T00:00:00Z".to_string(),
        moment: None,
        histories,
        others: None,
        growth: &[],
        findings: None,
        gaps: &[GapRow::from(&Gap::new(HOSTILE, Why::Torn).hint(HOSTILE))],
        nonce: "abc".to_string(),
    })
}

/// What is neither ours nor data: no script, image or link of the target's.
fn assert_harmless(html: &str) {
    assert!(!html.contains("<img"), "markup of a name");
    assert!(!html.contains('\u{1b}') && !html.contains('\u{202e}'), "characters that act");
    let scripts = html.matches("<script").count();
    assert_eq!(html.matches("<script nonce=\"abc\">").count() + 1, scripts, "all but the data are ours");
    assert_eq!(html.matches("</script>").count(), scripts);
    for word in ["http://", "https://"] {
        let is_foreign = |at: &usize| !html[*at..].starts_with("https://github.com/leeoniya/uPlot");
        let foreign: Vec<usize> = html.match_indices(word).map(|(at, _)| at).filter(is_foreign).collect();
        assert!(foreign.is_empty(), "an address at {foreign:?}");
    }
}

#[test]
fn a_recording_has_charts_a_still_for_paper_and_two_moments() {
    let html = with_histories(&[history(120)]);
    assert_harmless(&html);
    for wanted in [
        "data-history=\"0\"",
        "class=\"still\"><svg",
        "uPlot",
        "data-moment=\"from\"",
        "id=\"gaps\"",
        "class=\"treemap\"",
    ] {
        assert!(html.contains(wanted), "{wanted}");
    }
    assert!(!html.contains("id=\"pages\""), "a recording has no pages");
}

#[test]
fn the_holders_of_a_recording_are_a_table_of_their_first_and_last_reading() {
    let mut recorded = history(4);
    let bytes = vec![None, Some(1 << 20), Some(1 << 20), Some(3 << 20)];
    recorded.details.push(Detail { kind: "holder", name: HOSTILE.to_string(), bytes });
    let html = with_histories(&[recorded]);
    assert_harmless(&html);
    for wanted in
        ["id=\"held\"", "data-n=\"3145728\">3.0 MiB</td><td", "data-n=\"2097152\">+2.0 MiB", ">by holder<"]
    {
        assert!(html.contains(wanted), "{wanted}");
    }
    assert!(!with_histories(&[history(4)]).contains("id=\"held\""));
}

#[test]
fn an_hour_each_second_is_a_file_that_opens() {
    let html = with_histories(&[history(3600)]);
    assert!(html.len() < 1 << 20, "{} bytes", html.len());
}

#[test]
fn many_jvms_share_the_room_of_a_page() {
    let rows = |count: usize| {
        let row =
            |part: usize| Row { area: Area::JvmWork, part: part.to_string(), resident_bytes: Vec::new() };
        let (times, kernel, events) = (Vec::new(), Vec::new(), Vec::new());
        History::of_rows(
            1,
            String::new(),
            String::new(),
            times,
            kernel,
            (0..count).map(row).collect(),
            events,
        )
    };
    assert_eq!(moments_max(&[]), MOMENTS_MAX);
    assert_eq!(moments_max(&[rows(75)]), MOMENTS_MAX);
    assert_eq!(moments_max(&vec![rows(75); 50]), NUMBERS_MAX / (75 * 50));
    assert_eq!(moments_max(&vec![rows(1000); 100]), MOMENTS_MIN);
}

#[test]
fn one_account_has_its_pages_tables_and_findings() {
    let maps = format!(
        "10000000-10800000 rw-p 00000000 00:00 0 \n20000000-20001000 r--p 00000000 00:01 7 /tmp/{}\n",
        "<b>x</b>"
    );
    let pages = vec![run(0x1000_0000, 0x1000_4000, 1), run(0x2000_0000, 0x2000_1000, 1)];
    let snapshot =
        snapshot(&maps, pages, vec![extent(0x1000_0000, 0x1080_0000, Kind::JavaHeap, HOSTILE, None)]);
    let map = join(&snapshot);
    let mut account = Account::of(&snapshot, &map);
    account.holders = Some(vec![Held::made_up(HOSTILE, 3 << 20), Held::made_up("a.B.c", 1 << 20)]);
    let grid = grid::grid(&snapshot, &map);
    let finding = Finding {
        id: "thp-bloat",
        level: Level::Warn,
        subject: Subject::Jvm(1),
        title: HOSTILE.to_string(),
        evidence: vec![Evidence::bytes(HOSTILE, 4096, HOSTILE)],
        cost: Cost::bytes(8192),
        remedies: vec![Remedy::Command(HOSTILE.to_string()), Remedy::Advice(HOSTILE.to_string())],
    };
    let html = rendered(&Page {
        title: "x".to_string(),
        made_at: String::new(),
        moment: Some(Moment { account: &account, snapshot: &snapshot, map: &map, grid: grid.as_ref() }),
        histories: &[],
        others: None,
        growth: &[],
        findings: Some(Findings { list: &[finding], looked_at: HOSTILE }),
        gaps: &[],
        nonce: "abc".to_string(),
    });
    assert_harmless(&html);
    for wanted in [
        "id=\"grid\"",
        "id=\"parts\"",
        "id=\"held\"",
        "data-n=\"3145728\">75.0",
        "field</td>",
        "id=\"mappings\"",
        "data-n=\"16384\">16 KiB",
        "warn</span>",
        "8 KiB",
    ] {
        assert!(html.contains(wanted), "{wanted}");
    }
    assert!(!html.contains("uPlot.iife") && !html.contains("id=\"gaps\""));
}
