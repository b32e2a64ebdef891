//! `marusa bench trim`: what each way of giving memory back costs and brings, against none.

use super::figures::{account_json, gaps, lines, mib, plain, ratio, ratio_json, spread_json};
use crate::base::Bytes;
use crate::experiment::bench::spread::Spread;
use crate::experiment::bench::trim::{
    self as experiment, Arm, Compiled, PUBLISHED_COST_PERCENT, Pressed, Ratio, Round,
};
use crate::map::Area;
use crate::show::units::{human, wrapped};
use crate::show::width::width;
use serde_json::{Value, json};
use std::io::{self, Write};

/// What was asked for, and where.
pub struct Setup {
    pub machine: String,
    pub jdk: String,
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
    pub steps: Vec<String>,
    pub is_dry_run: bool,
}

/// What was measured, as far as it came.
pub struct Results {
    pub jit: Vec<Round<Compiled>>,
    pub swap: Vec<Round<Pressed>>,
    pub notes: Vec<String>,
    pub ended: Option<String>,
}

pub fn text(out: &mut dyn Write, setup: &Setup, results: &Results) -> io::Result<()> {
    lines(
        out,
        &format!("what giving freed memory back costs and brings; JDK {}; {}", setup.jdk, setup.machine),
    )?;
    for arm in &setup.arms {
        writeln!(out, "  {:<13} {}", arm.name, arm.what)?;
    }
    setup.missing.iter().try_for_each(|line| writeln!(out, "  not here: {line}"))?;
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
    for note in &results.notes {
        wrapped(note, width()).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    results.ended.as_ref().map_or(Ok(()), |why| writeln!(out, "\nnot complete: {why}"))
}

fn dry_run(out: &mut dyn Write, setup: &Setup) -> io::Result<()> {
    writeln!(out, "\ndry run: nothing was started or changed. It would be:")?;
    writeln!(out, "  {} classes compiled by java {}", setup.classes, setup.jit_options)?;
    if !setup.steps.is_empty() {
        writeln!(out, "  two of java {}", setup.swap_options)?;
        writeln!(out, "  and for these, taken back at the end:")?;
    }
    for step in &setup.steps {
        wrapped(step, width() - 4).iter().try_for_each(|line| writeln!(out, "    {line}"))?;
    }
    Ok(())
}

fn jit(out: &mut dyn Write, setup: &Setup, rounds: &[Round<Compiled>]) -> io::Result<()> {
    writeln!(
        out,
        "\n{} classes compiled by java {}; {} rounds, each way once in a round in an order of chance",
        setup.classes,
        setup.jit_options,
        rounds.len()
    )?;
    writeln!(
        out,
        "  {:<13} {:>8} {:>22} {:>22} {:>8} {:>8} {:>8}",
        "WAY", "TIME ms", "TIME RATIO", "CPU RATIO", "MEAN MiB", "PEAK", "FREED"
    )?;
    for (index, arm) in setup.arms.iter().enumerate() {
        let against = |figure: &dyn Fn(&Compiled) -> Option<f64>| match index {
            0 => "1".to_string(),
            _ => ratio(experiment::ratio(rounds, index, figure)),
        };
        let spread = |figure: &dyn Fn(&Compiled) -> Option<f64>| experiment::spread(rounds, index, figure);
        writeln!(
            out,
            "  {:<13} {:>8} {:>22} {:>22} {:>8} {:>8} {:>8}",
            arm.name,
            plain(spread(&|one| Some(one.work_ms)), 0),
            against(&|one| Some(one.work_ms)),
            against(&cpu),
            mib(spread(&|one| one.mean_bytes)),
            mib(spread(&|one| one.peak_bytes.map(|bytes| bytes as f64))),
            mib(spread(&freed)),
        )?;
    }
    let text = "ratios to the first way, with the interval that holds the true one in 19 of 20 cases; CPU: user and system of the \
                JVM and of marusa; MEAN and PEAK: resident while it worked; FREED: malloc-then-freed at the end";
    wrapped(text, width() - 2).iter().try_for_each(|line| writeln!(out, "  {line}"))
}

/// Of the JVM, and of who helps it.
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
    wrapped(&text, width()).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    writeln!(
        out,
        "  {:<13} {:>8} {:>8} {:>10} {:>8} {:>9} {:>9} {:>22}",
        "WAY", "OUT MiB", "IN MiB", "I/O MiB/s", "FAULTS", "PEAK SWAP", "BURSTS ms", "OBJECTS VISITED"
    )?;
    for (index, arm) in setup.arms.iter().enumerate() {
        let spread = |figure: &dyn Fn(&Pressed) -> Option<f64>| experiment::spread(rounds, index, figure);
        let visits = |one: &Pressed| Some(one.visits as f64);
        writeln!(
            out,
            "  {:<13} {:>8} {:>8} {:>10} {:>8} {:>9} {:>9} {:>22}",
            arm.name,
            mib(spread(&out_bytes)),
            mib(spread(&in_bytes)),
            mib(spread(&Pressed::io_rate)),
            plain(spread(&|one| one.major_faults.map(|faults| faults as f64)), 0),
            mib(spread(&|one| one.peak_swap_bytes.map(|bytes| bytes as f64))),
            plain(spread(&|one| Some(one.burst_ms)), 0),
            if index == 0 { "1".to_string() } else { ratio(experiment::ratio(rounds, index, visits)) },
        )?;
    }
    let text = "swapped out and in by the whole host while they worked; FAULTS: of both, that waited for the disk; \
                OBJECTS: between the bursts, against the first way";
    wrapped(text, width() - 2).iter().try_for_each(|line| writeln!(out, "  {line}"))
}

fn out_bytes(one: &Pressed) -> Option<f64> {
    one.swapped_out_bytes.as_ref().ok().map(|bytes| *bytes as f64)
}

fn in_bytes(one: &Pressed) -> Option<f64> {
    one.swapped_in_bytes.as_ref().ok().map(|bytes| *bytes as f64)
}

fn published(out: &mut dyn Write) -> io::Result<()> {
    let [x86, power] = PUBLISHED_COST_PERCENT;
    let text = format!(
        "published (OOPSLA 2010): madvise(MADV_DONTNEED) on each block that the JIT compiler's work area frees cost \
         {x86} % of time on x86 and {power} % on POWER on average; with two servers under memory pressure far fewer \
         pages were swapped"
    );
    writeln!(out)?;
    wrapped(&text, width()).iter().try_for_each(|line| writeln!(out, "{line}"))
}

pub fn json(setup: &Setup, results: &Results) -> Value {
    let arms = setup.arms.iter().enumerate().map(|(index, arm)| {
        json!({
            "arm": arm.name,
            "what": arm.what,
            "options": arm.options,
            "environment": arm.environment.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>(),
            "trimmed_every_seconds": arm.trimmed_every.map(|every| every.as_secs_f64()),
            "jit": (!results.jit.is_empty()).then(|| jit_json(&results.jit, index)),
            "swap": (!results.swap.is_empty()).then(|| swap_json(&results.swap, index)),
        })
    });
    let accounts = results.jit.iter().flatten().flatten().map(|one| &one.end);
    let mut gaps: Vec<Value> = gaps(accounts).into_iter().map(|gap| json!(gap)).collect();
    let of_swap = results.swap.iter().flatten().flatten();
    gaps.extend(of_swap.filter_map(|one| one.swapped_out_bytes.as_ref().err()).take(1).map(|gap| json!(gap)));
    json!({
        "schema": "marusa/bench-trim/1",
        "machine": setup.machine,
        "jdk": setup.jdk,
        "dry_run": setup.is_dry_run,
        "every_seconds": setup.every_seconds,
        "seed": setup.seed,
        "jit_options": setup.jit_options,
        "swap_options": setup.swap_options,
        "classes": setup.classes,
        "live_bytes": setup.live_bytes,
        "burst_bytes": setup.burst_bytes,
        "bursts": setup.bursts,
        "memory_bytes": setup.memory_bytes,
        "host_changes": setup.steps,
        "missing": setup.missing,
        "published": {"cost_x86_percent": PUBLISHED_COST_PERCENT[0], "cost_power_percent": PUBLISHED_COST_PERCENT[1]},
        "arms": arms.collect::<Vec<_>>(),
        "notes": results.notes,
        "ended": results.ended,
        "gaps": gaps,
    })
}

fn jit_json(rounds: &[Round<Compiled>], arm: usize) -> Value {
    let against = |figure: &dyn Fn(&Compiled) -> Option<f64>| -> Option<Ratio> {
        (arm > 0).then(|| experiment::ratio(rounds, arm, figure)).flatten()
    };
    let spread = |figure: &dyn Fn(&Compiled) -> Option<f64>| -> Option<Spread> {
        experiment::spread(rounds, arm, figure)
    };
    let runs = rounds.iter().filter_map(|round| round.get(arm)?.as_ref()).map(|one| {
        json!({
            "work_ms": one.work_ms,
            "cpu_ms": one.cpu_ms,
            "helper_cpu_ms": one.helper_cpu_ms,
            "minor_faults": one.faults,
            "mean_resident_bytes": one.mean_bytes,
            "peak_resident_bytes": one.peak_bytes,
            "end": account_json(&one.end),
        })
    });
    json!({
        "time_ratio": ratio_json(against(&|one| Some(one.work_ms))),
        "cpu_ratio": ratio_json(against(&cpu)),
        "work_ms": spread_json(spread(&|one| Some(one.work_ms))),
        "mean_resident_bytes": spread_json(spread(&|one| one.mean_bytes)),
        "malloc_freed_bytes": spread_json(spread(&freed)),
        "runs": runs.collect::<Vec<_>>(),
    })
}

fn swap_json(rounds: &[Round<Pressed>], arm: usize) -> Value {
    let spread = |figure: &dyn Fn(&Pressed) -> Option<f64>| -> Option<Spread> {
        experiment::spread(rounds, arm, figure)
    };
    let runs = rounds.iter().filter_map(|round| round.get(arm)?.as_ref()).map(|one| {
        json!({
            "work_ms": one.work_ms,
            "objects_visited": one.visits,
            "bursts_ms": one.burst_ms,
            "swapped_out_bytes": one.swapped_out_bytes.as_ref().ok(),
            "swapped_in_bytes": one.swapped_in_bytes.as_ref().ok(),
            "io_bytes_per_second": one.io_rate(),
            "major_faults": one.major_faults,
            "peak_swap_bytes": one.peak_swap_bytes,
        })
    });
    let visits = (arm > 0).then(|| experiment::ratio(rounds, arm, |one| Some(one.visits as f64))).flatten();
    json!({
        "swapped_out_bytes": spread_json(spread(&out_bytes)),
        "swapped_in_bytes": spread_json(spread(&in_bytes)),
        "visits_ratio": ratio_json(visits),
        "runs": runs.collect::<Vec<_>>(),
    })
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
            ended: Some("stopped by a signal".into()),
        };
        let mut out = Vec::new();
        text(&mut out, &setup, &results).expect("written");
        let out = String::from_utf8(out).expect("UTF-8");
        let broad: Vec<&str> = out.lines().filter(|line| line.chars().count() > 100).collect();
        assert!(broad.is_empty(), "{broad:#?}");
        assert!(out.contains("not complete: stopped") && out.contains("dry run"), "{out}");
        let value = json(&setup, &results);
        assert_eq!(value["arms"][1]["jit"]["time_ratio"]["pairs"], 3);
        assert!(value["arms"][0]["jit"]["time_ratio"].is_null());
    }
}
