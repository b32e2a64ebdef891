//! One side of a comparison, from what the user wrote: a file of any kind, a moment of a recording, or a running JVM.

use super::meant::{self, Who};
use super::moment::{self, When};
use crate::base::limits::{ACCOUNT_JSON_BYTES_MAX, TARGET_FILE};
use crate::base::printable::escaped;
use crate::base::refuse;
use crate::cmd::record::file;
use crate::cmd::{self, Failure};
use crate::map::heap::{self, HeapObjects};
use crate::map::sums::Sums;
use crate::map::{self, Account, model};
use crate::os::input_file;
use crate::record::{History, Measure, Recording, figures};
use crate::show::diff::Taken;
use crate::snapshot::{Snapshot, Want, discover};
use std::path::Path;

/// What is compared, and what it is called.
pub struct Side {
    pub taken: Taken,
    pub sums: Sums,
}

/// One side before the JVM of a recording is chosen.
enum Part<'a> {
    /// A side that is one JVM.
    Whole(Box<Side>, Who),
    Recording(Box<Recording>, &'a str, Option<When>),
}

/// Both sides. `want`: of a running JVM, and of a frozen file as far as that has it. `jvm`: of recordings.
pub fn sides(before: &str, now: &str, jvm: Option<&str>, want: Want) -> anyhow::Result<(Side, Side)> {
    let (before, now) = (open(before, want)?, open(now, want)?);
    let (of_before, of_now) = (before.who(jvm), now.who(jvm));
    Ok((before.side(jvm, of_now.as_ref(), When::Start)?, now.side(jvm, of_before.as_ref(), When::End)?))
}

fn open(text: &str, want: Want) -> anyhow::Result<Part<'_>> {
    if Path::new(text).is_file() {
        return of_file(text, None, want);
    }
    if let Some((path, when)) = text.rsplit_once('@')
        && Path::new(path).is_file()
    {
        let when = moment::parse(when)?;
        return of_file(path, Some(when), want);
    }
    if text.contains('/') {
        let error =
            input_file::open(text).err().map_or("it has changed".to_string(), |error| error.to_string());
        return Err(Failure::unreadable(Path::new(text), error));
    }
    of_target(text, want)
}

impl Part<'_> {
    /// `None`: there are several, so it depends on the other side.
    fn who(&self, jvm: Option<&str>) -> Option<Who> {
        match self {
            Part::Whole(_, who) => Some(who.clone()),
            Part::Recording(recording, ..) => match meant::named(recording, jvm)[..] {
                [one] => Some(Who::of(one)),
                _ => None,
            },
        }
    }

    fn side(self, jvm: Option<&str>, other: Option<&Who>, default: When) -> anyhow::Result<Side> {
        match self {
            Part::Whole(side, _) => Ok(*side),
            Part::Recording(recording, path, when) => {
                of_history(meant::like(&recording, jvm, other, path)?, when.unwrap_or(default), path)
            }
        }
    }
}

/// Start and end of a recording; or, of what was a running JVM once, then and now.
pub fn both_ends(text: &str, jvm: Option<&str>) -> anyhow::Result<(Side, Side)> {
    if !file::is_one(Path::new(text)) {
        refuse!("{text} is not a recording, so a second one is needed: marusa diff {text} TARGET");
    }
    let recording = file::load(Path::new(text))?;
    let history = meant::choose(&recording, jvm, text)?;
    if history.accounts().len() == 1 {
        crate::say!("marusa: {text}: only one account of {} is in it", escaped(&history.title()));
    }
    Ok((of_history(history, When::Start, text)?, of_history(history, When::End, text)?))
}

fn of_file(path: &str, when: Option<When>, want: Want) -> anyhow::Result<Part<'_>> {
    let file = Path::new(path);
    if file::is_one(file) {
        return Ok(Part::Recording(Box::new(file::load(file)?), path, when));
    }
    if when.is_some() {
        refuse!("{path} holds one snapshot; drop @TIME");
    }
    if is_json(file) {
        return of_json(path);
    }
    let snapshot = cmd::target::thaw(file, TARGET_FILE, want)?;
    let who = Who { container: snapshot.os.process.container.clone(), ..Who::default() };
    Ok(Part::Whole(Box::new(of_snapshot(&snapshot, path)), who))
}

fn of_target(target: &str, want: Want) -> anyhow::Result<Part<'_>> {
    let process = cmd::target::open(target)?;
    let snapshot = cmd::target::take(&process, want)?;
    let who = discover::one(process.pid)
        .map(|jvm| Who { main: jvm.main.ok(), container: jvm.container_name.or(jvm.process.container) });
    Ok(Part::Whole(Box::new(of_snapshot(&snapshot, "now")), who.unwrap_or_default()))
}

fn of_snapshot(snapshot: &Snapshot, from: &str) -> Side {
    let mut side = of_account(&Account::of(snapshot, &map::join(snapshot)), from);
    let histogram = snapshot.jvm.as_ref().ok().and_then(|jvm| jvm.histogram.as_ref()?.as_ref().ok());
    histogram.iter().filter(|it| it.is_whole()).for_each(|it| side.sums.add_classes(&it.classes));
    side
}

/// A document of `marusa heap`.
fn of_heap(heap: &HeapObjects, from: &str) -> Side {
    let account = Account { process: heap.process.clone(), taken: heap.taken.clone(), ..Account::default() };
    let mut side = of_account(&account, from);
    side.sums.add_classes(&heap.classes);
    side.sums.has_all_classes = heap.more_classes == 0;
    side.taken.has_only_classes = true;
    side
}

fn of_account(account: &Account, from: &str) -> Side {
    let (process, at) = (&account.process, &account.taken.at);
    let taken = Taken {
        from: from.to_string(),
        at: Some(at.clone()).filter(|at| !at.is_empty()),
        pid: Some(process.pid),
        command: Some(process.command.clone()).filter(|command| !command.is_empty()),
        ..Taken::default()
    };
    Side { taken, sums: Sums::of(account) }
}

/// An account begins with a brace; neither a frozen file nor a core does.
fn is_json(path: &Path) -> bool {
    let start = input_file::start(path, 64).unwrap_or_default();
    start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

fn of_json(path: &str) -> anyhow::Result<Part<'_>> {
    let failed = |error: String| Failure::unreadable(Path::new(path), error);
    let text = input_file::read(path, ACCOUNT_JSON_BYTES_MAX).map_err(|error| failed(error.to_string()))?;
    let (side, process) = match heap::parse(&text) {
        Some(heap) => {
            let heap = heap.map_err(|error| failed(error.to_string()))?;
            (of_heap(&heap, path), heap.process)
        }
        None => {
            let account = model::parse(&text).map_err(|error| failed(error.to_string()))?;
            (of_account(&account, path), account.process)
        }
    };
    Ok(Part::Whole(Box::new(side), Who::of_command(&process.command, process.container)))
}

fn of_history(history: &History, when: When, path: &str) -> anyhow::Result<Side> {
    let none = || Failure::target(format!("{path}: no account of {} is in it", escaped(&history.title())));
    let at = moment::find(history, when).ok_or_else(none)?;
    let sums = figures::sums(history, at).ok_or_else(none)?;
    let taken = Taken {
        from: path.to_string(),
        at: history.moments.get(at).map(|moment| moment.wall()),
        pid: Some(history.facts.pid),
        command: history.facts.main.clone(),
        account_age_ms: history.account_age_ms(at).unwrap_or(0),
        holders_at: figures::read_at(history, Measure::HoldersAt, at),
        classes_at: figures::read_at(history, Measure::ClassesAt, at),
        has_only_classes: false,
    };
    Ok(Side { taken, sums })
}
