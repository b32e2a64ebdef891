//! Hundreds of JVMs with everything that may be known of one, and with names that are made to break a scrape.

use marusa::base::printable::acts;
use marusa::doctor::Level;
use marusa::map::Area;
use marusa::map::rows::Measure;
use marusa::os::identity::Identity;
use marusa::os::process::Process;
use marusa::record::Key;
use marusa::record::figures::Figures;
use marusa::record::writer::{Ending, JvmFacts};
use marusa::serve::catalogue;
use marusa::serve::node::Limits;
use marusa::serve::openmetrics::{self, Form};
use marusa::serve::otlp::{self, Context};
use marusa::serve::summary::{AreaNow, FoundNow, Summary};
use marusa::serve::{Node, Who};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

const JVMS: u64 = 600;
const MEMORY_BYTES: u64 = 128 << 20;
const SECRETS: [&str; 4] = ["-Dpassword=geheim", "/srv/secret/path", "http-nio-8080-exec-1", "4194303"];

fn node() -> Node {
    Node::new(Limits { min_age: Duration::ZERO, every: Duration::from_secs(10), memory_bytes: MEMORY_BYTES })
}

/// A name of each kind, for each JVM another one or the same.
fn hostile(number: u64) -> String {
    match number % 8 {
        0 => format!("quote\"{number}\"}} 1\nmarusa_jvms 7\n"),
        1 => format!("back\\slash\\{number}\\"),
        2 => format!("\u{1b}]0;title\u{7}{number}"),
        3 => format!("\u{202e}gpj.{number}\u{2066}"),
        4 => "x".repeat(100 << 10),
        5 => format!("é{{jvm=\"x\"}},{number} # {{}}"),
        6 => format!("/srv/secret/path/app-{number}.jar"),
        _ => "same".to_string(),
    }
}

/// A name that a platform or a VM gives: never a path, and not long (os/identity).
fn word(number: u64) -> Option<String> {
    Some(hostile(number).replace(SECRETS[1], "").chars().take(253).collect())
}

fn who(number: u64) -> Who {
    let name = || word(number);
    let of = Identity {
        pod: name(),
        namespace: name(),
        container_id: name(),
        pod_uid: name(),
        workload: name(),
        unit: name(),
        ..Identity::default()
    };
    // Those of the last kind share one place, where nothing but a number tells them apart.
    Who { id: Some(format!("{number:032x}")), of: if number % 8 == 7 { Identity::default() } else { of } }
}

fn facts(number: u64) -> JvmFacts {
    JvmFacts {
        pid: 4_194_303,
        main: Some(hostile(number)),
        user: SECRETS[0].to_string(),
        container: Some(SECRETS[1].to_string()),
        version: word(number),
        gc: word(number + 1),
        max_heap_bytes: Some(1 << 30),
        ..JvmFacts::default()
    }
}

/// Everything that a sample may have.
fn figures() -> Figures {
    let of_samples = Measure::ALL.iter().map(|measure| (Key::process(*measure), Some(1 << 30)));
    of_samples.collect()
}

fn summary(number: u64) -> Summary {
    let area = |area: &Area| AreaNow { area: *area, resident_bytes: 1 << 30, committed_bytes: None };
    let mut areas: Vec<_> = Area::ALL.iter().map(area).collect();
    areas[..5].iter_mut().for_each(|area| area.committed_bytes = Some(1 << 30));
    let sizes = [4 << 10, 64 << 10, 2 << 20, 1 << 30];
    let parts = ["heap", "jit_code", "other"];
    Summary {
        areas,
        page_sizes: parts.iter().flat_map(|part| sizes.map(|size| ((*part, size), 1 << 20))).collect(),
        proportional_bytes: Some(1),
        malloc_in_use_bytes: Some(1),
        malloc_trimmable_bytes: Some(1),
        malloc_arenas: Some(1),
        needed_bytes: Some(1),
        classes: Some(1),
        nmt: word(number),
        libc: word(number),
        pages: Some("thp"),
    }
}

fn findings() -> Vec<FoundNow> {
    let found = |id| FoundNow { id, level: Level::Warn, title: SECRETS[2].to_string() };
    vec![found("thread-stacks"), found("thread-stacks"), found("container-limit")]
}

fn full() -> Node {
    let node = node();
    for number in 0..JVMS {
        node.found(number, &facts(number), who(number), Some(1.5), None);
        node.looked(number, &figures());
        node.read(number, summary(number), findings(), None);
    }
    node
}

/// Name and labels of each sample; fails where a line is none of the format (prometheus/docs, exposition_formats.md).
fn samples(text: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let mut families = BTreeSet::new();
    let mut of_family = String::new();
    let mut found = Vec::new();
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
        assert!(value.trim_start().parse::<f64>().is_ok(), "{line}");
        found.push((name.to_string(), labels));
    }
    found
}

/// Labels, and what follows them.
fn labels(text: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
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

#[test]
fn series_are_bounded_and_each_is_there_once() {
    let node = full();
    for form in [Form::Text, Form::OpenMetrics] {
        let text = openmetrics::text(&node, &node.state(), form);
        let found = samples(&text);
        let all: BTreeSet<_> = found.iter().collect();
        assert_eq!(all.len(), found.len(), "a series stands twice");
        let (mut plain, mut named) = (BTreeMap::<_, usize>::new(), BTreeMap::<_, usize>::new());
        for (name, labels) in found.iter().filter(|(name, _)| name.starts_with("marusa_jvm_")) {
            let of: Vec<_> = catalogue::JVM_LABELS.iter().map(|label| labels.get(*label)).collect();
            let is_named =
                ["marusa_jvm_finding", "marusa_jvm_page_size_resident_bytes"].contains(&name.as_str());
            *if is_named { &mut named } else { &mut plain }.entry(of).or_default() += 1;
        }
        assert_eq!(plain.len() as u64, JVMS);
        assert!(plain.values().all(|count| *count <= 60), "{:?}", plain.values().max());
        assert!(named.values().all(|count| *count <= 2 + 12), "{:?}", named.values().max());
    }
}

#[test]
fn labels_are_plain_and_give_nothing_away() {
    let node = full();
    let text = openmetrics::text(&node, &node.state(), Form::Text);
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret}");
    }
    let mut names = BTreeSet::new();
    for (_, labels) in samples(&text) {
        for (name, value) in labels {
            assert!(!value.chars().any(|letter| acts(letter) || letter == '\n'), "{value:?}");
            assert!(value.chars().count() <= 130, "{name} {value}");
            names.insert(name);
        }
    }
    for secret in ["pid", "args", "arguments", "path", "thread", "user", "cmdline"] {
        assert!(!names.contains(secret));
    }
}

#[test]
fn what_ended_has_no_series() {
    let node = full();
    for number in 1..JVMS {
        node.ended(number, Ending::Ended);
    }
    let text = openmetrics::text(&node, &node.state(), Form::Text);
    let of_jvms = samples(&text).into_iter().filter(|(name, _)| name.starts_with("marusa_jvm_info")).count();
    assert_eq!(of_jvms, 1);
    let context = Context { now_nanos: 5, ..Context::default() };
    assert!(otlp::request(&node, &node.state(), &context).len() < 50 << 10);
}

/// Prometheus' own check, where it is installed or was unpacked (scripts/promtool).
#[test]
fn promtool_has_nothing_to_say() {
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
    let node = full();
    let text = openmetrics::text(&node, &node.state(), Form::Text);
    promtool.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let output = promtool.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// The worst case: each sample comes with an account, and each account with a large document.
#[test]
fn the_stores_of_all_jvms_stay_in_their_part_of_the_memory() {
    let me = Process::open(std::process::id() as i32).expect("ours");
    let resident = || me.status().ok().and_then(|status| status.resident_bytes).expect("VmRSS");
    let (node, before) = (node(), resident());
    for number in 0..500 {
        node.found(number, &facts(number), who(number), None, None);
    }
    let figures = figures()[..4].to_vec();
    let areas = Summary { areas: summary(0).areas, ..Summary::default() };
    const ROUNDS: usize = 380;
    for round in 1..=ROUNDS {
        for number in 0..500 {
            // What came before the last one is gone.
            let (summary, document) = match round + 1 < ROUNDS {
                true => (areas.clone(), None),
                false => (summary(number), Some(vec![1; 200 << 10])),
            };
            node.read(number, summary, findings(), document);
            node.looked(number, &figures);
        }
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < MEMORY_BYTES / 4 * 3, "{grown} bytes");
}
