//! What the whole host did in the same time, in sentences of figures.

use super::{milliseconds, size_of, stall_word};
use crate::base::{Gap, Known};
use crate::measure::stalls::Report;
use crate::measure::stalls::host::{Free, HostFigures};
use crate::measure::stalls::table::Traced;
use crate::os::pressure::Pressure;
use crate::os::thp_stats::SizeStats;
use crate::show::units::{counted, hanging, human, led};
use std::io::{self, Write};

pub fn host(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let host = &report.host;
    writeln!(out, "\nthe whole host, in the same time:")?;
    match &host.vmstat {
        Ok(_) => counters(out, host)?,
        Err(gap) => missing(out, gap)?,
    }
    sizes(out, &host.sizes)?;
    daemons(out, host, report.traced.as_ref().ok())?;
    let all = pressure(&host.pressure, host.seconds);
    item(out, "pressure", &format!("tasks waited for memory {all} (PSI)"))?;
    if let Some(group) = &host.group {
        item(out, "", &format!("the target's cgroup: {}", pressure(group, host.seconds)))?;
    }
    free(out, &host.free)
}

const NAME_COLUMNS: usize = 12;

fn item(out: &mut dyn Write, name: &str, text: &str) -> io::Result<()> {
    led(out, &format!("  {name:<NAME_COLUMNS$}"), text)
}

fn missing(out: &mut dyn Write, gap: &Gap) -> io::Result<()> {
    hanging(out, &gap.to_string(), 2)
}

fn counters(out: &mut dyn Write, host: &HostFigures) -> io::Result<()> {
    let of = |name: &str| host.grown(name).map_or("?".to_string(), |count| count.to_string());
    let huge = format!(
        "by faults {}, a small page instead {}; khugepaged made {}, failed {}; split {}, of them as underused {}; mappings \
         split {}",
        of("thp_fault_alloc"),
        of("thp_fault_fallback"),
        of("thp_collapse_alloc"),
        of("thp_collapse_alloc_failed"),
        of("thp_split_page"),
        of("thp_underused_split_page"),
        of("thp_split_pmd")
    );
    item(out, "huge pages", &huge)?;
    let compaction = format!(
        "allocations that compacted {}: got their page {}, did not {}; kcompactd woke {}",
        of("compact_stall"),
        of("compact_success"),
        of("compact_fail"),
        of("compact_daemon_wake")
    );
    item(out, "compaction", &compaction)?;
    let stalls = host.allocation_stalls().map_or("?".to_string(), |count| count.to_string());
    let reclaim = format!(
        "allocations that reclaimed {stalls}: pages freed {} of {} scanned; kswapd freed {}",
        of("pgsteal_direct"),
        of("pgscan_direct"),
        of("pgsteal_kswapd")
    );
    item(out, "reclaim", &reclaim)
}

/// Sizes at which anything happened.
fn sizes(out: &mut dyn Write, sizes: &Known<Vec<SizeStats>>) -> io::Result<()> {
    let sizes = match sizes {
        Ok(sizes) => sizes,
        Err(gap) => return missing(out, gap),
    };
    let mut name = "by size";
    for stats in sizes {
        let grown = |counter: &str| stats.get(counter).unwrap_or(0);
        let pair = |kind: &str, got: &str, fell: &str| {
            let (got, fell) = (grown(got), grown(fell));
            (got + fell > 0).then(|| format!("{kind} {got} got, {fell} fell back"))
        };
        let mut parts: Vec<String> = [
            pair("private", "anon_fault_alloc", "anon_fault_fallback"),
            pair("shared", "shmem_alloc", "shmem_fallback"),
        ]
        .into_iter()
        .flatten()
        .collect();
        if grown("split") > 0 || grown("split_failed") > 0 {
            parts.push(format!("{} split, {} could not be", grown("split"), grown("split_failed")));
        }
        if !parts.is_empty() {
            item(out, name, &format!("{}: {}", human(stats.bytes), parts.join("; ")))?;
            name = "";
        }
    }
    if name.is_empty() {
        Ok(())
    } else {
        item(out, name, "no page larger than the base page was asked for or split")
    }
}

fn daemons(out: &mut dyn Write, host: &HostFigures, traced: Option<&Traced>) -> io::Result<()> {
    match &host.daemons {
        Ok(daemons) => {
            let one = |(daemon, ms): (&crate::os::cpu_time::Daemon, &f64)| {
                let share = if host.seconds > 0.0 { ms / 10.0 / host.seconds } else { 0.0 };
                format!("{} {ms:.1} ms ({share:.1} %)", daemon.word())
            };
            let text: Vec<String> = daemons.iter().map(one).collect();
            item(out, "CPU time", &text.join(", "))?;
        }
        Err(gap) => missing(out, gap)?,
    }
    let Some(traced) = traced else { return Ok(()) };
    for line in traced.daemons.iter().filter(|line| !line.figures.is_empty()) {
        let figures = &line.figures;
        let of = size_of(line.order);
        let of = if of.is_empty() { of } else { format!(" for {of}") };
        let (total, worst) = (milliseconds(figures.ns), milliseconds(figures.worst_ns));
        let text = format!(
            "{}{of}: {}, {total} ms, longest {worst} ms",
            stall_word(line.stall, true),
            counted(figures.count, "time")
        );
        item(out, "at work", &text)?;
    }
    scans(out, traced)
}

/// What became of the ranges that khugepaged looked at; the most frequent reasons.
fn scans(out: &mut dyn Write, traced: &Traced) -> io::Result<()> {
    const REASONS_MAX: usize = 3;
    let all: u64 = traced.scans.values().sum();
    if all == 0 {
        return Ok(());
    }
    let made = traced.scans.get("succeeded").copied().unwrap_or(0);
    let mut reasons: Vec<(&str, u64)> = traced.scans.iter().map(|(word, count)| (*word, *count)).collect();
    reasons.retain(|(word, _)| *word != "succeeded");
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let reasons: Vec<String> =
        reasons.iter().take(REASONS_MAX).map(|(word, count)| format!("{word} {count}")).collect();
    let reasons = if reasons.is_empty() { String::new() } else { format!("; else {}", reasons.join(", ")) };
    item(out, "scanned", &format!("khugepaged scanned {all} ranges of 2 MiB, made {made} huge{reasons}"))
}

fn pressure(pressure: &Known<Pressure>, seconds: f64) -> String {
    match pressure {
        Ok(_) if seconds <= 0.0 => "?".to_string(),
        Ok(pressure) => {
            let share = |us: u64| us as f64 / 1e4 / seconds;
            let (some, full) = (share(pressure.some_us), share(pressure.full_us));
            format!("{some:.2} % of the time, all of them {full:.2} %")
        }
        Err(gap) => format!("? ({gap})"),
    }
}

fn free(out: &mut dyn Write, free: &Known<Free>) -> io::Result<()> {
    let free = match free {
        Ok(free) => free,
        Err(gap) => return missing(out, gap),
    };
    let share = crate::show::units::percent(free.huge_bytes, free.bytes);
    let share = if share.is_empty() { share } else { format!(" ({share} %)") };
    let index = match &free.index {
        Ok(index) if *index < 0.0 => "a huge page is available at once".to_string(),
        Ok(index) => format!("fragmentation index {index:.2} (0: too little memory, 1: in pieces)"),
        Err(gap) => gap.to_string(),
    };
    let text = format!(
        "{} free now, of it {}{share} in blocks of 2 MiB and more; {index}",
        human(free.bytes),
        human(free.huge_bytes)
    );
    item(out, "memory", &text)
}
