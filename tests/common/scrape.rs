//! What a scrape says, read as Prometheus reads it, so that tests do not take the text's word for its form.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

pub type Labels = BTreeMap<String, String>;

/// Name, labels and value of each sample; fails where a line is none of the format (prometheus/docs, exposition_formats.md), and
/// where a series stands twice.
pub fn samples(text: &str) -> BTreeMap<(String, Labels), f64> {
    let mut families = BTreeSet::new();
    let mut of_family = String::new();
    let mut found = BTreeMap::new();
    for line in text.lines() {
        if let Some(of) = line.strip_prefix("# ") {
            let name = of.split(' ').nth(1).unwrap_or_default();
            if of.starts_with("HELP ") {
                assert!(families.insert(name.to_string()), "{name} stands in two places");
                of_family = name.to_string();
            }
            assert!(of == "EOF" || name == of_family, "{line}");
            continue;
        }
        let (name, rest) = line.split_at(line.find(['{', ' ']).expect("a name"));
        assert!(name.starts_with(&of_family), "{name} in {of_family}");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
        let (labels, value) = labels(rest);
        let value = value.trim_start().parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(found.insert((name.to_string(), labels), value).is_none(), "{line} stands twice");
    }
    found
}

/// Labels, and what follows them.
fn labels(text: &str) -> (Labels, &str) {
    let mut labels = Labels::new();
    let Some(mut rest) = text.strip_prefix('{') else { return (labels, text) };
    loop {
        let (name, value) = rest.split_once("=\"").expect("a label");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        let (mut read, mut letters) = (String::new(), value.char_indices());
        let end = loop {
            match letters.next().expect("the end of a value") {
                (at, '"') => break at,
                (_, '\\') => read.push(match letters.next().expect("an escape").1 {
                    'n' => '\n',
                    letter @ ('\\' | '"') => letter,
                    other => panic!("no escape: {other}"),
                }),
                (_, letter) => read.push(letter),
            }
        };
        assert!(labels.insert(name.to_string(), read).is_none(), "{name} twice");
        rest = &value[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return (labels, rest.strip_prefix('}').expect("the end of the labels")),
        }
    }
}

/// Prometheus' own check, where it is installed or was unpacked (scripts/promtool).
pub fn check_with_promtool(text: &str) {
    let home = std::env::var("HOME").unwrap_or_default();
    let unpacked = format!("{home}/.cache/marusa/prometheus/usr/bin/promtool");
    let start = |program: &str| {
        let mut command = Command::new(program);
        command
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().ok()
    };
    let Some(mut promtool) = start("promtool").or_else(|| start(&unpacked)) else { return };
    promtool.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let output = promtool.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
