//! The audit as text and JSON: both figures, their difference, and the reason where they measure different things.

mod malloc;

use super::text::{gaps as show_gaps, head};
use crate::base::Gap;
use crate::map::Account;
use crate::map::audit::{Agreement, Audit, AuditRow};
use crate::map::model::{GapRow, Totals};
use crate::show::json::Start;
use crate::show::table::Table;
use crate::show::units::{hanging, human, human_signed, led, or_dash, shorten};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

const SCHEMA: &str = "marusa/audit/2";
const DISAGREEMENTS_SHOWN_MAX: usize = 10;
/// What is counted, the JVM's name of it, and its figure: the difference stays.
const DISPENSABLE: [usize; 4] = [4, 1, 3, 5];
const AREA_COLUMNS_MIN: usize = 12;
/// Figures further apart than this share, for no known reason, are marked.
const APART_MAX: f64 = 0.02;

pub fn text(out: &mut dyn Write, account: &Account, audit: &Audit, gaps: &[Gap]) -> io::Result<()> {
    head(out, account)?;
    if let Some(agreement) = &audit.agreement {
        agreement_text(out, agreement)?;
    }
    let titles = ["AREA", "", ">OURS", "THE JVM'S", "", ">ITS FIGURE", ">DIFFERENCE", ""];
    let mut table = Table::new(titles).without_room(&DISPENSABLE).shortened(0, AREA_COLUMNS_MIN);
    let mut reasons: Vec<&str> = Vec::new();
    for row in &audit.rows {
        let note = row.reason.map(|reason| match reasons.iter().position(|known| *known == reason) {
            Some(index) => index + 1,
            None => {
                reasons.push(reason);
                reasons.len()
            }
        });
        table.row(cells(row, note));
    }
    table.write(out)?;
    for (index, reason) in reasons.iter().enumerate() {
        if index == 0 {
            writeln!(out)?;
        }
        led(out, &format!("{:>3}  ", index + 1), reason)?;
    }
    if let Some(audit) = &audit.malloc {
        malloc::text(out, audit)?;
    }
    show_gaps(out, gaps)
}

fn agreement_text(out: &mut dyn Write, agreement: &Agreement) -> io::Result<()> {
    match agreement.share() {
        None => hanging(out, "the JVM labels no resident byte", 0)?,
        Some(share) => {
            let labelled = human(agreement.labelled_bytes);
            let share = share * 100.0;
            let text = format!(
                "{share:.3} % of {labelled} resident that the JVM labels by address are in our matching area"
            );
            hanging(out, &text, 0)?;
        }
    }
    writeln!(out)?;
    if agreement.merged_bytes > 0 {
        let merged = human(agreement.merged_bytes);
        let text = format!("{merged} more are malloc's, in mappings that the JVM labels whole; not counted");
        hanging(out, &text, 0)?;
        writeln!(out)?;
    }
    for one in agreement.disagreements.iter().take(DISAGREEMENTS_SHOWN_MAX) {
        let theirs = if one.theirs.is_empty() { "no label" } else { &one.theirs };
        let line = format!("{} {:>10}  JVM: {theirs}; we: {}", one.range, human(one.bytes), one.ours);
        hanging(out, &line, 2)?;
    }
    if !agreement.disagreements.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

fn cells(row: &AuditRow, note: Option<usize>) -> [String; 8] {
    [
        row.area.map_or("malloc", |area| area.name()).to_string(),
        row.ours.name().to_string(),
        or_dash(row.ours_bytes.map(human)),
        shorten(&row.theirs, 24),
        row.theirs_figure.name().to_string(),
        human(row.theirs_bytes),
        row.difference_bytes.map_or("-".to_string(), human_signed),
        match (note, row.agrees(APART_MAX)) {
            (Some(note), _) => format!("[{note}]"),
            (None, Some(false)) => "!".to_string(),
            _ => String::new(),
        },
    ]
}

/// `marusa audit --json`.
#[derive(JsonSchema, Serialize)]
pub struct AuditDocument<'a, R> {
    #[serde(flatten)]
    start: Start,
    totals: Totals,
    rows: &'a [AuditRow],
    malloc: Option<malloc::MallocRow<'a>>,
    labels: Option<Labels<'a>>,
    gaps: Vec<GapRow>,
    /// How the JVM was asked.
    receipt: &'a R,
}

#[derive(JsonSchema, Serialize)]
struct Labels<'a> {
    #[serde(flatten)]
    agreement: &'a Agreement,
    agreed_share: Option<f64>,
}

impl<'a, R> AuditDocument<'a, R> {
    pub fn of(account: Account, audit: &'a Audit, gaps: &[Gap], receipt: &'a R) -> AuditDocument<'a, R> {
        let (start, totals) = Start::of(SCHEMA, account);
        let labels = |agreement| Labels { agreement, agreed_share: Agreement::share(agreement) };
        AuditDocument {
            start,
            totals,
            rows: &audit.rows,
            malloc: audit.malloc.as_ref().map(malloc::MallocRow::from),
            labels: audit.agreement.as_ref().map(labels),
            gaps: gaps.iter().map(GapRow::from).collect(),
            receipt,
        }
    }
}
