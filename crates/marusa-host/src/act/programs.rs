//! The experiments' own Java programs: the build compiles java/bench into the binary (build.rs), and they are unpacked into a
//! private directory for as long as an experiment runs. Nothing needs to be installed but the JDK that is measured.

use super::signals::Blocked;
use crate::base::{Gap, Known, Why};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/programs.rs"));
}

/// A directory for `-cp`, readable by us alone, and gone when this is dropped.
///
/// Start the JVM with this as its current directory: the JDK 8 of scripts/jdks sees of /tmp only the directory that it is started
/// in.
#[derive(Debug)]
pub struct Programs {
    directory: TempDir,
    /// Dropped after the directory is gone: a signal to end leaves nothing behind.
    _blocked: Blocked,
}

impl Programs {
    /// `Err`: the binary was built without them, or the temporary directory does not take them.
    pub fn unpack() -> Known<Programs> {
        const WHAT: &str = "the Java programs of the experiments";
        if let Some(why) = embedded::MISSING {
            let hint = format!("{why}; build marusa again where there is one");
            return Err(Gap::new(WHAT, Why::NotRecorded).hint(hint));
        }
        let place = std::env::temp_dir();
        let failed = |error: io::Error| {
            let hint = format!(
                "they cannot be unpacked into {}: {error}; TMPDIR names another directory",
                place.display()
            );
            Gap::new(WHAT, Why::Denied).hint(hint)
        };
        let blocked = Blocked::start();
        let mut builder = tempfile::Builder::new();
        builder.prefix("marusa-bench-").permissions(fs::Permissions::from_mode(0o700));
        let directory = builder.tempdir_in(&place).map_err(failed)?;
        for (name, bytes) in embedded::FILES {
            let path = directory.path().join(name);
            let parent = path.parent().unwrap_or(directory.path());
            fs::create_dir_all(parent).and_then(|()| fs::write(&path, bytes)).map_err(failed)?;
        }
        Ok(Programs { directory, _blocked: blocked })
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_there_for_java_8_private_and_gone_afterwards() {
        let programs = match (Programs::unpack(), embedded::MISSING) {
            (Ok(programs), None) => programs,
            (Err(gap), Some(why)) => {
                assert!(gap.to_string().contains(why), "{gap}");
                return;
            }
            (outcome, missing) => panic!("{outcome:?} though {missing:?}"),
        };
        let directory = programs.directory().to_path_buf();
        let class = fs::read(directory.join("bench/Fork.class")).expect("unpacked");
        assert_eq!(class[..4], [0xca, 0xfe, 0xba, 0xbe]);
        assert_eq!(class[6..8], [0, 52], "the class file version of Java 8");
        assert_eq!(fs::metadata(&directory).expect("there").permissions().mode() & 0o777, 0o700);
        drop(programs);
        assert!(!directory.exists());
    }
}
