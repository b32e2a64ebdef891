//! `marusa tlb`: what address translation costs.

use super::map::{open, unreadable};
use super::{Failure, amount, calibrate};
use crate::base::{Bytes, Gap, Why};
use crate::map;
use crate::measure::predict;
use crate::show::predict as show;
use crate::snapshot;
use std::io::{BufWriter, Write, stdout};

#[derive(clap::Args, Debug)]
pub struct TlbArgs {
    /// A pid, or a part of the main class, jar or container name
    #[arg(required_unless_present = "calibrate", conflicts_with = "calibrate")]
    target: Option<String>,
    /// Measure what one walk costs on this machine, in memory of our own, and keep it; takes some 10 seconds
    #[arg(long)]
    calibrate: bool,
    /// Bytes of pages that are visited with --calibrate, as 64M; several are given one by one
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes, requires = "calibrate", conflicts_with = "target")]
    footprint: Vec<Bytes>,
    /// Machine-readable
    #[arg(long)]
    json: bool,
}

pub fn run(args: &TlbArgs) -> anyhow::Result<u8> {
    if args.calibrate {
        return calibrate::run(&args.footprint, args.json);
    }
    let target = args.target.as_deref().ok_or_else(|| Failure::usage("TARGET is missing"))?;
    let process = open(target)?;
    let snapshot = snapshot::take(&process).map_err(|gap| unreadable(&process, &gap))?;
    let layout = predict::layout(&snapshot, &map::join(&snapshot));
    let counted = Err(Gap::new("walks", Why::NotRead).hint("nothing was counted"));
    let predictions = predict::predict(&layout, &counted, &calibrate::cached());
    let mut out = BufWriter::new(stdout().lock());
    match args.json {
        true => {
            let json =
                serde_json::json!({"schema": "marusa/tlb/1", "larger_pages": show::json(&predictions)});
            serde_json::to_writer_pretty(&mut out, &json)?;
            writeln!(out)?;
        }
        false => show::text(&mut out, &predictions)?,
    }
    out.flush()?;
    Ok(0)
}
