//! `marusa map TARGET`: the account of one JVM.

use super::deadline::DeadlineArgs;
use super::map_pages::{self, PageArgs, Read};
use super::{Failure, page_file};
use crate::base::limits::{TARGET_ALONE, TARGET_FILE, TargetLimits};
use crate::base::{Gap, Why};
use crate::jvm::hotspot::find;
use crate::map::model::MappingAccount;
use crate::map::{self, Account};
use crate::os::access;
use crate::os::budget;
use crate::os::core::Core;
use crate::os::host;
use crate::os::input_file;
use crate::os::maps::Mapping;
use crate::os::process::{OpenError, Process};
use crate::os::terminal::stdout;
use crate::show::json::MapDocument;
use crate::show::text;
use crate::show::units::human;
use crate::snapshot::file::{FileError, Frozen};
use crate::snapshot::resolve::{self, ResolveError};
use crate::snapshot::{self, Snapshot, Want};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug)]
pub struct MapArgs {
    /// A pid, or a part of the main class, jar or container name
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    target: Option<String>,
    /// What the rows are: by area, if nothing else is said
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Our areas, or the eight of the paper (OOPSLA 2010) and the Java heap
    #[arg(long, value_enum, default_value_t = Taxonomy::Marusa)]
    taxonomy: Taxonomy,
    /// The account of a file that `marusa freeze` wrote, or of a core dump
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Machine-readable, schema marusa/map/2: the whole account; with --by page-size or --require also page_sizes,
    /// page_findings (why not larger), page_claims and host_pages; with --zeros zeros; with --by mapping page_sizes and
    /// mappings; with --require requirements
    #[arg(long)]
    json: bool,
    /// One offline page instead: treemap, picture of all pages, tables, findings (the host is watched for a second)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "by", "taxonomy", "require"])]
    html: Option<PathBuf>,
    #[command(flatten)]
    pages: PageArgs,
    #[command(flatten)]
    deadline: DeadlineArgs,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Area,
    Part,
    Mapping,
    PageSize,
    Thread,
    Library,
    Arena,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Taxonomy {
    Marusa,
    Paper,
}

pub fn run(args: &MapArgs) -> anyhow::Result<u8> {
    args.deadline.set(if args.from.is_some() { TARGET_FILE } else { TARGET_ALONE });
    budget::within(budget::limits(), || account(args))
}

fn account(args: &MapArgs) -> anyhow::Result<u8> {
    let by = args.by.unwrap_or(By::Area);
    if args.taxonomy == Taxonomy::Paper && by != By::Area {
        return Err(Failure::usage("--taxonomy paper has areas only: leave --by out"));
    }
    if args.pages.ask && by != By::PageSize {
        return Err(Failure::usage("--ask asks the JVM for its page sizes: it needs --by page-size"));
    }
    if args.pages.zeros && by != By::PageSize {
        return Err(Failure::usage("--zeros looks into large pages: it needs --by page-size"));
    }
    // Not given back piece by piece: the process ends here, and that would take a fiftieth of its time.
    let taken = ManuallyDrop::new(take(args)?);
    let (snapshot, read) = &*taken;
    let map = ManuallyDrop::new(map::join(snapshot));
    if let Err(broken) = map::law::check(&map, snapshot) {
        crate::say!("marusa: the books do not balance, please report this: {broken}");
    }
    if let Some(path) = &args.html {
        // One that ended meanwhile has an account, but no findings of its host.
        let live =
            args.target.as_deref().filter(|_| args.from.is_none()).and_then(|target| open_any(target).ok());
        page_file::of_account(path, snapshot, &map, live)?;
        return Ok(0);
    }
    let wanted = wants_pages(args);
    let pages = if wanted { Some(map_pages::report(&args.pages, snapshot, &map, read)?) } else { None };
    let account = ManuallyDrop::new(Account::of(snapshot, &map));
    let mut out = BufWriter::new(stdout().lock());
    match (args.json, args.taxonomy, by) {
        (true, _, by) => {
            let mappings = (by == By::Mapping)
                .then(|| MappingAccount::all(snapshot, &map, &map::why::by_span(snapshot, &map)));
            let pages = pages.as_ref().map(|pages| pages.model(snapshot));
            let document = ManuallyDrop::new(MapDocument { account: &account, mappings, pages });
            serde_json::to_writer_pretty(&mut out, &*document)?;
            writeln!(out)?;
        }
        // A probe wants its answer, not the account.
        _ if args.by.is_none() && args.taxonomy == Taxonomy::Marusa && !args.pages.require.is_empty() => {}
        (_, Taxonomy::Paper, _) => text::by_paper(&mut out, &account)?,
        (_, _, By::Area) => text::by_area_and_part(&mut out, &account)?,
        (_, _, By::Part) => text::by_part(&mut out, &account)?,
        (_, _, By::Mapping) => text::by_mapping(&mut out, &account, snapshot, &map)?,
        (_, _, By::Thread) => text::by_thread(&mut out, &account)?,
        (_, _, By::Library) => text::by_library(&mut out, &account)?,
        (_, _, By::PageSize) => {
            text::by_page_size(&mut out, &account)?;
            pages.iter().try_for_each(|pages| pages.text(&mut out))?;
            text::gap_rows(&mut out, &account.gaps)?;
        }
        (_, _, By::Arena) => text::by_arena(&mut out, &account)?,
    }
    if let (Some(pages), false) = (&pages, args.json) {
        pages.requirements(&mut out)?;
    }
    out.flush()?;
    Ok(if pages.is_some_and(|pages| !pages.is_met()) { 1 } else { 0 })
}

/// Whether the reasons and the claims are asked for.
fn wants_pages(args: &MapArgs) -> bool {
    args.by == Some(By::PageSize) || !args.pages.require.is_empty()
}

fn want(args: &MapArgs) -> Want {
    let is_mapping = args.by == Some(By::Mapping);
    // smaps says what is locked in memory.
    Want {
        page_sizes: wants_pages(args) || is_mapping || args.html.is_some(),
        smaps: is_mapping || args.pages.zeros,
    }
}

fn take(args: &MapArgs) -> anyhow::Result<(Snapshot, Read)> {
    if let Some(path) = &args.from {
        let mut snapshot = thaw(path, budget::limits())?;
        snapshot.keep_only(want(args));
        return Ok((snapshot, Read::default()));
    }
    let target = args.target.as_deref().unwrap_or_default();
    let process = open_any(target)?;
    let attached = if args.pages.ask { Some(map_pages::attach(&process)?) } else { None };
    let mut snapshot = snapshot::take(&process, want(args)).map_err(|gap| unreadable(&process, &gap))?;
    let mut read = Read::default();
    if want(args).page_sizes {
        map_pages::read(&process, &mut snapshot);
    }
    if wants_pages(args) {
        read.said = map_pages::said(&process, attached.as_ref(), &mut snapshot.os.gaps);
        snapshot.taken.attached = attached.is_some();
    }
    if attached.is_some_and(|attached| attached.receipt.listener_started) {
        crate::say!("marusa: the JVM has one thread more now, the Attach Listener, until it ends");
    }
    // Looked at here: reading the mappings once more before would take a sixth of the time where there are many.
    check_jvm(&process, &snapshot.os.mappings)?;
    if args.pages.zeros {
        match map_pages::zeros(&process, &snapshot) {
            Ok(zeros) => {
                snapshot.os.gaps.extend(zeros.gaps.iter().cloned());
                read.zeros = Some(zeros);
            }
            Err(gap) => snapshot.os.gaps.push(gap),
        }
    }
    Ok((snapshot, read))
}

/// The snapshot that a file keeps: a frozen one, or a core, which is what begins as an ELF file or a packed one does.
pub(super) fn thaw(path: &Path, limits: TargetLimits) -> anyhow::Result<Snapshot> {
    budget::within(limits, || thaw_within(path))
}

fn thaw_within(path: &Path) -> anyhow::Result<Snapshot> {
    let unreadable = |error: FileError| Failure::target(format!("cannot read {}: {error}", path.display()));
    let opened = input_file::open(path);
    let mut file = BufReader::new(opened.map_err(|error| unreadable(error.into()))?);
    if Core::begins_like_one(file.fill_buf().map_err(|error| unreadable(error.into()))?) {
        return of_core(path);
    }
    Ok(Frozen::load(&mut file).map_err(unreadable)?.snapshot())
}

fn of_core(path: &Path) -> anyhow::Result<Snapshot> {
    let failed = |error: String| Failure::target(format!("cannot read {}: {error}", path.display()));
    // Some programs map thousands of files.
    host::allow_open_files();
    let core = Core::open(path).map_err(|error| failed(error.to_string()))?;
    snapshot::core::read(&core).map_err(|error| failed(error.to_string()))
}

/// The JVM that the user named.
pub fn open(target: &str) -> anyhow::Result<Process> {
    let process = open_any(target)?;
    check_jvm(&process, &process.mappings().map_err(|gap| unreadable(&process, &gap))?)?;
    Ok(process)
}

pub(super) fn open_any(target: &str) -> anyhow::Result<Process> {
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

pub(super) fn check_jvm(process: &Process, mappings: &[Mapping]) -> anyhow::Result<()> {
    if mappings.iter().any(find::is_jvm) {
        return Ok(());
    }
    Err(Failure::target(format!(
        "pid {} is no JVM: it maps neither libjvm.so nor libj9vm; `marusa list` shows the JVMs of this host",
        process.pid
    )))
}

/// What a shell gives a program that SIGINT ended, for a command that blocks signals and was interrupted while it read.
const INTERRUPTED: u8 = 130;

/// The failure that a gap in the kernel's view is: without the mappings there is no account. What everybody may read is
/// said all the same.
pub fn unreadable(process: &Process, gap: &Gap) -> anyhow::Error {
    let message =
        format!("pid {} can not be read: {gap}", process.pid).replace("/PID/", &format!("/{}/", process.pid));
    if gap.why == Why::Interrupted {
        return Failure { status: INTERRUPTED, message: "interrupted".to_string() }.into();
    }
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
    Failure::rights(format!("{message}\n{}{sums}", access::refused(process)))
}
