//! Hundreds of JVMs with everything that may be known of one, and with names that are made to break a scrape.

use crate::scrape::{check_with_promtool, samples};
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

#[test]
fn series_are_bounded_and_each_is_there_once() {
    let node = full();
    for form in [Form::Text, Form::OpenMetrics] {
        let text = openmetrics::text(&node, &node.state(), form);
        let found = samples(&text);
        let (mut plain, mut named) = (BTreeMap::<_, usize>::new(), BTreeMap::<_, usize>::new());
        for (name, labels) in found.keys().filter(|(name, _)| name.starts_with("marusa_jvm_")) {
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
    for (_, labels) in samples(&text).into_keys() {
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
    let of_jvms = samples(&text).into_keys().filter(|(name, _)| name.starts_with("marusa_jvm_info")).count();
    assert_eq!(of_jvms, 1);
    let context = Context { now_nanos: 5, ..Context::default() };
    assert!(otlp::request(&node, &node.state(), &context).len() < 50 << 10);
}

#[test]
fn promtool_has_nothing_to_say() {
    let node = full();
    check_with_promtool(&openmetrics::text(&node, &node.state(), Form::Text));
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
