//! A Java heap that is full of live objects: collections of the whole heap come again and again, and leave it nearly full. That a
//! heap grows is not a sign: it grows until it is collected.

use super::{Answer, Look, Seen};
use crate::base::{Bytes, human};
use crate::map::Area;

/// In use at each sample, of the most that there may be.
const FULL_PERCENT: Bytes = 90;
/// Collections of the old generation while it was watched.
const COLLECTIONS_MIN: u64 = 2;

/// In use and the maximum, at the last sample; `None`: it is not full, or that is not known.
pub fn full(looks: &[Look]) -> Option<(Bytes, Bytes)> {
    let used = |look: &Look| {
        let heap = look.account.jvm.as_ref()?.heap.as_ref()?;
        Some((heap.used_bytes?, heap.max_bytes?))
    };
    let is_full = |look: &Look| {
        used(look).is_some_and(|(used, max)| used.saturating_mul(100) >= max.saturating_mul(FULL_PERCENT))
    };
    let (first, last) = (looks.first()?, looks.last()?);
    let collections = last.old_collections?.checked_sub(first.old_collections?)?;
    (collections >= COLLECTIONS_MIN && looks.iter().all(is_full)).then(|| used(last))?
}

pub fn answer(seen: &Seen) -> Option<Answer> {
    let (used, max) = full(seen.looks)?;
    let largest = seen.classes.first();
    let mut answer = Answer::new(
        "the Java heap is full of objects that collections leave",
        largest.map(|it| it.class.as_str()),
    );
    answer.bytes = Some(largest.map_or(used, |class| class.bytes));
    let class = largest.map_or(String::new(), |_| "; the class with the most bytes".to_string());
    answer.how = format!(
        "{} of {} are in use at each sample, after collections of the whole heap{class}",
        human(used),
        human(max)
    );
    answer.next = Some(format!("marusa heap {}", seen.pid()));
    answer.fixed_by("find who keeps them in a heap dump, or set a larger -Xmx");
    answer.area = Some(Area::JavaHeap);
    Some(answer)
}
