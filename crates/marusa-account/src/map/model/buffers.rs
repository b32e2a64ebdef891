//! What was found of buffers outside the heap against the JDK's counters and the account's area.

use crate::base::Bytes;
use crate::jvm::{BufferKind, BufferTotals, Buffers};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct BufferAccount {
    pub pools: BufferTotals,
    /// What `java.nio.Bits` has reserved less what was found of it; negative where buffers came in between.
    pub not_found_bytes: Option<i64>,
    /// The sum of all rows except mapped ones; `None`: not known of each.
    pub resident_bytes: Option<Bytes>,
    /// The area direct_buffers.
    pub area_resident_bytes: Bytes,
    /// The area less the rows: memory of buffers that malloc rounds up, that were not found, or, negative, that is in other areas.
    pub remainder_bytes: Option<i64>,
}

impl BufferAccount {
    pub fn of(buffers: &Buffers, area_resident_bytes: Bytes) -> BufferAccount {
        let pools = buffers.totals;
        let rows = buffers.rows.iter().filter(|row| row.kind != BufferKind::Mapped);
        let resident_bytes: Option<Bytes> = rows.map(|row| row.resident_bytes).sum();
        BufferAccount {
            pools,
            not_found_bytes: pools
                .direct
                .map(|jdk| difference(jdk.reserved_bytes, pools.direct_found.reserved_bytes)),
            resident_bytes,
            area_resident_bytes,
            remainder_bytes: resident_bytes.map(|resident| difference(area_resident_bytes, resident)),
        }
    }
}

fn difference(bytes: Bytes, less: Bytes) -> i64 {
    (i128::from(bytes) - i128::from(less)).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::{BufferPool, BufferRow};

    #[test]
    fn the_remainders_are_signed_and_mapped_files_are_not_in_the_area() {
        let row = |kind, resident_bytes| BufferRow {
            kind,
            holder: "a.B.c".to_string(),
            bytes: 100,
            count: 1,
            live_bytes: None,
            resident_bytes,
            free_bytes: None,
            file: None,
            session: None,
        };
        let pool = |reserved_bytes| BufferPool { reserved_bytes, capacity_bytes: 90, count: 1 };
        let totals =
            BufferTotals { direct: Some(pool(100)), direct_found: pool(130), ..BufferTotals::default() };
        let rows = vec![row(BufferKind::Direct, Some(40)), row(BufferKind::Mapped, None)];
        let mut buffers = Buffers { rows, totals, ..Buffers::default() };
        let account = BufferAccount::of(&buffers, 50);
        assert_eq!((account.not_found_bytes, account.resident_bytes), (Some(-30), Some(40)));
        assert_eq!(account.remainder_bytes, Some(10));
        buffers.rows.push(row(BufferKind::Unsafe, None));
        buffers.totals.direct = None;
        let account = BufferAccount::of(&buffers, 50);
        assert_eq!((account.not_found_bytes, account.remainder_bytes), (None, None));
    }
}
