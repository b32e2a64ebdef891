//! Other machines than the one at hand: kernels, page sizes and processors that real programs run on, each emulated by QEMU, with
//! JVMs out of packages and the static binary that people install. Not one of `make test`'s suites: `make vm` runs it.
//!
//!     cargo test --test vm                 every machine
//!     cargo test --test vm -- arm64-16k    one
//!
//! MARUSA_VM_COMMAND='bench thp --jdk 17' runs that command of Marusa's there in place of the checks, and prints what it said.
//!
//! Packages and trees are kept in ${MARUSA_VM:-$HOME/.cache/marusa/vm}. A machine whose packages the mirror does not have is
//! reported, and the others run.

mod boot;
mod checks;
mod image;
mod packages;
mod support;

use boot::{Bounds, Emulator, Sent};
use packages::{Package, Store};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

const FOR_CHECKS: Bounds = Bounds { memory_mib: 3072, time: Duration::from_secs(400) };
const FOR_COMMAND: Bounds = Bounds { memory_mib: 8192, time: Duration::from_secs(7200) };
const CARGO_PROFILE: &str = "lab";

/// A row of the table.
struct Machine {
    name: &'static str,
    /// Rust's and Debian's words for the processor.
    processor: &'static str,
    architecture: &'static str,
    linux: &'static str,
    page_bytes: u64,
    kernel: Package,
    /// Feature release, and the suite that has it.
    jdks: &'static [(u32, &'static str, &'static str)],
    /// Not one of all: it runs where it is named.
    is_named: bool,
}

impl Machine {
    /// "aarch64, Linux 6.12, 16 KiB pages".
    fn title(&self) -> String {
        format!("{}, Linux {}, {} KiB pages", self.processor, self.linux, self.page_bytes >> 10)
    }
}

const JDKS: &[(u32, &str, &str)] =
    &[(17, "bookworm", "openjdk-17-jre-headless"), (25, "trixie", "openjdk-25-jre-headless")];
/// What a JVM and the guest's scripts need, from the suite of the newest JDK.
const LIBRARIES: [&str; 5] = ["libc6", "zlib1g", "libgcc-s1", "libstdc++6", "busybox-static"];

const MACHINES: &[Machine] = &[
    Machine {
        name: "arm64-4k",
        processor: "aarch64",
        architecture: "arm64",
        linux: "6.12",
        page_bytes: 4 << 10,
        kernel: Package { suite: "trixie", architecture: "arm64", name: "linux-image-arm64->" },
        jdks: JDKS,
        is_named: false,
    },
    Machine {
        name: "arm64-16k",
        processor: "aarch64",
        architecture: "arm64",
        linux: "6.12",
        page_bytes: 16 << 10,
        kernel: Package { suite: "trixie", architecture: "arm64", name: "linux-image-arm64-16k->" },
        jdks: JDKS,
        is_named: false,
    },
    Machine {
        name: "amd64-5.10",
        processor: "x86_64",
        architecture: "amd64",
        linux: "5.10",
        page_bytes: 4 << 10,
        kernel: Package { suite: "bullseye", architecture: "amd64", name: "linux-image-cloud-amd64->" },
        jdks: JDKS,
        is_named: false,
    },
    // For MARUSA_VM_COMMAND: what an experiment gives in the same emulator on a newer kernel.
    Machine {
        name: "amd64-6.12",
        processor: "x86_64",
        architecture: "amd64",
        linux: "6.12",
        page_bytes: 4 << 10,
        kernel: Package { suite: "trixie", architecture: "amd64", name: "linux-image-cloud-amd64->" },
        jdks: JDKS,
        is_named: true,
    },
];

fn emulator(processor: &str) -> Emulator {
    match processor {
        "aarch64" => Emulator {
            program: "qemu-system-aarch64",
            options: &["-M", "virt", "-accel", "tcg,thread=multi", "-cpu", "max,pauth-impdef=on"],
            console: "ttyAMA0",
        },
        _ => Emulator {
            program: "qemu-system-x86_64",
            options: &["-accel", "tcg,thread=multi", "-cpu", "max"],
            console: "ttyS0",
        },
    }
}

fn main() -> ExitCode {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let home = std::env::var_os("MARUSA_VM")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/marusa/vm")));
    let Some(home) = home else {
        eprintln!("vm: cannot choose a directory for packages: HOME is not set; set MARUSA_VM");
        return ExitCode::FAILURE;
    };
    let command = std::env::var("MARUSA_VM_COMMAND").ok();
    let mut failed = 0;
    let mut rows = Vec::new();
    for machine in MACHINES.iter().filter(|machine| is_wanted(machine, &wanted)) {
        let started = Instant::now();
        match run(machine, &home, command.as_deref()) {
            Ok(sent) if command.is_some() => failed += usize::from(!is_said(machine, &sent)),
            Ok(sent) => {
                failed += usize::from(!checks::reads_here(machine, &sent));
                let found = checks::of(machine, &sent);
                println!("{}: {:.0} s", machine.name, started.elapsed().as_secs_f64());
                found.iter().for_each(|row| println!("  {row}"));
                failed += found.iter().filter(|row| !row.is_right()).count();
                rows.extend(found);
            }
            Err(error) => {
                println!("{}: {error}", machine.name);
                failed += 1;
            }
        }
    }
    if wanted.is_empty() && failed == 0 && command.is_none() {
        failed += usize::from(!support::is_recorded(&rows));
    }
    println!("vm: {}", if failed == 0 { "all right".to_string() } else { format!("{failed} failed") });
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn is_wanted(machine: &Machine, names: &[String]) -> bool {
    names.iter().any(|name| name == machine.name) || names.is_empty() && !machine.is_named
}

/// Prints what the command said there. Whether it went well.
fn is_said(machine: &Machine, sent: &Sent) -> bool {
    let text =
        |name| sent.get(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    let status = text("command.status");
    println!("{}\n{}", machine.title(), text("command"));
    let is_good = status.starts_with("0 ");
    if !is_good {
        println!("its status, when it began and ended, its errors:\n{status}");
    }
    is_good
}

fn run(machine: &Machine, home: &Path, command: Option<&str>) -> Result<Sent, String> {
    let marusa = binary(machine.processor)?;
    let mut store = Store::at(home);
    let kernel = image::kernel(&store.fetch(machine.kernel)?, &home.join("kernels"))?;
    let package = |suite, name| Package { suite, architecture: machine.architecture, name };
    let suite = machine.jdks.last().map_or("trixie", |(_, suite, _)| *suite);
    let mut debs =
        LIBRARIES.iter().map(|name| store.fetch(package(suite, name))).collect::<Result<Vec<_>, _>>()?;
    let mut jdks = Vec::new();
    for (feature, suite, name) in machine.jdks {
        match store.fetch(package(suite, name)) {
            Ok(deb) => {
                debs.push(deb);
                jdks.push(feature.to_string());
            }
            Err(error) => println!("{}: without JDK {feature}: {error}", machine.name),
        }
    }
    let tree = home.join("trees").join(machine.architecture);
    image::unpack(&tree, &debs)?;
    let archive = home.join(format!("{}.cpio", machine.name));
    let jobs = match command {
        Some(command) => format!("run command marusa {command}\n"),
        None => format!("jdks='{}'\n{}", jdks.join(" "), include_str!("jobs.sh")),
    };
    write(&archive, &tree, &marusa, &jobs).map_err(|error| format!("cannot write the archive: {error}"))?;
    let bounds = if command.is_some() { FOR_COMMAND } else { FOR_CHECKS };
    let console = home.join(format!("{}.console", machine.name));
    let sent = boot::boot(&emulator(machine.processor), &kernel, &archive, bounds, &console);
    let _ = std::fs::remove_file(&archive);
    sent
}

fn write(archive: &Path, tree: &Path, marusa: &Path, jobs: &str) -> std::io::Result<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut image = image::Archive::create(archive)?;
    image.add_tree(tree)?;
    for directory in ["lab", "lab/java", "lab/java/marusa", "etc", "root"] {
        image.add_directory(directory)?;
    }
    image.add_file("usr/bin/marusa", marusa)?;
    for class in std::fs::read_dir(repository.join("java/build-out/marusa"))?.flatten() {
        image.add_file(&format!("lab/java/marusa/{}", class.file_name().display()), &class.path())?;
    }
    image.add_text("init", include_str!("guest.sh"))?;
    image.add_text("lab/jobs.sh", jobs)?;
    image.finish()
}

/// The static binary for a processor, built when it is older than its sources.
fn binary(processor: &str) -> Result<PathBuf, String> {
    let target = format!("{processor}-unknown-linux-musl");
    let variable = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).env(variable, "rust-lld");
    cargo.args(["build", "--locked", "--bin", "marusa", "--profile", CARGO_PROFILE, "--target", &target]);
    let built = cargo.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    let directory = std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into());
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(directory)
        .join(&target)
        .join(CARGO_PROFILE)
        .join("marusa");
    match built.success() {
        true => Ok(file),
        false => Err(format!(
            "cannot build for {target}: see above; `scripts/setup vm` installs what may be missing"
        )),
    }
}
