//! The one door by which a target is asked to do something. What goes through it leaves a receipt. Beside it, what puts our
//! own process to work so as to learn what this machine can do (`calibrate`).

pub mod attach;
pub mod calibrate;
pub mod signals;
pub mod trim;
