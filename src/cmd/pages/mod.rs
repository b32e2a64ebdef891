//! `marusa pages ...`: large pages for a JVM and its host.

pub mod apply;
mod code;
pub mod collapse;
pub mod door;
mod metric;
pub mod plan;
pub mod prove;
pub mod split;
mod target;
pub mod undo;
pub mod verify;

use clap::Subcommand;

#[derive(Subcommand, Debug)]
pub enum PagesCommand {
    /// What a JVM needs exactly, whether this host can give it, and the steps there
    Plan(plan::PlanArgs),
    /// Make the changes of a plan; a journal keeps the way back
    Apply(apply::ApplyArgs),
    /// Restore what `apply` changed
    Undo(undo::UndoArgs),
    /// What the plan promised next to what the page tables say
    Verify(verify::VerifyArgs),
    /// Put the memory of a running JVM on 2 MiB pages
    Collapse(collapse::CollapseArgs),
    /// Take `collapse` back: 4 KiB pages again
    Split(split::SplitArgs),
    /// Measure on the running JVM what 2 MiB pages gain: there, back, and again
    Prove(Box<prove::ProveArgs>),
}

pub fn run(command: &PagesCommand) -> anyhow::Result<u8> {
    match command {
        PagesCommand::Plan(args) => plan::run(args),
        PagesCommand::Apply(args) => apply::run(args),
        PagesCommand::Undo(args) => undo::run(args),
        PagesCommand::Verify(args) => verify::run(args),
        PagesCommand::Collapse(args) => collapse::run(args),
        PagesCommand::Split(args) => split::run(args),
        PagesCommand::Prove(args) => prove::run(args),
    }
}
