//! `marusa bench trim`: what each way of giving memory back costs and brings, against none.

use super::figures::{gaps, lines, mib, plain, ratio};
use crate::base::{Bytes, Gap};
use crate::experiment::bench::spread::Spread;
use crate::experiment::bench::trim::{
    self as experiment, Arm, Compiled, PUBLISHED, Pressed, Published, Ratio, Round,
};
use crate::map::Area;
use crate::map::model::GapRow;
use crate::os::busy::Others;
use crate::show::json::Head;
use crate::show::others;
use crate::show::table::Table;
use crate::show::units::{human, indented, led, paragraph, prose};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// What was asked for, and where.
#[derive(JsonSchema, Serialize)]
pub struct Setup {
    pub machine: String,
    pub jdk: String,
    #[serde(skip)]
    pub arms: Vec<Arm>,
    /// Ways that there are not here, and why.
    pub missing: Vec<String>,
    pub every_seconds: f64,
    pub seed: u64,
    pub jit_options: String,
    pub swap_options: String,
    pub classes: u32,
    pub live_bytes: Bytes,
    pub burst_bytes: Bytes,
    pub bursts: u32,
    pub memory_bytes: Bytes,
    /// What is changed on the host for the part with swap.
    #[serde(rename = "host_changes")]
    pub steps: Vec<String>,
    #[serde(rename = "dry_run")]
    pub is_dry_run: bool,
}

/// What was measured, as far as it came.
#[derive(JsonSchema, Serialize)]
pub struct Results {
    #[serde(skip)]
    pub jit: Vec<Round<Compiled>>,
    #[serde(skip)]
    pub swap: Vec<Round<Pressed>>,
    pub notes: Vec<String>,
    /// What others on the machine took during each trial of a second and more.
    pub others: Vec<Others>,
    pub ended: Option<String>,
}

pub fn text(out: &mut dyn Write, setup: &Setup, results: &Results) -> io::Result<()> {
    lines(
        out,
        &format!("what giving freed memory back costs and brings; JDK {}; {}", setup.jdk, setup.machine),
    )?;
    for arm in &setup.arms {
        led(out, &format!("  {:<13} ", arm.name), &arm.what)?;
    }
    setup.missing.iter().try_for_each(|line| indented(out, &format!("not here: {line}"), 2))?;
    if setup.is_dry_run {
        dry_run(out, setup)?;
    }
    if !results.jit.is_empty() {
        jit(out, setup, &results.jit)?;
    }
    if !results.swap.is_empty() {
        swap(out, setup, &results.swap)?;
    }
    if !results.jit.is_empty() || !results.swap.is_empty() {
        published(out)?;
    }
    let others = others::line(results.others.iter().copied().map(Some));
    others.iter().try_for_each(|line| lines(out, line))?;
    for note in &results.notes {
        paragraph(out, "", "", note)?;
    }
    results.ended.as_ref().map_or(Ok(()), |why| writeln!(out, "\nnot complete: {why}"))
}

fn dry_run(out: &mut dyn Write, setup: &Setup) -> io::Result<()> {
    prose(out, "\ndry run: nothing was started or changed. It would be:")?;
    indented(out, &format!("{} classes compiled by java {}", setup.classes, setup.jit_options), 2)?;
    if !setup.steps.is_empty() {
        writeln!(out, "  two of java {}", setup.swap_options)?;
        indented(out, "and for these, undone at the end:", 2)?;
    }
    for step in &setup.steps {
        paragraph(out, "    ", "    ", step)?;
    }
    Ok(())
}

fn jit(out: &mut dyn Write, setup: &Setup, rounds: &[Round<Compiled>]) -> io::Result<()> {
    prose(
        out,
        &format!(
            "\n{} classes compiled by java {}; {} rounds, each way once in a round in an order of chance",
            setup.classes,
            setup.jit_options,
            rounds.len()
        ),
    )?;
    let titles = ["WAY", ">TIME ms", ">TIME RATIO", ">CPU RATIO", ">MEAN MiB", ">PEAK", ">FREED"];
    let mut table = Table::new(titles).indented(2);
    for (index, arm) in setup.arms.iter().enumerate() {
        let against = |figure: &dyn Fn(&Compiled) -> Option<f64>| match index {
            0 => "1".to_string(),
            _ => ratio(experiment::ratio(rounds, index, figure)),
        };
        let spread = |figure: &dyn Fn(&Compiled) -> Option<f64>| experiment::spread(rounds, index, figure);
        table.row([
            arm.name.to_string(),
            plain(spread(&|one| Some(one.work_ms)), 0),
            against(&|one| Some(one.work_ms)),
            against(&cpu),
            mib(spread(&|one| one.mean_bytes)),
            mib(spread(&|one| one.peak_bytes.map(|bytes| bytes as f64))),
            mib(spread(&freed)),
        ]);
    }
    table.write(out)?;
    let text = "ratios to the first way, with the interval that holds the true one in 19 of 20 cases; CPU: user and system of the \
                JVM and of marusa; MEAN and PEAK: resident while it worked; FREED: malloc-then-freed at the end";
    paragraph(out, "  ", "  ", text)
}

/// CPU time of the JVM and of its helper.
fn cpu(one: &Compiled) -> Option<f64> {
    Some(one.cpu_ms? + one.helper_cpu_ms.unwrap_or(0.0))
}

fn freed(one: &Compiled) -> Option<f64> {
    one.end.known_resident_bytes_of(Area::MallocFreed).map(|bytes| bytes as f64)
}

fn swap(out: &mut dyn Write, setup: &Setup, rounds: &[Round<Pressed>]) -> io::Result<()> {
    let text = format!(
        "two servers share {}: each {} of heap in use, and {} bursts that take and free {}; {} rounds",
        human(setup.memory_bytes),
        human(setup.live_bytes),
        setup.bursts,
        human(setup.burst_bytes),
        rounds.len()
    );
    writeln!(out)?;
    paragraph(out, "", "", &text)?;
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
    for (index, arm) in setup.arms.iter().enumerate() {
        let spread = |figure: &dyn Fn(&Pressed) -> Option<f64>| experiment::spread(rounds, index, figure);
        table.row([
            arm.name.to_string(),
            mib(spread(&out_bytes)),
            mib(spread(&in_bytes)),
            mib(spread(&Pressed::io_rate)),
            plain(spread(&|one| one.major_faults.map(|faults| faults as f64)), 0),
            mib(spread(&|one| one.peak_swap_bytes.map(|bytes| bytes as f64))),
            plain(spread(&|one| Some(one.burst_ms)), 0),
            if index == 0 { "1".to_string() } else { ratio(experiment::ratio(rounds, index, visits)) },
        ]);
    }
    table.write(out)?;
    let text = "swapped out and in by the whole host while they worked; FAULTS: of both, that waited for the disk; \
                OBJECTS: between the bursts, against the first way";
    paragraph(out, "  ", "  ", text)
}

fn out_bytes(one: &Pressed) -> Option<f64> {
    one.swapped_out_bytes.as_ref().ok().map(|bytes| *bytes as f64)
}

fn visits(one: &Pressed) -> Option<f64> {
    Some(one.visits as f64)
}

fn in_bytes(one: &Pressed) -> Option<f64> {
    one.swapped_in_bytes.as_ref().ok().map(|bytes| *bytes as f64)
}

fn published(out: &mut dyn Write) -> io::Result<()> {
    let Published { cost_x86_percent: x86, cost_power_percent: power } = PUBLISHED;
    let text = format!(
        "published (OOPSLA 2010): madvise(MADV_DONTNEED) on each block that the JIT compiler's work area frees cost \
         {x86} % of time on x86 and {power} % on POWER on average; with two servers under memory pressure far fewer \
         pages were swapped"
    );
    writeln!(out)?;
    paragraph(out, "", "", &text)
}

/// `marusa bench trim --json`.
#[derive(JsonSchema, Serialize)]
pub struct BenchTrimDocument<'a> {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    setup: &'a Setup,
    #[serde(flatten)]
    results: &'a Results,
    published: Published,
    arms: Vec<ArmRow<'a>>,
    gaps: Vec<AnyGap<'a>>,
}

/// Reasons of an account's gaps are words, those of the host's are names.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
enum AnyGap<'a> {
    Account(&'a GapRow),
    Host(&'a Gap),
}

#[derive(JsonSchema, Serialize)]
struct ArmRow<'a> {
    #[serde(flatten)]
    arm: &'a Arm,
    /// `None`: this part was not run.
    jit: Option<JitRow<'a>>,
    swap: Option<SwapRow<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct JitRow<'a> {
    time_ratio: Option<Ratio>,
    cpu_ratio: Option<Ratio>,
    work_ms: Option<Spread>,
    mean_resident_bytes: Option<Spread>,
    malloc_freed_bytes: Option<Spread>,
    runs: Vec<&'a Compiled>,
}

#[derive(JsonSchema, Serialize)]
struct SwapRow<'a> {
    swapped_out_bytes: Option<Spread>,
    swapped_in_bytes: Option<Spread>,
    visits_ratio: Option<Ratio>,
    runs: Vec<PressedRow<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct PressedRow<'a> {
    #[serde(flatten)]
    pressed: &'a Pressed,
    io_bytes_per_second: Option<f64>,
}

impl<'a> BenchTrimDocument<'a> {
    pub fn of(setup: &'a Setup, results: &'a Results) -> BenchTrimDocument<'a> {
        let Results { jit, swap, .. } = results;
        let arm = |(index, arm)| ArmRow {
            arm,
            jit: (!jit.is_empty()).then(|| JitRow::of(jit, index)),
            swap: (!swap.is_empty()).then(|| SwapRow::of(swap, index)),
        };
        let of_accounts = gaps(jit.iter().flatten().flatten().map(|one| &one.end));
        let of_host = swap.iter().flatten().flatten().find_map(|one| one.swapped_out_bytes.as_ref().err());
        BenchTrimDocument {
            head: Head::now("marusa/bench-trim/2"),
            setup,
            results,
            published: PUBLISHED,
            arms: setup.arms.iter().enumerate().map(arm).collect(),
            gaps: of_accounts.into_iter().map(AnyGap::Account).chain(of_host.map(AnyGap::Host)).collect(),
        }
    }
}

/// Those of an arm that did not fail.
fn runs<T>(rounds: &[Round<T>], arm: usize) -> impl Iterator<Item = &T> {
    rounds.iter().filter_map(move |round| round.get(arm)?.as_ref())
}

/// Against the first arm, which has no ratio.
fn against<T>(rounds: &[Round<T>], arm: usize, figure: impl Fn(&T) -> Option<f64>) -> Option<Ratio> {
    (arm > 0).then(|| experiment::ratio(rounds, arm, figure)).flatten()
}

impl JitRow<'_> {
    fn of(rounds: &[Round<Compiled>], arm: usize) -> JitRow<'_> {
        JitRow {
            time_ratio: against(rounds, arm, |one| Some(one.work_ms)),
            cpu_ratio: against(rounds, arm, cpu),
            work_ms: experiment::spread(rounds, arm, |one| Some(one.work_ms)),
            mean_resident_bytes: experiment::spread(rounds, arm, |one| one.mean_bytes),
            malloc_freed_bytes: experiment::spread(rounds, arm, freed),
            runs: runs(rounds, arm).collect(),
        }
    }
}

impl SwapRow<'_> {
    fn of(rounds: &[Round<Pressed>], arm: usize) -> SwapRow<'_> {
        let row = |pressed| PressedRow { pressed, io_bytes_per_second: Pressed::io_rate(pressed) };
        SwapRow {
            swapped_out_bytes: experiment::spread(rounds, arm, out_bytes),
            swapped_in_bytes: experiment::spread(rounds, arm, in_bytes),
            visits_ratio: against(rounds, arm, visits),
            runs: runs(rounds, arm).map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Account;
    use std::time::Duration;

    #[test]
    fn the_tables_fit_and_say_what_was_not_measured() {
        let (arms, _) = experiment::arms(true, Duration::from_secs(1), Ok(()));
        let setup = Setup {
            machine: "a machine".into(),
            jdk: "25".into(),
            missing: Vec::new(),
            every_seconds: 1.0,
            seed: 1,
            jit_options: "-Xbatch".into(),
            swap_options: "-Xmx128m".into(),
            classes: 3,
            live_bytes: 1 << 20,
            burst_bytes: 1 << 20,
            bursts: 2,
            memory_bytes: 1 << 30,
            steps: vec!["a step".into()],
            is_dry_run: true,
            arms,
        };
        let compiled = |ms: f64| Compiled {
            work_ms: ms,
            cpu_ms: Some(ms * 2.0),
            helper_cpu_ms: None,
            faults: None,
            mean_bytes: Some(1e8),
            peak_bytes: None,
            end: Account::made_up(&[(Area::MallocFreed, 5 << 20)]),
        };
        let pressed = Pressed {
            work_ms: 1000.0,
            visits: 123_456_789_012,
            burst_ms: 99_999.0,
            swapped_out_bytes: Ok(3 << 30),
            swapped_in_bytes: Ok(1 << 30),
            major_faults: Some(1_234_567),
            peak_swap_bytes: None,
        };
        let count = setup.arms.len();
        let jit = (0..3).map(|round| {
            (0..count).map(|arm| Some(compiled(12345.0 + f64::from(round) + arm as f64))).collect()
        });
        let swap = (0..2).map(|_| (0..count).map(|_| Some(pressed.clone())).collect());
        let results = Results {
            jit: jit.collect(),
            swap: swap.collect(),
            notes: vec!["a note".into()],
            others: Vec::new(),
            ended: Some("stopped by a signal".into()),
        };
        let mut out = Vec::new();
        text(&mut out, &setup, &results).expect("written");
        let out = String::from_utf8(out).expect("UTF-8");
        let broad: Vec<&str> = out.lines().filter(|line| line.chars().count() > 100).collect();
        assert!(broad.is_empty(), "{broad:#?}");
        assert!(out.contains("not complete: stopped") && out.contains("dry run"), "{out}");
        let value = serde_json::to_value(BenchTrimDocument::of(&setup, &results)).expect("JSON");
        assert_eq!(value["arms"][1]["jit"]["time_ratio"]["pairs"], 3);
        assert!(value["arms"][0]["jit"]["time_ratio"].is_null());
    }
}
