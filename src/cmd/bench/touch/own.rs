//! Memory of our own: touched, and looked up in our page tables whether it lies on the pages that were wanted.

use crate::act::first_touch::{Field, Kind};
use crate::base::{Bytes, Gap, Known, Why};
use crate::experiment::bench::touch::{Figures, Pages, ZeroFault};
use crate::map;
use crate::map::page_use::{PageUse, Provider};
use crate::os::machine::base_page;
use crate::os::process::Process;
use crate::snapshot::{self, Want};

/// The share of it that must be on them.
const SHARE_MIN: f64 = 0.99;

/// Why it does not count, and what it gave.
pub fn figures(bytes: Bytes, pages: Pages, threads: usize) -> Known<(Option<String>, Figures)> {
    let kind = match pages {
        Pages::Small => Kind::Small,
        Pages::Transparent(bytes) => Kind::Transparent(bytes),
        Pages::HugeTlb(bytes) => Kind::HugeTlb(bytes),
    };
    let field = Field::reserve(bytes, kind)?;
    let touched = field.touch(threads)?;
    let found = found(&field)?;
    let wanted = found.on(|provider, page_bytes| match pages {
        Pages::HugeTlb(bytes) => provider == Provider::Hugetlb && page_bytes == bytes,
        Pages::Transparent(bytes) => provider == Provider::Transparent && page_bytes == bytes,
        Pages::Small => page_bytes == base_page(),
    });
    let share = wanted as f64 / found.resident_bytes.max(1) as f64;
    let left_out = (share < SHARE_MIN)
        .then(|| format!("only {:.1} % are on {} pages: {}", share * 100.0, pages.name(), found.text()));
    let figures = Figures {
        bytes: touched.bytes,
        share,
        touch_ns: touched.touch.wall_ns,
        touch_cpu_ns: Some(touched.touch.cpu_ns),
        fill_cpu_ns: Some(touched.fill.cpu_ns),
        faults: touched.faults,
        page_table_bytes: touched.page_table_bytes,
    };
    Ok((left_out, figures))
}

fn found(field: &Field) -> Known<PageUse> {
    let me = Process::own().map_err(|error| Gap::new("/proc/self", Why::Denied).hint(error.to_string()))?;
    let snapshot = snapshot::take(&me, Want { page_sizes: true, smaps: true, ..Want::default() })?;
    let map = map::join(&snapshot);
    Ok(PageUse::within(&snapshot, &map, field.range()))
}

/// By one thread.
pub fn zero_fault(bytes: Bytes) -> Known<ZeroFault> {
    let ns = Field::reserve(bytes, Kind::Small)?.read(1).cpu_ns;
    Ok(ZeroFault { ns_per_fault: ns / (bytes / base_page()) as f64 })
}
