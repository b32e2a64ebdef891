//! `marusa pages apply PLAN`: shows what would change, asks, changes it behind a journal, and says the way back.

use super::door::{failure, state_directory};
use crate::act::door::identity;
use crate::act::door::journal::PlanMark;
use crate::act::door::{self, Linux, Outcome, Request, Store, jvm_option, settings};
use crate::act::signals::Blocked;
use crate::base::limits::{DOOR_PLAN_BYTES_MAX, DOOR_STEPS_MAX};
use crate::base::printable::escaped;
use crate::base::refuse;
use crate::cmd::{Failure, answer};
use crate::os::terminal::stderr;
use crate::pages::code;
use crate::pages::types::{Plan, SCHEMA, Step};
use crate::show::pages::apply::{self as show, ApplyDocument};
use std::io::{IsTerminal, Read, Write, stdin};
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug)]
pub struct ApplyArgs {
    /// A plan of `marusa pages plan`
    plan: PathBuf,
    /// Show each step with the current state and whether it can be made; nothing is written
    #[arg(long)]
    dry_run: bool,
    /// Also write the files that keep it across a restart of the host
    #[arg(long)]
    persist: bool,
    /// Do not ask; required where there is no terminal to ask on
    #[arg(long, short)]
    yes: bool,
    /// Drop cached files where the kernel finds too few huge pages
    #[arg(long)]
    drop_caches: bool,
    /// Apply it once more where it is already applied
    #[arg(long)]
    again: bool,
    /// Directory of the journals [default: $MARUSA_STATE, or /var/lib/marusa]
    #[arg(long, value_name = "DIRECTORY")]
    state: Option<PathBuf>,
    /// Machine-readable, schema marusa/pages-apply/2
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ApplyArgs) -> anyhow::Result<u8> {
    let text = read_plan(&args.plan)?;
    let plan = parse(&args.plan, &text)?;
    same_host(&plan)?;
    let mut steps: Vec<Step> = plan.steps.clone();
    if args.persist {
        steps.extend(plan.persist.iter().cloned());
    }
    let (machine, store) = (Linux::default(), Store::new(state_directory(args.state.as_deref())?));
    let steps = door::with_own_directory(&machine, steps);
    if steps.len() > DOOR_STEPS_MAX {
        refuse!("the plan has more than {DOOR_STEPS_MAX} steps");
    }
    let path = args.plan.display().to_string();
    let given = show::Given {
        plan: &path,
        steps: &steps,
        persist: args.persist,
        boot: &plan.boot,
        jvm_options: &plan.jvm_options,
    };
    let previews = door::preview(&machine, &steps, &store.directory.display().to_string());
    if args.dry_run || steps.is_empty() {
        let document = || ApplyDocument::dry_run(&given, &previews);
        answer(args.json, document, |out| show::preview(out, &given, &previews))?;
        return Ok(u8::from(previews.iter().any(|preview| preview.hindrance.is_some())));
    }
    if let Some(why) = previews.iter().find_map(|preview| preview.hindrance.clone()) {
        return Err(failure(why));
    }
    if !args.yes && !agreed(&given, &previews)? {
        writeln!(stderr(), "nothing was done")?;
        return Ok(1);
    }
    let request = Request {
        plan: PlanMark::of(&absolute(&args.plan), &text),
        steps: steps.clone(),
        persist: args.persist,
        drop_caches: args.drop_caches,
        again: args.again,
        made_by: format!("marusa {}", env!("CARGO_PKG_VERSION")),
    };
    // A signal to end waits until the step is made, and then takes all of them back.
    let _blocked = Blocked::start();
    let receipt = door::apply(&machine, &store, &request).map_err(failure)?;
    answer(args.json, || ApplyDocument::of(&given, &receipt), |out| show::receipt(out, &given, &receipt))?;
    Ok(match &receipt.outcome {
        Outcome::Applied => 0,
        Outcome::AlreadyApplied { lost } => u8::from(!lost.is_empty()),
        Outcome::TakenBack { .. } => 1,
    })
}

/// Also the plan that `undo` is given.
pub fn read_plan(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(DOOR_PLAN_BYTES_MAX + 1).read_to_end(&mut text));
    match read {
        Err(error) => Err(Failure::usage(format!("{}: {error}", path.display()))),
        Ok(length) if length as u64 > DOOR_PLAN_BYTES_MAX => {
            Err(Failure::usage(format!("{} is too long for a plan", path.display())))
        }
        Ok(_) => Ok(text),
    }
}

fn parse(path: &Path, text: &[u8]) -> anyhow::Result<Plan> {
    let no_plan = |why: String| {
        let why = escaped(&why);
        Failure::usage(format!("{} is not a plan: {why}", path.display()))
    };
    let value: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| no_plan(error.to_string()))?;
    match value["schema"].as_str() {
        Some(SCHEMA) => {}
        Some(other) if other.starts_with("marusa/pages-plan/") => {
            return Err(no_plan(format!(
                "it has the format {other}, and this version of Marusa reads {SCHEMA}; make it again with `marusa pages plan`"
            )));
        }
        _ => return Err(no_plan(format!("it does not say that its format is {SCHEMA}"))),
    }
    // From the text: of a key that is there twice, a value keeps the last.
    let plan: Plan = serde_json::from_slice(text).map_err(|error| no_plan(error.to_string()))?;
    plan.boot.iter().try_for_each(|word| settings::boot_word(word)).map_err(|why| no_plan(why.0))?;
    let mut options = plan.jvm_options.iter().filter(|option| !code::is_launcher(option));
    options.try_for_each(|option| jvm_option::check(option)).map_err(|why| no_plan(why.0))?;
    Ok(plan)
}

fn same_host(plan: &Plan) -> anyhow::Result<()> {
    match identity::here().differs(&plan.host) {
        None => Ok(()),
        Some(why) => Err(Failure::usage(format!(
            "the plan was made for another host, or before this one changed: {why}; make it again here"
        ))),
    }
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).display().to_string()
}

fn agreed(given: &show::Given, previews: &[door::Preview]) -> anyhow::Result<bool> {
    if !stdin().is_terminal() {
        refuse!("nothing was done: there is no terminal to ask on; --yes applies, --dry-run shows the steps");
    }
    let mut err = stderr().lock();
    show::preview(&mut err, given, previews)?;
    write!(err, "\nmake these changes? [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}
