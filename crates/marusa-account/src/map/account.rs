//! The sums over spans that the faces show: by area and part, by mapping, by thread, by library.

use super::area::Area;
use super::types::{Figures, Instance, MemoryMap, Owner};
use crate::base::Bytes;
use std::collections::BTreeMap;

/// One area with its parts, biggest resident part first.
#[derive(Clone, Debug)]
pub struct AreaSum {
    pub area: Area,
    pub figures: Figures,
    pub in_use: Option<Bytes>,
    /// Mappings that have a byte of it.
    pub mappings: u64,
    pub parts: Vec<PartSum>,
}

#[derive(Clone, Debug)]
pub struct PartSum {
    pub part: String,
    pub figures: Figures,
    pub in_use: Option<Bytes>,
    /// How the label was got; several ways joined.
    pub how: Vec<String>,
}

/// Every area that has a byte of address space, in the order of `Area::ALL`.
pub fn by_area(map: &MemoryMap) -> Vec<AreaSum> {
    let mut parts: BTreeMap<(Area, &str), PartSum> = BTreeMap::new();
    let mut owner_seen = vec![false; map.owners.len()];
    for (owner, share) in map.shares() {
        let sum = parts.entry((owner.area, &owner.part)).or_insert_with(|| PartSum {
            part: owner.part.clone(),
            figures: Figures::default(),
            in_use: Some(0),
            how: Vec::new(),
        });
        sum.figures.add(&share.figures);
        if !owner_seen[share.owner] {
            owner_seen[share.owner] = true;
            sum.in_use =
                sum.in_use.zip(map.in_use[share.owner]).map(|(sum, bytes)| sum.saturating_add(bytes));
            if !sum.how.contains(&owner.how) {
                sum.how.push(owner.how.clone());
            }
        }
    }
    let mut areas: BTreeMap<Area, AreaSum> = BTreeMap::new();
    for ((area, _), part) in parts {
        let sum = areas.entry(area).or_insert_with(|| AreaSum {
            area,
            figures: Figures::default(),
            in_use: Some(0),
            mappings: 0,
            parts: Vec::new(),
        });
        sum.figures.add(&part.figures);
        sum.in_use = sum.in_use.zip(part.in_use).map(|(sum, bytes)| sum.saturating_add(bytes));
        sum.parts.push(part);
    }
    let mappings = mappings_by_area(map);
    let mut areas: Vec<AreaSum> = areas.into_values().collect();
    for area in &mut areas {
        area.mappings = mappings.get(&area.area).map_or(0, |(count, _)| *count);
        area.parts.sort_by(|a, b| b.figures.resident.cmp(&a.figures.resident).then(a.part.cmp(&b.part)));
    }
    areas
}

/// How many mappings have a byte of each area, and the last of them. Spans come in the order of mappings.
fn mappings_by_area(map: &MemoryMap) -> BTreeMap<Area, (u64, usize)> {
    let mut areas: BTreeMap<Area, (u64, usize)> = BTreeMap::new();
    for span in &map.spans {
        for share in &span.shares {
            let (count, last) = areas.entry(map.owners[share.owner].area).or_insert((0, usize::MAX));
            if *last != span.mapping {
                (*count, *last) = (*count + 1, span.mapping);
            }
        }
    }
    areas
}

/// Sums of the spans whose owner `key` names, with one of the owners; biggest resident sum first.
pub fn by_instance<'a, K: Ord>(
    map: &'a MemoryMap,
    key: impl Fn(&'a Owner) -> Option<K>,
) -> Vec<(K, &'a Owner, Figures)> {
    let mut sums: BTreeMap<K, (&Owner, Figures)> = BTreeMap::new();
    for (owner, share) in map.shares() {
        if let Some(key) = key(owner) {
            sums.entry(key).or_insert((owner, Figures::default())).1.add(&share.figures);
        }
    }
    let mut sums: Vec<_> = sums.into_iter().map(|(key, (owner, figures))| (key, owner, figures)).collect();
    sums.sort_by(|a, b| b.2.resident.cmp(&a.2.resident).then(a.0.cmp(&b.0)));
    sums
}

/// By thread: the stacks.
pub fn by_thread(map: &MemoryMap) -> Vec<(i32, &Owner, Figures)> {
    by_instance(map, |owner| match owner.instance {
        Instance::Thread(tid) => Some(tid),
        _ => None,
    })
}

/// By library: text, data and the memory that a library mapped.
pub fn by_library(map: &MemoryMap) -> Vec<(&str, &Owner, Figures)> {
    by_instance(map, |owner| match &owner.instance {
        Instance::Library(path) => Some(path.as_str()),
        _ => None,
    })
}
