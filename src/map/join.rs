//! Laying claims over mappings: one sweep over all borders, in which the strongest claim on each stretch wins. Claims may
//! nest (an inner one refines); two that overlap otherwise are a gap that names both.

use super::area::Area;
use super::claims::{self, Claim};
use super::residency;
use super::types::{Balance, Figures, MemoryMap, Owner, Span};
use crate::base::{Addr, Gap, Range, Why};
use crate::os::maps::Mapping;
use crate::snapshot::Snapshot;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

/// Overlaps that are named one by one; the rest are counted.
const OVERLAPS_NAMED_MAX: usize = 8;

/// The account of a snapshot.
pub fn join(snapshot: &Snapshot) -> MemoryMap {
    let claims = claims::all(snapshot);
    let mut gaps = snapshot.gaps();
    gaps.extend(overlaps(&claims));
    let mut book = OwnerBook::default();
    let pieces = sweep(&claims, snapshot);
    let mut won = vec![false; claims.len()];
    let mut spans: Vec<Span> = Vec::new();
    for piece in pieces {
        won[piece.claim] = true;
        let mapping = &snapshot.os.mappings[piece.mapping];
        let owner = book.index(&owner_within(&claims[piece.claim].owner, mapping));
        match spans.last_mut() {
            Some(last)
                if last.range.end == piece.range.start
                    && last.owner == owner
                    && last.mapping == piece.mapping =>
            {
                last.range.end = piece.range.end;
            }
            _ => spans.push(Span {
                range: piece.range,
                owner,
                mapping: piece.mapping,
                figures: Figures::default(),
            }),
        }
    }
    residency::fill(&mut spans, snapshot);
    let in_use = in_use_by_owner(&claims, &won, &book);
    let balance = balance(&spans, &book.owners, snapshot);
    MemoryMap { spans, owners: book.owners, in_use, balance, gaps }
}

/// The guard pages of a stack are the stretches of it that nobody may touch: HotSpot's yellow, red and reserved zones at its
/// end (stackOverflow.hpp) and the C library's below.
fn owner_within<'a>(owner: &'a Owner, mapping: &Mapping) -> Cow<'a, Owner> {
    if owner.area == Area::Stack && !mapping.rights.any() {
        return Cow::Owned(Owner { part: "stack guard pages".to_string(), ..owner.clone() });
    }
    Cow::Borrowed(owner)
}

#[derive(Default)]
struct OwnerBook {
    owners: Vec<Owner>,
    index: HashMap<Owner, usize>,
}

impl OwnerBook {
    fn index(&mut self, owner: &Owner) -> usize {
        if let Some(index) = self.index.get(owner) {
            return *index;
        }
        self.owners.push(owner.clone());
        self.index.insert(owner.clone(), self.owners.len() - 1);
        self.owners.len() - 1
    }
}

/// A stretch within one mapping, and the claim that won it.
struct Piece {
    range: Range,
    claim: usize,
    mapping: usize,
}

/// Walks over all borders of claims once; the mappings' own claims cover every mapping, so no stretch is without one.
fn sweep(claims: &[Claim], snapshot: &Snapshot) -> Vec<Piece> {
    let mut borders: Vec<(Addr, bool, usize)> = Vec::with_capacity(claims.len() * 2);
    for (index, claim) in claims.iter().enumerate().filter(|(_, claim)| !claim.range.is_empty()) {
        borders.push((claim.range.start, true, index));
        borders.push((claim.range.end, false, index));
    }
    borders.sort_unstable_by_key(|(at, opens, _)| (*at, *opens));
    let mappings = &snapshot.os.mappings;
    let mut active: BTreeSet<(u8, u64, usize)> = BTreeSet::new();
    let mut pieces = Vec::new();
    let mut mapping = 0;
    let mut from = Addr::NULL;
    for (at, opens, index) in borders {
        if at > from {
            while mapping < mappings.len() && mappings[mapping].range.end <= from {
                mapping += 1;
            }
            let inside = mappings.get(mapping).is_some_and(|mapping| mapping.range.has(from));
            if let (true, Some((_, _, winner))) = (inside, active.first()) {
                pieces.push(Piece { range: Range::new(from, at), claim: *winner, mapping });
            }
            from = at;
        }
        let key = (claims[index].rank, claims[index].range.bytes(), index);
        if opens {
            active.insert(key);
        } else {
            active.remove(&key);
        }
    }
    pieces
}

/// Claims of the runtime or the allocator that overlap without one lying inside the other of the same source.
fn overlaps(claims: &[Claim]) -> Vec<Gap> {
    let mut order: Vec<&Claim> =
        claims.iter().filter(|c| c.rank < claims::RANK_IMAGE && !c.range.is_empty()).collect();
    order.sort_by_key(|claim| (claim.range.start, std::cmp::Reverse(claim.range.end)));
    let mut open: Vec<&Claim> = Vec::new();
    let mut gaps = Vec::new();
    let mut more = 0;
    for claim in order {
        open.retain(|other| other.range.end > claim.range.start);
        let clash = open.iter().rev().find(|other| {
            let nested = other.range.covers(claim.range);
            !nested || other.rank != claim.rank
        });
        if let Some(other) = clash.filter(|other| other.owner != claim.owner) {
            if gaps.len() < OVERLAPS_NAMED_MAX {
                gaps.push(overlap_gap(other, claim));
            } else {
                more += 1;
            }
        }
        open.push(claim);
    }
    if more > 0 {
        gaps.push(Gap::new(format!("{more} more overlaps of claims"), Why::BadData(Addr::NULL)));
    }
    gaps
}

fn overlap_gap(one: &Claim, two: &Claim) -> Gap {
    let what = format!(
        "{} is claimed as {} and as {}",
        one.range.intersect(two.range),
        one.owner.part,
        two.owner.part
    );
    Gap::new(what, Why::BadData(one.range.intersect(two.range).start))
}

/// Sums what the winning claims say is in use; an owner with a claim that does not say has no figure.
fn in_use_by_owner(claims: &[Claim], won: &[bool], book: &OwnerBook) -> Vec<Option<u64>> {
    let mut sums: Vec<Option<u64>> = vec![Some(0); book.owners.len()];
    for (claim, _) in claims.iter().zip(won).filter(|(_, won)| **won) {
        // A stack of which all is guard pages has no span under its own name.
        let Some(owner) = book.index.get(&claim.owner) else { continue };
        let sum = &mut sums[*owner];
        *sum = match (*sum, claim.in_use) {
            (Some(sum), Some(bytes)) => sum.checked_add(bytes),
            _ => None,
        };
    }
    sums
}

fn balance(spans: &[Span], owners: &[Owner], snapshot: &Snapshot) -> Balance {
    let mut balance = Balance {
        kernel_resident: snapshot.taken.kernel_resident_bytes,
        changed_while_reading: snapshot.taken.changed_while_reading_bytes,
        page_tables: snapshot.os.status.page_table_bytes,
        ..Balance::default()
    };
    for span in spans {
        balance.total.add(&span.figures);
        if owners[span.owner].area == Area::Unattributed {
            balance.unattributed += span.figures.resident;
        }
    }
    balance.proportional = (balance.total.sharing_unknown == 0).then_some(balance.total.proportional);
    balance
}

#[cfg(test)]
#[path = "join_tests.rs"]
mod tests;
