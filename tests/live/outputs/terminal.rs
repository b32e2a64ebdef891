//! Hostile names on every path to a terminal.

use super::fake::{library, start};
use crate::common::{marusa, text};
use marusa::base::printable::acts;
use serde_json::Value;

/// Sets the title, starts a C1 sequence, and turns the direction of writing around.
const HOSTILE: &str = "a\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{2066}\u{200b}\u{e0041}\u{7f}b";
/// A thread has 15 bytes for its name.
const THREAD: &str = "\u{1b}]0;t\u{7}\u{9b}\u{202e}m";

/// Runs it and checks both streams.
fn shown(arguments: &[&str]) -> (String, String) {
    let output = marusa(arguments);
    for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let shown = std::str::from_utf8(bytes).expect("UTF-8");
        let found = shown.chars().find(|letter| acts(*letter));
        assert!(found.is_none(), "{arguments:?}: {found:?} in {stream}: {shown:?}");
        assert!(!output.status.success() || stream == "stderr" || !bytes.is_empty(), "{arguments:?}");
    }
    (text(&output.stdout), text(&output.stderr))
}

/// With colours it writes the sequences that select a style, whole ones, and no other.
fn has_only_our_sequences(arguments: &[&str]) {
    let output = marusa(&[arguments, &["--color", "always"]].concat());
    let shown = text(&output.stdout);
    let mut pieces = shown.split("\u{1b}");
    let mut without = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let style = piece.strip_prefix("[0").and_then(|rest| rest.split_once('m'));
        let (style, rest) = style.unwrap_or_else(|| panic!("{arguments:?}: {piece:?}"));
        assert!(["", ";1", ";2", ";1;31", ";31", ";33", ";36", ";32"].contains(&style), "{piece:?}");
        without.push_str(rest);
    }
    assert!(shown.contains("\u{1b}[0;1m"), "{arguments:?}: no heading: {shown}");
    assert!(!without.chars().any(acts), "{arguments:?}: {without:?}");
}

fn json(arguments: &[&str]) -> Value {
    let (out, errors) = shown(arguments);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {out} {errors}"))
}

#[test]
fn a_target_of_hostile_names_sends_nothing_to_the_terminal() {
    let library = library(HOSTILE);
    let words = ["java", "-cp", HOSTILE, HOSTILE, HOSTILE];
    let fake = start(&library.path, "", THREAD, None, &words);
    let pid = fake.pid.to_string();
    let (list, _) = shown(&["list"]);
    assert!(list.contains("\\u001b]0;owned"), "the name is there, to be read: {list}");
    for command in [
        &["map", &pid][..],
        &["map", &pid, "--by", "mapping"],
        &["doctor", &pid],
        &["audit", &pid],
        &["trim", &pid],
        &["map", "\u{1b}]0;owned"],
        &["tlb", &pid, "--once"],
        &["pages", "plan", &pid],
    ] {
        shown(command);
    }
    for command in [
        &["list"][..],
        &["map", &pid],
        &["map", &pid, "--by", "thread", "--each"],
        &["map", &pid, "--by", "library"],
        &["doctor", &pid],
        &["container", &pid],
    ] {
        has_only_our_sequences(command);
    }
    let list = json(&["list", "--json"]);
    let mains: Vec<&str> =
        list["jvms"].as_array().expect("a list").iter().filter_map(|jvm| jvm["main"].as_str()).collect();
    assert!(mains.contains(&HOSTILE), "the same value after parsing: {mains:?}");
    json(&["map", &pid, "--json"]);
    let (out, _) = shown(&["top", &pid, "--json", "--count", "1"]);
    out.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).expect("a line of JSON")));
}

#[test]
fn what_the_user_or_a_script_names_is_escaped_in_every_error() {
    let path = format!("/nowhere/{HOSTILE}");
    // Not the name of the JVM that another test starts.
    let name = format!("nobody{HOSTILE}");
    let option = format!("--{HOSTILE}");
    for command in [
        &["map", &name][..],
        &["doctor", &name],
        &["map", &option],
        &[HOSTILE],
        &["map", "--by", HOSTILE, "1"],
        &["map", "--from", &path],
        &["diff", &path, &path],
        &["leak", &path],
        &["report", &path, "-o", &path],
        &["freeze", &name, "-o", &path],
        &["record", "-o", &path, "--all", "--for", "1s"],
        &["pages", "apply", &path],
        &["pages", "undo", HOSTILE],
        &["pages", "plan", "--jdk", "hotspot-17", "--heap", "64m", "-o", &path],
        &["export", &path, "--csv", "-"],
        &["man", HOSTILE],
        &["completions", HOSTILE],
        &["compare", "--quiet-wait", "0s", "--arm", HOSTILE, "--", HOSTILE],
    ] {
        let (_, errors) = shown(command);
        assert!(!errors.is_empty(), "{command:?}");
    }
}
