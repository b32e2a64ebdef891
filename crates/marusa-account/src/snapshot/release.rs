//! The version of a JVM by the file `release` of its JDK, where its memory tells none: JAVA_RUNTIME_VERSION, or JAVA_VERSION before
//! JDK 9. Only within the root of the process: a file of that name elsewhere is that of another JDK.

use crate::base::limits::RELEASE_BYTES_MAX;
use crate::base::{Gap, Known, Why};
use crate::os::maps::Mapping;
use crate::os::process::{self, Process};
use crate::os::{foreign, loaded, rights};
use std::io;
use std::path::Path;

const VERSION: &str = "version";
/// lib/server/libjvm.so, jre/lib/amd64/server/libjvm.so, bin/java: the home is two to five directories up.
const HOMES: std::ops::Range<usize> = 2..7;

/// By the place of the VM's library, else by that of the launcher.
pub fn version(process: &Process, mappings: &Known<Vec<Mapping>>, arguments: &[String]) -> Known<String> {
    let library = mappings.as_ref().ok().and_then(|mappings| loaded::in_jdk(mappings));
    let launcher = || arguments.first().filter(|path| path.starts_with('/')).cloned();
    let Some(path) = library.map(|library| library.file_path().to_string()).or_else(launcher) else {
        return Err(match mappings {
            Ok(_) => Gap::new(VERSION, Why::NotInThisRuntime).hint("no mapped file belongs to a JDK"),
            Err(gap) => Gap { what: VERSION.to_string(), ..gap.clone() },
        });
    };
    let root =
        foreign::Root::of(process).map_err(|error| unread("the root directory of the process", &error))?;
    let homes = Path::new(&path).ancestors().take(HOMES.end).skip(HOMES.start);
    let files = homes.filter_map(|home| home.join("release").to_str().map(str::to_string));
    let mut read = files.filter_map(|file| {
        let bytes = root.open(&file).and_then(|open| foreign::start(open, RELEASE_BYTES_MAX));
        if bytes.as_ref().is_err_and(is_absent) { None } else { Some((file, bytes)) }
    });
    match read.next() {
        Some((file, Ok(bytes))) => of_text(&String::from_utf8_lossy(&bytes)).ok_or_else(|| {
            Gap::new(VERSION, Why::NotInThisRuntime).hint(format!("{file} does not name a version"))
        }),
        Some((file, Err(error))) => Err(unread(&file, &error)),
        None => Err(without_file(&path, library.is_some_and(Mapping::is_deleted))),
    }
}

/// The gap of a version that neither the VM's memory nor the file gives. What went wrong first is the cause; where the memory was
/// not looked at, or has no version for us, the file is.
pub fn neither(memory: Gap, file: Gap) -> Gap {
    if matches!(memory.why, Why::NotRecorded | Why::NotInThisRuntime) || memory.why == file.why {
        return file;
    }
    let hint = match memory.hint {
        Some(hint) => format!("{hint}; the file release of its JDK: {}", cause(&file)),
        None => format!("{}; the file release of its JDK: {}", memory.what, cause(&file)),
    };
    Gap::new(VERSION, memory.why).hint(hint)
}

fn cause(gap: &Gap) -> String {
    gap.hint.clone().unwrap_or_else(|| gap.why.word().to_string())
}

fn without_file(path: &str, is_deleted: bool) -> Gap {
    match is_deleted {
        true => Gap::new(VERSION, Why::Gone).hint(format!("{path} was deleted, and its JDK with it")),
        false => Gap::new(VERSION, Why::NotInThisRuntime).hint(format!("no file `release` above {path}")),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A refusal of the kernel has a number; one of `os::foreign` says itself what it refuses.
fn unread(what: &str, error: &io::Error) -> Gap {
    let gap = process::gap(VERSION, error);
    match gap.why {
        Why::Gone => gap,
        Why::Denied if error.raw_os_error().is_some() && what.starts_with("the root") => {
            gap.hint(rights::to_look())
        }
        Why::Denied if error.raw_os_error().is_some() => {
            gap.hint(format!("the user of the JVM may not read {what}"))
        }
        _ => gap.hint(format!("{what}: {error}")),
    }
}

fn of_text(text: &str) -> Option<String> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(line.trim().trim_matches('"').to_string())
    };
    value("JAVA_RUNTIME_VERSION").or_else(|| value("JAVA_VERSION")).filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::maps::parse_line;
    use std::io::ErrorKind;

    #[test]
    fn the_release_file() {
        let text = "IMPLEMENTOR=\"Eclipse Adoptium\"\nJAVA_RUNTIME_VERSION=\"21.0.8+9-LTS\"\nJAVA_VERSION=\"21.0.8\"\n";
        assert_eq!(of_text(text).as_deref(), Some("21.0.8+9-LTS"));
        assert_eq!(of_text("JAVA_VERSION=\"1.8.0_442\"\n").as_deref(), Some("1.8.0_442"));
        assert_eq!(of_text("JAVA_VERSIONS=1\n"), None);
    }

    #[test]
    fn each_cause_has_its_own_gap() {
        let me = Process::own().expect("myself");
        let directory = std::env::temp_dir().join(format!("marusa-release-{}", std::process::id()));
        let library = directory.join("lib/server/libjvm.so");
        let of = |ending: &str| {
            let line = format!("1000-2000 r--p 00000000 fe:00 7 {}{ending}", library.display());
            version(&me, &Ok(vec![parse_line(&line).expect("a line")]), &[])
        };
        let why = |ending: &str| of(ending).expect_err("no version").why;
        assert_eq!(why(" (deleted)"), Why::Gone, "the JDK is no longer there");
        assert_eq!(why(""), Why::NotInThisRuntime, "a JDK without the file");
        std::fs::create_dir_all(directory.join("release")).expect("a directory");
        let gap = of("").expect_err("not a file");
        assert!(gap.why == Why::Failed && gap.to_string().contains("not a regular file"), "{gap}");
        std::fs::remove_dir(directory.join("release")).expect("empty");
        std::fs::write(directory.join("release"), "SOURCE=\"x\"\n").expect("a file");
        let gap = of("").expect_err("no version");
        assert!(gap.to_string().contains("release does not name a version"), "{gap}");
        std::fs::write(directory.join("release"), "JAVA_VERSION=\"21.0.8\"\n").expect("a file");
        assert_eq!(of(""), Ok("21.0.8".to_string()));
        std::fs::remove_dir_all(&directory).expect("it is ours");
    }

    #[test]
    fn without_mappings_their_gap_is_the_cause() {
        let me = Process::own().expect("myself");
        for why in [Why::Denied, Why::Gone, Why::OverDeadline] {
            let gap = version(&me, &Err(Gap::new("/proc/PID/maps", why)), &["java".to_string()]);
            assert_eq!(gap, Err(Gap::new("version", why)));
        }
    }

    #[test]
    fn the_error_is_distinguished() {
        let of = |number| unread("/jdk/release", &io::Error::from_raw_os_error(number));
        assert_eq!(of(libc::ESRCH).why, Why::Gone);
        assert_eq!(of(libc::EIO).why, Why::Failed);
        let denied = of(libc::EACCES);
        assert!(
            denied.why == Why::Denied && denied.to_string().contains("may not read /jdk/release"),
            "{denied}"
        );
        let served = unread("/jdk/release", &io::Error::new(ErrorKind::PermissionDenied, "it is on FUSE"));
        assert!(served.why == Why::Denied && served.to_string().contains("it is on FUSE"), "{served}");
    }

    #[test]
    fn the_memorys_cause_is_not_replaced_by_the_files() {
        let file = Gap::new("version", Why::NotInThisRuntime).hint("no file release lies above /x");
        let late = neither(Gap::new("perf", Why::OverDeadline), file.clone());
        assert!(late.why == Why::OverDeadline && late.to_string().contains("no file release"), "{late}");
        let denied = neither(Gap::new("memory", Why::Denied).hint("run as root"), file.clone());
        assert!(denied.to_string().starts_with("version: denied (run as root; the file release"), "{denied}");
        assert_eq!(neither(Gap::new("memory of the VM", Why::NotInThisRuntime), file.clone()), file);
    }
}
