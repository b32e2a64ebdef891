//! Texts on a terminal of 40 columns: no line is wider, and what a reader needs most is still there. `tests/fast/terminal.rs` has the
//! texts that a frozen file can be the source of; these need a running JVM, so they are of made models.

use super::width::within;
use super::{audit, pages, trim};
use crate::base::{Gap, Range, Why};
use crate::map::audit::malloc::{ArenaRow, MallocAudit, MmappedRow, TagRow};
use crate::map::audit::{Agreement, Audit, AuditRow, Disagreement, Figure};
use crate::map::made_up::everything;
use crate::map::page_use::{PageUse, Provider};
use crate::map::trim::{ArenaOutcome, Outcome, predict};
use crate::map::{Account, Area, join};
use crate::pages::types::{Mode, Need, Without};
use crate::pages::verify::{Cause, Promise, Report, Row, Total, Verdict};
use crate::snapshot::Snapshot;
use std::io::{self, Write};

const COLUMNS: usize = 40;

fn narrow(write: impl Fn(&mut dyn Write) -> io::Result<()>) -> String {
    let text = within(COLUMNS, || {
        let mut out = Vec::new();
        write(&mut out).expect("written");
        String::from_utf8(out).expect("UTF-8")
    });
    let wide = text.lines().find(|line| super::units::columns(line) > COLUMNS);
    assert_eq!(wide, None, "{text}");
    text
}

fn snapshot() -> Snapshot {
    let run = crate::map::made_up::run;
    everything(vec![run(0x10_0000, 0x11_0000, 1), run(0x20_0000, 0x20_4000, 1)])
}

#[test]
fn the_audit_keeps_the_difference() {
    let row = |area, reason| AuditRow {
        area,
        ours: Figure::Committed,
        ours_bytes: Some(150 << 20),
        theirs: "NMT Class + Metaspace".to_string(),
        theirs_figure: Figure::Committed,
        theirs_bytes: 140 << 20,
        unit_bytes: 1024,
        reason,
        difference_bytes: Some(10 << 20),
    };
    let tag = TagRow {
        tag: "Object Monitors".to_string(),
        ours_blocks: Some(123_456),
        ours_bytes: Some(123_456_789),
        counted_bytes: Some(123_456_700),
        said_bytes: Some(123_456_000),
        ..TagRow::default()
    };
    let arena = ArenaRow {
        number: 12,
        ours_system_bytes: Some(123_456_789),
        said_system_bytes: Some(123_456_789),
        ours_free_bytes: Some(123_456_789),
        said_free_bytes: Some(123_456_780),
    };
    let audit = Audit {
        rows: vec![
            row(Some(Area::ClassMetadata), Some("a reason that has several words in it")),
            row(None, None),
        ],
        agreement: Some(Agreement {
            labelled_bytes: 1 << 30,
            agreed_bytes: 1 << 29,
            merged_bytes: 1 << 20,
            ours_alone_bytes: 0,
            disagreements: vec![Disagreement {
                range: Range::of(0x7f00_0000_0000, 0x7f00_0010_0000),
                bytes: 1 << 20,
                theirs: "CODE,GC".to_string(),
                ours: "malloc_unknown/malloc main arena".to_string(),
            }],
        }),
        malloc: Some(MallocAudit {
            tags: vec![tag],
            arenas: vec![arena],
            mmapped: Some(MmappedRow::default()),
        }),
    };
    let snapshot = snapshot();
    let account = Account::of(&snapshot, &join(&snapshot));
    let gaps =
        [Gap::new("something that the JVM did not say", Why::Denied).hint("run as root or as its user")];
    let text = narrow(|out| audit::text(out, &account, &audit, &gaps));
    assert!(text.contains("DIFFERENCE") && text.contains("+10.0 MiB"), "{text}");
    assert!(text.contains("+89") && text.contains("APART"), "{text}");
}

#[test]
fn a_trim_keeps_what_comes_back() {
    let snapshot = snapshot();
    let prediction = predict(&snapshot);
    let arena = |number| ArenaOutcome {
        number,
        predicted_bytes: 200 << 20,
        free_resident_before_bytes: 300 << 20,
        free_resident_after_bytes: 100 << 20,
        returned_bytes: 200 << 20,
    };
    let outcome = Outcome {
        predicted_bytes: Ok(600 << 20),
        resident_before_bytes: 2 << 30,
        resident_after_bytes: 1 << 30,
        arenas: (0..3).map(arena).collect(),
    };
    let price =
        trim::Price { watched_seconds: 5, resident_later_bytes: Some(1 << 30), ..trim::Price::default() };
    let text = narrow(|out| {
        trim::before(out, &snapshot, &join(&snapshot), &prediction)?;
        trim::after(out, &outcome, &price)?;
        trim::round(out, "2026-01-01T00:00:00Z", &prediction, Some((&outcome, &price)))
    });
    assert!(text.contains("COMES BACK") && text.contains("PREDICTED"), "{text}");
}

#[test]
fn verified_pages_keep_the_verdict() {
    let need = Need {
        area: Area::JavaHeap,
        part: "CodeHeap 'non-profiled nmethods'".to_string(),
        bytes: 120 << 20,
        page_bytes: 2 << 20,
        pages: 60,
        pages_at_least: 60,
        without: Without::SmallPages,
        rule: String::new(),
    };
    let used =
        PageUse { resident_bytes: 100 << 20, by: [((Provider::Transparent, 2 << 20), 100 << 20)].into() };
    let row = |verdict| Row {
        need: need.clone(),
        owners: Vec::new(),
        taken: Default::default(),
        used: used.clone(),
        missing_pages: 10,
        verdict,
    };
    let report = Report {
        met: false,
        rows: vec![row(Verdict::NotMet), row(Verdict::Small)],
        totals: vec![Total {
            page_bytes: 2 << 20,
            promised_pages: 60,
            found_pages: 50,
            missing_pages: 10,
            resident_bytes: 100 << 20,
        }],
        causes: vec![
            Cause::new(
                crate::map::why::CauseId::PoolShort,
                "the pool of 2M pages was too small when the JVM started",
            )
            .next("see above".into()),
        ],
        notes: Vec::new(),
    };
    let promise = Promise {
        plan: Some("/a/long/path/to/the/file/of/the/plan.json".to_string()),
        mode: Mode::Thp,
        needs: Vec::new(),
        subject: None,
        jvm_options: Vec::new(),
    };
    let snapshot = snapshot();
    let (map, gaps) = (join(&snapshot), Vec::new());
    let shown = pages::verify::Shown {
        snapshot: &snapshot,
        map: &map,
        promise: &promise,
        report: &report,
        said: &[],
        gaps: &gaps,
    };
    let text = narrow(|out| pages::verify::text(out, &shown));
    assert!(text.contains("VERDICT") && text.contains("NOT MET: 10 of 60 pages"), "{text}");
    assert!(text.contains("and 1 reservation too small"), "{text}");
}
