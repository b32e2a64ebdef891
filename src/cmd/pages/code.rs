//! `marusa pages plan --code --jdk PATH`: the code of an unmodified JDK on huge pages.

use crate::act::ask_jdk;
use crate::base::limits::{DOOR_COPIED_DEPTH_MAX, DOOR_COPIED_FILES_MAX};
use crate::base::{refuse, rfc3339};
use crate::cmd::bench::jdk::release_of;
use crate::cmd::{Failure, target};
use crate::jvm::Gc;
use crate::os::elf_file;
use crate::os::host_memory::HostMemory;
use crate::pages::code::{self, Entry, Request, Tree};
use crate::pages::{HostId, Plan, Subject};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where a JDK has its libraries; those below `jre` and by machine are of JDK 8.
const LIBRARIES: [&str; 5] = ["lib", "jre/lib/amd64", "jre/lib/aarch64", "lib/amd64", "lib/aarch64"];

/// The plan for the JDK at `path`; `name` is that of the mount, too.
pub fn plan(path: &Path, name: Option<String>, host_id: HostId) -> anyhow::Result<Plan> {
    let home = ask_jdk::home(path).map_err(|error| Failure::usage(error.to_string()))?;
    let home = home.canonicalize().unwrap_or(home);
    let tree = tree(&home)?;
    let host = HostMemory::read(&target::own()?).map_err(|gap| Failure::target(gap.to_string()))?;
    let subject = of_release(&home)?;
    let name = name.unwrap_or_else(|| format!("code-{}", subject.feature));
    let (made_at, made_by) = (rfc3339(SystemTime::now()), format!("marusa {}", env!("CARGO_PKG_VERSION")));
    Ok(code::plan(Request { tree: &tree, subject, name, host: &host, host_id, made_at, made_by }))
}

/// What is known without starting it; a plan for its code holds for every heap and collector.
fn of_release(home: &Path) -> anyhow::Result<Subject> {
    let unknown = || Failure::usage(format!("{}: its JDK cannot be determined", home.display()));
    let (vm, feature, version) = release_of(home).map_err(|_| unknown())?;
    Ok(Subject {
        vm,
        feature,
        version,
        java_home: None,
        gc: Gc::G1,
        heap_initial_bytes: 0,
        heap_max_bytes: 0,
        cpus: 0,
        flags: Default::default(),
    })
}

fn tree(home: &Path) -> anyhow::Result<Tree> {
    let failed = |error: std::io::Error| Failure::usage(format!("{}: {error}", home.display()));
    let is_there = |directory: &&&str| home.join(directory).join("server/libjvm.so").is_file();
    let Some(directory) = LIBRARIES.iter().find(is_there) else {
        let places = LIBRARIES.join(", ");
        refuse!("{}: no server/libjvm.so in {places} below it", home.display());
    };
    let libjvm = format!("{directory}/server/libjvm.so");
    let mut entries = Vec::new();
    walk(home, &PathBuf::new(), 0, &mut entries).map_err(failed)?;
    let segments = elf_file::segments(&home.join(&libjvm)).map_err(failed)?;
    Ok(Tree { home: home.display().to_string(), entries, libjvm, segments })
}

fn walk(home: &Path, below: &Path, depth: usize, entries: &mut Vec<Entry>) -> std::io::Result<()> {
    if depth > DOOR_COPIED_DEPTH_MAX || entries.len() > DOOR_COPIED_FILES_MAX {
        return Err(std::io::Error::other("more files or directories than a JDK has"));
    }
    for entry in std::fs::read_dir(home.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let facts = entry.metadata()?;
        let text = path.to_str().ok_or(std::io::ErrorKind::InvalidData)?.to_string();
        let (is_directory, is_file) = (facts.is_dir(), facts.is_file());
        entries.push(Entry {
            path: text,
            is_directory,
            is_file,
            bytes: if is_file { facts.len() } else { 0 },
        });
        if is_directory {
            walk(home, &path, depth + 1, entries)?;
        }
    }
    Ok(())
}
