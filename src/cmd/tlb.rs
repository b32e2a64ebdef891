//! `marusa tlb`: what address translation costs.

use super::{Failure, amount, calibrate};
use crate::base::Bytes;

#[derive(clap::Args, Debug)]
pub struct TlbArgs {
    /// Measure what one walk costs on this machine, in memory of our own, and keep it; takes some 10 seconds
    #[arg(long)]
    calibrate: bool,
    /// Bytes of pages that are visited with --calibrate, as 64M; several are given one by one
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes, requires = "calibrate")]
    footprint: Vec<Bytes>,
    /// Machine-readable
    #[arg(long)]
    json: bool,
}

pub fn run(args: &TlbArgs) -> anyhow::Result<u8> {
    match args.calibrate {
        true => calibrate::run(&args.footprint, args.json),
        false => Err(Failure::usage("only --calibrate is there")),
    }
}
