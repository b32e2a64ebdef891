//! One offline page, written to a file: `map --html` and `report`.

use super::{Failure, doctor};
use crate::base::rfc3339;
use crate::map::{self, Account, MemoryMap};
use crate::os::output_file::OutputFile;
use crate::os::process::Process;
use crate::os::{file_mode, terminal};
use crate::show::html::{self, Findings, Moment, Page};
use crate::snapshot::Snapshot;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Time for which the counters of the host are watched for the findings of a page, as by `doctor`.
pub(super) const WATCH: Duration = Duration::from_secs(1);

/// The page of one account; `live`: the process, if it still runs, for the findings of its host.
pub fn of_account(
    path: &Path,
    snapshot: &Snapshot,
    map: &MemoryMap,
    account: &Account,
    live: Option<Process>,
) -> anyhow::Result<()> {
    let title = title(snapshot);
    let findings = match live {
        Some(process) => doctor::of_one(process, WATCH),
        None => doctor::of_kept(snapshot.clone()),
    };
    let grid = map::grid::grid(snapshot, map);
    let page = Page {
        title,
        made_at: rfc3339(SystemTime::now()),
        moment: Some(Moment { account, snapshot, map, grid: grid.as_ref() }),
        histories: &[],
        others: None,
        growth: &[],
        findings: Some(Findings { list: &findings, looked_at: "" }),
        gaps: &account.gaps,
        nonce: nonce(),
    };
    write(path, &page)
}

/// The main class or jar says most. A frozen file has no command.
fn title(snapshot: &Snapshot) -> String {
    let process = &snapshot.os.process;
    let line = crate::jvm::command_line::parse(&process.arguments);
    match line.main.filter(|_| !line.may_be_in_file) {
        Some(main) => {
            let name = process.server.clone().unwrap_or(main);
            format!("{name}, pid {}", process.pid)
        }
        None => format!("pid {}", process.pid),
    }
}

/// "-": standard output.
pub fn write(path: &Path, page: &Page) -> anyhow::Result<()> {
    if path == Path::new("-") {
        let mut out = BufWriter::new(terminal::document());
        html::page(&mut out, page)?;
        return Ok(out.flush()?);
    }
    let written = || -> io::Result<u64> {
        let mut out = BufWriter::new(OutputFile::create(path, file_mode::wanted())?);
        html::page(&mut out, page)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
    };
    let failed = |error: std::io::Error| Failure::unwritable(path, error);
    let bytes = written().map_err(failed)?;
    crate::say!("marusa: {} written, {}: open it in a browser", path.display(), crate::base::human(bytes));
    Ok(())
}

/// 128 bits of the kernel's own chance.
pub fn nonce() -> String {
    let mut bytes = [0_u8; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    if read.is_err() {
        bytes.iter_mut().for_each(|byte| *byte = fastrand::u8(..));
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
