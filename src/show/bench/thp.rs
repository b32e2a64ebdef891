//! `marusa bench thp`: the table of the policies, and what turning to another one changes.

use super::cells::{lines, mean, middle, number, percent, ratio};
use super::picture::Picture;
use super::rounds::{Experiment, Nothing, Results, RowOf, machine, named};
use crate::base::counted;
use crate::experiment::bench::rounds::Mean;
use crate::experiment::bench::thp::{
    Arm, ArmFigures, Comparison, Figures, Report, Settings, Trial, figures, report,
};
use crate::experiment::bench::trials::{Arm as _, ArmRow, OfArm};
use crate::pages::subject::size;
use crate::show::table::Table;
use crate::show::units::prose;
use std::io::{self, Write};

/// To start and end, and for the memory in small pieces.
const SECONDS_PER_STEP: f64 = 3.0;

impl Experiment for Settings {
    named!("thp", 2, 1, figures);
    type Arm = Arm;
    type Figures = Figures;
    type OfArm = Nothing;
    type Found = Nothing;
    type Summary = ArmFigures;
    type Report = Report;
    type Published = &'static str;
    const PUBLISHED: &'static str = "published (24 threads, 36 GB, Linux 2.6.32 of RHEL 6): with transparent huge pages and 4 \
        builds at once 35 % of the CPU time and more, mostly in the kernel, and the machine stood still for 3 to 5 s; with them \
        off 5 %, and 8 builds at once were possible";

    fn report(&self, arms: &[Arm], _rows: &[RowOf<Settings>], trials: &[Trial]) -> Report {
        report(arms, trials)
    }

    fn seconds_each(&self) -> f64 {
        self.steps as f64 * SECONDS_PER_STEP
    }

    fn head(&self) -> [String; 2] {
        let what = format!(
            "a build server: {} in each trial, each with a heap of at most {}; {} free in small pieces; {}, seed {}",
            counted(self.steps, "JVM"),
            size(self.heap_bytes),
            size(self.free_bytes),
            counted(self.rounds, "round"),
            self.seed
        );
        [what, format!("JDK {}; {}", self.jdk, machine(&self.machine))]
    }

    fn tables(out: &mut dyn Write, Results { arms, report, .. }: &Results<Settings>) -> io::Result<()> {
        table(out, arms)?;
        memory(out, arms)?;
        if !report.against_always.is_empty() {
            comparisons(out, &report.against_always)?;
        }
        prose(out, &format!("\n{}", Self::PUBLISHED))
    }

    fn picture(Results { arms, .. }: &Results<Settings>) -> Picture {
        let mut picture = Picture::new("The kernel's share of the host's CPU time", "%", Some(0.0));
        picture.published("always, 2012", 35.0, "35 % and more");
        picture.published("never, 2012", 5.0, "5 %");
        for row in arms {
            picture.mean(row.arm.name(), row.figures.host_kernel_share.map(Mean::percent));
        }
        picture
    }
}

fn table(out: &mut dyn Write, arms: &[RowOf<Settings>]) -> io::Result<()> {
    writeln!(out)?;
    let mut table = Table::new([
        "policy",
        ">JVMs/min",
        ">kernel",
        ">of host",
        ">waited ms",
        ">longest ms",
        ">step s",
        ">bystander ms",
    ]);
    for ArmRow { arm, figures: one, .. } in arms {
        let longest = |figure: Option<f64>| figure.map_or("-".to_string(), number);
        table.row([
            arm.name(),
            mean(one.steps_per_minute),
            percent(one.kernel_share.map(|share| share.mean)),
            percent(one.host_kernel_share.map(|share| share.mean)),
            middle(one.waited_ms_per_step),
            longest(one.longest_stall_ms),
            longest(one.longest_step_seconds),
            longest(one.bystander_late_ms),
        ]);
    }
    table.write(out)?;
    let text = "kernel: its part of the JVMs' CPU time; of host: of the time of all CPUs. waited: for memory, all threads of a JVM \
                together, by the kernel's trace; longest: the longest single wait. step: the JVM that took longest. bystander: how \
                late a thread was at worst that wakes every 10 ms.";
    lines(out, text, 0)
}

fn memory(out: &mut dyn Write, arms: &[RowOf<Settings>]) -> io::Result<()> {
    writeln!(out)?;
    let mut table = Table::new([
        "policy",
        ">free blocks",
        ">huge faults",
        ">fallbacks",
        ">khugepaged ms",
        ">kcompactd ms",
    ]);
    for ArmRow { arm, figures: one, .. } in arms {
        let cells =
            [one.free_huge_blocks, one.huge_faults, one.huge_fallbacks, one.khugepaged_ms, one.kcompactd_ms];
        table.row(std::iter::once(arm.name()).chain(cells.map(middle)));
    }
    table.write(out)?;
    lines(out, "In each trial, of the whole host. free blocks: of the size of a huge page, when it began.", 0)
}

fn comparisons(out: &mut dyn Write, all: &[Comparison]) -> io::Result<()> {
    let cells = |one: &Comparison| [one.arm.name(), ratio(one.steps_per_minute), ratio(one.kernel_share)];
    Table::new(["against always", ">JVMs/min", ">kernel"]).rows(all.iter().map(cells)).write_below(out)
}
