use clap::{Parser, Subcommand};
use marusa::cmd::{self, Failure};
use std::process::ExitCode;

/// Accounts for every byte of a running JVM, from outside.
#[derive(Parser)]
#[command(name = "marusa", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The JVMs of this host
    List(cmd::list::ListArgs),
    /// The account: who owns each byte, and whether it is in memory
    Map(cmd::map::MapArgs),
    /// The account against what the JVM itself says; attaches, so the JVM gets one thread more
    Audit(cmd::audit::AuditArgs),
    /// Give memory that was freed but that malloc holds back to the system; says before what would come back
    Trim(cmd::trim::TrimArgs),
    /// Address translation: what the walks of the page tables cost
    Tlb(cmd::tlb::TlbArgs),
    /// Keep a snapshot with the bytes it was read from, anonymised: a bug report, a golden test
    Freeze(cmd::freeze::FreezeArgs),
}

fn main() -> ExitCode {
    marusa::os::host::keep_freed_memory();
    let outcome = match Cli::parse().command {
        Command::List(args) => cmd::list::run(&args),
        Command::Map(args) => cmd::map::run(&args),
        Command::Audit(args) => cmd::audit::run(&args),
        Command::Trim(args) => cmd::trim::run(&args),
        Command::Tlb(args) => cmd::tlb::run(&args),
        Command::Freeze(args) => cmd::freeze::run(&args),
    };
    match outcome {
        Ok(status) => ExitCode::from(status),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("marusa: {error:#}");
            ExitCode::from(error.downcast_ref::<Failure>().map_or(3, |failure| failure.status))
        }
    }
}

/// `marusa map 1 | head` is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(|error| error.kind());
    kind == Some(std::io::ErrorKind::BrokenPipe)
        || error
            .downcast_ref::<serde_json::Error>()
            .is_some_and(|error| error.io_error_kind() == Some(std::io::ErrorKind::BrokenPipe))
}
