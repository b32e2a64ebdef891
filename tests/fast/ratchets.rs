//! Counts that may only fall (`tests/data/ratchets.tsv`): JSON that is put together by hand, unsafe blocks, lines of the product,
//! and phrases that native readers stumble over. `MARUSA_BLESS=1` writes down what fell; what rose stays a failure. A capability
//! that needs more lines than it makes superfluous raises that line of the file by hand, with the reason in the commit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Plain technical English has another word for each: is not a JVM, cannot, except, reported, cgroup, directory, restore, anyway,
/// while reading, next to, uncertainty, memory limit.
const PHRASES: [&str; 14] = [
    "is no jvm",
    "can not",
    "but for",
    "of whom",
    "is told",
    "control group",
    "folder",
    "put back",
    "all the same",
    "meanwhile",
    "beside",
    "doubt",
    "limit of memory",
    "not one moment",
];

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Texts below `folder` with this extension.
fn texts(folder: &Path, extension: &str, found: &mut Vec<(PathBuf, String)>) {
    for path in fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
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
    let mut sources = Vec::new();
    texts(&root().join("src"), "rs", &mut sources);
    let product: Vec<&str> = sources.iter().map(|(path, text)| product(path, text)).collect();
    let mut prose = sources.clone();
    texts(&root().join("docs"), "md", &mut prose);
    for name in ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md", "SUPPORT.md"] {
        prose.push((PathBuf::from(name), fs::read_to_string(root().join(name)).expect("a document")));
    }
    let prose: Vec<String> = prose.iter().map(|(_, text)| text.to_lowercase()).collect();
    let of = |word: &str| product.iter().map(|text| text.matches(word).count()).sum::<usize>();
    let mut counts = BTreeMap::from([
        ("json! of the product".to_string(), of("json!(")),
        ("unsafe blocks of the product".to_string(), of("unsafe {")),
        ("lines of code of the product".to_string(), product.iter().map(|text| lines_of_code(text)).sum()),
    ]);
    for phrase in PHRASES {
        let count = prose.iter().map(|text| text.matches(phrase).count()).sum();
        counts.insert(format!("phrase: {phrase}"), count);
    }
    counts
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
