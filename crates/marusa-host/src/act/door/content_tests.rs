use super::*;
use crate::act::door::step::Change;

fn put(file: &str, value: impl Into<Value>) -> Put {
    Put { file: file.into(), value: value.into() }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Number(value)
    }
}

impl From<&str> for Value {
    fn from(word: &str) -> Value {
        Value::Word(word.into())
    }
}

fn sysctl(file: &str, value: impl Into<Value>) -> Content {
    Content::Sysctl { settings: vec![put(file, value)] }
}

fn tmpfiles(file: &str, value: impl Into<Value>) -> Content {
    Content::Tmpfiles { settings: vec![put(file, value)] }
}

fn unit(options: &[&str]) -> Content {
    Content::Unit { memlock_bytes: None, java_options: options.iter().map(|one| one.to_string()).collect() }
}

const SYSCTL: &str = "/etc/sysctl.d/60-marusa.conf";
const TMPFILE: &str = "/etc/tmpfiles.d/marusa.conf";
const LIMIT: &str = "/etc/security/limits.d/marusa.conf";
const UNIT: &str = "/etc/systemd/system/tomcat.service.d/marusa.conf";
const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

#[test]
fn the_text_is_made_of_the_values() {
    let made = |file: &str, content: &Content| {
        assert_eq!(check(file, content), Ok(()), "{content:?}");
        text(content).strip_prefix(HEAD).expect("a head").to_string()
    };
    assert_eq!(made(SYSCTL, &sysctl("/proc/sys/vm/nr_hugepages", 12)), "vm.nr_hugepages = 12\n");
    assert_eq!(
        made(TMPFILE, &tmpfiles(ENABLED, "madvise")),
        "w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise\n"
    );
    let limits = Content::Limits { memlock: vec![Memlock { who: "@java".into(), kib: 1 << 20 }] };
    assert_eq!(made(LIMIT, &limits), "@java - memlock 1048576\n");
    let service = Content::Unit { memlock_bytes: Some(1 << 30), java_options: vec!["-Xmx6g".into()] };
    assert_eq!(
        made(UNIT, &service),
        "[Service]\nLimitMEMLOCK=1073741824\nEnvironment=\"JAVA_TOOL_OPTIONS=-Xmx6g\"\n"
    );
}

#[test]
fn each_kind_has_its_directory_and_its_settings() {
    for (file, content) in [
        (TMPFILE, sysctl("/proc/sys/vm/nr_hugepages", 1)),
        (UNIT, tmpfiles(ENABLED, "madvise")),
        (SYSCTL, unit(&["-Xmx1g"])),
        (SYSCTL, tmpfiles(ENABLED, "madvise")),
        (SYSCTL, sysctl(ENABLED, "madvise")),
        (TMPFILE, tmpfiles("/proc/sys/vm/nr_hugepages", 1)),
        (SYSCTL, sysctl("/proc/sys/kernel/core_pattern", "|/tmp/x")),
        (SYSCTL, sysctl("/proc/sys/vm/nr_hugepages", "1")),
        (SYSCTL, sysctl("/proc/sys/vm/max_map_count", 1)),
        (SYSCTL, sysctl("/proc/sys/kernel/shmmax", 0)),
        (SYSCTL, sysctl("/proc/sys/vm/../vm/nr_hugepages", 1)),
        (SYSCTL, sysctl("-/proc/sys/vm/nr_hugepages", 1)),
        (TMPFILE, tmpfiles("/etc/passwd", "x")),
        (TMPFILE, tmpfiles(ENABLED, "always\rf /etc/cron.d/x - - - - x")),
        (TMPFILE, tmpfiles("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none", 8192)),
        (UNIT, unit(&["-Xmx1g\rExecStartPre=/bin/x"])),
        (UNIT, unit(&["-javaagent:/tmp/x.jar"])),
        (UNIT, Content::Unit { memlock_bytes: Some(0), java_options: Vec::new() }),
    ] {
        assert!(check(file, &content).is_err(), "{file} {content:?}");
    }
    let twice = vec![put("/proc/sys/vm/nr_hugepages", 1), put("/proc/sys/vm/nr_hugepages", 2)];
    assert!(check(SYSCTL, &Content::Sysctl { settings: twice }).is_err());
    for who in ["*", "%", "@", "", "a b", "a\r", "@java - nproc 0\n@x", "#a", &"a".repeat(33)] {
        let limits = Content::Limits { memlock: vec![Memlock { who: who.into(), kib: 1 << 20 }] };
        assert!(check(LIMIT, &limits).is_err(), "{who:?}");
    }
}

/// Before this was values, a comment could hide a line from the filter: "# x\r[Service]\rExecStart=...".
#[test]
fn a_plan_that_carries_text_is_none() {
    let change =
        |change: serde_json::Value| serde_json::from_value::<Change>(change).map_err(|why| why.to_string());
    let sysctl =
        serde_json::json!({"of": "sysctl", "settings": [{"file": "/proc/sys/vm/nr_hugepages", "value": 5}]});
    assert!(change(serde_json::json!({"kind": "create", "file": SYSCTL, "content": sysctl})).is_ok());
    let text = "# x\r[Service]\rExecStartPre=/bin/sh -c id\r\n[Service]\nLimitMEMLOCK=9000000\n";
    for old in [
        serde_json::json!({"kind": "create", "file": UNIT, "text": text, "mode": 0o644}),
        serde_json::json!({"kind": "create", "file": SYSCTL, "content": sysctl, "text": text}),
        serde_json::json!({"kind": "create", "file": SYSCTL, "content": {"of": "sysctl", "settings": [], "text": text}}),
        serde_json::json!({"kind": "create", "file": SYSCTL, "content": {"of": "sysctl", "settings":
            [{"file": "/proc/sys/vm/nr_hugepages", "value": 5, "comment": text}]}}),
        serde_json::json!({"kind": "create", "file": SYSCTL, "content": {"of": "text", "text": text}}),
    ] {
        let why = change(old.clone()).expect_err("refused");
        assert!(why.contains("unknown") || why.contains("missing"), "{why}: {old}");
    }
}

/// xorshift64*: the same values on each run.
fn random(state: &mut u64, below: usize) -> usize {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below
}

/// Pieces of which most texts are nearly right.
const PIECES: [&str; 40] = [
    "/proc/sys/vm/nr_hugepages",
    "/proc/sys/vm/max_map_count",
    "/proc/sys/kernel/shmmax",
    ENABLED,
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "madvise",
    "always",
    "defer+madvise",
    "@java",
    "tomcat",
    "-Xmx6g",
    "-XX:+UseLargePages",
    "-XX:LargePageSizeInBytes=2m",
    "[Service]",
    "ExecStart=/bin/x",
    "f /etc/cron.d/x",
    "\n",
    "\r",
    "\t",
    "\0",
    "\x0b",
    "\x0c",
    "\x1b[2J",
    "\u{85}",
    "\u{2028}",
    "\u{2029}",
    "\u{202e}",
    "\u{feff}",
    "\\",
    "%",
    "$",
    "\"",
    "'",
    "#",
    " ",
    "*",
    "=",
    "0",
    "9",
];

fn any(state: &mut u64) -> String {
    let pieces = match random(state, 4) {
        0 => 2 + random(state, 3),
        _ => 1,
    };
    (0..pieces).map(|_| PIECES[random(state, PIECES.len())]).collect()
}

fn any_put(state: &mut u64) -> Put {
    let numbers = [0, 1, 5, 511, 65_530, 1 << 26, 1 << 40, u64::MAX];
    let value = match random(state, 2) {
        0 => Value::Number(numbers[random(state, numbers.len())]),
        _ => Value::Word(any(state)),
    };
    Put { file: any(state), value }
}

fn any_content(state: &mut u64) -> (&'static str, Content) {
    match random(state, 4) {
        0 => (SYSCTL, Content::Sysctl { settings: vec![any_put(state)] }),
        1 => (TMPFILE, Content::Tmpfiles { settings: vec![any_put(state)] }),
        2 => (
            LIMIT,
            Content::Limits { memlock: vec![Memlock { who: any(state), kib: 1 << random(state, 50) }] },
        ),
        _ => {
            let java_options = vec![any(state), any(state)];
            (UNIT, Content::Unit { memlock_bytes: Some(1 << random(state, 50)), java_options })
        }
    }
}

/// What is accepted is, for every reader of such files, the lines that its values give and one comment.
#[test]
fn whatever_is_accepted_is_what_is_generated() {
    let mut state = 0x5eed;
    let mut accepted = [0; 4];
    for _ in 0..200_000 {
        let (file, content) = any_content(&mut state);
        if check(file, &content).is_err() {
            continue;
        }
        let text = text(&content);
        let ends = |letter: char| letter.is_control() || ['\u{2028}', '\u{2029}'].contains(&letter);
        let lines: Vec<&str> = text.split(ends).collect();
        let (kind, expected) = match &content {
            Content::Sysctl { settings } => (0, settings.iter().map(sysctl_line).collect()),
            Content::Tmpfiles { settings } => (1, settings.iter().map(tmpfiles_line).collect()),
            Content::Limits { memlock } => (2, memlock.iter().map(limit_line).collect()),
            Content::Unit { memlock_bytes, java_options } => (3, unit_lines(*memlock_bytes, java_options)),
        };
        accepted[kind] += 1;
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        assert_eq!(lines, [&[HEAD.trim_end()], expected.as_slice(), &[""]].concat(), "{content:?}");
        assert!(!lines[1..].iter().any(|line| line.contains(['\\', '%', '$', '\'', '#'])), "{text}");
        let json = serde_json::to_string(&content).expect("JSON");
        assert_eq!(serde_json::from_str::<Content>(&json).expect("the same"), content);
    }
    assert!(accepted.iter().all(|count| *count > 20), "{accepted:?}");
}
