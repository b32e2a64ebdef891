//! `marusa stalls [TARGET] [INTERVAL [COUNT]]`: who lost how long to the kernel's work on pages: compaction, reclaim, huge pages.
//! From tracepoints, in an instance of tracefs of our own that is gone afterwards; without the right to that, from counters.

pub(super) mod trace;
mod watch;

use super::{amount, target};
use crate::act::tracing::Wanted;
use crate::act::watchdog;
use crate::base::{Refused, Why, redact, refuse};
use crate::measure::kinds::Kinds;
use crate::measure::stalls::table::By;
use crate::os::host_pages::HostPages;
use crate::os::namespaces::Namespaces;
use crate::os::process::Process;
use crate::os::terminal::stdout;
use crate::os::{cpu_time, host};
use crate::show::stalls::{self as show, Subject};
use crate::snapshot::{self, Want};
use std::time::Duration;
use watch::Watch;

const STATUS: &str = "\
Without TARGET all processes of the host are watched. Tracing needs root (tracefs). Without it \
the counters of the host are shown, with what they lack.

Exit status: 0 watched; 1 this kernel cannot be traced; 2 usage; 3 the target cannot be read or is gone; 4 a right to trace is \
missing. With 1 and 4 the counters are printed anyway.";

#[derive(clap::Args, Debug)]
#[command(after_help = STATUS)]
pub struct StallsArgs {
    /// A pid, or a part of the main class, jar or container name; or the interval, for all processes
    target: Option<String>,
    /// Time that one table covers, as 5s, 500ms, 1m; without it one table of 5 s
    interval: Option<String>,
    /// Number of tables; without it until Ctrl-C or the end of the target
    count: Option<String>,
    /// What the rows are; without it kinds of threads of a target, and else processes
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Machine-readable, schema marusa/stalls/2; one line a table where there are several
    #[arg(long)]
    json: bool,
    /// Do not trace allocations: faults of small pages cost nothing more, and the zeroing of huge pages and requested collapses
    /// have no time
    #[arg(long, conflicts_with = "no_trace")]
    no_allocations: bool,
    /// Read counters only, without tracing
    #[arg(long)]
    no_trace: bool,
}

impl StallsArgs {
    /// `None`: nothing is to be traced.
    fn tracing(&self) -> Option<Wanted> {
        (!self.no_trace).then_some(Wanted { no_allocations: self.no_allocations, ..Wanted::default() })
    }
}

const INTERVAL: Duration = Duration::from_secs(5);

/// What the arguments mean.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    target: Option<String>,
    interval: Duration,
    tables: u64,
}

/// `stalls 5s 3` has no target: what reads as a time with its unit is none. A number alone is a pid.
fn asked(words: [Option<&str>; 3]) -> Result<Asked, Refused> {
    let is_time = |word: &str| {
        word.ends_with(|last: char| last.is_ascii_alphabetic()) && amount::duration(word).is_ok()
    };
    let [first, second, third] = words;
    let (target, interval, count) = match first {
        Some(first) if is_time(first) => (None, Some(first), second),
        first => (first, second, third),
    };
    if target.is_none() && third.is_some() {
        refuse!("'{}' is not expected after INTERVAL and COUNT", third.unwrap_or_default());
    }
    let count = count.map(|count| count.parse::<u64>().ok().filter(|count| *count > 0).ok_or(count));
    let count = count.transpose().map_err(|count| format!("COUNT is a number from 1, not '{count}'"))?;
    let length = interval.map(amount::duration).transpose().map_err(|error| format!("INTERVAL: {error}"))?;
    Ok(Asked {
        target: target.map(str::to_string),
        interval: length.unwrap_or(INTERVAL),
        tables: match (interval, count) {
            (None, _) => 1,
            (_, None) => u64::MAX,
            (_, Some(count)) => count,
        },
    })
}

pub fn run(args: &StallsArgs) -> anyhow::Result<u8> {
    let words = [&args.target, &args.interval, &args.count].map(|word| word.as_deref());
    let asked = asked(words).map_err(super::Failure::usage)?;
    let target = asked.target.as_deref().map(target::open).transpose()?;
    let me = target::own()?;
    // Before anything is watched: to look at the runtime takes memory, and is not a stall of the target's.
    let kinds = target.as_ref().map(kinds).unwrap_or_default();
    let watched = target.as_ref().unwrap_or(&me);
    let waiting = target::waiting(watched)?;
    let by = args.by.unwrap_or(if target.is_some() { By::Kind } else { By::Process });
    let command = target.as_ref().map(|target| redact::command(&target.arguments().unwrap_or_default()));
    let (kernel, pages, namespaces) = (host::kernel_release(), HostPages::read(&me), Namespaces::ours());
    let mut watch =
        Watch::start(target.as_ref(), by, kinds, cpu_time::daemons(), pages.pmd_bytes(), args.tracing());
    // After the guardian of the trace was forked: it needs no thread.
    watchdog::start();
    let subject = Subject {
        target: target.as_ref().map(|target| target.pid).zip(command.as_deref()),
        kernel: &kernel,
        thp: pages.thp.as_ref(),
        by,
        is_host: namespaces.is_host(),
        trace_bytes: watch.trace_bytes(),
    };
    if !args.json {
        show::head(&mut stdout().lock(), &subject)?;
    }
    watch.run(&waiting, &asked, &subject, args.json)?;
    Ok(match watch.untraced() {
        None => 0,
        Some(_) if args.no_trace => 0,
        Some(gap) => {
            if args.json {
                crate::say!("marusa: stalls cannot be traced; these are counters: {gap}");
            }
            if gap.why == Why::Denied { 4 } else { 1 }
        }
    })
}

/// The runtime's kinds of threads; the others are known by name.
fn kinds(process: &Process) -> Kinds {
    let snapshot = snapshot::take(process, Want::default()).ok();
    snapshot.and_then(|it| it.jvm.ok()).map_or_else(Kinds::default, |jvm| Kinds::new(&jvm.threads))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Result<(Option<String>, u64, u64), Refused> {
        let word = |at: usize| words.get(at).copied();
        let asked = asked([word(0), word(1), word(2)])?;
        Ok((asked.target, asked.interval.as_millis() as u64, asked.tables))
    }

    #[test]
    fn a_time_in_place_of_the_target_means_all_processes() {
        let target = |name: &str| Some(name.to_string());
        assert_eq!(of(&[]), Ok((None, 5000, 1)));
        assert_eq!(of(&["500ms", "3"]), Ok((None, 500, 3)));
        assert_eq!(of(&["2s"]), Ok((None, 2000, u64::MAX)));
        assert_eq!(of(&["4711"]), Ok((target("4711"), 5000, 1)), "a number alone is a pid");
        assert_eq!(of(&["tomcat", "1m", "2"]), Ok((target("tomcat"), 60_000, 2)));
        assert_eq!(of(&["web5s"]), Ok((target("web5s"), 5000, 1)));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        assert!(of(&["5s", "0"]).is_err_and(|error| error.0.contains("COUNT")));
        assert!(of(&["5s", "3", "4"]).is_err_and(|error| error.0.contains("'4'")));
        assert!(of(&["tomcat", "soon"]).is_err_and(|error| error.0.contains("INTERVAL")));
    }
}
