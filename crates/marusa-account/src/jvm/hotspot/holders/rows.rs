//! The blocks of each holder summed up, by the C++ types among them.

use super::mappings;
use super::spread::{NONE, Spread};
use super::types::Type;
use crate::base::{Bytes, Gap, Range, Why, counted};
use crate::jvm::{Held, HeldBy, HeldType, Holders};
use std::collections::{BTreeMap, HashMap};

/// The smaller ones are a gap.
const ROWS_MAX: usize = 1_000;
const TYPES_SHOWN: usize = 5;
/// A type names a row if it has at least this part of its bytes: a block that was used before may begin with an old table.
const KIND_PART: Bytes = 10;
/// Blocks of this size and more are listed one by one, for `scripts/holders`.
const LARGE_BYTES_MIN: Bytes = 4096;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub how: HeldBy,
    pub holder: String,
    pub library: Option<String>,
    pub is_mapping: bool,
}

impl Row {
    pub fn of(how: HeldBy, holder: &str) -> Row {
        Row { how, holder: holder.to_string(), library: None, is_mapping: false }
    }

    pub fn of_type(of: &Type) -> Row {
        let row = match &of.name {
            Some(name) => Row::of(HeldBy::Vtable, name),
            None => Row::of(HeldBy::LibraryData, &of.library),
        };
        Row { library: Some(of.library.clone()), ..row }
    }
}

#[derive(Default)]
struct Sum {
    bytes: Bytes,
    /// Bytes of blocks that a source has the address of.
    direct_bytes: Bytes,
    direct_blocks: u64,
    blocks: u64,
    large: Vec<Range>,
    /// By the place of the type.
    types: HashMap<u32, (Bytes, u64)>,
}

#[derive(Default)]
pub struct Rows(BTreeMap<Row, Sum>);

impl Rows {
    /// What the last step gave away: by its source, and by the type of the block or of the nearest one that leads to it.
    pub fn take(
        &mut self,
        spread: &mut Spread,
        held: &mappings::Held,
        row: impl Fn(usize, Option<&Type>) -> Row,
    ) {
        let mut sums: HashMap<(u32, u32, bool), Sum> = HashMap::new();
        for block in std::mem::take(&mut spread.given) {
            let mapping = held.mapping_bytes(block);
            let key = (spread.sources[block], spread.kinds[block], mapping.is_some());
            let sum = sums.entry(key).or_default();
            let payload = held.index.payload(block);
            let bytes = mapping.unwrap_or(payload.bytes());
            if mapping.is_none() && bytes >= LARGE_BYTES_MIN {
                sum.large.push(payload);
            }
            sum.bytes += bytes;
            if spread.is_root[block] {
                sum.direct_bytes += bytes;
                sum.direct_blocks += 1;
            }
            sum.blocks += 1;
        }
        for ((source, kind, is_mapping), mut sum) in sums {
            let of_type = (kind != NONE).then(|| &spread.types.found[kind as usize]);
            let all = self.0.entry(Row { is_mapping, ..row(source as usize, of_type) }).or_default();
            all.large.append(&mut sum.large);
            all.bytes += sum.bytes;
            all.direct_bytes += sum.direct_bytes;
            all.direct_blocks += sum.direct_blocks;
            all.blocks += sum.blocks;
            if kind != NONE {
                let of = all.types.entry(kind).or_default();
                *of = (of.0 + sum.bytes, of.1 + sum.blocks);
            }
        }
    }

    pub fn add(&mut self, row: Row, block: Range) {
        let (sum, bytes) = (self.0.entry(row).or_default(), block.bytes());
        sum.bytes += bytes;
        if bytes >= LARGE_BYTES_MIN {
            sum.large.push(block);
        }
        sum.blocks += 1;
    }

    /// The bytes of malloc's blocks of each library.
    fn libraries(&self, types: &[Type]) -> BTreeMap<String, Bytes> {
        let mut libraries: BTreeMap<String, Bytes> = BTreeMap::new();
        let mut add =
            |library: &str, bytes: Bytes| *libraries.entry(library.to_string()).or_default() += bytes;
        for (row, sum) in self.0.iter().filter(|(row, _)| !row.is_mapping) {
            let mut left = sum.bytes;
            for (place, (bytes, _)) in &sum.types {
                add(&types[*place as usize].library, *bytes);
                left = left.saturating_sub(*bytes);
            }
            if let Some(library) = row.library.as_deref().filter(|_| left > 0) {
                add(library, left);
            }
        }
        libraries
    }

    pub fn finish(self, types: &[Type], mut gaps: Vec<Gap>) -> Holders {
        let libraries = self.libraries(types);
        let held = |(row, sum): (Row, Sum)| {
            let is_field = matches!(row.how, HeldBy::Field | HeldBy::Static);
            let mut of_types: Vec<(u32, (Bytes, u64))> = sum.types.into_iter().collect();
            of_types.sort_by_key(|(place, (bytes, _))| (std::cmp::Reverse(*bytes), *place));
            let library = of_types.first().map(|(place, _)| types[*place as usize].library.clone());
            let typed = of_types.iter().take(TYPES_SHOWN).map(|(place, (bytes, blocks))| {
                let of = &types[*place as usize];
                HeldType {
                    name: of.name.clone(),
                    library: of.library.clone(),
                    bytes: *bytes,
                    blocks: *blocks,
                }
            });
            let types: Vec<HeldType> = typed.collect();
            Held {
                holder: row.holder,
                how: row.how,
                kind: types
                    .iter()
                    .filter(|of| of.bytes >= sum.bytes / KIND_PART)
                    .find_map(|of| of.name.clone()),
                library: row.library.or(library),
                bytes: sum.bytes,
                blocks: sum.blocks,
                direct_bytes: is_field.then_some(sum.direct_bytes),
                direct_blocks: is_field.then_some(sum.direct_blocks),
                types,
                is_mapping: row.is_mapping,
                large: sum.large,
            }
        };
        let mut rows: Vec<Held> = self.0.into_iter().map(held).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.bytes), row.holder.clone(), row.how));
        let (mut left_bytes, mut left_blocks, mut left_rows) = (0, 0, 0);
        for row in rows.drain(rows.len().min(ROWS_MAX)..) {
            (left_bytes, left_blocks, left_rows) =
                (left_bytes + row.bytes, left_blocks + row.blocks, left_rows + 1);
        }
        if left_rows > 0 {
            let what = {
                let (rows, blocks) = (counted(left_rows, "holder"), counted(left_blocks, "block"));
                format!("{rows} of {blocks} with {left_bytes} bytes")
            };
            gaps.push(Gap::new(what, Why::OverLimit));
        }
        Holders { rows, libraries, gaps }
    }
}
