//! The faces of the account. Nothing here reads the machine or computes a figure that is not in what it is given.

pub mod audit;
pub mod calibrate;
pub mod json;
pub mod list;
pub mod predict;
pub mod text;
pub mod tlb;
pub mod trim;
pub mod units;
