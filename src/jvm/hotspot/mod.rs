//! HotSpot, JDK 8 to 25 and on, read through its own tables (vmStructs).

pub mod find;
pub mod vmstructs;
