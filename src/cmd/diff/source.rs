//! One side of a comparison, from what the user wrote: a file of any kind, a moment of a recording, or a running JVM.

use super::moment::{self, When};
use crate::base::limits::{ACCOUNT_JSON_BYTES_MAX, TARGET_FILE};
use crate::base::printable::escaped;
use crate::cmd::record::file;
use crate::cmd::{self, Failure};
use crate::map::heap::{self, HeapObjects};
use crate::map::sums::Sums;
use crate::map::{self, Account, model};
use crate::os::input_file;
use crate::record::{History, Measure, Recording, figures};
use crate::show::diff::Taken;
use crate::snapshot::{self, Snapshot, Want};
use std::path::Path;

/// What is compared, and what it is called.
pub struct Side {
    pub taken: Taken,
    pub sums: Sums,
}

/// What of a recording is meant where no moment is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Start,
    End,
}

/// `want`: of a running JVM, and of a frozen file as far as that has it.
pub fn side(text: &str, jvm: Option<&str>, end: End, want: Want) -> anyhow::Result<Side> {
    if Path::new(text).is_file() {
        return of_file(text, None, jvm, end, want);
    }
    if let Some((path, when)) = text.rsplit_once('@')
        && Path::new(path).is_file()
    {
        let when = moment::parse(when).map_err(Failure::usage)?;
        return of_file(path, Some(when), jvm, end, want);
    }
    if text.contains('/') {
        let error =
            input_file::open(text).err().map_or("it has changed".to_string(), |error| error.to_string());
        return Err(Failure::target(format!("cannot read {text}: {error}")));
    }
    of_target(text, want)
}

/// Start and end of a recording; or, of what was a running JVM once, then and now.
pub fn both_ends(text: &str, jvm: Option<&str>) -> anyhow::Result<(Side, Side)> {
    if !file::is_one(Path::new(text)) {
        return Err(Failure::usage(format!(
            "{text} is not a recording, so a second one is needed: marusa diff {text} TARGET"
        )));
    }
    let recording = file::load(Path::new(text))?;
    let history = choose(&recording, jvm, text)?;
    if history.accounts().len() == 1 {
        crate::say!("marusa: {text}: only one account of {} is in it", escaped(&history.title()));
    }
    Ok((of_history(history, When::Start, text)?, of_history(history, When::End, text)?))
}

fn of_file(path: &str, when: Option<When>, jvm: Option<&str>, end: End, want: Want) -> anyhow::Result<Side> {
    let file = Path::new(path);
    if file::is_one(file) {
        let recording = file::load(file)?;
        let history = choose(&recording, jvm, path)?;
        let default = if end == End::Start { When::Start } else { When::End };
        return of_history(history, when.unwrap_or(default), path);
    }
    if when.is_some() {
        return Err(Failure::usage(format!("{path} holds one snapshot; drop @TIME")));
    }
    if is_json(file) {
        return of_json(path);
    }
    let snapshot = cmd::target::thaw_with(file, TARGET_FILE, want)?;
    Ok(of_snapshot(&snapshot, path))
}

fn of_target(target: &str, want: Want) -> anyhow::Result<Side> {
    let process = cmd::target::open(target)?;
    let snapshot = snapshot::take(&process, want).map_err(|gap| cmd::target::unreadable(&process, &gap))?;
    Ok(of_snapshot(&snapshot, "now"))
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
        account_age_ms: None,
        holders_at: None,
        classes_at: None,
        has_only_classes: false,
    };
    Side { taken, sums: Sums::of(account) }
}

/// An account begins with a brace; neither a frozen file nor a core does.
fn is_json(path: &Path) -> bool {
    let start = input_file::start(path, 64).unwrap_or_default();
    start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

fn of_json(path: &str) -> anyhow::Result<Side> {
    let failed = |error: &dyn std::fmt::Display| Failure::target(format!("cannot read {path}: {error}"));
    let text = input_file::read(path, ACCOUNT_JSON_BYTES_MAX).map_err(|error| failed(&error))?;
    match heap::parse(&text) {
        Some(heap) => Ok(of_heap(&heap.map_err(|error| failed(&error))?, path)),
        None => Ok(of_account(&model::parse(&text).map_err(|error| failed(&error))?, path)),
    }
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
        account_age_ms: history.account_age_ms(at).filter(|age| *age > 0),
        holders_at: figures::read_at(history, Measure::HoldersAt, at),
        classes_at: figures::read_at(history, Measure::ClassesAt, at),
        has_only_classes: false,
    };
    Ok(Side { taken, sums })
}

/// The JVM that is meant: the one that there is, or the one that is named.
pub fn choose<'a>(recording: &'a Recording, jvm: Option<&str>, path: &str) -> anyhow::Result<&'a History> {
    let is_named = |history: &&History| match jvm {
        None => true,
        Some(jvm) => match jvm.parse::<i32>() {
            Ok(pid) => history.facts.pid == pid,
            Err(_) => {
                let names = [&history.facts.main, &history.facts.container];
                names.into_iter().flatten().any(|name| name.contains(jvm))
            }
        },
    };
    let named: Vec<&History> = recording.jvms.iter().filter(is_named).collect();
    match named[..] {
        [one] => Ok(one),
        [] if jvm.is_none() => Err(Failure::target(format!("{path}: no JVM is in it"))),
        [] => Err(Failure::target(format!(
            "{path}: no JVM in the recording matches:{}",
            listed(recording.jvms.iter())
        ))),
        _ => {
            let which = if jvm.is_some() { "a longer part" } else { "--jvm PID" };
            Err(Failure::usage(format!(
                "{path} has {} JVMs; give {which}:{}",
                named.len(),
                listed(named.iter().copied())
            )))
        }
    }
}

fn listed<'a>(histories: impl Iterator<Item = &'a History>) -> String {
    let lines = histories.take(30).map(|history| format!("\n  {}", escaped(&history.title())));
    lines.collect()
}
