//! `marusa pages plan`: from a JVM that runs, is installed or is only named to a plan. It changes nothing.

use super::code;
use crate::act::ask_jdk::{self, AskError};
use crate::act::door::identity;
use crate::base::printable::escaped_lines;
use crate::base::{Gap, Why, refuse, rfc3339};
use crate::cmd::bench::jdk::release_of;
use crate::cmd::{self, Failure, amount, check_output, write_output};
use crate::os::host_memory::HostMemory;
use crate::os::machine::{base_page, huge_page};
use crate::os::process::Process;
use crate::os::terminal::{self, stdout};
use crate::os::{cpus, host};
use crate::pages::emit::Emit;
use crate::pages::feasible::Preference;
use crate::pages::plan;
use crate::pages::request::{Request, Running};
use crate::pages::subject::{self, Wanted};
use crate::pages::{Feasible, Mode, Plan, Subject, Vm, persist};
use crate::show::json;
use crate::show::pages::{code as show_code, plan as show};
use crate::snapshot::{Snapshot, Want};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["target", "jdk"]))]
pub struct PlanArgs {
    /// A running JVM: a pid, or a part of the main class, jar or container name
    target: Option<String>,
    /// A JVM that is not running yet: the directory of a JDK, or hotspot-8 to -25, openj9-8 to -25; with --heap
    #[arg(long, value_name = "PATH|NAME")]
    jdk: Option<String>,
    /// Plan for the code of the JDK at --jdk PATH instead of the heap: its libraries on a tmpfs with huge pages
    #[arg(long, requires = "jdk", conflicts_with_all = ["gc", "heap", "mode", "unit", "emit"])]
    code: bool,
    /// serial, parallel, cms, g1, zgc, zgc-generational, shenandoah, shenandoah-generational, epsilon
    #[arg(long, requires = "jdk")]
    gc: Option<String>,
    /// As -Xmx: 6g
    #[arg(long, requires = "jdk", value_parser = amount::bytes)]
    heap: Option<u64>,
    /// As -Xms; as --heap if not given
    #[arg(long, requires = "jdk", value_parser = amount::bytes)]
    initial_heap: Option<u64>,
    /// As -XX:ReservedCodeCacheSize; the JDK's default if not given
    #[arg(long, requires = "jdk", value_parser = amount::bytes)]
    code_cache: Option<u64>,
    /// CPUs that the JVM will count [default: those of this process]
    #[arg(long, requires = "jdk", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    cpus: Option<u32>,
    /// A further option of the JVM; may be repeated
    #[arg(long, requires = "jdk", value_name = "OPTION", allow_hyphen_values = true)]
    jvm_option: Vec<String>,
    /// Kind of pages; auto reports the rule by which it chose
    #[arg(long, value_enum, default_value_t = ModeArg::Auto)]
    mode: ModeArg,
    /// Number of such JVMs that run at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=4096))]
    instances: u64,
    /// Let the kernel find the pages when the JVM starts: gentle, but not guaranteed
    #[arg(long, conflicts_with = "pool")]
    overcommit: bool,
    /// Reserve the pages now
    #[arg(long)]
    pool: bool,
    /// Shared memory of System V (-XX:+UseSHM, JDK 8 to 21)
    #[arg(long)]
    shm: bool,
    /// The group of the JVM's user, for huge pages of shared memory (OpenJ9, --shm)
    #[arg(long, value_name = "GID")]
    group: Option<u32>,
    /// The systemd service that starts the JVM: `apply --persist` adds the options to it
    #[arg(long, value_name = "SERVICE")]
    unit: Option<String>,
    /// Name of the plan, and of the files that it makes
    #[arg(long)]
    name: Option<String>,
    /// File for the plan, for apply, verify and undo
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The plan itself, schema marusa/pages-plan/2
    #[arg(long, conflicts_with = "emit")]
    json: bool,
    /// Print the plan as configuration of other tools
    #[arg(long, value_enum)]
    emit: Option<Emit>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum ModeArg {
    /// The size that the processor has for huge pages: 2M; with base pages of 16 KiB 32M, of 64 KiB 512M
    #[value(name = "hugetlb")]
    HugeTlb,
    #[value(name = "hugetlb-2m")]
    HugeTlb2M,
    #[value(name = "hugetlb-1g")]
    HugeTlb1G,
    Thp,
    Auto,
}

pub fn run(args: &PlanArgs) -> anyhow::Result<u8> {
    args.output.iter().try_for_each(|path| check_output(path))?;
    let plan = match (args.code, &args.jdk) {
        (true, Some(jdk)) => {
            code::plan(Path::new(jdk), args.name.as_deref().map(plan::clean_name), identity::here())?
        }
        _ => make(args)?,
    };
    if let Some(path) = &args.output {
        save(path, &plan)?;
    }
    let mut out = stdout().lock();
    match (args.emit, args.json) {
        (Some(kind), _) => terminal::data().write_all(kind.text(&plan).as_bytes())?,
        (None, true) => json::print(&mut out, &plan)?,
        (None, false) if args.code => {
            show_code::text(&mut out, &plan, args.output.as_deref().and_then(Path::to_str))?
        }
        (None, false) => show::text(&mut out, &plan, args.output.as_deref().and_then(Path::to_str))?,
    }
    out.flush()?;
    Ok(if plan.outlook.feasible == Feasible::No { 1 } else { 0 })
}

fn save(path: &Path, plan: &Plan) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(plan)? + "\n";
    write_output(path, &escaped_lines(&text))
}

/// The JVM, and what is known of it.
struct Found {
    subject: Subject,
    process: Process,
    launch: Vec<String>,
    recommended: Vec<String>,
    running: Option<Running>,
    gaps: Vec<Gap>,
}

fn make(args: &PlanArgs) -> anyhow::Result<Plan> {
    let found = match (&args.target, &args.jdk) {
        (Some(target), _) => of_target(args, target)?,
        (None, Some(jdk)) => of_jdk(args, jdk)?,
        (None, None) => refuse!("a TARGET or --jdk is needed"),
    };
    let host = HostMemory::read(&found.process).map_err(|gap| Failure::target(gap.to_string()))?;
    fits(found.subject.heap_max_bytes, args.instances, host.meminfo.total_bytes)?;
    let unit = args.unit.as_deref().map(|unit| {
        persist::unit_name(unit)
            .ok_or_else(|| Failure::usage(format!("'{unit}' is not the name of a service")))
    });
    let request = Request {
        subject: found.subject,
        mode: match args.mode {
            ModeArg::HugeTlb => Some(Mode::hugetlb()),
            ModeArg::HugeTlb2M => Some(Mode::HugeTlb2M),
            ModeArg::HugeTlb1G => Some(Mode::HugeTlb1G),
            ModeArg::Thp => Some(Mode::Thp),
            ModeArg::Auto => None,
        },
        preference: match (args.pool, args.overcommit) {
            (true, _) => Preference::Pool,
            (_, true) => Preference::Overcommit,
            _ => Preference::Auto,
        },
        instances: args.instances,
        name: args.name.as_deref().map(plan::clean_name),
        host: &host,
        host_id: identity::here(),
        made_at: rfc3339(SystemTime::now()),
        made_by: format!("marusa {}", env!("CARGO_PKG_VERSION")),
        launch: found.launch,
        recommended: found.recommended,
        running: found.running,
        shm: args.shm,
        group: args.group,
        unit: unit.transpose()?,
        gaps: found.gaps,
    };
    Ok(plan::make(&request)?)
}

fn fits(heap: u64, instances: u64, total: u64) -> anyhow::Result<()> {
    if heap.saturating_mul(instances) < total {
        return Ok(());
    }
    let times = if instances > 1 { format!("{instances} times ") } else { String::new() };
    Err(Failure::usage(format!(
        "{times}a heap of {} MiB does not fit into this host's memory of {} MiB",
        heap >> 20,
        total >> 20
    )))
}

/// A running JVM is planned for as it runs; clap does not ask for --jdk where a TARGET excludes it.
fn only_as_it_runs(args: &PlanArgs) -> anyhow::Result<()> {
    let given = [
        ("--gc", args.gc.is_some()),
        ("--heap", args.heap.is_some()),
        ("--initial-heap", args.initial_heap.is_some()),
        ("--code-cache", args.code_cache.is_some()),
        ("--cpus", args.cpus.is_some()),
        ("--jvm-option", !args.jvm_option.is_empty()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::usage(format!(
            "cannot plan for a running JVM with another {option}: the plan is for the JVM as it runs; give --jdk with --gc and \
             --heap instead of TARGET"
        ))),
    }
}

fn of_target(args: &PlanArgs, target: &str) -> anyhow::Result<Found> {
    only_as_it_runs(args)?;
    let process = cmd::target::open(target)?;
    let snapshot = cmd::target::take(&process, Want::default())?;
    let jvm = snapshot.jvm.as_ref().map_err(|gap| not_planned(&process, gap))?;
    let above = jvm.major.as_ref().is_ok_and(|major| *major >= 24);
    let mut gaps = Vec::new();
    let cpus = cpus::of(&process, above).map(|cpus| cpus.count()).unwrap_or_else(|gap| {
        gaps.push(gap);
        1
    });
    let subject = subject::of_jvm(jvm, cpus).map_err(|gap| not_planned(&process, &gap))?;
    let running = Some(running(&snapshot));
    Ok(Found { subject, process, launch: Vec::new(), recommended: Vec::new(), running, gaps })
}

fn not_planned(process: &Process, gap: &Gap) -> anyhow::Error {
    let message = format!(
        "pid {} cannot be planned for: {gap}; --jdk PATH --gc .. --heap .. plans without it",
        process.pid
    );
    Failure::unread(gap.why, message)
}

/// What it gives back before its successor starts.
fn running(snapshot: &Snapshot) -> Running {
    let status = &snapshot.os.status;
    let mut held: Vec<(u64, u64)> = Vec::new();
    let huge = |name: &str| name.contains("hugepage") || name.contains("hugetlb");
    for mapping in snapshot.os.mappings.iter().filter(|mapping| huge(&mapping.path)) {
        // HotSpot's are anonymous to the JVM, and "/anon_hugepage (deleted)" to the kernel.
        let page_bytes = snapshot.os.pages.iter().flatten().find(|run| mapping.range.has(run.range.start));
        let page_bytes = page_bytes.map_or_else(huge_page, |run| u64::from(run.page_bytes)).max(64 << 10);
        match held.iter_mut().find(|(bytes, _)| *bytes == page_bytes) {
            Some((_, pages)) => *pages += mapping.range.bytes() / page_bytes,
            None => held.push((page_bytes, mapping.range.bytes() / page_bytes)),
        }
    }
    let anonymous =
        status.resident_anon_bytes.unwrap_or(0).saturating_add(status.resident_shmem_bytes.unwrap_or(0));
    Running { held, released_bytes: anonymous, thp_enabled: status.thp_enabled }
}

fn of_jdk(args: &PlanArgs, jdk: &str) -> anyhow::Result<Found> {
    let process = cmd::target::own()?;
    let own = || cpus::of(&process, true).map(|cpus| cpus.count());
    let cpus = match args.cpus {
        Some(cpus) => cpus,
        None => own().map_err(|gap| Failure::usage(gap.to_string()))?,
    };
    let Some(heap) = args.heap else {
        refuse!("cannot plan for --jdk without a heap; give --heap SIZE, as -Xmx has it (6g)");
    };
    let wanted = Wanted {
        gc: args.gc.clone(),
        heap_bytes: heap.checked_next_multiple_of(base_page()).unwrap_or(u64::MAX),
        initial_bytes: args.initial_heap,
        code_cache_bytes: args.code_cache,
        cpus,
        cpus_given: args.cpus.is_some(),
        options: args.jvm_option.clone(),
    };
    if wanted.heap_bytes == 0 || args.initial_heap.is_some_and(|initial| initial > wanted.heap_bytes) {
        refuse!("--heap must be greater than 0, and --initial-heap no more than --heap");
    }
    fits(wanted.heap_bytes, args.instances, memory_bytes())?;
    let path = Path::new(jdk);
    let (subject, gaps) = match path.exists() {
        true => installed(path, &wanted)?,
        false => (by_name(jdk, &wanted)?, Vec::new()),
    };
    let launch = wanted.launch(subject.vm, subject.feature)?;
    let is_given = |option: &String| args.initial_heap.is_some() || args.jvm_option.contains(option);
    let is_own = |option: &&String| option.starts_with("-Xms") && !is_given(option);
    let recommended = launch.iter().filter(is_own).cloned().collect();
    Ok(Found { subject, process, launch, recommended, running: None, gaps })
}

fn by_name(jdk: &str, wanted: &Wanted) -> anyhow::Result<Subject> {
    if jdk.contains('/') {
        refuse!("there is no {jdk}");
    }
    let (vm, feature) = subject::named(jdk)?;
    Ok(wanted.by_name(vm, feature, memory_bytes())?)
}

fn memory_bytes() -> u64 {
    let host = crate::os::meminfo::parse(&host::text("/proc/meminfo").unwrap_or_default());
    host.map_or(0, |host| host.total_bytes)
}

/// A JDK in a directory: asked for its flags where it runs here, else known by its release.
fn installed(path: &Path, wanted: &Wanted) -> anyhow::Result<(Subject, Vec<Gap>)> {
    let home = ask_jdk::home(path).map_err(|error| Failure::usage(error.to_string()))?;
    let release = ask_jdk::release(&home);
    let text = home.display().to_string();
    let (vm, feature, version) = release_of(&home).map_err(Failure::usage)?;
    let launch = wanted.launch(vm, feature)?;
    let unasked = |version| -> anyhow::Result<Subject> {
        let subject = wanted.by_name(vm, feature, memory_bytes())?;
        Ok(Subject { version, java_home: Some(text.clone()), ..subject })
    };
    if vm == Vm::OpenJ9 {
        return Ok((unasked(version)?, Vec::new()));
    }
    match ask_jdk::flags(&home, &launch) {
        Ok(answer) => {
            let version = subject::release_of(release.as_deref(), &answer.version).and_then(|found| found.2);
            let asked = subject::of_flags(&answer.flags, feature, version, text.clone(), wanted.cpus);
            Ok((asked.map_err(|gap| Failure::usage(gap.to_string()))?, Vec::new()))
        }
        Err(error @ (AskError::NotRun { .. } | AskError::TooSlow { .. } | AskError::Interrupted { .. })) => {
            let gap = Gap::new(format!("the flags of {text}: {error}"), Why::NotMeasured)
                .hint("the defaults of its release are taken");
            Ok((unasked(version)?, vec![gap]))
        }
        Err(error) => Err(Failure::usage(error.to_string())),
    }
}
