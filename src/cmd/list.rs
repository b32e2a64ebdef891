//! `marusa list`: the JVMs of this host.

use super::deadline::DeadlineArgs;
use super::{Failure, answer};
use crate::base::limits::TARGET_LISTED;
use crate::os::budget;
use crate::os::terminal::{stderr, stdout};
use crate::show::list;
use crate::snapshot::discover::{self, Listing};
use std::io::Write;

#[derive(clap::Args, Debug)]
pub struct ListArgs {
    /// Machine-readable, schema marusa/list/2
    #[arg(long)]
    json: bool,
    /// Each short-lived tool of a JDK (javac, jcmd, jps) in a row of its own, not their sum
    #[arg(long)]
    each: bool,
    /// Also name the processes that a sandbox hides from root
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    deadline: DeadlineArgs,
}

pub fn run(args: &ListArgs) -> anyhow::Result<u8> {
    args.deadline.set(TARGET_LISTED);
    let Listing { jvms, hidden, given_up } =
        discover::list(budget::limits()).map_err(|gap| Failure::unread(gap.why, gap.to_string()))?;
    let text = |out: &mut dyn Write| list::text(out, &jvms, !stdout().is_terminal(), args.each);
    answer(args.json, || list::ListDocument::of(&jvms, &given_up, &hidden), text)?;
    for (pid, gap) in &given_up {
        crate::say!("marusa: pid {pid} was not read whole: {gap}");
    }
    if let Some(text) = hidden.sentence(args.verbose) {
        crate::say!("marusa: {text}");
    }
    Ok(0)
}

/// Prints, for a command that was given no target, the JVMs that it could be, to standard error.
pub fn choices() {
    budget::set_limits(TARGET_LISTED);
    if let Ok(Listing { jvms, .. }) = discover::list(budget::limits()) {
        let mut out = stderr();
        // A failed write has no reader.
        let _ = writeln!(out).and_then(|()| list::text(&mut out, &jvms, false, false));
    }
}
