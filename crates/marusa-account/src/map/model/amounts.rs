//! Bytes of one owner, the keys that areas, parts, threads and libraries share.

use super::{AreaAccount, LibraryAccount, PartAccount};
use crate::base::Bytes;
use crate::map::{Area, Figures, PaperArea};
use crate::os::page_kind::PageKind;
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// All in bytes. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Amounts {
    pub reserved_bytes: Bytes,
    /// In mappings with any right of access; memory that is mapped twice counts once.
    pub committed_bytes: Bytes,
    /// In memory; memory that is mapped twice counts once.
    pub resident_bytes: Bytes,
    /// In memory, but already counted at another address.
    pub aliased_bytes: Bytes,
    pub in_use_bytes: Option<Bytes>,
    pub swapped_bytes: Option<Bytes>,
    /// The part of `resident_bytes` in pages that belong to no file: private memory, and private copies of a file's pages.
    pub anonymous_bytes: Option<Bytes>,
    /// `resident_bytes`, each page divided by the number of page tables that map it.
    pub proportional_bytes: Option<Bytes>,
    /// `resident_bytes` by bytes of a mapped page; by those of its folio where the snapshot has the page sizes.
    pub by_page_size: BTreeMap<Bytes, Bytes>,
    /// `resident_bytes` by kind of page; `None` where the snapshot has no page sizes.
    #[serde(skip_serializing_if = "Option::is_none", with = "by_kind")]
    #[schemars(with = "Option<BTreeMap<String, Bytes>>")]
    pub by_page_kind: Option<BTreeMap<PageKind, Bytes>>,
}

/// Pages of this size and more are huge.
const HUGE_BYTES_MIN: Bytes = 2 << 20;

impl Amounts {
    /// Resident in huge pages; `None` where the sizes of its pages are not known.
    pub fn huge_bytes(&self) -> Option<Bytes> {
        let is_known = self.resident_bytes == 0 || !self.by_page_size.is_empty();
        is_known.then(|| self.by_page_size.range(HUGE_BYTES_MIN..).map(|(_, bytes)| bytes).sum())
    }

    pub fn of(figures: Figures, in_use: Option<Bytes>, is_swap_known: bool) -> Amounts {
        let has_kinds = !figures.by_page_kind.is_empty();
        let kinds = || figures.by_page_kind.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
        Amounts {
            reserved_bytes: figures.reserved,
            committed_bytes: figures.committed,
            resident_bytes: figures.resident,
            aliased_bytes: figures.aliased,
            anonymous_bytes: Some(figures.anonymous),
            in_use_bytes: in_use,
            swapped_bytes: is_swap_known.then_some(figures.swapped),
            proportional_bytes: (figures.sharing_unknown == 0).then_some(figures.proportional),
            by_page_size: figures.by_page_size,
            by_page_kind: has_kinds.then(kinds),
        }
    }

    /// What is not known of one is not known of all.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Amounts>) -> Amounts {
        let none = Amounts {
            in_use_bytes: Some(0),
            anonymous_bytes: Some(0),
            swapped_bytes: Some(0),
            proportional_bytes: Some(0),
            ..Amounts::default()
        };
        all.into_iter().fold(none, |mut sum, amounts| {
            sum.add(amounts);
            sum
        })
    }

    fn add(&mut self, other: &Amounts) {
        let both = |one: &mut Option<Bytes>, other: Option<Bytes>| {
            *one = one.zip(other).map(|(one, other)| one.saturating_add(other));
        };
        self.reserved_bytes += other.reserved_bytes;
        self.committed_bytes += other.committed_bytes;
        self.resident_bytes += other.resident_bytes;
        self.aliased_bytes += other.aliased_bytes;
        both(&mut self.in_use_bytes, other.in_use_bytes);
        both(&mut self.swapped_bytes, other.swapped_bytes);
        both(&mut self.anonymous_bytes, other.anonymous_bytes);
        both(&mut self.proportional_bytes, other.proportional_bytes);
        for (size, bytes) in &other.by_page_size {
            *self.by_page_size.entry(*size).or_default() += bytes;
        }
        for (kind, bytes) in other.by_page_kind.iter().flatten() {
            *self.by_page_kind.get_or_insert_default().entry(*kind).or_default() += bytes;
        }
    }
}

/// "4k", "mthp_64k", "thp_2m_pmd" and so on.
pub(super) mod by_kind {
    use super::*;

    type Kinds = Option<BTreeMap<PageKind, Bytes>>;

    pub fn serialize<S: Serializer>(kinds: &Kinds, out: S) -> Result<S::Ok, S::Error> {
        out.collect_map(kinds.iter().flatten().map(|(kind, bytes)| (kind.name(), bytes)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Kinds, D::Error> {
        let names: BTreeMap<String, Bytes> = BTreeMap::deserialize(from)?;
        let kind = |(name, bytes): (String, Bytes)| match PageKind::named(&name) {
            Some(kind) => Ok((kind, bytes)),
            None => Err(D::Error::custom(format!("no kind of page is named {name}"))),
        };
        names.into_iter().map(kind).collect::<Result<_, _>>().map(Some)
    }
}

/// Structs that have amounts among their keys, read back. Written out: `serde(flatten)` would keep every key that it does not know.
macro_rules! read_with_amounts {
    ($($of:ident, $wire:ident { $($(#[$attribute:meta])* $key:ident: $type:ty),* $(,)? })*) => { $(
        #[derive(schemars::JsonSchema, serde::Deserialize)]
        pub(super) struct $wire {
            #[serde(default)]
            reserved_bytes: Bytes,
            #[serde(default)]
            committed_bytes: Bytes,
            #[serde(default)]
            resident_bytes: Bytes,
            #[serde(default)]
            aliased_bytes: Bytes,
            in_use_bytes: Option<Bytes>,
            anonymous_bytes: Option<Bytes>,
            swapped_bytes: Option<Bytes>,
            proportional_bytes: Option<Bytes>,
            #[serde(default)]
            by_page_size: BTreeMap<Bytes, Bytes>,
            #[serde(default, with = "by_kind")]
            #[schemars(with = "Option<BTreeMap<String, Bytes>>")]
            by_page_kind: Option<BTreeMap<PageKind, Bytes>>,
            $($(#[$attribute])* $key: $type,)*
        }

        impl From<$wire> for $of {
            fn from(read: $wire) -> $of {
                let amounts = Amounts {
                    reserved_bytes: read.reserved_bytes,
                    committed_bytes: read.committed_bytes,
                    resident_bytes: read.resident_bytes,
                    aliased_bytes: read.aliased_bytes,
                    in_use_bytes: read.in_use_bytes,
                    anonymous_bytes: read.anonymous_bytes,
                    swapped_bytes: read.swapped_bytes,
                    proportional_bytes: read.proportional_bytes,
                    by_page_size: read.by_page_size,
                    by_page_kind: read.by_page_kind,
                };
                $of { amounts, $($key: read.$key),* }
            }
        }
    )* };
}

read_with_amounts! {
    AreaAccount, AreaWire {
        #[serde(deserialize_with = "area")] area: Area,
        paper_area: Option<PaperArea>,
        mappings: Option<u64>,
        #[serde(default)] parts: Vec<PartAccount>,
    }
    PartAccount, PartWire { part: String, #[serde(default)] how: Vec<String> }
    LibraryAccount, LibraryWire { path: String, malloc_bytes: Option<Bytes> }
}

/// An area that a later version has is what this one does not know.
fn area<'de, D: Deserializer<'de>>(from: D) -> Result<Area, D::Error> {
    let name = String::deserialize(from)?;
    Ok(Area::ALL.iter().copied().find(|area| area.name() == name).unwrap_or(Area::Unattributed))
}
