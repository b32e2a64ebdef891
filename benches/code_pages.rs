//! What the code of a JDK on huge pages gains: javac of this repository's Java programs, from the JDK where it is installed
//! and from its copy (`marusa pages plan --code`). `cargo bench --bench code_pages`, as root; JDKs with javac by
//! MARUSA_CODE_JDKS, directories parted by colons.
//!
//! The two take turns, the one that begins changes every round, and user CPU time is compared within a round. There is no
//! verdict beyond the interval: where it holds 0, no gain was shown.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ROUNDS: usize = 20;
const JDKS: &str = "/usr/lib/jvm/java-17-openjdk-amd64:/usr/lib/jvm/temurin-25-jdk-amd64";
/// Two-sided 95 % of Student's t for ROUNDS - 1 = 19 degrees of freedom.
const T: f64 = 2.093;

fn main() {
    let jdks = std::env::var("MARUSA_CODE_JDKS").unwrap_or(JDKS.to_string());
    for home in jdks.split(':').map(Path::new).filter(|home| home.join("bin/javac").exists()) {
        match Copy::make(home) {
            Some(copy) => compare(home, &copy),
            None => println!("skipped: {} has no copy (not root?)", home.display()),
        }
    }
}

/// The applied plan; undone in the end.
struct Copy {
    directory: PathBuf,
    home: PathBuf,
}

impl Copy {
    fn make(home: &Path) -> Option<Copy> {
        let name = format!("bench-code-{}", std::process::id());
        let directory = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&directory).ok()?;
        let copy = Copy { directory, home: Path::new("/run/marusa").join(&name) };
        let jdk = home.to_string_lossy();
        let planned =
            marusa(&["plan", "--code", "--jdk", &jdk, "--name", &name, "-o", &copy.file(), "--force"]);
        (planned && marusa(&["apply", &copy.file(), "--yes", "--state", &copy.state()])).then_some(copy)
    }
    fn file(&self) -> String {
        self.directory.join("plan.json").to_string_lossy().into_owned()
    }
    fn state(&self) -> String {
        self.directory.to_string_lossy().into_owned()
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if !marusa(&["undo", &self.file(), "--state", &self.state()]) {
            println!("not undone: {}; see {}", self.home.display(), self.directory.display());
            return;
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn marusa(arguments: &[&str]) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.arg("pages").args(arguments).stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// CPU time of one run, in milliseconds.
#[derive(Clone, Copy, Default)]
struct Cpu {
    user: f64,
    system: f64,
}

fn compare(home: &Path, copy: &Copy) {
    for (name, options) in
        [("javac", &[][..]), ("javac -J-XX:TieredStopAtLevel=1", &["-J-XX:TieredStopAtLevel=1"][..])]
    {
        let (mut installed, mut copied) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let pair = match round % 2 {
                0 => (run(home, options), run(&copy.home, options)),
                _ => {
                    let second = run(&copy.home, options);
                    (run(home, options), second)
                }
            };
            // The first round brings the files into memory.
            if round > 0 {
                installed.push(pair.0);
                copied.push(pair.1);
            }
        }
        report(&format!("{}, {name}", home.display()), &installed, &copied);
    }
}

/// javac of the repository's Java programs.
fn run(home: &Path, options: &[&str]) -> Cpu {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("java/marusa");
    let out = std::env::temp_dir().join(format!("marusa-code-out-{}", std::process::id()));
    std::fs::create_dir_all(&out).expect("a directory");
    let mut command = Command::new(home.join("bin/javac"));
    command
        .args(["-J-Xmx256m", "-J-XX:+UseSerialGC", "-nowarn", "-proc:none"])
        .args(options)
        .arg("-d")
        .arg(&out);
    for entry in std::fs::read_dir(sources).expect("Java programs").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "java") {
            command.arg(entry.path());
        }
    }
    let before = of_children();
    let output =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).status();
    let after = of_children();
    assert!(output.is_ok_and(|status| status.success()), "{command:?}");
    let _ = std::fs::remove_dir_all(&out);
    Cpu { user: after.user - before.user, system: after.system - before.system }
}

/// CPU time of all children that have ended.
fn of_children() -> Cpu {
    // SAFETY: a zeroed rusage is one, and the kernel writes into ours only.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let milliseconds = |time: libc::timeval| time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3;
    Cpu { user: milliseconds(usage.ru_utime), system: milliseconds(usage.ru_stime) }
}

fn report(name: &str, installed: &[Cpu], copied: &[Cpu]) {
    let user = |runs: &[Cpu]| runs.iter().map(|run| run.user).collect::<Vec<f64>>();
    println!("{name}, {ROUNDS} rounds, user CPU ms: median (least to most)");
    for (what, runs) in [("installed", installed), ("copy", copied)] {
        let mut all = user(runs);
        all.sort_by(f64::total_cmp);
        let system = runs.iter().map(|run| run.system).sum::<f64>() / runs.len() as f64;
        println!(
            "  {what:<10} {:>8.0} ({:.0} to {:.0}), system {system:.0}",
            all[all.len() / 2],
            all[0],
            all[all.len() - 1]
        );
    }
    let changes: Vec<f64> =
        user(installed).iter().zip(user(copied)).map(|(was, is)| (is / was - 1.0) * 100.0).collect();
    let count = changes.len() as f64;
    let mean = changes.iter().sum::<f64>() / count;
    let variance = changes.iter().map(|change| (change - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half = T * (variance / count).sqrt();
    println!("  change {mean:+.1} % (95 % interval {:+.1} to {:+.1})", mean - half, mean + half);
}
