//! `marusa doctor [TARGET]`: what is wrong with the memory of a JVM, of all JVMs, or of their host.

use super::deadline::DeadlineArgs;
use super::record::file;
use super::{Failure, amount, answer, target};
use crate::act::fork_price;
use crate::base::limits::{TARGET_ALONE, TARGET_FILE, TARGET_OF_MANY};
use crate::base::{Gap, Why, refuse};
use crate::doctor::facts::gather::{self, Gathered, Patient, Who};
use crate::doctor::if_xmx::IfXmx;
use crate::doctor::{self, CATALOG, Finding, Level, Subject, recorded, rules};
use crate::os::budget;
use crate::os::process::Process;
use crate::os::terminal::stdout;
use crate::record::Recording;
use crate::show::doctor as show;
use crate::show::json::print;
use crate::snapshot::{Snapshot, Want};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub struct DoctorArgs {
    /// A pid, or a part of the main class, jar or container name, or a recording; without it the host and all its JVMs
    #[arg(conflicts_with_all = ["host", "from"])]
    target: Option<String>,
    /// Only the host
    #[arg(long, conflicts_with = "from")]
    host: bool,
    /// A recording, a file that `marusa freeze` wrote, or a core dump: what is wrong inside that JVM
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Time for which the counters of the host are watched
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = "1s")]
    watch: Duration,
    /// Exit with 1 on findings of this level or worse
    #[arg(long, value_enum, value_name = "LEVEL")]
    fail_on: Option<Level>,
    /// Leave out the finding with this id; may be repeated
    #[arg(long, value_name = "ID")]
    ignore: Vec<String>,
    /// Machine-readable, schema marusa/doctor/2
    #[arg(long, conflicts_with = "sarif")]
    json: bool,
    /// Machine-readable, SARIF 2.1.0
    #[arg(long)]
    sarif: bool,
    /// Check only whether the JVM would fit in its limit with this -Xmx: 512m, 2g; exit status 1 if not
    #[arg(
        long, value_name = "SIZE", value_parser = amount::bytes, requires = "target",
        conflicts_with_all = ["from", "fail_on", "ignore"]
    )]
    if_xmx: Option<u64>,
    /// Also read and judge the holders of malloc's blocks: a second for each 2 GB of Java heap
    #[arg(long, conflicts_with_all = ["host", "from", "if_xmx", "list", "explain"])]
    holders: bool,
    /// List all findings: id, levels, and title
    #[arg(long, conflicts_with_all = ["target", "host", "from", "sarif"])]
    list: bool,
    /// Explain a finding: what it means, when it is reported, what to do
    #[arg(long, value_name = "ID", conflicts_with_all = ["target", "host", "from", "sarif", "json", "list"])]
    explain: Option<String>,
    /// Also name the processes that a sandbox hides from root
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    deadline: DeadlineArgs,
}

pub fn run(args: &DoctorArgs) -> anyhow::Result<u8> {
    let mut out = BufWriter::new(stdout().lock());
    if let Some(id) = &args.explain {
        let entry = CATALOG.iter().find(|entry| entry.rule.id == id).ok_or_else(|| unknown(id))?;
        show::page(&mut out, entry.page)?;
        out.flush()?;
        return Ok(0);
    }
    if let Some(id) = args.ignore.iter().find(|id| CATALOG.iter().all(|entry| entry.rule.id != **id)) {
        return Err(unknown(id));
    }
    if args.list {
        answer(args.json, || show::RulesDocument::of(CATALOG), |out| show::list(out, CATALOG))?;
        return Ok(0);
    }
    examine(args, &mut out)
}

impl DoctorArgs {
    /// The file that is examined: that of `--from`, or a recording in the place of the target.
    fn file(&self) -> Option<&Path> {
        let recording = self.target.as_deref().map(Path::new).filter(|path| file::is_one(path));
        self.from.as_deref().or(recording)
    }
}

fn examine(args: &DoctorArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let mut gathered = gathered(args)?;
    let mut findings = match recording(args)? {
        Some(recording) => of_recording(&recording, &args.ignore, &mut gathered),
        None => doctor::examine(&gathered.facts, &args.ignore),
    };
    if args.file().is_some() {
        findings.retain(|finding| finding.subject != Subject::Host);
    }
    let if_xmx = args.if_xmx.map(|bytes| if_xmx(args, &gathered, bytes)).transpose()?;
    if let Some(answer) = &if_xmx {
        findings = vec![answer.finding.clone()];
    }
    let shown = show::Shown {
        if_xmx: if_xmx.as_ref(),
        gathered: &gathered,
        findings: &findings,
        ignored: &args.ignore,
        catalog: CATALOG,
        has_host: args.file().is_none(),
    };
    match (args.json, args.sarif) {
        (true, _) => print(out, &show::DoctorDocument::of(&shown))?,
        (_, true) => print(out, &show::sarif(&shown))?,
        _ => show::text(out, &shown)?,
    }
    out.flush()?;
    if let Some(text) = gathered.hidden.sentence(args.verbose) {
        crate::say!("marusa: {text}");
    }
    match if_xmx {
        Some(answer) => Ok(u8::from(!answer.fits)),
        None => status(args, &gathered, &findings),
    }
}

/// A question that cannot be answered is an error: neither yes nor no.
fn if_xmx(args: &DoctorArgs, gathered: &Gathered, bytes: u64) -> anyhow::Result<IfXmx> {
    if args.file().is_some() {
        refuse!("--if-xmx needs a running JVM: a recording has no account to add up");
    }
    status(args, gathered, &[])?;
    let answer = doctor::if_xmx::answer(&gathered.facts, bytes);
    answer.ok_or_else(|| {
        Failure::target(
            "cannot answer --if-xmx: the limit, or the memory of the JVM, was not read; see `marusa map`",
        )
    })
}

fn recording(args: &DoctorArgs) -> anyhow::Result<Option<Recording>> {
    args.file().filter(|path| file::is_one(path)).map(file::load).transpose()
}

fn of_recording(recording: &Recording, ignored: &[String], gathered: &mut Gathered) -> Vec<Finding> {
    gathered.patients.extend(recording.jvms.iter().map(|history| Patient::recorded(&history.facts)));
    let mut found: Vec<Finding> = recording.jvms.iter().flat_map(recorded::find).collect();
    found.retain(|finding| ignored.iter().all(|id| id != finding.id));
    found.sort_by_key(|finding| (std::cmp::Reverse(finding.level), finding.subject, finding.id));
    found
}

fn gathered(args: &DoctorArgs) -> anyhow::Result<Gathered> {
    args.deadline.set(match (args.file(), &args.target) {
        (Some(_), _) => TARGET_FILE,
        (None, Some(_)) => TARGET_ALONE,
        (None, None) => TARGET_OF_MANY,
    });
    if let Some(path) = args.file().filter(|path| !file::is_one(path)) {
        return Ok(kept(target::thaw(path, budget::limits(), Want::default())?));
    }
    if args.file().is_some() {
        return Ok(Gathered::default());
    }
    let who = match &args.target {
        None if args.host => Who::Nobody,
        None => Who::All,
        Some(target) => Who::One(target_of(target)?),
    };
    let me = target::own()?;
    let mut gathered = gather::gather(who, args.watch, &me, args.holders);
    // Measured only on request: it takes some 20 ms.
    if rules::is_forking(&gathered.facts) {
        gathered.facts.host.fork_ms_per_gib = fork_price::ms_per_gib();
    }
    Ok(gathered)
}

/// What is found of one JVM and its host, for a page.
pub(super) fn of_one(process: Process, watch: Duration) -> Vec<Finding> {
    let Ok(me) = Process::own() else { return Vec::new() };
    let gathered = gather::gather(Who::One(process), watch, &me, false);
    doctor::examine(&gathered.facts, &[])
}

fn kept(mut snapshot: Snapshot) -> Gathered {
    snapshot.keep_only(Want { page_sizes: true, smaps: true, ..Want::default() });
    gather::kept(snapshot)
}

/// What is found of a JVM in a snapshot that was kept.
pub(super) fn of_kept(snapshot: Snapshot) -> Vec<Finding> {
    let mut findings = doctor::examine(&kept(snapshot).facts, &[]);
    findings.retain(|finding| finding.subject != Subject::Host);
    findings
}

/// A JVM that may not be read is a JVM anyway: its host is still judged.
fn target_of(target: &str) -> anyhow::Result<Process> {
    let process = target::open_any(target)?;
    match process.mappings() {
        Ok(mappings) => target::check_jvm(&process, &mappings)?,
        Err(gap) if gap.why == Why::Denied => {}
        Err(gap) => return Err(target::unreadable(&process, &gap)),
    }
    Ok(process)
}

/// 4: JVMs were to be examined, and none of them could be, for lack of rights. 3: the one that was to be is gone.
fn status(args: &DoctorArgs, gathered: &Gathered, findings: &[Finding]) -> anyhow::Result<u8> {
    let unread: Vec<&Gap> = gathered.patients.iter().filter_map(|patient| patient.unread.as_ref()).collect();
    let all_unread = gathered.facts.jvms.is_empty() && !unread.is_empty();
    if let Some(gap) = gathered.unlisted.as_ref() {
        return Err(Failure::unread(gap.why, format!("the JVMs of this host cannot be listed: {gap}")));
    }
    if all_unread && unread.iter().any(|gap| gap.why == Why::Denied) {
        return Err(Failure::rights("no JVM could be read: only the host was examined"));
    }
    if let (true, Some(_), Some(gap)) = (all_unread, &args.target, unread.first()) {
        return Err(Failure::unread(gap.why, format!("the JVM could not be read: {gap}")));
    }
    let is_bad = |finding: &Finding| args.fail_on.is_some_and(|level| finding.level >= level);
    Ok(if findings.iter().any(is_bad) { 1 } else { 0 })
}

fn unknown(id: &str) -> anyhow::Error {
    let ids: Vec<&str> = CATALOG.iter().map(|entry| entry.rule.id).collect();
    Failure::usage(format!("'{id}' is not a finding; these are: {}", ids.join(", ")))
}
