//! Advice in words: for each workload the sum of its limit, line by line, then what each part rests on, and what was not judged.

mod emit;
#[cfg(test)]
mod tests;

pub use emit::{Format, emit};

use super::json::Head;
use super::table::Table;
use super::units::{counted, human, indented, led, painted, paragraph, prose};
use crate::advise::{Budget, Check, CodeCache, Decided, Heap, Limit, Malloc, Outcome, Peak, Workload};
use crate::base::style::Style;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

pub const SCHEMA: &str = "marusa/advice/1";

/// `marusa advise --json`.
#[derive(JsonSchema, Serialize)]
pub struct AdviceDocument<'a> {
    #[serde(flatten)]
    head: Head,
    /// How far ahead growth is counted.
    until_seconds: f64,
    /// The share of time that collections may take, 0 to 1.
    gc_ratio: f64,
    workloads: &'a [Workload],
    budget: Option<&'a Budget>,
    check: Option<&'a Check>,
}

/// All that was found out.
pub struct Advice {
    pub wanted: crate::advise::Wanted,
    pub workloads: Vec<Workload>,
    pub budget: Option<Budget>,
    pub check: Option<Check>,
}

impl<'a> AdviceDocument<'a> {
    pub fn of(advice: &'a Advice) -> AdviceDocument<'a> {
        AdviceDocument {
            head: Head::now(SCHEMA),
            until_seconds: advice.wanted.until.as_secs_f64(),
            gc_ratio: advice.wanted.gc_ratio,
            workloads: &advice.workloads,
            budget: advice.budget.as_ref(),
            check: advice.check.as_ref(),
        }
    }
}

pub fn text(out: &mut dyn Write, advice: &Advice) -> io::Result<()> {
    if let Some(check) = &advice.check {
        return checked(out, check);
    }
    if let Some(budget) = &advice.budget {
        return split(out, budget);
    }
    for (place, workload) in advice.workloads.iter().enumerate() {
        if place > 0 {
            writeln!(out)?;
        }
        one(out, workload, advice)?;
    }
    Ok(())
}

fn one(out: &mut dyn Write, workload: &Workload, advice: &Advice) -> io::Result<()> {
    painted(out, ("", Style::Plain), "", (&workload.name, Style::Bold))?;
    indented(out, &seen(workload), 0)?;
    if let Some(limit) = &workload.limit {
        writeln!(out)?;
        sum(out, workload, limit, advice)?;
    }
    writeln!(out)?;
    lines(workload).iter().try_for_each(|(first, text)| led(out, first, text))?;
    workload.not_judged.iter().try_for_each(|why| led(out, "not judged  ", why))
}

fn seen(workload: &Workload) -> String {
    let (key, observed) = (&workload.key, &workload.observed);
    let mut facts = vec![counted(observed.replicas, "replica")];
    facts.push(match observed.replica_days {
        0 => hours(observed.hours),
        days => format!("{days} replica-days of {}", counted(observed.days, "day")),
    });
    let java: Vec<&str> = [key.java_version.as_deref(), key.gc.as_deref()].into_iter().flatten().collect();
    facts.extend((!java.is_empty()).then(|| format!("JDK {}", java.join(", "))));
    facts.extend(key.max_heap_bytes.map(|bytes| format!("-Xmx {}", human(bytes))));
    facts.extend(
        (observed.oom_kills > 0).then(|| format!("OOM-killed {}", counted(observed.oom_kills, "time"))),
    );
    facts.join(", ")
}

fn hours(hours: f64) -> String {
    if hours < 2.0 { counted((hours * 60.0).round() as u64, "minute") } else { format!("{hours:.1} hours") }
}

/// The sum, as one.
fn sum(out: &mut dyn Write, workload: &Workload, limit: &Limit, advice: &Advice) -> io::Result<()> {
    let mut table = Table::new([">BYTES", "OF THE LIMIT"]).indented(2);
    let mut row = |bytes: u64, what: &str| table.row([human(bytes), what.to_string()]);
    let is_new = workload.heap.as_ref().is_some_and(|heap| heap.decided_by != Decided::AsItIs);
    match limit.heap_bytes {
        0 => row(0, "Java heap: it is in the hugetlb pool, which no memory limit counts"),
        bytes => row(bytes, if is_new { "Java heap, full, at the -Xmx below" } else { "Java heap, full" }),
    }
    row(limit.tables_growth_bytes, "GC tables, by what they grow with the heap");
    row(limit.base_bytes, "all else, at its highest joint need");
    let days = advice.wanted.until.as_secs_f64() / 86_400.0;
    for growing in &limit.growing {
        let rate = human(growing.bytes_per_hour as u64);
        row(growing.bytes, &format!("growth of {}, {rate}/h for {days:.0} days", growing.area.title()));
    }
    row(limit.reserve_bytes, "reserve");
    let now =
        workload.observed.limit_bytes.map_or(String::new(), |bytes| format!("; it is {} now", human(bytes)));
    table.total([human(limit.limit_bytes), format!("the limit{now}")]);
    table.write(out)
}

/// What starts each line, and the line.
fn lines(workload: &Workload) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(limit) = &workload.limit {
        lines.push(("peak        ", peak(&limit.peak)));
        lines.extend(bound(workload, limit).map(|text| ("bound       ", text)));
    }
    lines.extend(workload.heap.as_ref().map(|heap| ("-Xmx        ", of_heap(heap))));
    lines.extend(
        workload
            .malloc
            .as_ref()
            .zip(workload.limit.as_ref())
            .map(|(malloc, limit)| ("malloc      ", of_malloc(malloc, limit))),
    );
    lines.extend(workload.code_cache.as_ref().map(|cache| ("code cache  ", of_code(cache))));
    let saved = workload.saved_bytes().filter(|bytes| *bytes > 0);
    lines.extend(saved.map(|bytes| {
        let replicas = counted(workload.observed.replicas, "replica");
        let than =
            if workload.observed.limit_bytes.is_some() { "the limits now" } else { "the most that was held" };
        ("saves       ", format!("{} with {replicas}, compared with {than}", human(bytes as u64)))
    }));
    lines
}

fn bound(workload: &Workload, limit: &Limit) -> Option<String> {
    (workload.observed.replica_days > 0).then(|| {
        format!(
            "{:.0} % of replica-days stay within the highest need, with {:.0} % confidence; by days alone {:.0} %",
            limit.share_ratio * 100.0,
            limit.confidence_ratio * 100.0,
            limit.confidence_by_days_ratio * 100.0
        )
    })
}

const PARTS_SHOWN: usize = 6;

fn peak(peak: &Peak) -> String {
    let mut parts: Vec<(String, u64)> =
        peak.parts.iter().map(|part| (part.area.title().to_string(), part.bytes)).collect();
    let kernel =
        if peak.kernel_is_estimated { "kernel (estimated)" } else { "kernel and others in the cgroup" };
    parts.extend(peak.page_table_bytes.map(|bytes| ("page tables".to_string(), bytes)));
    parts.extend(peak.kernel_bytes.map(|bytes| (kernel.to_string(), bytes)));
    parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let others: u64 = parts.iter().skip(PARTS_SHOWN).map(|(_, bytes)| *bytes).sum();
    let shown: Vec<String> =
        parts.iter().take(PARTS_SHOWN).map(|(what, bytes)| format!("{what} {}", human(*bytes))).collect();
    format!("{}, {}: {}, others {}", peak.at, peak.replica, shown.join(", "), human(others))
}

fn of_heap(heap: &Heap) -> String {
    let percent = |ratio: f64| format!("{:.2} %", ratio * 100.0);
    let of = if heap.is_whole_heap_seen {
        "of the whole heap"
    } else {
        "of which few or none were of the whole heap"
    };
    let live = format!(
        "live set {} at most, by {} {of}",
        human(heap.live_bytes),
        counted(heap.live_seen, "collection")
    );
    let gc = format!("collections took {} of the time, in the busiest hour", percent(heap.gc_ratio));
    let (now, then) = (human(heap.now_bytes), human(heap.xmx_bytes));
    if heap.decided_by == Decided::AsItIs {
        return format!("{now}, as it is: {live}; {gc}");
    }
    let why = match heap.decided_by {
        Decided::GcTime => "the time in collections decides",
        Decided::LiveSet => "half as much again as the live set",
        _ => "a quarter of the room that was seen; record again before a smaller one",
    };
    format!("{then} instead of {now}: {why}; {live}; {gc}, then {}", percent(heap.gc_forecast_ratio))
}

fn of_malloc(malloc: &Malloc, limit: &Limit) -> String {
    let settings = malloc.environment.iter().map(|(name, value)| format!("{name}={value}"));
    let settings: Vec<String> = settings.chain(malloc.options.iter().cloned()).collect();
    let set = if settings.is_empty() { String::new() } else { format!("{}: ", settings.join(" ")) };
    let then = limit
        .returned_limit_bytes
        .map_or(String::new(), |bytes| format!("; the limit is then {}", human(bytes)));
    format!("{set}{}; {} of the need was free{then}", malloc.why, human(malloc.returnable_bytes))
}

fn of_code(cache: &CodeCache) -> String {
    let (highest, reserved, more) =
        (human(cache.highest_bytes), human(cache.reserved_bytes), human(cache.may_grow_bytes));
    match &cache.option {
        Some(option) => {
            format!("{option}: {highest} of {reserved} were in use, and a full one compiles no more")
        }
        None => {
            format!("{highest} of {reserved} at most; it may take {more} more, which is not in the limit")
        }
    }
}

fn split(out: &mut dyn Write, budget: &Budget) -> io::Result<()> {
    let mut table =
        Table::new(["WORKLOAD", ">REPLICAS", ">LIVE SET", ">-XMX NOW", ">-XMX", ">GC NOW", ">GC THEN"])
            .shortened(0, 20);
    let percent = |ratio: f64| format!("{:.2} %", ratio * 100.0);
    for heap in &budget.heaps {
        table.row([
            heap.name.clone(),
            heap.replicas.to_string(),
            human(heap.live_bytes),
            human(heap.now_bytes),
            human(heap.xmx_bytes),
            percent(heap.gc_ratio),
            percent(heap.gc_forecast_ratio),
        ]);
    }
    table.write(out)?;
    let (now, then, same) =
        (human(budget.now_bytes), human(budget.budget_bytes), human(budget.same_gc_bytes));
    let text = format!(
        "\n{then} of heap instead of {now}: collections take {:.3} s a second instead of {:.3}; {same} would do for as much as now.",
        budget.gc_then, budget.gc_now
    );
    prose(out, &text)?;
    let mut left_out = budget.left_out.iter();
    left_out.try_for_each(|name| led(out, "left out    ", &format!("{name}: its live set is not known")))?;
    prose(out, "A forecast of first order: prove it on one replica with marusa compare before all.")
}

fn checked(out: &mut dyn Write, check: &Check) -> io::Result<()> {
    let mut table =
        Table::new(["WORKLOAD", ">FORECAST", ">HELD", ">ERROR", ">LIMIT", ">OOM KILLS", "RUNS AS ADVISED"])
            .shortened(0, 20);
    for one in &check.workloads {
        table.row([
            one.name.clone(),
            human(one.forecast_bytes),
            one.held_bytes.map_or("?".to_string(), human),
            one.error_ratio.map_or("?".to_string(), |ratio| format!("{:+.1} %", ratio * 100.0)),
            human(one.limit_bytes),
            one.oom_kills.to_string(),
            as_advised(one).to_string(),
        ]);
        if one.oom_kills > 0 {
            table.paint(Style::Alarm);
        }
    }
    table.write(out)?;
    writeln!(out)?;
    if let (Some(mean), Some(largest)) = (check.mean_error_ratio, check.largest_error_ratio) {
        let text = format!(
            "Forecasts were off by {:.1} % on average, by {:.1} % at most.",
            mean * 100.0,
            largest * 100.0
        );
        paragraph(out, "", "", &text)?;
    }
    check.not_seen.iter().try_for_each(|name| led(out, "not seen    ", name))
}

fn as_advised(one: &Outcome) -> &'static str {
    match (one.has_limit, one.has_xmx) {
        (true, true) => "yes",
        (true, false) => "the limit only",
        (false, true) => "-Xmx only",
        (false, false) => "no",
    }
}
