//! `marusa map TARGET`: the account of one JVM.

use super::Failure;
use crate::base::{Gap, Why};
use crate::jvm::hotspot::find;
use crate::map;
use crate::os::core::Core;
use crate::os::maps::Mapping;
use crate::os::process::{OpenError, Process};
use crate::show::units::human;
use crate::show::{json, text};
use crate::snapshot::file::{FileError, Frozen};
use crate::snapshot::resolve::{self, ResolveError};
use crate::snapshot::{self, Snapshot, page_settings};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug)]
pub struct MapArgs {
    /// A pid, or a part of the main class, jar or container name
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    target: Option<String>,
    /// What the rows are
    #[arg(long, value_enum, default_value_t = By::Area)]
    by: By,
    /// Our areas, or the eight of the paper (OOPSLA 2010) and the Java heap
    #[arg(long, value_enum, default_value_t = Taxonomy::Marusa)]
    taxonomy: Taxonomy,
    /// The account of a file that `marusa freeze` wrote, or of a core dump
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Machine-readable, schema marusa/map/1
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Area,
    Part,
    Mapping,
    Thread,
    Library,
    Arena,
    PageSize,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Taxonomy {
    Marusa,
    Paper,
}

pub fn run(args: &MapArgs) -> anyhow::Result<u8> {
    if args.taxonomy == Taxonomy::Paper && args.by != By::Area {
        return Err(Failure::usage("--taxonomy paper has areas only: leave --by out"));
    }
    let snapshot = take(args)?;
    let map = map::join(&snapshot);
    if let Err(broken) = map::law::check(&map, &snapshot) {
        eprintln!("marusa: the books do not balance, please report this: {broken}");
    }
    let mut out = BufWriter::new(stdout().lock());
    match (args.json, args.taxonomy, args.by) {
        (true, _, by) => {
            let mut json = json::map(&snapshot, &map);
            if by == By::Mapping {
                json["mappings"] = json::mappings(&snapshot, &map).into();
            }
            if by == By::PageSize {
                json["page_findings"] = json::pages::findings(&map::why::findings(&snapshot, &map)).into();
                json["host_pages"] = json::pages::host(&snapshot);
            }
            serde_json::to_writer_pretty(&mut out, &json)?;
            writeln!(out)?;
        }
        (_, Taxonomy::Paper, _) => text::by_paper(&mut out, &snapshot, &map)?,
        (_, _, By::Area) => text::by_area_and_part(&mut out, &snapshot, &map)?,
        (_, _, By::Part) => text::by_part(&mut out, &snapshot, &map)?,
        (_, _, By::Mapping) => text::by_mapping(&mut out, &snapshot, &map)?,
        (_, _, By::Thread) => text::by_thread(&mut out, &snapshot, &map)?,
        (_, _, By::Library) => text::by_library(&mut out, &snapshot, &map)?,
        (_, _, By::PageSize) => {
            text::head(&mut out, &snapshot, &map)?;
            text::why_not_larger(&mut out, &map::why::findings(&snapshot, &map))?;
        }
        (_, _, By::Arena) => text::by_arena(&mut out, &snapshot, &map)?,
    }
    out.flush()?;
    Ok(0)
}

fn take(args: &MapArgs) -> anyhow::Result<Snapshot> {
    if let Some(path) = &args.from {
        return thaw(path);
    }
    let target = args.target.as_deref().unwrap_or_default();
    let process = open_any(target)?;
    let mut snapshot = snapshot::take(&process).map_err(|gap| unreadable(&process, &gap))?;
    if args.by == By::PageSize {
        snapshot.taken.page_settings = Some(page_settings::read(&process, &snapshot));
    }
    // Looked at here: reading the mappings once more before would take a sixth of the time where there are many.
    check_jvm(&process, &snapshot.os.mappings)?;
    Ok(snapshot)
}

/// The snapshot that a file keeps: a frozen one, or a core, which is what begins as an ELF file or a packed one does.
fn thaw(path: &Path) -> anyhow::Result<Snapshot> {
    let unreadable = |error: FileError| Failure::target(format!("{}: {error}", path.display()));
    let mut file = BufReader::new(File::open(path).map_err(|error| unreadable(error.into()))?);
    if Core::begins_like_one(file.fill_buf().map_err(|error| unreadable(error.into()))?) {
        return of_core(path);
    }
    Ok(Frozen::load(&mut file).map_err(unreadable)?.snapshot())
}

fn of_core(path: &Path) -> anyhow::Result<Snapshot> {
    let failed = |error: String| Failure::target(format!("{}: {error}", path.display()));
    let core = Core::open(path).map_err(|error| failed(error.to_string()))?;
    snapshot::core::read(&core).map_err(|error| failed(error.to_string()))
}

/// The JVM that the user named.
pub fn open(target: &str) -> anyhow::Result<Process> {
    let process = open_any(target)?;
    check_jvm(&process, &process.mappings().map_err(|gap| unreadable(&process, &gap))?)?;
    Ok(process)
}

fn open_any(target: &str) -> anyhow::Result<Process> {
    let pid = match target.parse() {
        Ok(pid) => pid,
        Err(_) => resolve::resolve(target).map_err(|error| match error {
            ResolveError::Several { .. } => Failure::usage(error.to_string()),
            _ => Failure::target(error.to_string()),
        })?,
    };
    Process::open(pid).map_err(|error| match error {
        OpenError::Denied(..) => Failure::rights(error.to_string()),
        _ => Failure::target(error.to_string()),
    })
}

fn check_jvm(process: &Process, mappings: &[Mapping]) -> anyhow::Result<()> {
    if mappings.iter().any(find::is_jvm) {
        return Ok(());
    }
    Err(Failure::target(format!(
        "pid {} is no JVM: it maps neither libjvm.so nor libj9vm; `marusa list` shows the JVMs of this host",
        process.pid
    )))
}

/// The failure that a gap in the kernel's view is: without the mappings there is no account. What everybody may read is
/// said all the same.
pub fn unreadable(process: &Process, gap: &Gap) -> anyhow::Error {
    let message = format!("pid {} can not be read: {gap}", process.pid);
    if gap.why != Why::Denied {
        return Failure::target(message);
    }
    let sums = process.status().map(|status| {
        let figure = |bytes: Option<u64>| bytes.map_or("unknown".to_string(), human);
        format!(
            "\nwhat everybody may read (/proc/{}/status): resident {}, of it anonymous {}, files {}, shared {}; swapped {}",
            process.pid,
            figure(status.resident_bytes),
            figure(status.resident_anon_bytes),
            figure(status.resident_file_bytes),
            figure(status.resident_shmem_bytes),
            figure(status.swapped_bytes)
        )
    });
    let sums = sums.unwrap_or_default();
    Failure::rights(format!(
        "{message}\nthe account needs CAP_SYS_PTRACE: run marusa as root or as the JVM's own user{sums}"
    ))
}
