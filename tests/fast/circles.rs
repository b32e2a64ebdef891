//! No circle of files: what a file needs lies below it, so that it can be read, tested and changed without knowing what uses it.
//! Two files that name each other are let be, and so is a file that names the one it is a part of.

use crate::ratchets::{source_roots, sources};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Module = Vec<String>;
/// Where a name of a module really is, for names that it hands on.
type HandedOn = BTreeMap<(Module, String), Module>;

fn words(path: &str) -> Module {
    path.split("::").map(|word| word.trim().to_string()).collect()
}

/// `None`: a file of tests, or the root of a crate.
fn module(path: &Path) -> Option<Module> {
    let below = source_roots().iter().find_map(|root| path.strip_prefix(root).ok())?.with_extension("");
    let mut words: Module = below.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if words.last()?.as_str() == "mod" {
        words.pop();
    }
    let is_left_out = words.last()?.ends_with("tests") || ["lib", "main"].contains(&words[0].as_str());
    (!is_left_out).then_some(words)
}

/// "a::{b, c::{d, e as f}}" as "a::b", "a::c::d", "a::c::e".
fn spread(used: &str) -> Vec<String> {
    let Some((start, rest)) = used.split_once('{') else {
        return vec![used.split(" as ").next().unwrap_or(used).trim().to_string()];
    };
    let inner = &rest[..rest.rfind('}').unwrap_or(rest.len())];
    let (mut depth, mut from, mut paths) = (0, 0, Vec::new());
    for (at, letter) in inner.char_indices().chain([(inner.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inner[from..at].trim();
                if !part.is_empty() {
                    paths.extend(spread(&format!("{}{part}", start.trim())));
                }
                from = at + 1;
            }
            _ => {}
        }
    }
    paths
}

/// The module that a path in the file of `here` leads to, and the name in it.
fn lead(files: &BTreeMap<Module, String>, here: &Module, path: &str) -> Option<(Module, Option<String>)> {
    let mut words = words(path).into_iter().peekable();
    let mut at = match words.peek()?.as_str() {
        "crate" => words.next().map(|_| Module::new())?,
        first if first.starts_with("marusa_") => words.next().map(|_| Module::new())?,
        "self" => words.next().map(|_| here.clone())?,
        "super" => {
            let mut above = here.clone();
            while words.next_if(|word| word == "super").is_some() {
                above.pop();
            }
            above
        }
        first if files.contains_key(&[here.clone(), vec![first.to_string()]].concat()) => here.clone(),
        _ => return None,
    };
    while let Some(word) =
        words.next_if(|word| files.contains_key(&[at.clone(), vec![word.clone()]].concat()))
    {
        at.push(word);
    }
    Some((at, words.next()))
}

/// The files that each file names.
fn named(files: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let handed = Regex::new(r"pub(?:\([^)]*\))? use ([^;]+);").expect("a pattern");
    let used = Regex::new(r"\buse ([^;]+);").expect("a pattern");
    let inline =
        Regex::new(r"\b(?:(?:crate|super|self|marusa_\w+)(?:::\w+)+|\w+(?:::\w+)+)").expect("a pattern");
    let mut elsewhere = HandedOn::new();
    for (here, text) in files {
        for path in handed.captures_iter(text).flat_map(|found| spread(&found[1])) {
            if let Some((at, Some(name))) = lead(files, here, &path) {
                elsewhere.insert((here.clone(), name), at);
            }
        }
    }
    let of = |(here, text): (&Module, &String)| {
        let text = handed.replace_all(text, "");
        let mut paths: Vec<String> = used.captures_iter(&text).flat_map(|found| spread(&found[1])).collect();
        let rest = used.replace_all(&text, "");
        paths.extend(inline.find_iter(&rest).map(|found| found.as_str().to_string()));
        let led = paths.iter().filter_map(|path| lead(files, here, path)).map(|(mut at, name)| {
            for _ in 0..8 {
                let key = (at.clone(), name.clone().unwrap_or_default());
                at = elsewhere.get(&key).cloned().unwrap_or(at);
            }
            at
        });
        (here.clone(), led.filter(|at| files.contains_key(at) && !here.starts_with(at)).collect())
    };
    files.iter().map(of).collect()
}

/// All that can be reached.
fn reached(from: &Module, named: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(at) = left.pop() {
        left.extend(named[at].iter().filter(|next| seen.insert((*next).clone())));
    }
    seen
}

#[test]
fn no_circle_of_more_than_two_files() {
    let comment = Regex::new(r"//.*").expect("a pattern");
    let files: BTreeMap<Module, String> = sources()
        .into_iter()
        .filter_map(|(path, text)| {
            let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            Some((module(&path)?, comment.replace_all(product, "").into_owned()))
        })
        .collect();
    assert!(files.len() > 500, "{} files", files.len());
    let named = named(&files);
    let reach: BTreeMap<&Module, BTreeSet<Module>> =
        named.keys().map(|it| (it, reached(it, &named))).collect();
    let mut circles = BTreeSet::new();
    for (here, all) in &reach {
        let circle: Vec<String> =
            all.iter().filter(|it| reach[it].contains(*here)).map(|it| it.join("::")).collect();
        if circle.len() > 2 {
            circles.insert(circle.join(", "));
        }
    }
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn nested_names_are_spread() {
    assert_eq!(spread("a::{b, c::{d, e as f},}"), ["a::b", "a::c::d", "a::c::e"]);
}
