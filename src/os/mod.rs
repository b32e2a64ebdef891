//! The kernel's view of a process, read only. One file is one kernel interface: its struct, its parser, its tests.
//! Nothing here knows Java or malloc, writes to the target, or prints.

pub mod aliases;
pub mod cgroup;
pub mod containers;
pub mod core;
pub mod cpu;
pub mod cpu_identity;
pub mod elf;
pub mod facts;
mod folio_look;
mod folio_sample;
pub mod folios;
pub mod free_memory;
pub mod host;
pub mod host_folios;
pub mod host_pages;
pub mod hugetlb;
mod kernel_config;
pub mod kpageflags;
pub mod live;
pub mod maps;
pub mod memory;
pub mod output;
mod page_cache;
pub mod page_kind;
pub mod pagemap;
mod pagemap_scan;
pub mod pagemap_words;
pub mod perf;
pub mod priority;
pub mod process;
pub mod recording;
pub mod sharing;
pub mod smaps;
pub mod status;
pub mod symbols;
pub mod target;
pub mod thp;
pub mod users;

pub use memory::{Fault, Memory};
pub use target::{OsView, Symbols, Target};
