//! Laying claims over mappings: one sweep over all borders, in which the strongest claim on each range wins. Claims may
//! nest (an inner one refines); two that overlap otherwise are a gap that names both.

use super::area::Area;
use super::claim::{Claim, Claims, RANK_IMAGE, RANK_INTERVAL};
use super::claims;
use super::residency;
use super::types::{Balance, Figures, MemoryMap, Owner, Share, Span};
use crate::base::{Addr, Gap, Range, Why};
use crate::os::maps::Mapping;
use crate::snapshot::Snapshot;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// Overlaps that are named one by one; the rest are counted.
const OVERLAPS_NAMED_MAX: usize = 8;

/// The account of a snapshot.
pub fn join(snapshot: &Snapshot) -> MemoryMap {
    let claims = claims::all(snapshot);
    let mut gaps = snapshot.gaps();
    gaps.extend(overlaps(&claims));
    let mut book = OwnerBook::new(&claims);
    let pieces = sweep(&claims.list, snapshot);
    let mut won = vec![false; claims.list.len()];
    let mut spans: Vec<Span> = Vec::new();
    for piece in pieces {
        won[piece.claim] = true;
        let mapping = &snapshot.os.mappings[piece.mapping];
        let shares = book.shares(&claims.list[piece.claim], mapping);
        match spans.last_mut() {
            Some(last) if may_join(last, &piece, &shares) => last.range.end = piece.range.end,
            _ => spans.push(Span { range: piece.range, mapping: piece.mapping, shares }),
        }
    }
    residency::fill(&mut spans, snapshot);
    let in_use = in_use_by_owner(&claims, &won, &book);
    let balance = balance(&spans, &book.owners, snapshot);
    MemoryMap { spans, owners: book.owners, in_use, balance, gaps }
}

/// Whether a piece continues the span before it. Spans of several owners are left apart: their shares differ.
fn may_join(last: &Span, next: &Piece, shares: &[Share]) -> bool {
    let one_owner = matches!((&last.shares[..], shares), ([a], [b]) if a.owner == b.owner);
    one_owner && last.range.end == next.range.start && last.mapping == next.mapping
}

/// The guard pages of a stack are the ranges of it that no code may touch: HotSpot's yellow, red and reserved zones at its
/// end (stackOverflow.hpp) and the C library's below.
fn owner_within<'a>(owner: &'a Owner, mapping: &Mapping) -> Cow<'a, Owner> {
    if owner.area == Area::Stack && !mapping.rights.any() {
        return Cow::Owned(Owner { part: "stack guard pages".to_string(), ..owner.clone() });
    }
    Cow::Borrowed(owner)
}

/// The owners of the account: those of the claims that won something, each once.
struct OwnerBook<'a> {
    claims: &'a Claims,
    owners: Vec<Owner>,
    index: HashMap<Owner, usize>,
    /// The places of the claims' owners in `owners`: they are looked up once, since a heap has thousands of ranges.
    of_claimed: Vec<Option<usize>>,
}

impl<'a> OwnerBook<'a> {
    fn new(claims: &'a Claims) -> OwnerBook<'a> {
        let of_claimed = vec![None; claims.owners.len()];
        OwnerBook { claims, owners: Vec::new(), index: HashMap::new(), of_claimed }
    }

    fn index(&mut self, owner: &Owner) -> usize {
        if let Some(index) = self.index.get(owner) {
            return *index;
        }
        self.owners.push(owner.clone());
        self.index.insert(owner.clone(), self.owners.len() - 1);
        self.owners.len() - 1
    }

    fn claimed(&mut self, owner: usize) -> usize {
        if let Some(index) = self.of_claimed[owner] {
            return index;
        }
        let index = self.index(&self.claims.owners[owner]);
        self.of_claimed[owner] = Some(index);
        index
    }

    /// The shares of a claim on a range of a mapping; all that they know yet is what they would reserve.
    fn shares(&mut self, claim: &Claim, mapping: &Mapping) -> Vec<Share> {
        if let Cow::Owned(owner) = owner_within(self.claims.first_owner(claim), mapping) {
            return vec![Share { owner: self.index(&owner), figures: Figures::default() }];
        }
        let mut shares: Vec<Share> = Vec::with_capacity(claim.shares.len());
        for share in &claim.shares {
            let owner = self.claimed(share.owner);
            match shares.iter_mut().find(|known| known.owner == owner) {
                Some(known) => known.figures.reserved = known.figures.reserved.saturating_add(share.bytes),
                None => {
                    let figures = Figures { reserved: share.bytes, ..Figures::default() };
                    shares.push(Share { owner, figures });
                }
            }
        }
        shares
    }
}

/// A range within one mapping, and the claim that won it.
struct Piece {
    range: Range,
    claim: usize,
    mapping: usize,
}

/// Walks over all borders of claims once; the mappings' own claims cover every mapping, so no range is without one.
fn sweep(claims: &[Claim], snapshot: &Snapshot) -> Vec<Piece> {
    let mut borders: Vec<(Addr, bool, usize)> = Vec::with_capacity(claims.len() * 2);
    for (index, claim) in claims.iter().enumerate().filter(|(_, claim)| !claim.range.is_empty()) {
        borders.push((claim.range.start, true, index));
        borders.push((claim.range.end, false, index));
    }
    borders.sort_unstable_by_key(|(at, opens, _)| (*at, *opens));
    let mappings = &snapshot.os.mappings;
    // Of two claims on the same range the later one refines: a generation's only space.
    let mut active: BTreeSet<(u8, u64, Reverse<usize>)> = BTreeSet::new();
    let mut pieces = Vec::new();
    let mut mapping = 0;
    let mut from = Addr::NULL;
    for (at, opens, index) in borders {
        if at > from {
            while mapping < mappings.len() && mappings[mapping].range.end <= from {
                mapping += 1;
            }
            let inside = mappings.get(mapping).is_some_and(|mapping| mapping.range.has(from));
            if let (true, Some((_, _, Reverse(winner)))) = (inside, active.first()) {
                pieces.push(Piece { range: Range::new(from, at), claim: *winner, mapping });
            }
            from = at;
        }
        let key = (claims[index].rank, claims[index].range.bytes(), Reverse(index));
        if opens {
            active.insert(key);
        } else {
            active.remove(&key);
        }
    }
    pieces
}

/// Claims of the runtime or the allocator that overlap without one lying inside the other of the same source.
fn overlaps(claims: &Claims) -> Vec<Gap> {
    // Intervals lie in malloc's memory, which is claimed as a whole.
    let meant = |claim: &&Claim| claim.rank < RANK_IMAGE && claim.rank != RANK_INTERVAL;
    let mut order: Vec<&Claim> =
        claims.list.iter().filter(meant).filter(|claim| !claim.range.is_empty()).collect();
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
        let owner = claims.first_owner(claim);
        if let Some(other) = clash.filter(|other| claims.first_owner(other) != owner) {
            if gaps.len() < OVERLAPS_NAMED_MAX {
                let common = other.range.intersect(claim.range);
                let (one, two) = (&claims.first_owner(other).part, &owner.part);
                let what = format!("{common} is claimed as {one} and as {two}");
                gaps.push(Gap::new(what, Why::BadData(common.start)));
            } else {
                more += 1;
            }
        }
        open.push(claim);
    }
    if more > 0 {
        gaps.push(Gap::new(
            crate::base::counted(more, "more overlap") + " of claims",
            Why::BadData(Addr::NULL),
        ));
    }
    gaps
}

/// Sums what the winning claims say is in use; an owner with a claim that does not say has no figure.
fn in_use_by_owner(claims: &Claims, won: &[bool], book: &OwnerBook) -> Vec<Option<u64>> {
    let mut sums: Vec<Option<u64>> = vec![Some(0); book.owners.len()];
    for share in claims.list.iter().zip(won).filter(|(_, won)| **won).flat_map(|(claim, _)| &claim.shares) {
        // A stack of which all is guard pages has no span under its own name.
        let Some(owner) = book.of_claimed[share.owner] else { continue };
        sums[owner] = sums[owner].zip(share.in_use).and_then(|(sum, bytes)| sum.checked_add(bytes));
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
    for share in spans.iter().flat_map(|span| &span.shares) {
        balance.total.add(&share.figures);
        if owners[share.owner].area == Area::Unattributed {
            balance.unattributed += share.figures.resident;
        }
    }
    balance.proportional = (balance.total.sharing_unknown == 0).then_some(balance.total.proportional);
    balance
}

#[cfg(test)]
#[path = "join_tests.rs"]
mod tests;
