//! Every JVM of the host, by what its memory maps: libjvm.so is HotSpot, libj9vm is OpenJ9, an image heap is a native image of
//! GraalVM, whatever the command is called and in whatever container it runs. A process that may not be read is still listed if its
//! command is `java`, with what every user may know.

use super::hidden::Hidden;
use super::release;
use crate::base::limits::{LIST_SLOW, TARGET_LISTED, TargetLimits};
use crate::base::{Bytes, Gap, Known, Why, redact};
use crate::jvm::command_line::{self, CommandLine};
use crate::jvm::hotspot::summary::{self, Summary};
use crate::jvm::server;
use crate::jvm::types::Gc;
use crate::os::identity::{self, HostRoot, Identity};
use crate::os::maps::Mapping;
use crate::os::process::Process;
use crate::os::rights;
use crate::os::status::Status;
use crate::os::target::{NoSymbols, OsView, ProcessFacts, Target};
use crate::os::{budget, facts, host, live, loaded, pagemap};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vm {
    HotSpot,
    OpenJ9,
    /// An image of GraalVM.
    NativeImage,
}

/// What backs most of the memory, as it is set: pages really got are another question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageMode {
    Small,
    ThpMadvise,
    ThpAlways,
    Hugetlb,
}

impl PageMode {
    /// The word of the JSON.
    pub fn word(self) -> &'static str {
        match self {
            PageMode::Small => "4k",
            PageMode::ThpMadvise => "thp_madvise",
            PageMode::ThpAlways => "thp_always",
            PageMode::Hugetlb => "hugetlb",
        }
    }
}

/// One JVM.
#[derive(Clone, Debug)]
pub struct Jvm {
    pub process: ProcessFacts,
    /// The name that the container's runtime or Kubernetes gave it.
    pub container_name: Option<String>,
    pub identity: Identity,
    /// The name that no other JVM has (`os::identity::jvm_id`).
    pub jvm_id: Known<String>,
    pub vm: Known<Vm>,
    pub version: Known<String>,
    pub gc: Known<String>,
    pub max_heap_bytes: Known<Bytes>,
    pub resident_bytes: Known<Bytes>,
    pub page_mode: Known<PageMode>,
    /// The main class, the jar or the module, as `jcmd` names it.
    pub main: Known<String>,
    /// "Kafka", where the main class is that of a known server or tool.
    pub server: Option<String>,
}

impl Jvm {
    /// As people call it: the server, else the main class, jar or module.
    pub fn name(&self) -> Option<&str> {
        self.server.as_deref().or(self.main.as_deref().ok())
    }

    /// "javac": a tool of a JDK that ends soon.
    pub fn jdk_tool(&self) -> Option<&'static str> {
        server::jdk_tool(self.main.as_deref().ok()?)
    }
}

/// A process that is a JVM, before its memory is read.
struct Found {
    process: Process,
    mappings: Known<Vec<Mapping>>,
    vm: Known<Vm>,
    arguments: Vec<String>,
}

/// The JVMs of the host, and what could not be read.
#[derive(Debug, Default)]
pub struct Listing {
    /// By pid; the ones that end in the meantime are left out.
    pub jvms: Vec<Jvm>,
    pub hidden: Hidden,
    /// Processes that took more than their time or memory, and why they were given up. A JVM among them is in `jvms` too.
    pub given_up: Vec<(i32, Gap)>,
}

/// The JVMs that run now; each is read within `limits`.
pub fn list(limits: TargetLimits) -> Known<Listing> {
    list_with(limits, describe)
}

/// The same without reading memory: what the command and the container tell.
pub fn list_names() -> Known<Listing> {
    list_with(TARGET_LISTED, |found: Found| {
        let mappings = Err(Gap::new("memory", Why::NotRecorded));
        describe(Found { mappings, ..found })
    })
}

/// One process, if it is a JVM.
pub fn one(pid: i32) -> Option<Jvm> {
    budget::within(TARGET_LISTED, || describe(find(Process::open(pid).ok()?, &mut Hidden::default())?))
}

/// Each process has its own budget, and the slow ones share what is left of a common one.
fn list_with(limits: TargetLimits, describe: impl Fn(Found) -> Option<Jvm>) -> Known<Listing> {
    let pids = host::pids().map_err(|error| crate::os::process::gap("/proc", &error))?;
    let mut listing = Listing::default();
    let mut pool = budget::Pool::new(LIST_SLOW.0.max(limits.time), LIST_SLOW.1.min(limits.time));
    for pid in pids {
        let Ok(process) = Process::open(pid) else { continue };
        pool.within(limits, || {
            let found = find(process, &mut listing.hidden);
            listing.jvms.extend(found.and_then(&describe));
            listing.given_up.extend(budget::ended().map(|gap| (pid, gap)));
        });
    }
    Ok(listing)
}

/// Whether the process maps a VM. `Why::Denied` when that may not be known.
pub fn vm_of(process: &Process) -> Known<Option<Vm>> {
    Ok(vm_of_mappings(&process.mappings()?))
}

fn find(process: Process, hidden: &mut Hidden) -> Option<Found> {
    let gap = match process.mappings() {
        Ok(mappings) => {
            let vm = Ok(vm_of_mappings(&mappings)?);
            let arguments = process.arguments().unwrap_or_default();
            return Some(Found { process, mappings: Ok(mappings), vm, arguments });
        }
        Err(gap) => gap,
    };
    // They are read from the memory of the process, which its owner may make slow to read: not of every process.
    let arguments = process.arguments().unwrap_or_default();
    if gap.why == Why::Denied && command_line::is_launcher(&arguments) {
        let gap = Gap::new("memory of the VM", Why::Denied).hint(rights::to_look());
        return Some(Found { process, mappings: Err(gap.clone()), vm: Err(gap), arguments });
    }
    // A thread of the kernel has no command.
    hidden.0.extend((gap.why == Why::Denied && !arguments.is_empty()).then_some(process.pid));
    None
}

fn vm_of_mappings(mappings: &[Mapping]) -> Option<Vm> {
    let library = loaded::any_vm(mappings)?;
    Some(match () {
        () if loaded::openj9(mappings) == Some(library) => Vm::OpenJ9,
        () if loaded::hotspot(mappings).contains(&library) => Vm::HotSpot,
        () => Vm::NativeImage,
    })
}

fn describe(found: Found) -> Option<Jvm> {
    let status = found.process.status().ok()?;
    let (process, _) = facts::process_facts(&found.process, &status);
    let summary = match (&found.mappings, &found.vm) {
        (Ok(mappings), Ok(Vm::HotSpot)) => summarise(&found.process, mappings, &status),
        (Ok(_), _) => Err(Gap::new("memory of the VM", Why::NotInThisRuntime)),
        (Err(gap), _) => Err(gap.clone()),
    };
    let line = match command_line::is_launcher(&found.arguments) {
        true => command_line::parse(&found.arguments),
        false => CommandLine::default(),
    };
    let release = || release::version(&found.process, &found.mappings, &found.arguments);
    let gc = gc(&summary, &line);
    let main = main(&summary, &line, &found.arguments, &process.executable);
    let identity = identity::of(&found.process, HostRoot::shared());
    let jvm = Jvm {
        container_name: identity.name(),
        jvm_id: identity::jvm_id(&found.process),
        identity,
        version: summary
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|it| it.version.clone())
            .or_else(|memory| release().map_err(|file| release::neither(memory, file))),
        max_heap_bytes: of(&summary, |it| it.max_heap_bytes.clone(), line.max_heap_bytes, "maximum heap"),
        resident_bytes: status
            .resident_with_hugetlb_bytes()
            .ok_or_else(|| Gap::new("resident bytes", Why::NotInThisKernel)),
        page_mode: page_mode(&summary, &line, &status, gc.as_deref().unwrap_or_default()),
        server: main.as_deref().ok().and_then(|main| server::name_of(&found.process, main, &found.arguments)),
        main,
        vm: found.vm.clone(),
        gc,
        process,
    };
    found.process.is_same().then_some(jvm)
}

fn summarise(process: &Process, mappings: &[Mapping], status: &Status) -> Known<Summary> {
    let ranges = summary::ranges(mappings);
    let pages = match pagemap::scan_ranges(process, mappings, &ranges) {
        Err(gap) if gap.why != Why::Denied => pagemap::read(process, mappings, status, None)?.runs,
        runs => runs?,
    };
    let view = OsView { status: status.clone(), ..OsView::of(mappings.to_vec(), Ok(pages)) };
    let memory = live::Live::open(process, &view)?;
    summary::read(&Target { view: &view, memory: &memory, symbols: &NoSymbols })
}

/// From the VM's memory, else from its command line, else the gap of the memory.
fn of<T>(
    summary: &Known<Summary>,
    get: impl Fn(&Summary) -> Known<T>,
    from_line: Option<T>,
    what: &str,
) -> Known<T> {
    match summary.as_ref().map_err(Clone::clone).and_then(get) {
        Ok(value) => Ok(value),
        Err(gap) => from_line.ok_or(Gap { what: what.to_string(), ..gap }),
    }
}

fn gc(summary: &Known<Summary>, line: &CommandLine) -> Known<String> {
    of(summary, |it| it.gc.clone().map(|gc| Gc::name(gc).to_string()), line.gc.clone(), "collector")
}

/// The launcher's argument where there is one: it keeps spaces in paths apart from arguments.
fn main(
    summary: &Known<Summary>,
    line: &CommandLine,
    arguments: &[String],
    executable: &str,
) -> Known<String> {
    let from_memory = || {
        let command = summary.as_ref().ok()?.java_command.as_ref().ok()?;
        command.split(' ').next().filter(|word| !word.is_empty()).map(str::to_string)
    };
    // A program that loads the VM itself has no main class on its command line.
    let own_name = || {
        // What stands in the place of the arguments may be a title, whose words are private.
        let first = arguments.first().map(|word| word.split(' ').next().unwrap_or_default().to_string());
        let executable = executable.strip_suffix(" (deleted)").unwrap_or(executable);
        let path = if executable.is_empty() { first? } else { executable.to_string() };
        (!redact::is_java(&path)).then(|| path.rsplit('/').next().map(str::to_string)).flatten()
    };
    // A word behind an @file may be an argument of the program, which is private.
    let from_line = line.main.clone().filter(|main| !main.is_empty() && !line.may_be_in_file);
    from_line.or_else(from_memory).or_else(own_name).ok_or_else(|| {
        Gap::new("main class", Why::NotInThisRuntime).hint("the command line does not name it")
    })
}

fn page_mode(summary: &Known<Summary>, line: &CommandLine, status: &Status, gc: &str) -> Known<PageMode> {
    if status.hugetlb_bytes.is_some_and(|bytes| bytes > 0) {
        return Ok(PageMode::Hugetlb);
    }
    // The heap of ZGC is shared memory, which has a setting of its own.
    let is_shared = gc.starts_with("zgc");
    let host_mode = if is_shared { host::thp_shmem_mode() } else { host::thp_mode() };
    let asked = of(
        summary,
        |it| it.transparent_huge_pages.clone(),
        // Not on the command line, it may still be in JAVA_TOOL_OPTIONS.
        line.transparent_huge_pages.then_some(true),
        "page mode",
    );
    Ok(match host_mode.as_deref() {
        _ if status.thp_enabled == Some(false) => PageMode::Small,
        Some("always" | "within_size" | "force") => PageMode::ThpAlways,
        Some("madvise" | "advise") => match asked? {
            true => PageMode::ThpMadvise,
            false => PageMode::Small,
        },
        _ => PageMode::Small,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::maps::parse_line;

    #[test]
    fn the_vm_by_its_library_deleted_or_not() {
        let vm = |line: &str| vm_of_mappings(&[parse_line(line).expect("a line")]);
        let at = "7f0000000000-7f0000200000 r--p";
        assert_eq!(
            vm(&format!("{at} 00000000 fe:00 7 /jdk/lib/server/libjvm.so (deleted)")),
            Some(Vm::HotSpot)
        );
        assert_eq!(vm(&format!("{at} 00000000 00:01 7 /memfd:libjvm.so (deleted)")), Some(Vm::HotSpot));
        assert_eq!(vm(&format!("{at} 00001000 fe:00 7 /jdk/lib/server/libjvm.so")), None);
        assert_eq!(vm(&format!("{at} 00000000 fe:00 7 /jdk/lib/default/libj9vm29.so")), Some(Vm::OpenJ9));
        assert_eq!(vm(&format!("{at} 00000000 fe:00 7 /usr/lib/libjvm.so.1")), None);
    }

    #[test]
    fn the_main_class_of_a_launcher_of_another_name_and_of_nothing() {
        let gap = || Err(Gap::new("memory", Why::Denied));
        let of = |words: &[&str], executable: &str| {
            let arguments: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            main(&gap(), &CommandLine::default(), &arguments, executable).ok()
        };
        assert_eq!(of(&["/usr/bin/jsvc", "-user", "tomcat"], "").as_deref(), Some("jsvc"));
        assert_eq!(of(&["orders: token=hunter2 /x"], "/opt/my app/server").as_deref(), Some("server"));
        assert_eq!(of(&["orders: token=hunter2 /x"], "").as_deref(), Some("orders:"));
        assert_eq!(of(&["orders: idle"], "/jdk/bin/java"), None);
        assert_eq!(of(&["java"], ""), None);
        assert_eq!(of(&[], ""), None);
    }
}
