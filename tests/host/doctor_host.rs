//! `marusa doctor` on a host whose memory is in small pieces, short or waited for: faults that take the whole host, made one
//! after the other. What they are, and the test that docs/doctor.md lists them, is in tests/host/doctor.

use crate::common::fragments::Fragments;
use crate::common::host::Host;
use crate::common::{is_long, is_root, skip};
use crate::doctor::made::Fault;
use crate::doctor::{busy, faults_of_memory};
use std::time::Instant;

/// `MARUSA_FAULT=name` makes only those whose name contains it.
fn is_wanted(fault: &&Fault) -> bool {
    std::env::var("MARUSA_FAULT").map_or(true, |name| fault.name.contains(&name))
}

fn check(faults: &[Fault], host: &mut Host) -> Vec<String> {
    let mut wrong = Vec::new();
    for fault in faults.iter().filter(is_wanted) {
        let started = Instant::now();
        let checked = fault.check_on(host);
        println!("{:<60} {:4.1} s {checked:?}", fault.name, started.elapsed().as_secs_f64());
        wrong.extend(checked.err().map(|why| format!("{}: {why}", fault.name)));
    }
    wrong
}

#[test]
fn each_fault_of_the_host_is_found_and_nothing_else_at_its_level() {
    if !is_root() {
        return skip("only root may change the host's settings");
    }
    let mut host = Host::lock();
    busy::await_averages();
    busy::wait_for_calm();
    let mut wrong = check(faults_of_memory::WHOLE, &mut host);
    if let Some(mut fragments) = Fragments::make(&mut host) {
        println!("{}", fragments.report);
        let in_pieces = faults_of_memory::IN_PIECES;
        // Each takes seconds of a machine that is short of memory: `make test-long` has them all.
        wrong.extend(check(if is_long() { in_pieces } else { &in_pieces[..1] }, &mut host));
        assert!(fragments.are_there(), "memory became short");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
