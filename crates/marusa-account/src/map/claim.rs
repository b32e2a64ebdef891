//! What a claim is, and which one wins: `claims` makes them of a snapshot, `malloc::owners` of malloc's heap, and `join` lays
//! them over the mappings.

use super::types::Owner;
use crate::base::{Bytes, Range};
use crate::jvm::How;

/// One claim. A lower `rank` wins; among equals the smaller range.
#[derive(Clone, Debug)]
pub struct Claim {
    pub range: Range,
    pub rank: u8,
    /// At least one. Several: the range is theirs together, in proportion to their bytes.
    pub shares: Vec<ClaimShare>,
}

/// What one owner has of a claimed range.
#[derive(Clone, Copy, Debug)]
pub struct ClaimShare {
    /// Index into `Claims::owners`.
    pub owner: usize,
    pub bytes: Bytes,
    pub in_use: Option<Bytes>,
}

/// Claims and the owners that they name; an owner may be there several times.
#[derive(Debug, Default)]
pub struct Claims {
    pub list: Vec<Claim>,
    pub owners: Vec<Owner>,
}

pub const RANK_JVM: u8 = 0;
/// What the walk of malloc's heap found.
pub const RANK_INTERVAL: u8 = 1;
/// malloc's memory as a whole.
pub const RANK_ALLOC: u8 = 2;
pub const RANK_IMAGE: u8 = 3;
pub const RANK_LINK: u8 = 4;
pub const RANK_MAPPING: u8 = 5;

impl Claims {
    pub fn owner(&mut self, owner: Owner) -> usize {
        self.owners.push(owner);
        self.owners.len() - 1
    }

    /// A claim of one owner.
    pub fn one(&mut self, range: Range, rank: u8, owner: Owner, in_use: Option<Bytes>) {
        let owner = self.owner(owner);
        let shares = vec![ClaimShare { owner, bytes: range.bytes(), in_use }];
        self.list.push(Claim { range, rank, shares });
    }

    /// The first owner of a claim: the only one except for ranges of malloc's heap.
    pub fn first_owner(&self, claim: &Claim) -> &Owner {
        &self.owners[claim.shares[0].owner]
    }
}

/// The proof in a few words.
pub fn how(how: &How) -> String {
    match how {
        How::VmStructs => "vmStructs".to_string(),
        How::PointedFrom(root) => format!("pointed to from {root}"),
        How::Shape => "shape".to_string(),
        How::NmtHeader => "NMT header".to_string(),
    }
}
