//! By how much a collector's tables grow with its heap: bitmaps, cards and remembered sets have a part of the heap's size, so a
//! forecast of a full heap has to add them.

use crate::base::Bytes;

/// Tables take no more of a heap than this: bitmaps of a 64th, two of them, and cards.
const PART: u64 = 32;

/// In proportion to what they have now. `heap`: what of the heap is resident now.
pub fn growth(tables: Bytes, heap: Bytes, heap_max: Bytes) -> Bytes {
    let growth = heap_max.saturating_sub(heap);
    let in_proportion = (u128::from(tables) * u128::from(growth)).checked_div(u128::from(heap));
    in_proportion.and_then(|bytes| Bytes::try_from(bytes).ok()).unwrap_or(Bytes::MAX).min(growth / PART)
}
