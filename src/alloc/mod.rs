//! Malloc's view: which allocator the process has, and which memory it holds. Never names `jvm`: they meet in `map`.

pub mod types;

pub use types::*;
