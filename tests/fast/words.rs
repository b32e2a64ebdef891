//! Words that native readers stumble over, and a private word where the field has one: `docs/vocabulary.md` has the terms. Some may
//! stand nowhere in the repository, some not in what a user reads.

use crate::ratchets::{root, texts};
use regex::Regex;
use std::fs;
use std::path::PathBuf;

/// Nowhere, next to what is written instead.
const NOWHERE: [(&str, &str); 15] = [
    (r"\bis no jvm", "is not a JVM"),
    (r"\bcan not\b", "cannot"),
    (r"\bbut for\b", "except"),
    (r"\bof whom\b", "the noun"),
    (r"\bis told\b", "is reported"),
    (r"\bcontrol group", "cgroup"),
    (r"\bfolders?\b", "directory"),
    (r"\bput back\b", "restored"),
    (r"\btaken back\b", "undone, rolled back"),
    (r"\ball the same\b", "anyway"),
    (r"\bmeanwhile\b", "while reading"),
    (r"\bbeside\b", "next to, with"),
    (r"\bdoubts?\b", "uncertainty, alpha"),
    (r"\blimit of memory", "memory limit"),
    (r"\bnot one moment", "no samples"),
];

/// Not in messages.
const NOT_FOR_USERS: [(&str, &str); 12] = [
    (r"\b(some|any|no)body\b", "the process, the user; no process"),
    (r"\btold\b", "reported, asked, distinguished"),
    (r"\bso (much|many|long)\b", "a number, a size, a time"),
    (r"\bthose that\b", "the ones that"),
    (r"\bwhose it is\b", "its owner"),
    (r"\bfor want of memory", "OOM-killed"),
    (r"\bin the middle\b", "median"),
    (r"\bstretch(es)?\b", "range"),
    (r"\bto be had\b", "available"),
    (r"\bworth to be\b", "worth"),
    (r"\bunasked\b", "without asking"),
    (r"\bstands behind\b", "follows"),
];

/// Nouns that a count comes before: `counted` has their singulars.
const COUNTED: &str = "JVMs|threads|blocks|runs|times|samples|events|instances|loaders|rules|holders|classes|groups|mappings|\
                       intervals|rounds|buffers|processes|files|objects|arrays|retries|trials|children|findings|recordings|\
                       arenas|changes|things|others|faults|requests|connections|overlaps|heaps";
/// Where such numbers are settings of an experiment, or more than one in any case.
const COUNTED_ELSEWHERE: [&str; 2] = ["src/show/bench/", "src/show/record.rs"];

fn prose() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for (directory, ending) in [
        ("src", "rs"),
        ("tests", "rs"),
        ("benches", "rs"),
        ("fuzz/src", "rs"),
        ("docs", "md"),
        ("java", "java"),
    ] {
        texts(&root().join(directory), ending, &mut found);
    }
    for name in
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "SUPPORT.md", "CHANGELOG.md"]
    {
        found.push((PathBuf::from(name), fs::read_to_string(root().join(name)).expect("a document")));
    }
    found.retain(|(path, _)| !path.ends_with("tests/fast/words.rs"));
    found
}

struct Words(Vec<(Regex, &'static str)>);

impl Words {
    fn new(phrases: &[(&str, &'static str)]) -> Words {
        let compiled = |phrase: &str| Regex::new(&format!("(?i){phrase}")).expect("a pattern");
        Words(phrases.iter().map(|(phrase, better)| (compiled(phrase), *better)).collect())
    }

    fn find(&self, place: &str, text: &str, found: &mut Vec<String>) {
        for (phrase, better) in &self.0 {
            found
                .extend(phrase.find(text).map(|hit| format!("{place}: {:?}; write: {better}", hit.as_str())));
        }
    }
}

#[test]
fn no_text_has_words_that_readers_stumble_over() {
    let words = Words::new(&NOWHERE);
    let mut found = Vec::new();
    for (path, text) in prose() {
        // Names in files that older versions wrote.
        let now: String =
            text.lines().filter(|line| !line.contains("serde(alias")).flat_map(|line| [line, "\n"]).collect();
        words.find(&path.display().to_string(), &now, &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn what_users_read_is_plain() {
    let words = Words::new(&NOT_FOR_USERS);
    let literal = Regex::new(r#""(?:[^"\\]|\\[\s\S])*""#).expect("a pattern");
    let joined = Regex::new(r"\\\n\s*").expect("a pattern");
    let mut found = Vec::new();
    for (path, text) in prose() {
        let place = path.display().to_string();
        if path.starts_with(root().join("src")) && !place.ends_with("tests.rs") {
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let code: String =
                code.lines().filter(|line| !is_comment(line)).flat_map(|line| [line, "\n"]).collect();
            for one in literal.find_iter(&code.replace("'\"'", "")) {
                words.find(&place, &joined.replace_all(one.as_str(), ""), &mut found);
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_count_goes_through_the_helper_that_knows_the_singular() {
    let before_noun = format!(r"(\bof |\bin each of )?\{{[a-z_]*\}} (?:more |fewer |huge )?(?:{COUNTED})\b");
    let plural = Regex::new(&before_noun).expect("a pattern");
    let literal = Regex::new(r#""(?:[^"\\]|\\[\s\S])*""#).expect("a pattern");
    let mut found = Vec::new();
    for (path, text) in prose() {
        let place = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let is_left_out = COUNTED_ELSEWHERE.iter().any(|start| place.starts_with(start));
        let is_read = ["src/show/", "src/doctor/", "src/why/"].iter().any(|start| place.starts_with(start));
        if !is_read || place.ends_with("tests.rs") || is_left_out {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let code: String =
            code.lines().filter(|line| !is_comment(line)).flat_map(|line| [line, "\n"]).collect();
        for one in literal.find_iter(&code.replace("'\"'", "")) {
            let hits = plural.captures_iter(one.as_str()).filter(|hit| hit.get(1).is_none());
            found.extend(hits.map(|hit| format!("{place}: {:?}; write: counted(number, noun)", &hit[0])));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}
