//! `marusa record TARGET|--all -o FILE`: the account over time, in a file that survives a crash of the recorder.

pub mod file;
mod found;
pub(super) mod output;
mod seldom;
pub(super) mod served;
pub(super) mod status;
pub(super) mod watch;
mod watched;
mod worker;

use super::{amount, target};
use crate::act::signals::Woken;
use crate::act::watchdog;
use crate::base::limits::RECORD_JVMS_MAX;
use crate::base::{Bytes, Refused, refuse};
use crate::os::host;
use crate::os::terminal::{stderr, stdout};
use crate::record::since::Since;
use crate::record::writer::Ending;
use crate::record::{self, History};
use crate::show::{json, leaks, record as show};
use output::{Keep, Output};
use status::Status;
use std::path::{Path, PathBuf};
use std::time::Duration;
use watch::{Asked, Watch};

#[derive(clap::Args, Debug)]
pub struct RecordArgs {
    /// A pid, or a part of the main class, jar or container name
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    target: Option<String>,
    /// All JVMs of this host, the ones that start later, too
    #[arg(long)]
    all: bool,
    /// Where to write it [default: marusa-PID-TIME.marusa in this directory]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Sampling interval; up to ten times shorter near a memory limit
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = amount::duration)]
    every: Duration,
    /// Maximum age of the account while nothing changes; changes are read sooner
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = amount::duration)]
    account_every: Duration,
    /// Interval at which the holders of malloc's blocks are read as well; otherwise never. Longer for a large heap, to stay within
    /// --cpu
    #[arg(long, value_name = "TIME", value_parser = amount::duration)]
    holders_every: Option<Duration>,
    /// Interval at which the objects of the heap are counted by class; otherwise never. Longer for a large heap, to stay within
    /// --cpu
    #[arg(long, value_name = "TIME", value_parser = amount::duration)]
    heap_every: Option<Duration>,
    /// CPU budget, of one core, except near a memory limit: 1 % for one JVM, 10 % for all
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    cpu: Option<f64>,
    /// Keep only the latest part: a time (1h) or a size (64M); the file becomes a ring of files
    #[arg(long, value_name = "TIME|SIZE", value_parser = keep)]
    keep: Option<Keep>,
    /// Duration; otherwise until Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = amount::duration)]
    length: Option<Duration>,
    /// Continue an existing file
    #[arg(long, requires = "output")]
    append: bool,
    /// Machine-readable summary at the end, schema marusa/recorded/2
    #[arg(long)]
    json: bool,
}

/// At the end of a recording up to this size, this many JVMs are judged: the one, or the ones that the kernel killed.
const JUDGED_BYTES_MAX: Bytes = 32 << 20;
const JUDGED_MAX: usize = 5;
const CPU_OF_ONE: f64 = 1.0;
const CPU_OF_ALL: f64 = 10.0;

pub(super) fn percent(text: &str) -> Result<f64, Refused> {
    let number = text.trim_end_matches('%').trim().parse::<f64>().map_err(|_| "it must be a number")?;
    (number > 0.0 && number <= 1000.0)
        .then_some(number)
        .ok_or("it must be more than 0 and at most 1000".into())
}

/// "5m" is a time, "5M" a size, and "5" could be either.
pub(super) fn keep(text: &str) -> Result<Keep, Refused> {
    if text.ends_with(|last: char| last.is_ascii_digit()) {
        refuse!("it needs a unit: 1h, or 64M");
    }
    amount::duration(text)
        .map(Keep::Time)
        .or_else(|_| amount::bytes(text).map(Keep::Bytes))
        .map_err(|_| "it is neither a time (30m, 1h) nor a size (64M, 1G)".into())
}

pub fn run(args: &RecordArgs) -> anyhow::Result<u8> {
    let target = args.target.as_deref().map(target::open).transpose()?;
    let me = target::own()?;
    let watched = target.as_ref().unwrap_or(&me);
    let waiting = target::waiting(watched)?;
    watchdog::start();
    let cpu = args.cpu.unwrap_or(if args.all { CPU_OF_ALL } else { CPU_OF_ONE });
    let asked = Asked {
        every: args.every,
        account_every: args.account_every.max(args.every),
        holders_every: args.holders_every.map(|every| every.max(args.every)),
        heap_every: args.heap_every.map(|every| every.max(args.every)),
        cpu_share: cpu / 100.0,
        length: args.length,
        is_all: args.all,
        jvms_max: RECORD_JVMS_MAX,
    };
    if args.all {
        // Three for each JVM.
        host::allow_open_files();
    }
    let path = args.output.clone().unwrap_or_else(|| file::named(target.as_ref().map(|target| target.pid)));
    let output = Output::open(&path, args.keep, args.append)?;
    let mut watch = Watch::start(asked, Some(output), target, None)?;
    crate::say!("marusa: {}", show::begun(&path.display().to_string(), args.every, args.all));
    let ended = watch.run(&waiting, Status::new(args.length));
    let recorded = watch.recorded();
    match args.json {
        true => json::print(&mut stdout(), &show::RecordedDocument::from(&recorded))?,
        false => show::text(&mut stderr(), &recorded)?,
    }
    // Whoever sent a signal does not want to wait.
    if ended? != Woken::Signal && recorded.bytes <= JUDGED_BYTES_MAX {
        judge(args, &path);
    }
    Ok(0)
}

/// What grew, of the JVM or of the ones that the kernel killed; and what to run next.
fn judge(args: &RecordArgs, path: &Path) {
    let Ok(recording) = file::load(path) else { return };
    let is_meant = |(number, jvm): &(usize, &History)| {
        let is_killed = matches!(jvm.ending, Some((_, Ending::KilledForMemory)));
        if args.all { is_killed } else { number + 1 == recording.jvms.len() }
    };
    let path = path.display();
    for (_, history) in recording.jvms.iter().enumerate().filter(is_meant).take(JUDGED_MAX) {
        let since = Since::of(history, f64::INFINITY);
        let answer = leaks::answer(&record::leaks::judge(history, 0.0, f64::INFINITY, false), &since);
        crate::say!("marusa: {}: {answer}", history.title());
        crate::say!(
            "marusa: `marusa leak {path}` has the figures, `marusa report {path} -o PAGE.html` the charts"
        );
    }
}

/// What the file takes of the disk, for the summary.
pub(super) fn bytes_of(path: &std::path::Path) -> Bytes {
    std::fs::metadata(path).map_or(0, |facts| facts.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_a_time_or_a_size() {
        assert_eq!(keep("5m"), Ok(Keep::Time(Duration::from_secs(300))));
        assert_eq!(keep("5M"), Ok(Keep::Bytes(5 << 20)));
        assert_eq!(keep("1h"), Ok(Keep::Time(Duration::from_secs(3600))));
        assert!(keep("5").is_err() && keep("x").is_err() && keep("").is_err());
        assert_eq!((percent("1%"), percent("0.5")), (Ok(1.0), Ok(0.5)));
        assert!(percent("0").is_err() && percent("-1").is_err() && percent("NaN").is_err());
    }
}
