//! Counts that may only fall (`tests/data/ratchets.tsv`): JSON that is put together by hand, unsafe blocks, lines of the product.
//! `MARUSA_BLESS=1` writes down what fell; what rose stays a failure. A capability
//! that needs more lines than it makes superfluous raises that line of the file by hand, with the reason in the commit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Where the product's sources are: the program, and the crates below it.
pub fn source_roots() -> [PathBuf; 6] {
    [
        "",
        "crates/marusa-account",
        "crates/marusa-observe",
        "crates/marusa-host",
        "crates/marusa-doctor",
        "crates/marusa-lab",
    ]
    .map(|package| root().join(package).join("src"))
}

/// The product's sources.
pub fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for directory in source_roots() {
        texts(&directory, "rs", &mut found);
    }
    found
}

/// Texts below `directory` with this extension.
pub fn texts(directory: &Path, extension: &str, found: &mut Vec<(PathBuf, String)>) {
    for path in fs::read_dir(directory).expect("a directory").flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            texts(&path, extension, found);
        } else if path.extension().is_some_and(|it| it == extension) {
            let text = fs::read_to_string(&path).expect("UTF-8");
            found.push((path, text));
        }
    }
}

/// What of a source is the product: no file of tests, nothing behind the tests' first line.
fn product<'a>(path: &Path, text: &'a str) -> &'a str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name.ends_with("tests.rs") {
        true => "",
        false => text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text),
    }
}

fn lines_of_code(text: &str) -> usize {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

fn counted() -> BTreeMap<String, usize> {
    let sources = sources();
    let product: Vec<&str> = sources.iter().map(|(path, text)| product(path, text)).collect();
    let of = |word: &str| product.iter().map(|text| text.matches(word).count()).sum::<usize>();
    BTreeMap::from([
        ("json! of the product".to_string(), of("json!(")),
        ("unsafe blocks of the product".to_string(), of("unsafe {")),
        ("lines of code of the product".to_string(), product.iter().map(|text| lines_of_code(text)).sum()),
    ])
}

#[test]
fn counts_that_may_only_fall() {
    let path = root().join("tests/data/ratchets.tsv");
    let written = fs::read_to_string(&path).unwrap_or_default();
    let before: BTreeMap<String, usize> = written
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, count)| (name.to_string(), count.parse().expect("a number")))
        .collect();
    let now = counted();
    let rose = now.iter().filter(|(name, count)| before.get(*name).is_some_and(|before| *count > before));
    let rose: Vec<String> =
        rose.map(|(name, count)| format!("{name}: {count}, was {}", before[name])).collect();
    assert!(rose.is_empty(), "these may only fall:\n{}", rose.join("\n"));
    if now != before && std::env::var_os("MARUSA_BLESS").is_some() {
        let lines: String = now.iter().map(|(name, count)| format!("{name}\t{count}\n")).collect();
        fs::write(&path, lines).expect("written");
        return;
    }
    assert_eq!(now, before, "some fell: MARUSA_BLESS=1 writes them down");
}
