//! `marusa bench touch`: what the first touch costs by page size, and the page tables that it leaves.

use super::cells::{lines, median, spread};
use super::picture::Picture;
use super::rounds::{Experiment, Nothing, Results, RowOf, machine, named};
use crate::base::{Bytes, Gap, counted};
use crate::experiment::bench::touch::{Arm, ArmFigures, By, Figures, Settings, figures};
use crate::experiment::bench::trials::{Arm as _, ArmRow, OfArm};
use crate::map::model::GapRow;
use crate::show::table::Table;
use crate::show::units::{human, prose};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// A fault that maps the zero page, which is neither taken nor zeroed: what a fault alone costs.
#[derive(Default, JsonSchema, Serialize)]
pub struct ZeroFault {
    #[serde(rename = "zero_fault_ns")]
    pub ns: Option<f64>,
    #[serde(skip)]
    pub why_not: Option<Gap>,
}

/// Two starts of a JVM, or memory of our own; and looking at the pages.
const SECONDS_BESIDE: f64 = 2.0;
const SECONDS_PER_GIB: f64 = 3.0;

impl Experiment for Settings {
    named!("touch", 3, 1, figures);
    type Arm = Arm;
    type Figures = Figures;
    type OfArm = Nothing;
    type Found = ZeroFault;
    type Summary = ArmFigures;
    type Report = Nothing;
    type Published = &'static str;
    const PUBLISHED: &'static str = "no figures of the first touch alone";

    fn seconds_each(&self) -> f64 {
        SECONDS_BESIDE + self.bytes as f64 / (1_u64 << 30) as f64 * SECONDS_PER_GIB
    }

    fn head(&self) -> [String; 2] {
        let Settings { bytes, rounds, seed, .. } = self;
        let what =
            format!("the first touch of {}, {}, seed {seed}", human(*bytes), counted(*rounds, "round"));
        [what, machine(&self.machine)]
    }

    fn picture(Results { arms, .. }: &Results<Settings>) -> Picture {
        let mut picture =
            Picture::new("First touch of memory: CPU time, median, least and most", "ns for 4 KiB", None);
        for row in arms {
            picture.spread(row.arm.name(), row.figures.cpu_ns_per_4k);
        }
        picture
    }

    fn tables(out: &mut dyn Write, results: &Results<Settings>) -> io::Result<()> {
        for by in [By::Own, By::Jvm] {
            let arms: Vec<_> = results.arms.iter().filter(|one| one.arm.by == by).collect();
            if arms.is_empty() {
                continue;
            }
            match &results.settings.jdk {
                Some(jdk) if by == By::Jvm => {
                    writeln!(out, "\nheap of JDK {jdk}: a start with -XX:+AlwaysPreTouch less one without")?;
                }
                _ => writeln!(out, "\nmemory of our own")?,
            }
            table(out, &arms)?;
        }
        let note = match results.found {
            ZeroFault { ns: Some(ns), .. } => format!("{ns:.0} ns, one thread"),
            ZeroFault { why_not: Some(gap), .. } => gap.to_string(),
            ZeroFault { .. } => return Ok(()),
        };
        let text = "\nCPU: of all threads together, and of it zeroing: what writing all bytes once more takes; rest: the faults, \
                    taking the pages, page tables";
        prose(out, text)?;
        lines(out, &format!("a fault that maps the zero page: {note}"), 0)
    }

    fn gaps(found: &ZeroFault) -> Vec<GapRow> {
        found.why_not.iter().map(GapRow::from).collect()
    }
}

fn table(out: &mut dyn Write, arms: &[&RowOf<Settings>]) -> io::Result<()> {
    let mut table = Table::new([
        "ns a 4 KiB",
        ">threads",
        ">wall",
        ">CPU (least to most)",
        ">zeroing",
        ">rest",
        ">GB/s",
        ">faults",
        ">tables/GiB",
    ]);
    for ArmRow { arm, figures: one, .. } in arms {
        let tables = one.page_table_bytes_per_gib;
        table.row([
            arm.pages.name(),
            arm.threads.to_string(),
            median(one.ns_per_4k),
            spread(one.cpu_ns_per_4k),
            median(one.zeroing_ns_per_4k),
            median(one.rest_ns_per_4k),
            median(one.gb_per_second),
            median(one.faults),
            tables.map_or("-".to_string(), |bytes| human(bytes.median as Bytes)),
        ]);
    }
    table.write(out)
}
