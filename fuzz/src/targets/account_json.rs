//! The JSON of an account: what is read of it is what its values say, and it takes memory for little more than its text.

use crate::bound;
use marusa::map::diff;
use marusa::map::model;
use marusa::map::sums::Sums;
use serde_json::Value;

const FACTOR: u64 = 64;
const BYTES_FREE: u64 = 1 << 20;

pub fn run(bytes: &[u8]) {
    let read = bound::within(BYTES_FREE + FACTOR * bytes.len() as u64, || model::parse(bytes));
    let Ok(account) = read else { return };
    // Text that is passed over need not be Unicode; a value needs it.
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    if !value.is_object() {
        return;
    }
    let list = |value: &Value| value.as_array().map_or(0, Vec::len);
    let sums = &Sums::of(&account);
    assert_eq!(sums.kernel_resident, value["totals"]["kernel_resident_bytes"].as_u64());
    assert_eq!(account.taken.at, value["taken"]["at"].as_str().unwrap_or_default());
    assert!(sums.areas.len() <= list(&value["areas"]) && sums.libraries.len() <= list(&value["libraries"]));
    let threads: u64 = sums.threads.values().map(|group| group.threads).sum();
    assert_eq!(threads, list(&value["threads"]) as u64);
    let nothing = diff::diff(sums, sums);
    std::hint::black_box(marusa::show::diff::sentence(&nothing.causes));
}
