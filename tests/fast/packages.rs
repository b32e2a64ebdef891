//! What a release is made of, without making it: the files that the packages name are there, both kinds have the same, and the
//! release's workflow calls what the Makefile has. `make dist` and `make test-dist` are the proof.

use crate::ratchets::root;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use yaml_rust2::{Yaml, YamlLoader};

/// Made by scripts/dist.
const MADE: &str = "target/";

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// `package.metadata` of Cargo.toml.
fn metadata() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root());
    let printed = cargo.output().expect("cargo runs").stdout;
    let document: Value = serde_json::from_slice(&printed).expect("JSON");
    let packages = document["packages"].as_array().expect("packages");
    let ours = packages.iter().find(|package| package["name"] == "marusa").expect("this package");
    ours["metadata"].clone()
}

/// The source of each asset of a kind of package: a list for Debian's, a table for RPM's.
fn sources(assets: &Value) -> BTreeSet<String> {
    let source =
        |asset: &Value| asset.get("source").unwrap_or(&asset[0]).as_str().expect("a path").to_string();
    assets.as_array().expect("a list").iter().map(source).collect()
}

#[test]
fn packages_name_files_that_exist_and_both_kinds_have_the_same() {
    let metadata = metadata();
    let deb = sources(&metadata["deb"]["assets"]);
    let rpm = sources(&metadata["generate-rpm"]["assets"]);
    let copyright = metadata["deb"]["license-file"][0].as_str().expect("a path");
    let named = deb.union(&rpm).map(String::as_str).chain([copyright]);
    let missing: Vec<&str> =
        named.filter(|path| !path.starts_with(MADE) && !root().join(path).is_file()).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // The licences: common ones are part of Debian, and its packages have a file of their own for the rest.
    let apart = |path: &&String| !path.starts_with("LICENSE-") && !path.starts_with("packaging/");
    let (deb, rpm): (Vec<_>, Vec<_>) =
        (deb.iter().filter(apart).collect(), rpm.iter().filter(apart).collect());
    assert_eq!(deb, rpm);
}

/// Each `run` of a step.
fn commands(workflow: &Yaml) -> Vec<&str> {
    let jobs = workflow["jobs"].as_hash().expect("jobs").values();
    let steps = jobs.flat_map(|job| job["steps"].as_vec().expect("steps"));
    steps.filter_map(|step| step["run"].as_str()).collect()
}

#[test]
fn the_release_calls_what_is_there_and_may_only_read_by_default() {
    let workflow = &YamlLoader::load_from_str(&text(".github/workflows/release.yml")).expect("YAML")[0];
    let rights = workflow["permissions"].as_hash().expect("rights by default");
    let rights: Vec<_> = rights.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(rights, [(Some("contents"), Some("read"))]);
    let makefile = text("Makefile");
    let targets: BTreeSet<&str> =
        makefile.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
    let called: Vec<&str> = commands(workflow)
        .iter()
        .filter_map(|command| command.split_once("make ").map(|(_, target)| target.trim()))
        .collect();
    assert_eq!(called, ["dist", "test-dist"]);
    assert!(called.iter().all(|target| targets.contains(target)), "{called:?} of {targets:?}");
}

#[test]
fn scripts_that_are_called_exist() {
    let mut missing = Vec::new();
    for caller in ["Makefile", "scripts/dist", "scripts/test-dist", "scripts/setup"] {
        let text = text(caller);
        for rest in text.split("scripts/").skip(1) {
            let is_of_name = |letter: &char| letter.is_alphanumeric() || "-.".contains(*letter);
            let name: String = rest.chars().take_while(is_of_name).collect();
            if !root().join("scripts").join(&name).is_file() {
                missing.push(format!("{caller} calls scripts/{name}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
