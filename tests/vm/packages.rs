//! Debian packages of any suite and architecture, without a trace in the host's own apt: a private apt directory for each pair,
//! which reads
//! the mirror that the host's apt reads. What was downloaded once is kept.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const PUBLIC_MIRROR: &str = "http://deb.debian.org/debian";

/// A package by its suite, architecture and name; a name that ends in `->` is of a meta package, and stands for the first package
/// that it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Package {
    pub suite: &'static str,
    pub architecture: &'static str,
    pub name: &'static str,
}

pub struct Store {
    home: PathBuf,
    /// Suites whose lists were fetched by this run.
    ready: HashMap<String, Result<PathBuf, String>>,
}

impl Store {
    pub fn at(home: &Path) -> Store {
        Store { home: home.to_path_buf(), ready: HashMap::new() }
    }

    /// The .deb file; an error says what the mirror lacks.
    pub fn fetch(&mut self, package: Package) -> Result<PathBuf, String> {
        let Package { suite, architecture, name } = package;
        let debs = self.home.join("debs");
        let plain = name.trim_end_matches("->");
        let kept = debs.join(format!("{suite}-{architecture}-{plain}.deb"));
        if kept.exists() {
            return Ok(kept);
        }
        let config = self.apt(suite, architecture)?;
        let real = if plain == name { name.to_string() } else { needed_by(&config, plain)? };
        let part = debs.join(format!("part-{suite}-{architecture}-{plain}"));
        let _ = std::fs::remove_dir_all(&part);
        std::fs::create_dir_all(&part).map_err(|error| error.to_string())?;
        let got = run(Command::new("apt-get")
            .arg("-c")
            .arg(&config)
            .args(["-qq", "download", &real])
            .current_dir(&part));
        got.map_err(|error| format!("{suite} has no {real} for {architecture}: {error}"))?;
        let mut files = std::fs::read_dir(&part).map_err(|error| error.to_string())?.flatten();
        let file = files.next().ok_or_else(|| format!("{suite} gave no file for {real}"))?;
        std::fs::rename(file.path(), &kept).map_err(|error| error.to_string())?;
        let _ = std::fs::remove_dir_all(&part);
        Ok(kept)
    }

    /// The configuration of the private apt, its lists fetched.
    fn apt(&mut self, suite: &str, architecture: &str) -> Result<PathBuf, String> {
        let key = format!("{suite}-{architecture}");
        if let Some(known) = self.ready.get(&key) {
            return known.clone();
        }
        let made = make(&self.home.join("apt").join(&key), suite, architecture);
        self.ready.insert(key, made.clone());
        made
    }
}

fn make(at: &Path, suite: &str, architecture: &str) -> Result<PathBuf, String> {
    let text = |error: std::io::Error| error.to_string();
    for directory in ["state/lists/partial", "cache/archives/partial"] {
        std::fs::create_dir_all(at.join(directory)).map_err(text)?;
    }
    let signed = if Path::new(KEYRING).exists() { format!(" signed-by={KEYRING}") } else { String::new() };
    let source = format!("deb [arch={architecture}{signed}] {} {suite} main\n", mirror());
    std::fs::write(at.join("sources.list"), source).map_err(text)?;
    let root = at.display();
    let config = format!(
        "Dir::Etc::sourcelist \"{root}/sources.list\";\nDir::Etc::sourceparts \"/dev/null\";\nDir::State \"{root}/state\";\n\
         Dir::State::status \"/dev/null\";\nDir::Cache \"{root}/cache\";\nAPT::Architecture \"{architecture}\";\n\
         APT::Architectures {{ \"{architecture}\"; }};\nAPT::Sandbox::User \"root\";\nAcquire::Languages \"none\";\n\
         Acquire::Retries \"2\";\n"
    );
    let file = at.join("apt.conf");
    std::fs::write(&file, config).map_err(text)?;
    run(Command::new("apt-get").arg("-c").arg(&file).args(["-qq", "update"]))
        .map_err(|error| format!("cannot read the lists of {suite} for {architecture}: {error}"))?;
    Ok(file)
}

/// The mirror of the host's own apt, if it is one of Debian.
fn mirror() -> String {
    let listed = run(Command::new("apt-get").args(["update", "--print-uris"])).unwrap_or_default();
    let found = listed.lines().find_map(|line| {
        let (mirror, _) = line.strip_prefix('\'')?.split_once("/dists/")?;
        mirror.ends_with("/debian").then(|| mirror.to_string())
    });
    found.unwrap_or_else(|| PUBLIC_MIRROR.to_string())
}

fn needed_by(config: &Path, meta: &str) -> Result<String, String> {
    let shown =
        run(Command::new("apt-cache").arg("-c").arg(config).args(["show", "--no-all-versions", meta]))?;
    let line = shown.lines().find_map(|line| line.strip_prefix("Depends: "));
    let first = line.and_then(|line| line.split([',', ' ', '(']).next());
    first.map(str::to_string).ok_or_else(|| format!("{meta} depends on nothing"))
}

/// Standard output, or the last line of what went wrong.
pub fn run(command: &mut Command) -> Result<String, String> {
    let output =
        command.output().map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(errors.lines().last().unwrap_or("it failed and said nothing").to_string())
}
