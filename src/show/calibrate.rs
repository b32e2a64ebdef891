//! What a self-test found, for people and for programs: the cost of one walk by page size and footprint.

use crate::map::model::GapRow;
use crate::measure::Side;
use crate::measure::calibration::{Calibration, Cost, Figure, Machine, SCHEMA, Timing};
use crate::os::machine::{base_page, huge_page};
use crate::show::json::Head;
use crate::show::table::Table;
use crate::show::units::{hanging, human, paragraph, prose};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// What became of a calibration.
#[derive(Clone, Debug, PartialEq)]
pub enum Kept {
    In(String),
    /// Not kept: this file holds one of other footprints.
    OtherStays(String),
    /// Not kept: this file holds one of a quieter machine.
    BetterStays {
        path: String,
        at: String,
        spread: Option<f64>,
    },
    /// Not kept, for a reason that is among the gaps.
    No,
}

impl Kept {
    fn path(&self) -> Option<&str> {
        if let Kept::In(path) = self { Some(path) } else { None }
    }

    fn why_not(&self) -> Option<String> {
        match self {
            Kept::OtherStays(path) => {
                Some(format!("{path} holds a calibration of other footprints, and it stays"))
            }
            Kept::BetterStays { path, at, spread } => {
                let day = at.split('T').next().unwrap_or_default();
                let spread = spread
                    .map_or(String::new(), |spread| format!(", its rounds {:.0} % apart", spread * 100.0));
                Some(format!(
                    "{path} holds a calibration of {day}, when the machine was quieter{spread}, and it stays; remove the file \
                     to have this one in its place"
                ))
            }
            Kept::In(_) | Kept::No => None,
        }
    }
}

/// `marusa tlb --calibrate --json`.
#[derive(JsonSchema, Serialize)]
pub struct CalibrationDocument<'a> {
    #[serde(flatten)]
    head: Head,
    at: &'a str,
    took_ms: f64,
    machine: &'a Machine,
    reference_cycles_per_ns: Option<f64>,
    walks_per_step: &'static str,
    waited_percent: Option<f64>,
    spread_percent: Option<f64>,
    large_pages_splintered: Option<bool>,
    costs: Vec<CostRow>,
    timings: &'a [Timing],
    kept: Option<&'a str>,
    not_kept: Option<String>,
    gaps: Vec<GapRow>,
}

#[derive(JsonSchema, Serialize)]
struct CostRow {
    #[serde(flatten)]
    cost: Cost,
    independent_reference_cycles: Option<f64>,
    dependent_reference_cycles: Option<f64>,
}

impl<'a> CalibrationDocument<'a> {
    pub fn of(calibration: &'a Calibration, kept: &'a Kept) -> CalibrationDocument<'a> {
        let rate = calibration.reference_cycles_per_ns;
        let percent = |share: f64| share * 100.0;
        let row = |cost: Cost| CostRow {
            independent_reference_cycles: rate.map(|rate| cost.low_ns.middle * rate),
            dependent_reference_cycles: rate.map(|rate| cost.high_ns.middle * rate),
            cost,
        };
        CalibrationDocument {
            head: Head::now(SCHEMA),
            at: &calibration.at,
            took_ms: (calibration.took_ms * 10.0).round() / 10.0,
            machine: &calibration.machine,
            reference_cycles_per_ns: rate,
            walks_per_step: if calibration.is_counted() { "counted" } else { "assumed 1" },
            waited_percent: calibration.waited_share.map(percent),
            spread_percent: calibration.spread().map(percent),
            large_pages_splintered: calibration.is_splintered(),
            costs: calibration.costs().into_iter().map(row).collect(),
            timings: &calibration.timings,
            kept: kept.path(),
            not_kept: kept.why_not(),
            gaps: calibration.gaps.iter().map(GapRow::from).collect(),
        }
    }
}

pub fn text(out: &mut dyn Write, calibration: &Calibration, kept: &Kept) -> io::Result<()> {
    let machine = &calibration.machine;
    let known = |text: &str| if text.is_empty() { "unknown".to_string() } else { text.to_string() };
    prose(
        out,
        &format!(
            "{}{}, microcode {}, Linux {}",
            known(&machine.model),
            if machine.is_virtual { " (virtual)" } else { "" },
            known(&machine.microcode),
            known(&machine.kernel)
        ),
    )?;
    let costs = calibration.costs();
    if !costs.is_empty() {
        let title =
            "Cost of one walk of the page tables: median of the rounds, and their interquartile range";
        writeln!(out)?;
        paragraph(out, "", "", title)?;
        table(out, &costs, calibration.reference_cycles_per_ns)?;
        writeln!(out)?;
        for text in notes(calibration, &costs) {
            paragraph(out, "", "", &text)?;
        }
    }
    let seconds = calibration.took_ms / 1e3;
    if let Some(path) = kept.path() {
        prose(out, &format!("took {seconds:.1} s; kept in {path}"))?;
    }
    if let Some(why) = kept.why_not() {
        let text = format!("took {seconds:.1} s; not kept: {why}");
        paragraph(out, "", "", &text)?;
    }
    if !calibration.gaps.is_empty() {
        writeln!(out, "\nnot known:")?;
        for gap in &calibration.gaps {
            hanging(out, &gap.to_string(), 2)?;
        }
    }
    Ok(())
}

fn table(out: &mut dyn Write, costs: &[Cost], rate: Option<f64>) -> io::Result<()> {
    let titles = ["SIDE", ">FOOTPRINT", ">PAGES", ">INDEPENDENT, ns", ">DEPENDENT, ns", ">CYCLES"];
    let mut table = Table::new(titles).without_room(&[5]);
    let spread = |figure: &Figure| format!("{:.1} ({:.1} - {:.1})", figure.middle, figure.from, figure.to);
    for cost in costs {
        let is_one = cost.low_ns == cost.high_ns;
        let cycles = rate.map_or("-".to_string(), |rate| {
            let (low, high) = (cost.low_ns.middle * rate, cost.high_ns.middle * rate);
            if is_one { format!("{high:.0}") } else { format!("{low:.0} - {high:.0}") }
        });
        let (footprint, pages) = (short(cost.footprint_bytes), short(cost.page_bytes));
        let low = if is_one { "-".to_string() } else { spread(&cost.low_ns) };
        table.row([side(cost), &footprint, &pages, &low, &spread(&cost.high_ns), &cycles]);
    }
    table.write(out)
}

fn side(cost: &Cost) -> &'static str {
    match cost.side {
        Side::Instruction => "instruction",
        Side::Data => "data",
    }
}

fn short(bytes: u64) -> String {
    human(bytes).replace(".0 ", " ")
}

fn notes(calibration: &Calibration, costs: &[Cost]) -> Vec<String> {
    let walks = if calibration.is_counted() { "Walks were counted." } else { "One walk a step is assumed." };
    let cycles = " Cycles are those of the time stamp counter.";
    let mut notes = vec![format!(
        "Independent: 8 chains of loads at once, so that walks hide behind each other. Dependent: one chain, which waits \
         for every walk. {walks}{cycles}"
    )];
    if let (Some(share), true) = (calibration.waited_share, calibration.is_of_a_busy_machine()) {
        notes.insert(0, format!(
            "The machine is busy: this test waited for a processor {:.0} % of its time, and shared caches with what ran then. \
             Its figures may be far too high; calibrate again when less runs here.",
            share * 100.0
        ));
    }
    let of = |page_bytes: u64| {
        let data = costs.iter().filter(move |cost| cost.side == Side::Data);
        data.filter(move |cost| cost.page_bytes == page_bytes).max_by_key(|cost| cost.footprint_bytes)
    };
    if let (Some(small), Some(huge)) = (of(base_page()), of(huge_page())) {
        let saved = |small: &Figure, huge: &Figure| (small.middle - huge.middle).max(0.0);
        let (one, other) = (saved(&small.low_ns, &huge.low_ns), saved(&small.high_ns, &huge.high_ns));
        let (low, high) = (one.min(other), one.max(other));
        notes.push(format!(
            "At {}, an access that misses the TLB is {:.1} to {:.1} ns cheaper on 2 MiB pages than on 4 KiB ones: a million \
             of them a second are {:.1} to {:.1} % of a CPU.",
            short(small.footprint_bytes),
            low,
            high,
            low / 10.0,
            high / 10.0
        ));
    }
    notes.extend(match calibration.is_splintered() {
        Some(true) => Some(SPLINTERED.to_string()),
        Some(false) => Some("A few large pages need next to no walks: the TLB holds them whole.".to_string()),
        None => None,
    });
    notes
}

/// What it means for the reader that the host below maps small pages.
pub const SPLINTERED: &str = "A few large pages still need walks, though shorter ones: the TLB holds 4 KiB entries of them, as \
     where the host below this virtual machine maps it with small pages. Here larger pages make walks shorter, not fewer. \
     The host's owner can change that: guest memory on huge pages (HugeTLB or THP for the hypervisor's process).";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Gap, Why};
    use crate::measure::calibration::tests::calibration;
    use crate::show::width::width;

    #[test]
    fn a_table_with_the_spread_and_what_is_not_known() {
        let mut calibration = calibration();
        calibration.gaps.push(Gap::new("memory on 1 GiB pages", Why::Denied));
        let mut out = Vec::new();
        text(&mut out, &calibration, &Kept::In("/home/x/walks.json".to_string())).expect("written");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.starts_with("AMD EPYC, microcode unknown, Linux 6.18.44\n"), "{text}");
        assert!(text.contains("56.0 (54.0 - 61.0)") && text.contains("18 - 140"), "{text}");
        assert!(text.contains("memory on 1 GiB pages: denied") && text.contains("kept in /home/x"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= width()), "{text}");
    }

    #[test]
    fn without_a_rate_cycles_are_null() {
        let mut calibration = calibration();
        calibration.reference_cycles_per_ns = None;
        let mut out = Vec::new();
        let stays = Kept::OtherStays("/x".to_string());
        text(&mut out, &calibration, &stays).expect("written");
        let said = "not kept: /x holds a calibration of other footprints, and it stays";
        assert!(String::from_utf8(out).expect("UTF-8").contains(said));
        let document = CalibrationDocument::of(&calibration, &stays);
        let json = serde_json::to_value(document).expect("JSON");
        assert_eq!(json["schema"], "marusa/calibration/1");
        assert!(json["costs"][0]["dependent_reference_cycles"].is_null() && json["kept"].is_null());
        assert_eq!(json["costs"][0]["dependent_ns"]["middle"], 56.0);
    }
}
