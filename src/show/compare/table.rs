//! The tables: each figure by arm, and the owners of the memory. As many arms as have room are next to the first, the others
//! follow below.

use super::figure;
use crate::base::Bytes;
use crate::experiment::compare_result::{ArmCount, Cell, Comparison, Row, Verdict};
use crate::experiment::stats::Sample;
use crate::experiment::trial_record::ResidentAreas;
use crate::map::Area;
use crate::show::table::Table;
use crate::show::units::{hanging, human, shorten};
use crate::show::width::width;
use std::io::{self, Write};

const NAME: usize = 25;
const NAME_MIN: usize = 16;
const VALUE: usize = 12;
const DIFFERENCE: usize = 11;
/// Areas below this share of the whole are one row.
const AREA_SHARE_MIN: f64 = 0.01;

/// Numbers of the arms that are next to each other; the first arm is in each group.
fn groups(arms: usize) -> Vec<Vec<usize>> {
    let room = (width().saturating_sub(NAME + VALUE + 2) / (VALUE + DIFFERENCE + 3)).max(1);
    let others: Vec<usize> = (1..arms).collect();
    others.chunks(room).map(|chunk| std::iter::once(0).chain(chunk.iter().copied()).collect()).collect()
}

/// A column for the first arm, and two for each other: its value, and the difference from the first. Where there is no room, the
/// first arm's goes first.
fn table_of(title: &str, arms: &[ArmCount], group: &[usize]) -> Table {
    let mut titles = vec![title.to_string()];
    for index in group {
        titles.push(format!(">{}", shorten(&arms[*index].name, VALUE)));
        if *index > 0 {
            titles.push(">".to_string());
        }
    }
    Table::new(titles).without_room(&[1]).shortened(0, NAME_MIN)
}

pub fn figures(out: &mut dyn Write, comparison: &Comparison) -> io::Result<()> {
    for group in groups(comparison.arms.len()) {
        let mut table = table_of("MEAN OF ONE RUN", &comparison.arms, &group);
        let has_sample = |row: &&Row| group.iter().any(|index| row.cells[*index].sample.is_some());
        comparison.rows.iter().filter(has_sample).for_each(|row| table.row(cells(row, &group)));
        let mut counted = vec!["runs that count".to_string()];
        for index in &group {
            counted.push(comparison.arms[*index].counted.to_string());
            counted.extend((*index > 0).then(String::new));
        }
        table.row(counted);
        table.write_below(out)?;
    }
    let is_shown = |cell: &Cell| cell.against.as_ref().is_some_and(|one| one.verdict != Verdict::NotShown);
    let any = comparison.rows.iter().any(|row| row.cells.iter().any(is_shown));
    let said = "* shown; the other rows share one alpha of 5 %";
    if any { hanging(out, said, 0) } else { Ok(()) }
}

fn cells(row: &Row, group: &[usize]) -> Vec<String> {
    let mut cells = vec![shorten(&row.figure.name, NAME)];
    for index in group {
        let cell = &row.cells[*index];
        let mean = |sample: &Sample| figure::value(sample.mean, &row.figure.unit);
        cells.push(cell.sample.as_ref().map_or("-".to_string(), mean));
        if *index > 0 {
            cells.push(cell.against.as_ref().map_or(String::new(), |one| {
                let mark = if one.verdict == Verdict::NotShown { ' ' } else { '*' };
                let estimate = one.claim.interval.estimate;
                format!("{}{mark}", figure::signed(estimate, one.scale, &row.figure.unit))
            }));
        }
    }
    cells
}

/// At the end of the runs, and the sum at their peak.
pub fn accounts(out: &mut dyn Write, comparison: &Comparison) -> io::Result<()> {
    let arms = &comparison.arms;
    let none = arms.iter().all(|arm| arm.account_end.is_none());
    for group in groups(arms.len()).into_iter().filter(|_| !none) {
        let mut table = table_of("RESIDENT", arms, &group);
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
        large.iter().for_each(|(area, bytes)| table.row(of_bytes(area.title(), bytes, &group)));
        let rest: Vec<Option<Bytes>> = (0..group.len())
            .map(|at| small.iter().map(|(_, bytes)| bytes[at]).sum::<Option<Bytes>>())
            .collect();
        table.row(of_bytes("all else", &rest, &group));
        table.row(of_bytes("all, at the end", &whole, &group));
        let peak = row(&|account| account.resident_bytes, true);
        table.row(of_bytes("all, at the peak", &peak, &group));
        table.write_below(out)?;
    }
    for arm in arms {
        if let Some(pages) = &arm.heap_pages {
            hanging(out, &format!("heap of {}: {pages}", arm.name), 0)?;
        }
    }
    Ok(())
}

fn of_bytes(name: &str, bytes: &[Option<Bytes>], group: &[usize]) -> Vec<String> {
    let mut cells = vec![shorten(name, NAME)];
    for (at, index) in group.iter().enumerate() {
        cells.push(bytes[at].map_or("-".to_string(), human));
        if *index > 0 {
            cells.push(match (bytes[at], bytes[0]) {
                (Some(now), Some(base)) if base > 0 => {
                    format!("{:+.1} % ", (now as f64 / base as f64 - 1.0) * 100.0)
                }
                _ => String::new(),
            });
        }
    }
    cells
}
