//! The C libraries of this machine: the system's, and the ones that `scripts/glibcs` fetched; and the C programs of
//! tests/native, linked to each.

use crate::common::{native, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The system's libc, or one in a directory.
#[derive(Clone, Debug)]
pub struct Glibc {
    pub name: String,
    directory: Option<PathBuf>,
}

pub fn system() -> Glibc {
    Glibc { name: "system".into(), directory: None }
}

/// The libc of a Debian suite. `None` says why the test is skipped.
pub fn of_suite(suite: &str) -> Option<Glibc> {
    let home = std::env::var("MARUSA_GLIBCS").map(PathBuf::from).unwrap_or_else(|_| {
        PathBuf::from(std::env::var("HOME").unwrap_or_default()).join(".cache/marusa/glibc")
    });
    let directory = home.join(suite);
    if directory.join("libc.so.6").exists() {
        return Some(Glibc { name: suite.to_string(), directory: Some(directory) });
    }
    skip(&format!("no glibc at {}; scripts/glibcs {suite} fetches it", directory.display()));
    None
}

/// 2.31, the system's, 2.41 and the newest, as far as they are here.
pub fn all() -> Vec<Glibc> {
    std::iter::once(system()).chain(["bullseye", "trixie", "sid"].into_iter().filter_map(of_suite)).collect()
}

impl Glibc {
    /// Starts `program` on this libc.
    pub fn command(&self, program: &Path, more_libraries: &[&Path]) -> Command {
        let Some(directory) = &self.directory else { return Command::new(program) };
        let libraries: Vec<String> =
            std::iter::once(directory.as_path()).chain(more_libraries.iter().copied()).map(shown).collect();
        let mut command = Command::new(directory.join("ld-linux-x86-64.so.2"));
        command.arg("--library-path").arg(libraries.join(":")).arg(program);
        command
    }

    /// A program of tests/native linked to this libc.
    pub fn program(&self, name: &str) -> PathBuf {
        build(name, &format!("{name}-{}", self.name), self, &[])
    }

    /// A shared library of tests/native linked to this libc.
    pub fn shared(&self, name: &str) -> PathBuf {
        build(name, &format!("{name}-{}.so", self.name), self, &["-shared", "-fPIC"])
    }

    /// What makes the linker take this libc's files in the place of the system's. The start files are the system's: they
    /// ask for no more than `__libc_start_main`, whose version is the library's.
    fn link_options(&self, is_shared: bool) -> Vec<String> {
        let Some(directory) = &self.directory else { return vec!["-pthread".into(), "-ldl".into()] };
        let start: &[&str] = if is_shared { &["crti.o", "crtn.o"] } else { &["crt1.o", "crti.o", "crtn.o"] };
        let libraries = ["libpthread.so.0", "libc.so.6", "ld-linux-x86-64.so.2"];
        ["-nostdlib".to_string()]
            .into_iter()
            .chain((!is_shared).then(|| "-no-pie".to_string()))
            .chain(start.iter().map(|name| start_file(name)))
            .chain(libraries.iter().map(|name| shown(&directory.join(name))))
            .chain(["-lgcc".to_string()])
            .collect()
    }
}

/// A program of tests/native with its libc in itself.
pub fn static_program(name: &str) -> PathBuf {
    build(name, &format!("{name}-static"), &system(), &["-static"])
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn start_file(name: &str) -> String {
    let output = Command::new("cc").arg(format!("-print-file-name={name}")).output().expect("cc runs");
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

fn build(source: &str, product: &str, libc: &Glibc, options: &[&str]) -> PathBuf {
    let is_shared = options.contains(&"-shared");
    // A compiler that knows malloc leaves out what is freed again.
    let mut all = vec!["-fno-builtin"];
    all.extend(options);
    if libc.directory.is_some() && !is_shared {
        all.push("-fno-pie");
    }
    native::compiled(source, product, &all, &libc.link_options(is_shared)).expect("a C compiler")
}
