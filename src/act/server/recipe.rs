//! Where the programs of others lie that the experiments measure, and how they get there. The recipes are shell scripts
//! (scripts/recipes), which the project's own scripts use too; here they are inside the binary, with one difference: nothing is
//! installed on the user's system. What is missing is named with the package that has it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Shell functions that the recipes need.
const COMMON: &str = include_str!("../../../scripts/fetch.bash");
/// A missing command is reported, not installed.
const NOTHING_INSTALLED: &str = r#"
as_package() {
    command -v "$1" >/dev/null || { echo "the command $1 is missing: install the package $2" >&2; exit 1; }
}
"#;
/// The bytes of a recipe's output that are quoted when it fails.
const SAID_BYTES_MAX: usize = 600;

/// A program that a recipe brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    DayTrader,
    Compiler,
}

/// Why it is not there.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    #[error(
        "{title} is not at {}: --fetch brings it from Maven Central ({size}; it needs the commands {needs}), or {option} names \
         the directory where a recipe has put it", directory.display()
    )]
    Missing {
        title: &'static str,
        directory: PathBuf,
        size: &'static str,
        needs: &'static str,
        option: &'static str,
    },
    #[error("{} is not a directory that the recipe of {title} made: it has no {lacks}", directory.display())]
    NotOne { title: &'static str, directory: PathBuf, lacks: &'static str },
    #[error("{title} could not be fetched into {}: {said}", directory.display())]
    NotFetched { title: &'static str, directory: PathBuf, said: String },
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("there is no home directory to fetch into: set MARUSA_WORKLOADS to a directory")]
    NoHome,
}

impl Recipe {
    pub fn title(self) -> &'static str {
        match self {
            Recipe::DayTrader => "the DayTrader server",
            Recipe::Compiler => "the Scala compiler",
        }
    }

    /// The name of its directory, and of its function in the script.
    fn name(self) -> &'static str {
        match self {
            Recipe::DayTrader => "daytrader",
            Recipe::Compiler => "compiler",
        }
    }

    fn script(self) -> &'static str {
        match self {
            Recipe::DayTrader => include_str!("../../../scripts/recipes/daytrader.bash"),
            Recipe::Compiler => include_str!("../../../scripts/recipes/compiler.bash"),
        }
    }

    /// A file that is there where the recipe has done its work.
    fn proof(self) -> &'static str {
        match self {
            Recipe::DayTrader => "tomee/webapps/daytrader/WEB-INF/web.xml",
            Recipe::Compiler => "Shapes.scala",
        }
    }

    fn missing(self, directory: PathBuf) -> RecipeError {
        let (size, needs, option) = match self {
            Recipe::DayTrader => ("some 100 MB", "mvn, unzip, tar", "--server"),
            Recipe::Compiler => ("some 40 MB", "mvn", "--compiler"),
        };
        RecipeError::Missing { title: self.title(), directory, size, needs, option }
    }

    /// The directory in which it lies: the one that was named, or its place in the cache, where `fetch` brings it.
    pub fn directory(self, named: Option<&Path>, fetch: bool) -> Result<PathBuf, RecipeError> {
        if let Some(directory) = named {
            let title = self.title();
            return match directory.join(self.proof()).exists() {
                true => absolute(directory),
                false => Err(RecipeError::NotOne {
                    title,
                    directory: directory.to_path_buf(),
                    lacks: self.proof(),
                }),
            };
        }
        let directory = cache()?.join(self.name());
        if directory.join("fetched").exists() && directory.join(self.proof()).exists() {
            return absolute(&directory);
        }
        if !fetch {
            return Err(self.missing(directory));
        }
        self.fetch(&directory)?;
        absolute(&directory)
    }

    /// Into a sibling directory, renamed when complete: an interrupted fetch leaves nothing half done.
    fn fetch(self, directory: &Path) -> Result<(), RecipeError> {
        let failed = |error: io::Error| RecipeError::File { path: directory.to_path_buf(), error };
        let parent = directory.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(failed)?;
        let part = tempfile::Builder::new().prefix(".part-").tempdir_in(parent).map_err(failed)?;
        let script = format!(
            "set -euo pipefail\n{COMMON}{NOTHING_INSTALLED}{}\nfetch_{}\n",
            self.script(),
            self.name()
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", &script]).current_dir(part.path()).stdin(Stdio::null());
        let not_fetched = |said: String| RecipeError::NotFetched {
            title: self.title(),
            directory: directory.to_path_buf(),
            said,
        };
        let output = bash.output().map_err(|error| not_fetched(format!("bash does not run: {error}")))?;
        if !output.status.success() {
            return Err(not_fetched(end_of(&output.stderr)));
        }
        File::create(part.path().join("fetched")).map_err(failed)?;
        if directory.exists() {
            fs::remove_dir_all(directory).map_err(failed)?;
        }
        fs::rename(part.keep(), directory).map_err(failed)
    }
}

fn absolute(directory: &Path) -> Result<PathBuf, RecipeError> {
    fs::canonicalize(directory).map_err(|error| RecipeError::File { path: directory.to_path_buf(), error })
}

/// Where scripts/workloads fetches to as well.
fn cache() -> Result<PathBuf, RecipeError> {
    let variable = |name: &str| std::env::var_os(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    variable("MARUSA_WORKLOADS")
        .or_else(|| Some(variable("HOME")?.join(".cache/marusa/workloads")))
        .ok_or(RecipeError::NoHome)
}

fn end_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(SAID_BYTES_MAX)..]);
    let said = text.trim().replace('\n', "; ");
    if said.is_empty() { "it says nothing".to_string() } else { said }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_none_says_what_it_lacks() {
        let place = tempfile::tempdir().expect("a directory");
        let error = Recipe::DayTrader.directory(Some(place.path()), true).expect_err("empty").to_string();
        assert!(error.contains("it has no tomee/webapps/daytrader"), "{error}");
        fs::write(place.path().join("Shapes.scala"), "").expect("a file");
        assert!(Recipe::Compiler.directory(Some(place.path()), false).is_ok());
    }

    #[test]
    fn a_command_that_a_recipe_lacks_is_named_and_not_installed() {
        let script = format!("{COMMON}{NOTHING_INSTALLED}\nas_package no-such-command its-package\n");
        let output = Command::new("bash").args(["-c", &script]).output().expect("bash");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            end_of(&output.stderr),
            "the command no-such-command is missing: install the package its-package"
        );
    }
}
