//! The tables: each figure by arm, and whose the memory was. As many arms as have room stand next to the first, the others
//! follow below.

use super::figure;
use crate::base::Bytes;
use crate::experiment::compare_result::{ArmCount, Cell, Comparison, Row, Verdict};
use crate::experiment::trial_record::ResidentAreas;
use crate::map::Area;
use crate::show::units::{fitted, human, shorten};
use crate::show::width::width;
use std::io::{self, Write};

const NAME: usize = 25;
const VALUE: usize = 12;
const DIFFERENCE: usize = 11;
/// Areas below this share of the whole are one row.
const AREA_SHARE_MIN: f64 = 0.01;

/// Numbers of the arms that stand next to each other; the first arm is in each group.
fn groups(arms: usize) -> Vec<Vec<usize>> {
    let room = (width().saturating_sub(NAME + VALUE + 2) / (VALUE + DIFFERENCE + 3)).max(1);
    let others: Vec<usize> = (1..arms).collect();
    others.chunks(room).map(|chunk| std::iter::once(0).chain(chunk.iter().copied()).collect()).collect()
}

fn heading(out: &mut dyn Write, title: &str, arms: &[ArmCount], group: &[usize]) -> io::Result<()> {
    let mut line = format!("\n{title:<NAME$}");
    for index in group {
        let name = shorten(&arms[*index].name, VALUE);
        line += &format!("  {name:>VALUE$}");
        if *index > 0 {
            line += &" ".repeat(DIFFERENCE + 1);
        }
    }
    writeln!(out, "{}", line.trim_end())
}

pub fn figures(out: &mut dyn Write, comparison: &Comparison) -> io::Result<()> {
    for group in groups(comparison.arms.len()) {
        heading(out, "MEAN OF ONE RUN", &comparison.arms, &group)?;
        for row in &comparison.rows {
            if group.iter().any(|index| row.cells[*index].sample.is_some()) {
                writeln!(out, "{}", row_text(row, &group))?;
            }
        }
        let mut line = format!("{:<NAME$}", "runs that count");
        for index in &group {
            line += &format!("  {:>VALUE$}", comparison.arms[*index].counted);
            line += &if *index > 0 { " ".repeat(DIFFERENCE + 1) } else { String::new() };
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    let is_shown = |cell: &Cell| cell.against.as_ref().is_some_and(|one| one.verdict != Verdict::NotShown);
    let any = comparison.rows.iter().any(|row| row.cells.iter().any(is_shown));
    let said = "* shown; the other rows share one alpha of 5 %";
    if any { writeln!(out, "{said}") } else { Ok(()) }
}

fn row_text(row: &Row, group: &[usize]) -> String {
    let mut line = fitted(&row.figure.name, NAME);
    for index in group {
        let cell = &row.cells[*index];
        let mean = cell
            .sample
            .as_ref()
            .map_or("-".to_string(), |sample| figure::value(sample.mean, &row.figure.unit));
        line += &format!("  {mean:>VALUE$}");
        if *index > 0 {
            let (difference, mark) = match &cell.against {
                Some(one) => {
                    let mark = if one.verdict == Verdict::NotShown { ' ' } else { '*' };
                    (figure::signed(one.claim.interval.estimate, one.scale, &row.figure.unit), mark)
                }
                None => (String::new(), ' '),
            };
            line += &format!("{difference:>DIFFERENCE$}{mark}");
        }
    }
    line.trim_end().to_string()
}

/// At the end of the runs, and the sum at their peak.
pub fn accounts(out: &mut dyn Write, comparison: &Comparison) -> io::Result<()> {
    let arms = &comparison.arms;
    let none = arms.iter().all(|arm| arm.account_end.is_none());
    for group in groups(arms.len()).into_iter().filter(|_| !none) {
        heading(out, "RESIDENT", arms, &group)?;
        let row = |of: &dyn Fn(&ResidentAreas) -> Bytes, at_peak: bool| -> Vec<Option<Bytes>> {
            let account =
                |arm: &ArmCount| if at_peak { arm.account_peak.clone() } else { arm.account_end.clone() };
            group.iter().map(|index| account(&arms[*index]).map(|account| of(&account))).collect()
        };
        let whole = row(&|account| account.resident_bytes, false);
        let is_large = |bytes: &[Option<Bytes>]| {
            let large = |(part, whole): (&Option<Bytes>, &Option<Bytes>)| {
                part.unwrap_or(0) as f64 >= AREA_SHARE_MIN * whole.unwrap_or(0).max(1) as f64
            };
            bytes.iter().zip(&whole).any(large)
        };
        let areas = Area::ALL.iter().map(|area| (*area, row(&|account| account.of(*area), false)));
        let (large, small): (Vec<_>, Vec<_>) = areas.partition(|(_, bytes)| is_large(bytes));
        for (area, bytes) in &large {
            writeln!(out, "{}", bytes_text(area.title(), bytes, &group))?;
        }
        let rest: Vec<Option<Bytes>> = (0..group.len())
            .map(|at| small.iter().map(|(_, bytes)| bytes[at]).sum::<Option<Bytes>>())
            .collect();
        writeln!(out, "{}", bytes_text("all else", &rest, &group))?;
        writeln!(out, "{}", bytes_text("all, at the end", &whole, &group))?;
        writeln!(
            out,
            "{}",
            bytes_text("all, at the peak", &row(&|account| account.resident_bytes, true), &group)
        )?;
    }
    for arm in arms {
        if let Some(pages) = &arm.heap_pages {
            writeln!(out, "heap of {}: {pages}", arm.name)?;
        }
    }
    Ok(())
}

fn bytes_text(name: &str, bytes: &[Option<Bytes>], group: &[usize]) -> String {
    let mut line = fitted(name, NAME);
    for (at, index) in group.iter().enumerate() {
        line += &format!("  {:>VALUE$}", bytes[at].map_or("-".to_string(), human));
        if *index > 0 {
            let change = match (bytes[at], bytes[0]) {
                (Some(now), Some(base)) if base > 0 => {
                    format!("{:+.1} %", (now as f64 / base as f64 - 1.0) * 100.0)
                }
                _ => String::new(),
            };
            line += &format!("{change:>DIFFERENCE$} ");
        }
    }
    line.trim_end().to_string()
}
