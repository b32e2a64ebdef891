//! `marusa fleet sql ENGINE`: what an engine needs to query the store of a fleet.

use crate::os::terminal::data;
use crate::store::sql::Engine;
use std::io::Write;

#[derive(clap::Subcommand, Debug)]
pub enum FleetCommand {
    /// SQL for a store (marusa serve --store): its tables, merging of a day, and seven questions
    Sql(SqlArgs),
}

#[derive(clap::Args, Debug)]
pub struct SqlArgs {
    /// The engine that runs it
    #[arg(value_enum)]
    engine: Engine,
    /// Where the store lies, as the engine reaches it: a directory, s3://BUCKET/PREFIX, or for ClickHouse a URL
    #[arg(long, value_name = "DIRECTORY|URL", default_value = "s3://bucket/prefix")]
    store: String,
}

pub fn run(command: &FleetCommand) -> anyhow::Result<u8> {
    let FleetCommand::Sql(asked) = command;
    let mut out = data().lock();
    out.write_all(asked.engine.script(&asked.store).as_bytes())?;
    Ok(out.flush().map(|()| 0)?)
}
