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
    let names: Vec<&str> = schemas::TEXTS.iter().map(|(name, _)| *name).collect();
    let Some(name) = &args.name else {
        names.iter().try_for_each(|name| writeln!(out, "{name}"))?;
        return Ok(out.flush().map(|()| 0)?);
    };
    let (_, text) = schemas::TEXTS.iter().find(|(known, _)| known == name).ok_or_else(|| {
        Failure::usage(format!("no document is named {name}: choose one of {}", names.join(", ")))
    })?;
    out.write_all(text.as_bytes())?;
    Ok(out.flush().map(|()| 0)?)
}
