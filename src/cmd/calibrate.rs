//! `marusa tlb --calibrate`: what one walk of the page tables costs on this machine, measured in memory of our own.

mod cache;
mod run;
mod walks;

use super::Failure;
use crate::base::Bytes;
use crate::measure::calibration::Calibration;
use crate::os::terminal::stdout;
use crate::show::{calibrate as show, json as document};

pub use cache::cached;

/// Where the caches of today's servers end and their TLBs, too: the page tables of 16 MiB lie in the first caches, those of
/// 1 GiB in the last one or in memory.
const FOOTPRINTS: [Bytes; 4] = [16 << 20, 64 << 20, 256 << 20, 1 << 30];
/// Fewer pages than the second-level TLBs hold (3,072 entries on Zen 4) would give no walks.
const FOOTPRINT_MIN: Bytes = 16 << 20;
const FOOTPRINT_MAX: Bytes = 16 << 30;

/// Runs the self-test, keeps what it found, and shows it. `footprints`: as asked for, else the usual ones. 1: nothing was
/// measured of the data side.
pub fn run(footprints: &[Bytes], json: bool) -> anyhow::Result<u8> {
    if let Some(bad) = footprints.iter().find(|bytes| !(FOOTPRINT_MIN..=FOOTPRINT_MAX).contains(*bytes)) {
        return Err(Failure::usage(format!("--footprint {bad}: it must be from 16M to 16G")));
    }
    let mut wanted = if footprints.is_empty() { FOOTPRINTS.to_vec() } else { footprints.to_vec() };
    wanted.sort_unstable();
    wanted.dedup();
    let mut calibration: Calibration = run::calibrate(&wanted)?;
    let kept = cache::keep(&calibration, !footprints.is_empty()).unwrap_or_else(|gap| {
        calibration.gaps.push(gap);
        show::Kept::No
    });
    let mut out = stdout().lock();
    match json {
        true => document::print(&mut out, &show::CalibrationDocument::of(&calibration, &kept))?,
        false => show::text(&mut out, &calibration, &kept)?,
    }
    Ok(u8::from(calibration.footprints().is_empty()))
}

/// Whether the last calibration of this machine found that its host splinters large pages, for `HostFacts::is_splintered`.
pub fn is_splintered() -> Option<bool> {
    cached().ok()?.is_splintered()
}
