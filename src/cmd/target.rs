//! What a command examines: the JVM that the user named, or the snapshot that a file keeps; and the failure where there is none.

use super::Failure;
use crate::act::signals::Waiting;
use crate::base::limits::TargetLimits;
use crate::base::{Bytes, Gap, Why};
use crate::os::core::Core;
use crate::os::maps::Mapping;
use crate::os::process::{OpenError, Process};
use crate::os::{access, budget, host, input_file, loaded, smaps};
use crate::show::units::human;
use crate::snapshot::file::{FileError, Frozen};
use crate::snapshot::resolve::{self, ResolveError};
use crate::snapshot::{self, Snapshot, Want};
use anyhow::Context;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The snapshot that a file keeps: a frozen one, or a core, which is what begins as an ELF file or a packed one does. With what
/// else is wanted, where the file has it.
pub fn thaw(path: &Path, limits: TargetLimits, want: Want) -> anyhow::Result<Snapshot> {
    budget::within(limits, || thaw_within(path, want))
}

fn thaw_within(path: &Path, want: Want) -> anyhow::Result<Snapshot> {
    let unreadable = |error: FileError| Failure::unreadable(path, error);
    let opened = input_file::open(path);
    let mut file = BufReader::new(opened.map_err(|error| unreadable(error.into()))?);
    if Core::begins_like_one(file.fill_buf().map_err(|error| unreadable(error.into()))?) {
        return of_core(path, want);
    }
    Ok(Frozen::load(&mut file).map_err(unreadable)?.snapshot_with(want))
}

fn of_core(path: &Path, want: Want) -> anyhow::Result<Snapshot> {
    // Some programs map thousands of files.
    host::allow_open_files();
    let core = Core::open(path).map_err(|error| Failure::unreadable(path, error))?;
    snapshot::core::read(&core, want).map_err(|error| Failure::unreadable(path, error))
}

/// The JVM that the user named.
pub fn open(target: &str) -> anyhow::Result<Process> {
    let process = open_any(target)?;
    check_jvm(&process, &process.mappings().map_err(|gap| unreadable(&process, &gap))?)?;
    Ok(process)
}

pub fn open_any(target: &str) -> anyhow::Result<Process> {
    let pid = match target.parse() {
        Ok(pid) => pid,
        Err(_) => resolve::resolve(target).map_err(|error| match error {
            ResolveError::Several { .. } => Failure::usage(error.to_string()),
            _ => Failure::target(error.to_string()),
        })?,
    };
    Process::open(pid).map_err(|error| match error {
        OpenError::Denied(..) | OpenError::Hidden(..) => Failure::rights(error.to_string()),
        _ => Failure::target(error.to_string()),
    })
}

/// A snapshot of an opened process.
pub fn take(process: &Process, want: Want) -> anyhow::Result<Snapshot> {
    snapshot::take(process, want).map_err(|gap| unreadable(process, &gap))
}

/// The kernel's sum for the process: the exact one where this kernel has it.
pub fn resident(process: &Process) -> anyhow::Result<Bytes> {
    if let Ok(sum) = smaps::rollup(process) {
        return Ok(sum.present_bytes());
    }
    let status = process.status().map_err(|gap| unreadable(process, &gap))?;
    status
        .resident_with_hugetlb_bytes()
        .ok_or_else(|| Failure::target(format!("pid {} is gone", process.pid)))
}

/// This process, through which the host is read.
pub fn own() -> anyhow::Result<Process> {
    Process::own().context("cannot read /proc")
}

/// Where a signal to us is waited for, and the end of this process.
pub fn waiting(process: &Process) -> anyhow::Result<Waiting> {
    Waiting::on(process).with_context(|| format!("cannot watch pid {}", process.pid))
}

pub fn check_jvm(process: &Process, mappings: &[Mapping]) -> anyhow::Result<()> {
    if loaded::any_vm(mappings).is_some() {
        return Ok(());
    }
    Err(Failure::target(format!(
        "pid {} is not a JVM: it maps neither libjvm.so nor libj9vm; `marusa list` shows the JVMs of this host",
        process.pid
    )))
}

/// What a shell gives a program that SIGINT ended, for a command that blocks signals and was interrupted while it read.
const INTERRUPTED: u8 = 130;

/// The failure that a gap in the kernel's view is: without the mappings there is no account. The figures that need no rights are
/// printed anyway.
pub fn unreadable(process: &Process, gap: &Gap) -> anyhow::Error {
    let message =
        format!("pid {} cannot be read: {gap}", process.pid).replace("/PID/", &format!("/{}/", process.pid));
    if gap.why == Why::Interrupted {
        return Failure { status: INTERRUPTED, message: "interrupted".to_string() }.into();
    }
    if gap.why != Why::Denied {
        return Failure::target(message);
    }
    let sums = process.status().map(|status| {
        let figure = |bytes: Option<u64>| bytes.map_or("unknown".to_string(), human);
        format!(
            "\nreadable without rights (/proc/{}/status): resident {}, of it anonymous {}, files {}, shared {}; swapped {}",
            process.pid,
            figure(status.resident_bytes),
            figure(status.resident_anon_bytes),
            figure(status.resident_file_bytes),
            figure(status.resident_shmem_bytes),
            figure(status.swapped_bytes)
        )
    });
    let sums = sums.unwrap_or_default();
    Failure::rights(format!("{message}\n{}{sums}", access::refused(process)))
}
