//! The results of the experiments, one file each: text of at most 100 columns, and JSON with a schema of its own.

pub mod account;
mod cells;
pub mod direct_buffers;
pub mod fork;
pub mod gc;
mod picture;
pub mod reflection;
pub mod rounds;
pub mod thp;
pub mod throughput;
pub mod touch;
pub mod trim;
