//! `marusa advise SOURCE...`: the container limit, -Xmx and malloc options that workloads need. What differs between a recording, a
//! store and Prometheus ends here: all become histories.

mod parquet;
mod prometheus;
mod samples;
#[cfg(test)]
mod tests;

use super::{Failure, amount, answer};
use crate::advise::{self, Earlier, Wanted};
use crate::base::{Refused, refuse};
use crate::cmd::record::file;
use crate::os::input_file;
use crate::os::terminal::data;
use crate::record::History;
use crate::show::advise::{self as show, Advice, AdviceDocument, Format};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DOCUMENT_BYTES_MAX: u64 = 256 << 20;

#[derive(clap::Args, Debug)]
pub struct AdviseArgs {
    /// Recordings (marusa record), the directory of a store (serve --store), or the URL of a Prometheus server
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<String>,
    /// Only workloads whose name has this in it
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// How far ahead to count growth
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = amount::duration)]
    until: Duration,
    /// The share of time that collections may take
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent)]
    gc_time: f64,
    /// Of a store and of Prometheus: how far back to read
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = amount::duration)]
    since: Duration,
    /// Of Prometheus: only series with these labels, such as 'namespace="shop"'
    #[arg(long, value_name = "LABELS", default_value = "")]
    labels: String,
    /// Split this much memory among the heaps of all replicas, for the least time in collections
    #[arg(long, value_name = "BYTES", value_parser = amount::bytes)]
    budget: Option<u64>,
    /// As a patch, a command or a drop-in; nothing is applied
    #[arg(long, value_name = "PLATFORM", value_enum, conflicts_with_all = ["budget", "check", "json"])]
    emit: Option<Format>,
    /// Compare earlier advice (--json) with what the sources recorded since
    #[arg(long, value_name = "FILE", conflicts_with = "budget")]
    check: Option<PathBuf>,
    /// Machine-readable, schema marusa/advice/1
    #[arg(long)]
    json: bool,
}

/// "2%", "0.5"; 0 to 1.
fn percent(text: &str) -> Result<f64, Refused> {
    let number: f64 = text.trim_end_matches('%').trim().parse().map_err(|_| "it must be a percentage")?;
    if number > 0.0 && number < 100.0 {
        Ok(number / 100.0)
    } else {
        refuse!("it must be between 0 and 100 %");
    }
}

pub fn run(args: &AdviseArgs) -> anyhow::Result<u8> {
    let earlier = args.check.as_deref().map(earlier).transpose()?;
    let read = args.sources.iter().map(|source| read(source, args));
    let histories: Vec<Vec<History>> = read.collect::<anyhow::Result<_>>()?;
    let jvms: Vec<&History> = histories.iter().flatten().filter(|history| !history.is_empty()).collect();
    let wanted = Wanted { until: args.until, gc_ratio: args.gc_time };
    let mut workloads = advise::workloads(&jvms, wanted);
    if let Some(name) = &args.workload {
        workloads.retain(|workload| workload.name.contains(name.as_str()));
    }
    if workloads.is_empty() {
        return Err(Failure::target(format!("{}: no JVM matches", args.sources.join(", "))));
    }
    if let Some(format) = args.emit {
        let mut out = data().lock();
        let left_out = show::emit(&mut out, format, &workloads)?;
        out.flush()?;
        left_out.iter().for_each(|name| crate::say!("marusa: {name}: left out, as its limit is not known"));
        return Ok(u8::from(left_out.len() == workloads.len()));
    }
    let budget =
        args.budget.map(|bytes| advise::split(&workloads, bytes)).transpose().map_err(Failure::target)?;
    let check = earlier.map(|earlier| advise::check(&earlier, &workloads));
    let advice = Advice { wanted, workloads, budget, check };
    answer(args.json, || AdviceDocument::of(&advice), |out| show::text(out, &advice))?;
    let is_killed = advice.check.iter().flat_map(|check| &check.workloads).any(|one| one.oom_kills > 0);
    Ok(u8::from(is_killed))
}

fn read(source: &str, args: &AdviseArgs) -> anyhow::Result<Vec<History>> {
    if source.starts_with("http://") || source.starts_with("https://") {
        return prometheus::read(source, &args.labels, args.since);
    }
    if source.contains("://") {
        refuse!(
            "cannot read {source}: give a recording, a directory or http(s)://; copy the tables process, account and jvm of \
             a bucket to a directory"
        );
    }
    let path = Path::new(source);
    match path.is_dir() {
        true => parquet::read(path, args.since),
        false => Ok(file::load(path)?.jvms),
    }
}

fn earlier(path: &Path) -> anyhow::Result<Earlier> {
    let failed = |why: String| Failure::unreadable(path, why);
    let bytes = input_file::read(path, DOCUMENT_BYTES_MAX).map_err(|error| failed(error.to_string()))?;
    let earlier: Earlier = serde_json::from_slice(&bytes)
        .map_err(|error| failed(format!("{error}; it must be what marusa advise --json printed")))?;
    if earlier.schema != show::SCHEMA {
        return Err(failed(format!("its schema is {}, not {}", earlier.schema, show::SCHEMA)));
    }
    Ok(earlier)
}
