//! `marusa trim TARGET`: gives memory that was freed but is still held by malloc back to the system. Says before what would
//! come back, does it in the safe way that the JVM has or not at all, and says after what came.

use super::{Failure, amount, answer_one, target};
use crate::act::attach::{self, AttachError, Attached};
use crate::act::signals::Woken;
use crate::act::trim::{self as act, Receipt, TrimError, Way};
use crate::base::{Bytes, Gap, Known, Refused, Why, refuse};
use crate::map;
use crate::map::trim::{self, Outcome, Prediction};
use crate::os::live::Live;
use crate::os::process::Process;
use crate::os::terminal::stdout;
use crate::show::json::print;
use crate::show::trim::{self as show, Price};
use crate::show::units::{human, prose};
use crate::snapshot::{Snapshot, Want};
use std::io::Write;
use std::time::{Duration, Instant};

/// How long the target is watched after it was trimmed.
const WATCHED_SECONDS: u64 = 2;

#[derive(clap::Args, Debug)]
pub struct TrimArgs {
    /// A pid, or a part of the main class, jar or container name
    target: String,
    /// Show what would come back, and how, without attaching or changing anything
    #[arg(long)]
    dry_run: bool,
    /// Repeat at this interval, as 60s, 5m, 1h, until Ctrl-C or the end of the target
    #[arg(long, value_name = "TIME", value_parser = amount::duration)]
    every: Option<Duration>,
    /// Trim only where at least this much would come back, as 64M
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes)]
    above: Option<Bytes>,
    /// Let the JVM load a small library that calls malloc_trim, instead of its own command for it: for JVMs without that
    /// command (8, 11, 17 before 17.0.9), and where no safepoint may wait for the call. JDK 21 and later print a warning
    #[arg(long)]
    load_agent: bool,
    /// Machine-readable, schema marusa/trim/2; one line a round with --every
    #[arg(long)]
    json: bool,
}

pub fn run(args: &TrimArgs) -> anyhow::Result<u8> {
    let process = target::open(&args.target)?;
    match args.every {
        Some(every) => repeat(&process, args, every),
        None => once(&process, args),
    }
}

/// A target as it was before, and what would be done to it.
struct Before {
    snapshot: Snapshot,
    prediction: Known<Prediction>,
}

impl Before {
    fn look(process: &Process) -> anyhow::Result<Before> {
        let snapshot = target::take(process, Want::default())?;
        let memory = Live::open(process, &snapshot.os);
        let prediction = trim::predict(&snapshot).map(|one| match &memory {
            Ok(memory) => trim::without_answer_buffer(one, &snapshot, memory),
            Err(_) => one,
        });
        drop(memory);
        Ok(Before { snapshot, prediction })
    }

    fn trimmable(&self) -> Option<Bytes> {
        self.prediction.as_ref().ok().map(|prediction| prediction.total.trimmable_bytes)
    }
}

/// By which way this JVM could be trimmed, or why by none.
fn way(process: &Process, prediction: &Known<Prediction>, load_agent: bool) -> Result<Way, Refused> {
    if let Err(Gap { what, why: Why::NotInThisRuntime, .. }) = prediction {
        return Err(what.as_str().into());
    }
    match act::has_command(process) {
        _ if load_agent => Ok(Way::AgentLibrary),
        Some(true) | None => Ok(Way::JvmCommand),
        Some(false) => refuse!(
            "this JVM has no {} (17.0.9 and 18 brought it); --load-agent lets it load a small library that calls \
             malloc_trim in one of its own threads",
            act::COMMAND
        ),
    }
}

fn once(process: &Process, args: &TrimArgs) -> anyhow::Result<u8> {
    let mut before = Before::look(process)?;
    let way = way(process, &before.prediction, args.load_agent);
    let left_alone = left_alone(&before, args.above.unwrap_or(0))?;
    let advice =
        before.prediction.as_ref().map(|one| trim::advice(&before.snapshot, one)).unwrap_or_default();
    let map = map::join(&before.snapshot);
    let mut document = show::TrimDocument::of(&before.snapshot, &map, &before.prediction, &advice);
    document.dry_run = args.dry_run;
    document.way = way.as_ref().ok().copied();
    let mut out = stdout().lock();
    if !args.json {
        show::before(&mut out, &before.snapshot, &map, &before.prediction)?;
    }
    let (status, not_done) = match (&way, left_alone) {
        (Err(why), _) => (1, Some(why.to_string())),
        (_, Some(why)) => (0, Some(why)),
        (Ok(_), None) => (0, None),
    };
    if let Some(why) = &not_done {
        document.not_done = Some(why.clone());
        say(&mut out, args, &format!("not trimmed: {why}"))?;
    } else if let (true, Ok(way)) = (args.dry_run, &way) {
        say(&mut out, args, &format!("dry run, nothing was done; {}", would(*way)))?;
    } else if let Ok(way) = way {
        out.flush()?;
        let done = Done::now(process, way, &mut None, &mut before, WATCHED_SECONDS, true)?;
        document.outcome = Some(show::OutcomeRow::of(&done.outcome, &done.price));
        if !args.json {
            prose(&mut out, &format!("\n{}", did(&done.receipt)))?;
            show::after(&mut out, &done.outcome, &done.price)?;
        }
        document.receipt = Some(done.receipt);
    }
    match args.json {
        true => print(&mut out, &document)?,
        false => show::advice_text(&mut out, &advice)?,
    }
    out.flush()?;
    Ok(status)
}

fn say(out: &mut dyn Write, args: &TrimArgs, line: &str) -> anyhow::Result<()> {
    if !args.json {
        prose(out, &format!("\n{line}"))?;
    }
    Ok(())
}

/// Why a target that could be trimmed is not.
fn left_alone(before: &Before, above: Bytes) -> anyhow::Result<Option<String>> {
    Ok(match (before.trimmable(), &before.prediction) {
        (Some(0), Ok(prediction)) if prediction.unread == 0 => Some("nothing would come back".to_string()),
        (Some(bytes), _) if bytes < above => {
            Some(format!("{} would come back, less than {}", human(bytes), human(above)))
        }
        (None, Err(gap)) if above > 0 && gap.why != Why::NotInThisRuntime => {
            return Err(Failure::target(format!(
                "what would come back is not known, so --above cannot be kept: {gap}"
            )));
        }
        _ => None,
    })
}

fn would(way: Way) -> String {
    match way {
        Way::JvmCommand => format!("would ask the JVM for {} over its attach socket", act::COMMAND),
        Way::AgentLibrary => {
            "would let the JVM load a library that calls malloc_trim, over its attach socket; \
             JVMs up to 15 keep it mapped until they end"
                .to_string()
        }
    }
}

/// The receipt as text.
fn did(receipt: &Receipt) -> String {
    let way = match receipt.way {
        Way::JvmCommand => format!("asked the JVM for {}", act::COMMAND),
        Way::AgentLibrary => "the JVM loaded a library that called malloc_trim".to_string(),
    };
    let mut text = format!("{}  {way}, in {:.1} ms:\n  {}", receipt.at, receipt.call_ms, receipt.answer);
    if receipt.way == Way::JvmCommand {
        text.push_str(
            "\na safepoint that was due, say for a collection, waited for it; with --load-agent it does not",
        );
    }
    if receipt.attach.listener_started {
        text.push_str("\nthe JVM now has one more thread, the Attach Listener, until it ends");
    }
    if receipt.library_stays {
        text.push_str(
            "\nthe library stays mapped (8 KiB resident at most) until the JVM ends; its file is removed",
        );
    }
    text
}

/// A trim and its measures.
struct Done {
    receipt: Receipt,
    outcome: Outcome,
    price: Price,
}

impl Done {
    /// Opens the way to the JVM if need be, trims and measures. A JVM that had to start its listener has changed, so it is
    /// looked at again before. Only what each arena gave back needs another look after.
    fn now(
        process: &Process,
        way: Way,
        attached: &mut Option<Attached>,
        before: &mut Before,
        watched_seconds: u64,
        wants_arenas: bool,
    ) -> anyhow::Result<Done> {
        let attached = match attached {
            Some(attached) => attached,
            None => {
                let opened = attach::open(process).map_err(|error| refused(error.into()))?;
                if opened.receipt.listener_started {
                    *before = Before::look(process)?;
                }
                attached.insert(opened)
            }
        };
        let faults = || process.minor_faults().ok();
        let (resident_before, faults_before) = (target::resident(process)?, faults());
        let receipt =
            act::trim(process, attached, way, keeps_libraries(&before.snapshot)).map_err(refused)?;
        let (resident_after, faults_after) = (target::resident(process)?, faults());
        let watched = Instant::now();
        let after = if wants_arenas { Before::look(process)?.prediction.ok() } else { None };
        let outcome = Outcome::new(&before.prediction, after.as_ref(), (resident_before, resident_after));
        let mut price = Price {
            call_ms: receipt.call_ms,
            faults_during: faults_before
                .zip(faults_after)
                .map(|(before, after)| after.saturating_sub(before)),
            ..Price::default()
        };
        if watched_seconds > 0 {
            std::thread::sleep(Duration::from_secs(watched_seconds).saturating_sub(watched.elapsed()));
            price.watched_seconds = watched_seconds;
            price.faults_after =
                faults_after.zip(faults()).map(|(before, after)| after.saturating_sub(before));
            price.resident_later_bytes = target::resident(process).ok();
        }
        Ok(Done { receipt, outcome, price })
    }
}

/// JDK 16 and later unload an agent library that did not return 0 (JDK-8252657).
pub(super) fn keeps_libraries(snapshot: &Snapshot) -> bool {
    let major = snapshot.jvm.as_ref().ok().and_then(|jvm| jvm.major.as_ref().ok());
    major.is_some_and(|major| *major < 16)
}

fn refused(error: TrimError) -> anyhow::Error {
    let status = match &error {
        error if error.is_denied() => 4,
        error if error.is_answer() => 1,
        _ => 3,
    };
    anyhow::Error::new(error).context(Failure { status, message: "the JVM was not trimmed".to_string() })
}

/// Rounds until the target ends or a signal comes.
fn repeat(process: &Process, args: &TrimArgs, every: Duration) -> anyhow::Result<u8> {
    let before = Before::look(process)?;
    let way = way(process, &before.prediction, args.load_agent).map_err(|message| Failure {
        status: 1,
        message: format!("pid {} cannot be trimmed: {message}", process.pid),
    })?;
    let waiting = target::waiting(process)?;
    let mut attached = None;
    let mut next = Instant::now();
    let mut before = Some(before);
    loop {
        match round(process, args, way, &mut attached, before.take()) {
            Ok(()) => {}
            Err(_) if !process.is_same() => return ended(process),
            Err(error) if is_for_now(&error) => {
                crate::say!("marusa: {error:#}");
                attached = None;
            }
            Err(error) => return Err(error),
        }
        // A round that took longer than the time between two does not make up for the lost ones.
        next = (next + every).max(Instant::now());
        match waiting.until(next) {
            Woken::Time => {}
            Woken::Ended => return ended(process),
            Woken::Signal => return Ok(0),
        }
    }
}

fn ended(process: &Process) -> anyhow::Result<u8> {
    crate::say!("marusa: pid {} ended", process.pid);
    Ok(0)
}

/// Whether the next round may succeed where this one did not: the JVM was stopped, or busy, or its socket was removed.
fn is_for_now(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<TrimError>(),
        Some(TrimError::Attach(
            AttachError::NoAnswer { .. }
                | AttachError::Stopped { .. }
                | AttachError::Io { .. }
                | AttachError::Interrupted { .. }
        ))
    )
}

fn round(
    process: &Process,
    args: &TrimArgs,
    way: Way,
    attached: &mut Option<Attached>,
    before: Option<Before>,
) -> anyhow::Result<()> {
    let mut before = match before {
        Some(before) => before,
        None => Before::look(process)?,
    };
    let done = match left_alone(&before, args.above.unwrap_or(0))? {
        None if !args.dry_run => Some(Done::now(process, way, attached, &mut before, 0, args.json)?),
        _ => None,
    };
    let receipt = done.as_ref().map(|done| &done.receipt);
    let shown = done.as_ref().map(|done| (&done.outcome, &done.price));
    let Before { snapshot, prediction } = &before;
    let document = || show::RoundDocument::of(snapshot, prediction, receipt, shown);
    let text = |out: &mut dyn Write| show::round(out, &snapshot.taken.at, prediction, shown);
    Ok(answer_one(args.json, true, document, text)?)
}
