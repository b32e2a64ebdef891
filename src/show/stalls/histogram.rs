//! How long the stalls took, in bars: a row for each power of two.

use super::{milliseconds, stall_word, three_digits};
use crate::measure::stalls::interval::Figures;
use crate::measure::stalls::table::Whole;
use crate::show::units::{counted, prose};
use crate::show::width::width;
use std::io::{self, Write};

/// Columns before the bars: from, to, count.
const LABEL_COLUMNS: usize = 8 + 4 + 8 + 9 + 2;

/// The histogram of all intervals together; nothing where nothing stalled.
pub fn histogram(out: &mut dyn Write, whole: &Whole) -> io::Result<()> {
    for (stall, figures) in whole.stalls.iter().filter(|(_, figures)| figures.histogram.count() > 0) {
        let over = match whole.intervals {
            1 => String::new(),
            many => format!(" in {}, {:.1} s", counted(many, "interval"), whole.seconds),
        };
        let of = if stall.is_daemons() { ", of the host" } else { "" };
        let count = figures.histogram.count();
        prose(out, &format!("\n{}{of}: how long each of {count} took{over}", stall_word(*stall, true)))?;
        bars(out, figures)?;
    }
    Ok(())
}

fn bars(out: &mut dyn Write, figures: &Figures) -> io::Result<()> {
    let bars = figures.histogram.bars();
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(1).max(1);
    let room = width().saturating_sub(LABEL_COLUMNS).min(60);
    for bar in bars {
        // What is there at all has a mark.
        let length = (bar.count as f64 / most as f64 * room as f64).round() as usize;
        let length = length.max(usize::from(bar.count > 0));
        let (from, to) = (duration(bar.from_ns), duration(bar.from_ns.saturating_mul(2)));
        let text = format!("{from:>8} to {to:>8}{:>9}  {}", bar.count, "#".repeat(length));
        writeln!(out, "{}", text.trim_end())?;
    }
    let p99 = figures.histogram.p99_ns().map_or(String::new(), milliseconds);
    prose(out, &format!("worst {} ms, 99 of 100 at most {p99} ms", milliseconds(figures.worst_ns)))
}

/// Powers of two of nanoseconds are near those of thousands: "512 us", "1.05 ms".
fn duration(ns: u64) -> String {
    match ns {
        ..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} us", three_digits(ns as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", three_digits(ns as f64 / 1e6)),
        _ => format!("{} s", three_digits(ns as f64 / 1e9)),
    }
}
