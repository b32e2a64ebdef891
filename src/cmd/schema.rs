//! `marusa schema [NAME]`: the JSON Schema of a document that `--json` prints.

use super::Failure;
use crate::os::terminal::data;
use crate::show::schemas;
use std::io::{BufWriter, Write};

#[derive(clap::Args, Debug)]
pub struct SchemaArgs {
    /// The document: "map" of schema marusa/map/2; without it, the names
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

pub fn run(args: &SchemaArgs) -> anyhow::Result<u8> {
    let mut out = BufWriter::new(data().lock());
    let Some(name) = &args.name else {
        schemas::names().iter().try_for_each(|name| writeln!(out, "{name}"))?;
        return Ok(out.flush().map(|()| 0)?);
    };
    let text = schemas::text(name).ok_or_else(|| {
        Failure::usage(format!("no document is named {name}: choose one of {}", schemas::names().join(", ")))
    })?;
    out.write_all(text.as_bytes())?;
    Ok(out.flush().map(|()| 0)?)
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
