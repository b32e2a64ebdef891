//! Where the programs of others lie that the experiments measure, and how they get there. The recipes are shell scripts
//! (scripts/recipes), which the project's own scripts use too; here they are inside the binary, with one difference: nothing is
//! installed on the user's system. What is missing is named with the package that has it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Shell functions that the recipes need.
const COMMON: &str = include_str!("../../../../../scripts/fetch.bash");
/// A missing command is reported, not installed.
const NOTHING_INSTALLED: &str = r#"
as_package() {
    command -v "$1" >/dev/null || { echo "the command $1 is missing: install the package $2" >&2; exit 1; }
}
"#;
/// The bytes of a recipe's output that are quoted when it fails.
const SAID_BYTES_MAX: usize = 600;

/// A program that a recipe brings.
#[derive(Debug)]
pub struct Recipe {
    title: &'static str,
    /// The name of its directory, and of its function in the script.
    name: &'static str,
    script: &'static str,
    /// A file that is there where the recipe has done its work.
    proof: &'static str,
    size: &'static str,
    /// The commands that it needs.
    needs: &'static str,
    /// The option that names its directory.
    option: Option<&'static str>,
}

pub static DAY_TRADER: Recipe = Recipe {
    title: "the DayTrader server",
    name: "daytrader",
    script: include_str!("../../../../../scripts/recipes/daytrader.bash"),
    proof: "tomee/webapps/daytrader/WEB-INF/web.xml",
    size: "some 100 MB",
    needs: "mvn, unzip, tar",
    option: Some("--server"),
};

pub static COMPILER: Recipe =
    Recipe { option: Some("--compiler"), ..batch("the Scala compiler", "compiler", "some 40 MB") };
pub static LUCENE: Recipe = batch("the Lucene indexer", "lucene", "some 5 MB");
pub static H2: Recipe = batch("the H2 database", "h2", "some 3 MB");
pub static XALAN: Recipe = batch("the Xalan processor", "xalan", "some 4 MB");
pub static PMD: Recipe = batch("the PMD checker", "pmd", "some 20 MB");

/// One that `bench.Again` runs, by the words of its file `command`.
const fn batch(title: &'static str, name: &'static str, size: &'static str) -> Recipe {
    let script = include_str!("../../../../../scripts/recipes/batch.bash");
    Recipe { title, name, script, proof: COMMAND, size, needs: "mvn, unzip", option: None }
}

/// Class, method and arguments of a batch program, one a line.
const COMMAND: &str = "command";

/// The words of a batch program's command; its output goes into `out`.
pub fn command(installed: &Path, out: &Path) -> io::Result<Vec<String>> {
    let words = fs::read_to_string(installed.join(COMMAND))?;
    let [here, out] = [installed, out].map(|path| path.display().to_string());
    Ok(words.lines().map(|word| word.replace("{here}", &here).replace("{out}", &out)).collect())
}

/// Why it is not there.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    #[error(
        "{} is not at {}: --fetch brings it from Maven Central ({}; it needs the commands {}){}",
        recipe.title, directory.display(), recipe.size, recipe.needs, recipe.elsewhere()
    )]
    Missing { recipe: &'static Recipe, directory: PathBuf },
    #[error("{} is not a directory that the recipe of {} made: it has no {}", directory.display(), recipe.title, recipe.proof)]
    NotOne { recipe: &'static Recipe, directory: PathBuf },
    #[error("{} could not be fetched into {}: {said}", recipe.title, directory.display())]
    NotFetched { recipe: &'static Recipe, directory: PathBuf, said: String },
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("there is no home directory to fetch into: set MARUSA_WORKLOADS to a directory")]
    NoHome,
}

impl Recipe {
    fn elsewhere(&self) -> String {
        let named =
            self.option.map(|option| format!(", or {option} names the directory where a recipe has put it"));
        named.unwrap_or_default()
    }

    /// The directory in which it lies: the one that was named, or its place in the cache, where `fetch` brings it.
    pub fn directory(&'static self, named: Option<&Path>, fetch: bool) -> Result<PathBuf, RecipeError> {
        if let Some(directory) = named {
            return match directory.join(self.proof).exists() {
                true => absolute(directory),
                false => Err(RecipeError::NotOne { recipe: self, directory: directory.to_path_buf() }),
            };
        }
        let directory = cache()?.join(self.name);
        if directory.join("fetched").exists() && directory.join(self.proof).exists() {
            return absolute(&directory);
        }
        if !fetch {
            return Err(RecipeError::Missing { recipe: self, directory });
        }
        self.fetch(&directory)?;
        absolute(&directory)
    }

    /// Into a sibling directory, renamed when complete: an interrupted fetch leaves nothing half done.
    fn fetch(&'static self, directory: &Path) -> Result<(), RecipeError> {
        let failed = |error: io::Error| RecipeError::File { path: directory.to_path_buf(), error };
        let parent = directory.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(failed)?;
        let part = tempfile::Builder::new().prefix(".part-").tempdir_in(parent).map_err(failed)?;
        let Recipe { name, script, .. } = self;
        let script = format!("set -euo pipefail\n{COMMON}{NOTHING_INSTALLED}{script}\nfetch_{name}\n");
        let mut bash = Command::new("bash");
        bash.args(["-c", &script]).current_dir(part.path()).stdin(Stdio::null());
        let not_fetched =
            |said: String| RecipeError::NotFetched { recipe: self, directory: directory.to_path_buf(), said };
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
        let error = DAY_TRADER.directory(Some(place.path()), true).expect_err("empty").to_string();
        assert!(error.contains("it has no tomee/webapps/daytrader"), "{error}");
        fs::write(place.path().join(COMMAND), "a.Main\nrun\n-d\n{out}\n{here}/in").expect("a file");
        assert!(COMPILER.directory(Some(place.path()), false).is_ok());
        let here = place.path().display().to_string();
        let words = command(place.path(), Path::new("/out")).expect("its words");
        assert_eq!(words, ["a.Main", "run", "-d", "/out", &format!("{here}/in")]);
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
