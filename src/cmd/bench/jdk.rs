//! Which JDKs an experiment measures: the ones that the user names, or the ones that this host has.

use crate::act::ask_jdk;
use crate::cmd::Failure;
use crate::experiment::arm_pages::ArmError;
use crate::pages::Vm;
use crate::pages::subject;
use anyhow::Context;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug, Clone)]
#[group(skip)]
pub struct JdkArgs {
    /// A JDK: its directory, or a release that this host has, as 21; more than once where an experiment compares JDKs
    #[arg(long, value_name = "PATH|RELEASE")]
    jdk: Vec<String>,
}

/// An installed JDK, or runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jdk {
    pub home: PathBuf,
    pub vm: Vm,
    /// 8, 11, 17, 21, 25.
    pub feature: u32,
    /// "17.0.15+6", or as much as it says; "8 (VM 25.504-b01)" where that is not the release's.
    pub version: String,
}

impl Jdk {
    pub fn java(&self) -> PathBuf {
        self.home.join("bin/java")
    }

    /// By its directory or its `java`.
    fn at(path: &Path) -> anyhow::Result<Jdk> {
        let home = ask_jdk::home(path)?;
        let (vm, feature, version) = release_of(&home)?;
        let version = version.unwrap_or_else(|| feature.to_string());
        let is_release = version.starts_with(&feature.to_string()) || version.starts_with("1.");
        let version = if is_release { version } else { format!("{feature} (VM {version})") };
        Ok(Jdk { home, vm, feature, version })
    }
}

/// The implementation, the release and the version of a JDK. Without the file `release` it must say itself which it is, before it
/// can be given options.
pub fn release_of(home: &Path) -> anyhow::Result<(Vm, u32, Option<String>)> {
    if let Some(known) = subject::release_of(ask_jdk::release(home).as_deref(), "") {
        return Ok(known);
    }
    let said = ask_jdk::flags(home, &[])?;
    subject::release_of(None, &said.version)
        .with_context(|| format!("{}: its JDK cannot be determined", home.display()))
}

impl JdkArgs {
    /// Whether the user named any.
    pub fn is_given(&self) -> bool {
        !self.jdk.is_empty()
    }

    /// The ones that were named in their order, or one of each release, oldest first.
    pub fn all(&self) -> anyhow::Result<Vec<Jdk>> {
        if self.jdk.is_empty() {
            let found: Vec<Jdk> = one_of_each(found(&places())).into_values().collect();
            return if found.is_empty() { Err(none("no JDK")) } else { Ok(found) };
        }
        self.jdk.iter().map(|text| named(text)).collect()
    }

    /// The ones that were named, or the newest alone.
    pub fn given_or_newest(&self) -> anyhow::Result<Vec<Jdk>> {
        if self.jdk.is_empty() { Ok(vec![self.one()?]) } else { self.all() }
    }

    /// The one that was named, or the newest.
    pub fn one(&self) -> anyhow::Result<Jdk> {
        match self.jdk.as_slice() {
            [] => self.all()?.pop().ok_or_else(|| none("no JDK")),
            [text] => named(text),
            _ => Err(Failure::usage("this experiment measures one JDK: give --jdk once")),
        }
    }
}

/// The JDK of an arm.
pub fn of_version<'a>(jdks: &'a [Jdk], version: &str) -> Result<&'a Jdk, ArmError> {
    let found = jdks.iter().find(|jdk| jdk.version == version);
    found.ok_or_else(|| ArmError::NoPlan(format!("there is no JDK {version}").into()))
}

fn named(text: &str) -> anyhow::Result<Jdk> {
    let release = text.parse::<u32>().ok();
    match release {
        Some(release) if !Path::new(text).exists() => {
            one_of_each(found(&places())).remove(&release).ok_or_else(|| none(&format!("no JDK {release}")))
        }
        _ => Jdk::at(Path::new(text)).map_err(Failure::usage),
    }
}

fn none(what: &str) -> anyhow::Error {
    Failure::usage(format!(
        "{what} was found at $JAVA_HOME, in the path or below {}: install one (Debian: default-jre-headless; for each release \
         scripts/jdks of marusa's sources), or name its directory with --jdk",
        DIRECTORIES.join(", ")
    ))
}

/// Where packages and people put them; "~" is the home directory.
const DIRECTORIES: [&str; 5] =
    ["/usr/lib/jvm", "/opt", "~/.sdkman/candidates/java", "~/.jdks", "~/.cache/marusa/jdks"];

/// Directories that may be homes of a JDK, the ones that the user chose first.
fn places() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|text| !text.is_empty());
    let mut places: Vec<PathBuf> = variable("JAVA_HOME").map(PathBuf::from).into_iter().collect();
    let path = variable("PATH").unwrap_or_default();
    let of_path = std::env::split_paths(&path).map(|directory| directory.join("java"));
    places.extend(of_path.filter_map(|java| std::fs::canonicalize(java).ok()));
    let home = variable("HOME").map(PathBuf::from).unwrap_or_default();
    let below = DIRECTORIES.iter().map(|directory| match directory.strip_prefix("~/") {
        Some(directory) => home.join(directory),
        None => PathBuf::from(directory),
    });
    for directory in variable("MARUSA_JDKS").map(PathBuf::from).into_iter().chain(below) {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut homes: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        homes.sort();
        places.extend(homes);
    }
    places
}

/// What is not a JDK is passed over; one that can be reached by several ways counts once.
fn found(places: &[PathBuf]) -> Vec<Jdk> {
    let mut jdks: Vec<Jdk> = Vec::new();
    for place in places {
        let Ok(home) = ask_jdk::home(place) else { continue };
        if jdks.iter().all(|jdk| jdk.home != home) {
            jdks.extend(Jdk::at(&home).ok());
        }
    }
    jdks
}

/// The first of each release.
fn one_of_each(jdks: Vec<Jdk>) -> BTreeMap<u32, Jdk> {
    let mut one = BTreeMap::new();
    for jdk in jdks {
        one.entry(jdk.feature).or_insert(jdk);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up(directory: &Path, version: &str) -> PathBuf {
        std::fs::create_dir_all(directory.join("bin")).expect("a directory");
        std::fs::write(directory.join("bin/java"), "").expect("a file");
        std::fs::write(directory.join("release"), format!("JAVA_VERSION=\"{version}\"\n")).expect("a file");
        directory.to_path_buf()
    }

    #[test]
    fn one_of_each_release_and_what_is_none_is_passed_over() {
        let place = tempfile::tempdir().expect("a directory");
        let first = made_up(&place.path().join("a"), "17.0.9");
        let second = made_up(&place.path().join("b"), "17.0.15");
        let old = made_up(&place.path().join("c"), "1.8.0_402");
        let places = [first.clone(), place.path().join("none"), second, old, first.join("bin/java")];
        let all = found(&places);
        assert_eq!(all.len(), 3, "{all:?}");
        let one = one_of_each(all);
        assert_eq!(one.keys().copied().collect::<Vec<_>>(), [8, 17]);
        assert_eq!(one[&17].version, "17.0.9");
        assert!(Jdk::at(place.path()).expect_err("none").to_string().contains("is not a JDK"));
    }
}
