//! Who holds what grows, in words.

use super::{signed, time};
use crate::map::Area;
use crate::map::rows::Named;
use crate::record::held_by;
use crate::record::leak_row::{Holder, Row, What};
use crate::record::{History, Measure};

/// Holders in one sentence.
const NAMED_MAX: usize = 3;

/// " Held by org.rocksdb.ReadOptions.nativeHandle_: +310 MiB/h, +1.2 M blocks in 2.0 h." And of classes: " Classes that grow:
/// com.app.Session: +310 MiB/h, +1.2 M instances in 60 min."
pub fn sentence(named: &[&Row]) -> String {
    let (classes, holders): (Vec<&Holder>, Vec<&Holder>) =
        named.iter().flat_map(|row| &row.held_by).partition(|holder| holder.kind == Named::Class);
    list(" Held by ", holders) + &list(" Classes that grow: ", classes)
}

fn list(start: &str, all: Vec<&Holder>) -> String {
    let mut holders: Vec<&Holder> = Vec::new();
    for holder in all {
        if holders.iter().all(|other| other.name != holder.name) {
            holders.push(holder);
        }
    }
    holders.sort_by(|one, other| other.pace().total_cmp(&one.pace()));
    holders.truncate(NAMED_MAX);
    match holders.is_empty() {
        true => String::new(),
        false => format!("{start}{}.", holders.into_iter().map(words).collect::<Vec<_>>().join("; ")),
    }
}

/// Where the live bytes of the heap are not known and its memory grows: the classes that have risen since the first histogram.
pub fn of_unknown_heap(rows: &[Row]) -> Option<String> {
    let heap = rows.iter().find(|row| row.what == What::Area(Area::JavaHeap) && !row.held_by.is_empty())?;
    let words = list("", heap.held_by.iter().collect());
    Some(format!(
        "What is alive of the Java heap is not known; classes that have grown, dead objects included: {words}"
    ))
}

fn words(holder: &Holder) -> String {
    let of = match holder.kind {
        Named::Loader => "loaders",
        Named::Class => "instances",
        _ => "blocks",
    };
    let more = holder.count_grown.map_or(String::new(), |more| {
        format!(", {} {of} in {}", count(more), time(holder.growth.grown_seconds / 60.0))
    });
    format!("{}: {}/h{more}", holder.name, signed(holder.pace()))
}

/// "+950", "+12.3 k", "+1.2 M"
fn count(number: i64) -> String {
    match number.unsigned_abs() {
        0..10_000 => format!("{number:+}"),
        10_000..1_000_000 => format!("{:+.1} k", number as f64 / 1e3),
        _ => format!("{:+.1} M", number as f64 / 1e6),
    }
}

/// How to learn it, where malloc's blocks or the heap's objects grow and nothing that says whose they are was recorded.
pub fn advice(history: &History, named: &[&Row]) -> Option<&'static str> {
    let is_unread = |is_of: fn(&What) -> bool, clock: Measure| {
        named.iter().any(|row| is_of(&row.what)) && history.reads(clock).is_empty()
    };
    if is_unread(held_by::is_of_blocks, Measure::HoldersAt) {
        return Some("`marusa record --holders-every 60s` also records who holds malloc's blocks");
    }
    is_unread(held_by::is_of_objects, Measure::ClassesAt)
        .then_some("`marusa record --heap-every 5m` also records the classes of the heap's objects")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_few_digits() {
        assert_eq!([0, 9_999, -12_345, 1_234_567].map(count), ["+0", "+9999", "-12.3 k", "+1.2 M"]);
    }
}
