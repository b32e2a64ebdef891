//! Tests that change the host's settings, fill its memory, or need it quiet: each runs alone.

mod bench_fork;
mod bench_server;
mod bench_swap;
mod bloat;
mod build_server;
#[path = "../common/mod.rs"]
mod common;
mod doctor;
mod doctor_host;
mod page_claims;
mod page_sizes;
mod pages_collapse;
mod pages_door;
mod pages_need;
mod pages_prove;
mod pages_verify;
mod stalls;
mod tlb;
mod tracing;
