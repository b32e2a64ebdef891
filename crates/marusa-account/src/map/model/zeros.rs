//! `map --by page-size --zeros` for programs: pages of zeros within larger pages, by area and part.

use crate::base::Bytes;
use crate::map::Area;
use crate::map::bloat::{Bloat, Sums, ZeroSum};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ZerosAccount {
    pub sampled: bool,
    pub read_bytes: Bytes,
    pub read_ms: f64,
    /// Whether this kernel gives pages of zeros back when a page is split.
    pub split_gives_back: bool,
    pub shrinker: Shrinker,
    pub threads_on_large_pages: usize,
    pub total: Zeros,
    /// The zeros of malloc, for all owners of the blocks.
    pub malloc: Zeros,
    pub areas: Vec<AreaZeros>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Shrinker {
    /// `None`: this kernel has none, or hides it.
    pub enabled: Option<bool>,
    pub max_ptes_none: Option<u64>,
}

/// Bytes on pages larger than 4 KiB, and zeros in them.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Zeros {
    pub large_bytes: Bytes,
    pub zero_bytes: Bytes,
    pub zero_bytes_low: Bytes,
    pub zero_bytes_high: Bytes,
    pub split_gives_back_bytes: Bytes,
    pub shrinker_gives_back_bytes: Bytes,
    pub by_sort: BTreeMap<&'static str, SortZeros>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct SortZeros {
    pub resident_bytes: Bytes,
    pub read_bytes: Bytes,
    pub zero_bytes: Bytes,
    pub zero_bytes_low: Bytes,
    pub zero_bytes_high: Bytes,
    pub mostly_zero_bytes: Bytes,
    pub all_zero_bytes: Bytes,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct AreaZeros {
    #[serde(flatten)]
    pub zeros: Zeros,
    pub area: Area,
    pub parts: Vec<PartZeros>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PartZeros {
    #[serde(flatten)]
    pub zeros: Zeros,
    pub part: String,
}

impl From<&Bloat> for ZerosAccount {
    fn from(bloat: &Bloat) -> ZerosAccount {
        let parts = |of: Area| {
            let parts = bloat.parts.iter().filter(move |((area, _), _)| *area == of);
            parts.map(|((_, part), sums)| PartZeros { zeros: Zeros::of(bloat, sums), part: part.clone() })
        };
        let area = |(area, sums): (&Area, &Sums)| AreaZeros {
            zeros: Zeros::of(bloat, sums),
            area: *area,
            parts: parts(*area).collect(),
        };
        ZerosAccount {
            sampled: bloat.is_sampled,
            read_bytes: bloat.read_bytes,
            read_ms: (bloat.read_ms * 100.0).round() / 100.0,
            split_gives_back: bloat.split_gives_back,
            shrinker: Shrinker { enabled: bloat.shrinker.is_on, max_ptes_none: bloat.shrinker.max_ptes_none },
            threads_on_large_pages: bloat.threads_on_large,
            total: Zeros::of(bloat, &bloat.total),
            malloc: Zeros::of(bloat, &bloat.malloc),
            areas: bloat.areas.iter().map(area).collect(),
        }
    }
}

impl Zeros {
    fn of(bloat: &Bloat, sums: &Sums) -> Zeros {
        let zero = sums.large_zero();
        Zeros {
            large_bytes: sums.large_bytes(),
            zero_bytes: zero.bytes,
            zero_bytes_low: zero.low,
            zero_bytes_high: zero.high,
            split_gives_back_bytes: bloat.split_returns(sums).bytes,
            shrinker_gives_back_bytes: sums.0.values().map(|sum| sum.shrinker_bytes).sum(),
            by_sort: sums.0.iter().map(|(sort, sum)| (sort.name(), SortZeros::from(sum))).collect(),
        }
    }
}

impl From<&ZeroSum> for SortZeros {
    fn from(sum: &ZeroSum) -> SortZeros {
        SortZeros {
            resident_bytes: sum.resident_bytes,
            read_bytes: sum.read_bytes,
            zero_bytes: sum.zero.bytes,
            zero_bytes_low: sum.zero.low,
            zero_bytes_high: sum.zero.high,
            mostly_zero_bytes: sum.mostly_zero_bytes,
            all_zero_bytes: sum.all_zero_bytes,
        }
    }
}
