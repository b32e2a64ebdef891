//! Real JVMs, every JDK and collector that installs here. Each test looks at JVMs and files of its own and changes nothing on the
//! host,
//! so two run at a time.

mod account;
mod audit;
mod bench_account;
mod budget;
mod buffers;
mod cli;
#[path = "../common/mod.rs"]
mod common;
mod compare;
mod compiling;
mod container;
mod doctor_holders;
mod embedded;
mod foreign_files;
mod gc_log;
mod heap;
mod holders;
mod holders_truth;
mod hostile;
mod identity;
mod larger_pages;
mod loaders;
mod malloc;
mod native_image;
mod netty;
mod nmt;
mod outputs;
mod owners;
mod pages_plan;
mod record;
mod report;
mod schemas;
mod serve;
mod trim;
mod unsafe_memory;
mod why;
mod zero_touch;
