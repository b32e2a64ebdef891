//! Who holds what grows, in words.

use super::{signed, time};
use crate::map::rows::Named;
use crate::record::History;
use crate::record::held_by::{self, Holder};
use crate::record::leaks::Row;

/// Holders in one sentence.
const NAMED_MAX: usize = 3;

/// " Held by org.rocksdb.ReadOptions.nativeHandle_: +310 MiB/h, +1.2 M blocks in 2.0 h."
pub fn sentence(named: &[&Row]) -> String {
    let mut holders: Vec<&Holder> = Vec::new();
    for holder in named.iter().flat_map(|row| &row.held_by) {
        if holders.iter().all(|other| other.name != holder.name) {
            holders.push(holder);
        }
    }
    holders.sort_by(|one, other| other.pace().total_cmp(&one.pace()));
    holders.truncate(NAMED_MAX);
    match holders.is_empty() {
        true => String::new(),
        false => format!(" Held by {}.", holders.into_iter().map(words).collect::<Vec<_>>().join("; ")),
    }
}

fn words(holder: &Holder) -> String {
    let of = if holder.kind == Named::Loader { "loaders" } else { "blocks" };
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

/// How to learn it, where malloc's blocks grow and no holder was recorded.
pub fn advice(history: &History, named: &[&Row]) -> Option<&'static str> {
    let is_of_blocks = named.iter().any(|row| held_by::is_of_blocks(&row.what));
    (is_of_blocks && history.holders().is_empty())
        .then_some("`marusa record --holders-every 60s` also records who holds malloc's blocks")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_few_digits() {
        assert_eq!([0, 9_999, -12_345, 1_234_567].map(count), ["+0", "+9999", "-12.3 k", "+1.2 M"]);
    }
}
