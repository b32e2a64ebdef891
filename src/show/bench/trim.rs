//! `marusa bench trim`: what each way of giving memory back costs and brings, against none.

use super::cells::{fine_ratio, lines, mean, median, mib};
use super::picture::Picture;
use super::rounds::{Experiment, Nothing, Results, machine, named};
use crate::base::{Bytes, Gap, Why, counted};
use crate::experiment::bench::trials::OfArm;
use crate::experiment::bench::trim::{
    Arm, ArmFigures, Figures, JitFigures, Means, PUBLISHED, Part, Published, Settings, SwapFigures, Way,
    figures,
};
use crate::map::model::GapRow;
use crate::show::table::Table;
use crate::show::units::{human, led, prose};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};
use std::time::Duration;

/// What both servers may have, and what is not here.
#[derive(JsonSchema, Serialize)]
pub struct Found {
    pub memory_bytes: Bytes,
    /// Ways that there are not here, and parts, and why.
    pub missing: Vec<String>,
}

/// To compile a class, and for a burst.
const SECONDS_PER_CLASS: f64 = 1.0;
const SECONDS_PER_BURST: f64 = 4.0;

impl Experiment for Settings {
    named!("trim", 3, 1);
    type Arm = Arm;
    type Figures = Figures;
    type OfArm = Means;
    type Found = Found;
    type Summary = ArmFigures;
    type Report = Nothing;
    type Published = Published;
    const PUBLISHED: Published = PUBLISHED;

    fn rounds_of(&self, arm: &Arm) -> usize {
        match arm.part {
            Part::Jit => self.rounds,
            Part::Swap => self.swap_rounds,
        }
    }

    fn summary(&self, of: &OfArm<Arm, Figures>) -> ArmFigures {
        figures(self, of)
    }

    fn seconds_each(&self) -> f64 {
        (f64::from(self.classes) * SECONDS_PER_CLASS + f64::from(self.bursts) * SECONDS_PER_BURST) / 2.0
    }

    fn head(&self) -> [String; 2] {
        let what = format!("what giving freed memory back costs and brings; JDK {}", self.jdk);
        [format!("{what}; seed {}", self.seed), machine(&self.machine)]
    }

    fn picture(Results { arms, .. }: &Results<Settings>) -> Picture {
        let mut picture =
            Picture::new("Giving memory back: time, against as it is", "times as long", Some(1.0));
        let Published { cost_x86_percent, cost_power_percent } = PUBLISHED;
        for (name, percent) in [("x86, 2010", cost_x86_percent), ("POWER, 2010", cost_power_percent)] {
            picture.published(name, 1.0 + percent / 100.0, &format!("{percent} %"));
        }
        for row in arms {
            picture.ratio(row.arm.way.name(), row.figures.jit.as_ref().and_then(|jit| jit.time_ratio));
        }
        picture
    }

    fn tables(out: &mut dyn Write, results: &Results<Settings>) -> io::Result<()> {
        let arms = &results.arms;
        let of_jit: Vec<_> =
            arms.iter().filter_map(|one| Some((one.arm.way, one.figures.jit.as_ref()?))).collect();
        let of_swap: Vec<_> =
            arms.iter().filter_map(|one| Some((one.arm.way, one.figures.swap.as_ref()?))).collect();
        if !of_jit.is_empty() {
            jit(out, results.settings, &of_jit)?;
        }
        if !of_swap.is_empty() {
            swap(out, results, &of_swap)?;
        }
        let Published { cost_x86_percent: x86, cost_power_percent: power } = PUBLISHED;
        let text = format!(
            "\npublished (OOPSLA 2010): madvise(MADV_DONTNEED) on each block that the JIT compiler's work area frees cost \
             {x86} % of time on x86 and {power} % on POWER on average; with two servers under memory pressure far fewer \
             pages were swapped"
        );
        prose(out, &text)?;
        let every = Duration::from_secs_f64(results.settings.every_seconds);
        let ways = Way::ALL.into_iter().filter(|way| arms.iter().any(|one| one.arm.way == *way));
        writeln!(out)?;
        ways.map(|way| (way.name(), way.means(every).what))
            .try_for_each(|(name, what)| led(out, &format!("  {name:<13} "), &what))
    }

    fn found(out: &mut dyn Write, Found { missing, .. }: &Found) -> io::Result<()> {
        missing.iter().try_for_each(|line| lines(out, &format!("not here: {line}"), 0))
    }

    fn gaps(Found { missing, .. }: &Found) -> Vec<GapRow> {
        missing.iter().map(|why| GapRow::from(&Gap::new(why, Why::NotMeasured))).collect()
    }
}

fn jit(out: &mut dyn Write, settings: &Settings, arms: &[(Way, &JitFigures)]) -> io::Result<()> {
    let title = format!(
        "\n{} compiled by java {}; {}, each way once in a round in an order of chance",
        counted(settings.classes, "class"),
        settings.jit_options,
        counted(settings.rounds, "round")
    );
    prose(out, &title)?;
    let titles = ["WAY", ">TIME RATIO", ">CPU RATIO", ">KERNEL %", ">MEAN MiB", ">PEAK", ">FREED"];
    let mut table = Table::new(titles).indented(2);
    for (way, one) in arms {
        let against = |figure| if *way == Way::AsItIs { "1".to_string() } else { fine_ratio(figure) };
        table.row([
            way.name().to_string(),
            against(one.time_ratio),
            against(one.cpu_ratio),
            if *way == Way::AsItIs { "0".to_string() } else { mean(one.kernel_cost_percent) },
            mib(one.mean_resident_bytes),
            mib(one.peak_resident_bytes),
            mib(one.malloc_freed_bytes),
        ]);
    }
    table.write(out)?;
    let text = "ratios to the first way, with the interval that holds the true one in 19 of 20 cases; CPU: user and system of the \
                JVM and of marusa; KERNEL: what the kernel did more for the JVM, and what marusa took, of all CPU time as it \
                is; MEAN and PEAK: resident while it worked; FREED: malloc-then-freed at the end";
    lines(out, text, 2)
}

fn swap(
    out: &mut dyn Write,
    Results { settings, found, .. }: &Results<Settings>,
    arms: &[(Way, &SwapFigures)],
) -> io::Result<()> {
    let text = format!(
        "\ntwo servers share {}: each {} of heap in use, and {} that take and free {}; {}",
        human(found.memory_bytes),
        human(settings.live_bytes),
        counted(settings.bursts, "burst"),
        human(settings.burst_bytes),
        counted(settings.swap_rounds, "round")
    );
    prose(out, &text)?;
    let titles = [
        "WAY",
        ">OUT MiB",
        ">IN MiB",
        ">I/O MiB/s",
        ">FAULTS",
        ">PEAK SWAP",
        ">BURSTS ms",
        ">OBJECTS VISITED",
    ];
    let mut table = Table::new(titles).indented(2);
    for (way, one) in arms {
        table.row([
            way.name().to_string(),
            mib(one.swapped_out_bytes),
            mib(one.swapped_in_bytes),
            mib(one.io_bytes_per_second),
            median(one.major_faults),
            mib(one.peak_swap_bytes),
            median(one.bursts_ms),
            if *way == Way::AsItIs { "1".to_string() } else { fine_ratio(one.visits_ratio) },
        ]);
    }
    table.write(out)?;
    let text = "swapped out and in by the whole host while they worked; FAULTS: of both, that waited for the disk; \
                OBJECTS: between the bursts, against the first way";
    lines(out, text, 2)
}
