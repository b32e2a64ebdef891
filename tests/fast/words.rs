//! Words that native readers stumble over, and a private word where the field has one: `docs/vocabulary.md` has the terms. Some may
//! stand nowhere in the repository, some not in what a user reads.

use crate::ratchets::{root, source_roots, texts};
use regex::Regex;
use std::fs;
use std::path::PathBuf;

/// Nowhere, next to what is written instead.
const NOWHERE: [(&str, &str); 27] = [
    (r"\bis no jvm\b", "is not a JVM"),
    (r"\bcan not\b", "cannot"),
    (r"\bbut for\b", "except"),
    (r"\bof whom\b", "the noun"),
    (r"\bwhose it is\b", "its owner"),
    (r"\bwho tells\b", "what identifies"),
    (r"\bthose that\b", "the ones that, the noun"),
    (r"\bwhat was freed\b", "freed memory"),
    (r"\btold\b", "reported, asked, distinguished"),
    (r"(?:^|\s)so (much|many|long)\b", "a number, a size, a time"),
    (r"\bof a hundred\b", "a percentage"),
    (r"\bfor want of\b", "because it is missing; OOM-killed"),
    (r"\bnobody knows\b", "unknown"),
    (r"\bworth to be\b", "worth"),
    (r"\b(longer|more) than nothing\b", "positive, greater than 0"),
    (r"\bcontrol groups?\b", "cgroup"),
    (r"\bfolders?\b", "directory"),
    (r"\bput back\b", "restored"),
    (r"\btaken back\b", "undone, rolled back"),
    (r"\ball the same\b", "anyway"),
    (r"\bmeanwhile\b", "while reading"),
    (r"\bbeside\b", "next to, with"),
    (r"\bdoubts?\b", "uncertainty, alpha"),
    (r"\bstretch(es)?\b", "range"),
    (r"\blimits? of memory", "memory limit"),
    (r"\bpages of 2 MiB", "2 MiB pages"),
    (r"\bnot one moment", "no samples"),
];

/// Not in messages.
const NOT_FOR_USERS: [(&str, &str); 5] = [
    (r"\b(some|any|no)body\b", "the process, the user; no process"),
    (r"\bin the middle\b", "median"),
    (r"\bto be had\b", "available"),
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
        ("crates", "rs"),
        ("tests", "rs"),
        ("tests", "c"),
        ("tests", "cpp"),
        ("benches", "rs"),
        ("fuzz/src", "rs"),
        ("docs", "md"),
        ("java", "java"),
        ("web", "js"),
        ("web", "html"),
        ("web", "css"),
        ("deploy", "yaml"),
        ("scripts", "bash"),
    ] {
        texts(&root().join(directory), ending, &mut found);
    }
    for directory in [root(), root().join("scripts")] {
        let files = fs::read_dir(directory).expect("a directory").flatten().map(|entry| entry.path());
        let is_prose = |path: &PathBuf| {
            path.is_file() && path.extension().is_none_or(|it| it == "md" || it == "rs" || it == "toml")
        };
        found.extend(
            files.filter(is_prose).filter_map(|path| Some((path.clone(), fs::read_to_string(path).ok()?))),
        );
    }
    let is_licence =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("LICENSE"));
    found.retain(|(path, _)| !path.ends_with("tests/fast/words.rs") && !is_licence(path));
    found
}

/// A text without line breaks and marks of comments: a phrase may be broken over lines.
fn joined(text: &str) -> String {
    let line_break = Regex::new(r"\n[ \t]*(?://[/!]?|\*|#)?[ \t]*").expect("a pattern");
    line_break.replace_all(text, " ").into_owned()
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
        let is_old =
            |line: &&str| line.contains("serde(alias") || line.contains("serde(rename = \"stretches\")");
        let now: String = text.lines().filter(|line| !is_old(line)).flat_map(|line| [line, "\n"]).collect();
        words.find(&path.display().to_string(), &joined(&now), &mut found);
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
        if source_roots().iter().any(|root| path.starts_with(root)) && !place.ends_with("tests.rs") {
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
        let is_read = ["src/show/", "crates/marusa-doctor/src/doctor/", "crates/marusa-doctor/src/why/"]
            .iter()
            .any(|start| place.starts_with(start));
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
