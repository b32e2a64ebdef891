//! Memory of our own: touched, and looked up in our page tables whether it lies on the pages that were wanted.

use crate::act::first_touch::{Field, Pages};
use crate::base::{Bytes, Gap, Known, Why};
use crate::experiment::bench::touch::{Figures, Trial};
use crate::map;
use crate::map::page_use::{PageUse, Provider};
use crate::os::machine::base_page;
use crate::os::process::Process;
use crate::snapshot::{self, Want};

/// The share of it that must be on them.
const SHARE_MIN: f64 = 0.99;

/// The figures of a trial, and why it does not count.
pub fn touched(trial: &mut Trial, bytes: Bytes) -> Known<()> {
    let pages = trial.arm.pages;
    let field = Field::reserve(bytes, pages)?;
    let touched = field.touch(trial.arm.threads)?;
    let found = found(&field)?;
    let wanted = found.on(|provider, page_bytes| match pages {
        Pages::HugeTlb(bytes) => provider == Provider::Hugetlb && page_bytes == bytes,
        Pages::Transparent(bytes) => provider == Provider::Transparent && page_bytes == bytes,
        Pages::Small => page_bytes == base_page(),
    });
    let share = wanted as f64 / found.resident_bytes.max(1) as f64;
    if share < SHARE_MIN {
        let share = share * 100.0;
        trial.discount(format!("only {share:.1} % are on {} pages: {}", pages.name(), found.text()));
    }
    trial.figures = Figures {
        bytes: touched.bytes,
        share: Some(share),
        touch_ns: Some(touched.touch.wall_ns),
        touch_cpu_ns: Some(touched.touch.cpu_ns),
        fill_cpu_ns: Some(touched.fill.cpu_ns),
        faults: touched.faults,
        page_table_bytes: touched.page_table_bytes,
    };
    Ok(())
}

fn found(field: &Field) -> Known<PageUse> {
    let me = Process::own().map_err(|error| Gap::new("/proc/self", Why::Denied).hint(error.to_string()))?;
    let snapshot = snapshot::take(&me, Want { page_sizes: true, smaps: true, ..Want::default() })?;
    let map = map::join(&snapshot);
    Ok(PageUse::within(&snapshot, &map, field.range()))
}

/// Of one fault that maps the zero page, by one thread.
pub fn zero_fault_ns(bytes: Bytes) -> Known<f64> {
    let ns = Field::reserve(bytes, Pages::Small)?.read(1).cpu_ns;
    Ok(ns / (bytes / base_page()) as f64)
}
