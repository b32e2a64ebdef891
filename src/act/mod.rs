//! The one door by which a target is asked to do something. What goes through it leaves a receipt.

pub mod attach;
pub mod signals;
pub mod trim;
