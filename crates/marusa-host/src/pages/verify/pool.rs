//! Why reservations have no pages of hugetlb: there was no pool, it was too small by some pages, or a cgroup
//! allows less. A reservation gets all its pages or none, in the order in which the JVM makes them, so that one page too few
//! puts a whole heap on small pages.

use super::causes::Cause;
use super::{Look, Promise, Row, Verdict, name, sum};
use crate::base::{Bytes, size};
use crate::map::Area;
use crate::map::page_claims::Asked;
use crate::map::why::{self, Reason, at_boot};
use crate::os::hugetlb::{DIRECTORY, Pool};

/// For one size of pages: the rows that lack some.
pub fn cause(promise: &Promise, look: &Look, rows: &[Row], page_bytes: Bytes) -> Option<Cause> {
    let of_size = |row: &&Row| row.need.page_bytes == page_bytes && row.verdict != Verdict::Small;
    let missing = sum(rows.iter().filter(of_size).map(|row| row.missing_pages));
    let bytes = missing.saturating_mul(page_bytes);
    if missing == 0 {
        return None;
    }
    let reason = why::no_hugetlb(look.snapshot, page_bytes, bytes);
    let host = &look.snapshot.taken.page_settings.as_ref()?.host;
    let pool = host.pool(page_bytes).cloned().unwrap_or_default();
    let (what, next) = match &reason {
        Reason::GroupLimit { limit_bytes, left_bytes, file, .. } => (
            format!(
                "a cgroup allows {} of {} pages, of which {} are left: {missing} pages are missing",
                size(*limit_bytes),
                size(page_bytes),
                size(*left_bytes)
            ),
            format!("at least {} more in {file}, then restart the JVM", size(bytes)),
        ),
        Reason::PoolOff { .. } => (
            format!("the pool of {} pages is empty; {}", size(page_bytes), order(rows, page_bytes)),
            more(promise, &pool, missing),
        ),
        Reason::PoolShort { .. } => short(promise, look, rows, &pool, missing),
        _ => (reason.text(), reason.remedy(Area::JavaHeap, &Asked::default())),
    };
    Some(Cause::new(reason.id(), what).next(next).bytes(bytes))
}

/// There is a pool, and it was too small when the JVM started. What is free now tells by how many pages, as far as nobody
/// else has taken or given back any in the meantime.
fn short(promise: &Promise, look: &Look, rows: &[Row], pool: &Pool, missing: u64) -> (String, String) {
    let page = size(pool.page_bytes);
    let lacking = missing.saturating_sub(pool.available());
    let refused = Asked::of(look.snapshot).refused;
    if lacking == 0 {
        let why = match refused {
            true => format!("no {page} page was free when the JVM started, and it gave up on them"),
            false => format!("too few {page} pages were free when the JVM started"),
        };
        let what = format!("{why}; now {} are; {}", pool.available(), order(rows, pool.page_bytes));
        let overcommit = pool.overcommit > pool.surplus && pool.free <= pool.reserved;
        let next = match overcommit {
            true => {
                "restart the JVM; if that does not help, memory has too few free blocks of this size: a pool that is set \
                     aside (nr_hugepages) early after the start of the host"
            }
            false => "restart the JVM",
        };
        return (what, next.to_string());
    }
    let what = format!(
        "the pool of {page} pages was too small by {lacking} ({missing} missing, {} free); {}",
        pool.available(),
        order(rows, pool.page_bytes)
    );
    (what, more(promise, pool, lacking))
}

/// "in the order of the reservations: CodeCache 24 of 24, Java heap 0 of 32": which came first, and which fell.
fn order(rows: &[Row], page_bytes: Bytes) -> String {
    let of_size = rows.iter().filter(|row| row.need.page_bytes == page_bytes);
    let got = |row: &Row| match row.verdict {
        Verdict::Met | Verdict::InTheSum => row.need.pages,
        _ => row.need.pages.saturating_sub(row.missing_pages),
    };
    let list: Vec<String> =
        of_size.map(|row| format!("{} {} of {}", name(&row.need), got(row), row.need.pages)).collect();
    format!("in the order of the reservations: {}", list.join(", "))
}

/// What to do for `pages` more pages.
fn more(promise: &Promise, pool: &Pool, pages: u64) -> String {
    let directory = format!("{DIRECTORY}/hugepages-{}kB", pool.page_bytes >> 10);
    let set_aside = pool.pages.saturating_sub(pool.surplus);
    let (file, now) = match set_aside {
        0 if pool.overcommit > 0 => ("nr_overcommit_hugepages", pool.overcommit),
        _ => ("nr_hugepages", set_aside),
    };
    let by_hand = format!("{} in {directory}/{file} (now {now})", now.saturating_add(pages));
    let way = match &promise.plan {
        Some(plan) => format!("`marusa pages apply {plan}`, or {by_hand}"),
        None => format!("{by_hand}, or `marusa pages plan`"),
    };
    match pool.page_bytes {
        1_073_741_824.. => format!("{way}; at the latest {}; then restart the JVM", at_boot(pool.page_bytes)),
        _ => format!("{way}; then restart the JVM"),
    }
}
