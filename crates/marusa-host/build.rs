//! The experiments' Java programs (java/bench) go into the binary: compiled here for every JDK from 8 on, embedded by
//! src/act/programs.rs. Without a javac the binary builds anyway, and `marusa bench` says what was missing.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: &str = "../../java/bench";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={SOURCES}");
    for name in ["MARUSA_JAVAC", "JAVA_HOME"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo gives OUT_DIR"));
    let classes = out.join("classes");
    // What a source that is gone left behind would be embedded for ever.
    let _ = fs::remove_dir_all(&classes);
    fs::create_dir_all(&classes).expect("a directory below OUT_DIR");
    let missing = javac().and_then(|javac| compile(&javac, &classes)).err();
    if let Some(why) = &missing {
        println!("cargo:warning=the Java programs of `marusa bench` are left out: {why}");
    }
    fs::write(out.join("programs.rs"), table(&classes, missing.as_deref())).expect("a file below OUT_DIR");
}

/// $MARUSA_JAVAC, that of $JAVA_HOME, or the first of the path.
fn javac() -> Result<PathBuf, String> {
    if let Some(given) = env::var_os("MARUSA_JAVAC").filter(|given| !given.is_empty()) {
        return Ok(given.into());
    }
    let of_home = env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = of_home.into_iter().chain(env::split_paths(&path)).collect();
    let found = directories.iter().map(|directory| directory.join("javac")).find(|javac| javac.is_file());
    found.ok_or_else(|| {
        // Built again when one comes, and only then: a file that is not there would have it built each time.
        println!("cargo:rerun-if-env-changed=PATH");
        for directory in directories.iter().filter(|directory| directory.is_dir()) {
            println!("cargo:rerun-if-changed={}", directory.display());
        }
        "no javac was found at $JAVA_HOME or in the path when marusa was built (Debian: default-jdk-headless)"
            .to_string()
    })
}

/// An error: this javac cannot. Sources that it refuses are a mistake of ours, and end the build.
fn compile(javac: &Path, classes: &Path) -> Result<(), String> {
    let mut command = Command::new(javac);
    command
        .args(["--release", "8", "-Xlint:-options", "-encoding", "UTF-8", "-proc:none", "-d"])
        .arg(classes);
    command.args(sources());
    // Options of the environment would be printed on standard error, or change what is built.
    command.env_remove("JAVA_TOOL_OPTIONS").env_remove("JDK_JAVAC_OPTIONS");
    let output = command.output().map_err(|error| format!("{} does not run: {error}", javac.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let too_old = said.contains("invalid flag: --release");
    if too_old
        || said.contains("release version 8 not supported")
        || said.contains("release version not supported")
    {
        let javac = javac.display();
        return Err(format!(
            "{javac} cannot compile for Java 8; $MARUSA_JAVAC names another, of JDK 9 to 25"
        ));
    }
    panic!("{command:?} failed:\n{said}");
}

fn sources() -> Vec<PathBuf> {
    let entries = fs::read_dir(SOURCES).expect("java/bench is there").flatten().map(|entry| entry.path());
    let mut sources: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "java")).collect();
    sources.sort();
    sources
}

/// The Rust of the embedded files: names as a class path has them, and their bytes.
fn table(classes: &Path, missing: Option<&str>) -> String {
    let mut text =
        "/// Names below the directory of the class path, and bytes.\npub const FILES: &[(&str, &[u8])] = &[\n"
            .to_string();
    let mut files = Vec::new();
    if missing.is_none() {
        below(classes, &mut files);
    }
    files.sort();
    for file in &files {
        let name =
            file.strip_prefix(classes).expect("it lies below").to_str().expect("class names are ASCII");
        let _ = writeln!(text, "    ({name:?}, include_bytes!({:?})),", file.display().to_string());
    }
    let _ = writeln!(text, "];\n/// Why there are none.\npub const MISSING: Option<&str> = {missing:?};");
    text
}

fn below(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory of ours").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => below(&path, files),
            false => files.push(path),
        }
    }
}
