//! A plan and a journal that were written by hand. The first byte says whether the rest is a change in JSON, a journal, or the
//! words of a change. Whatever passes the check must give files that hold one comment and lines of their kind, however a
//! reader ends its lines, and settings within what the kernel takes.

use marusa::act::door::content::{self, Content};
use marusa::act::door::journal::{self, Entry, Record, Seen};
use marusa::act::door::step::Change;
use marusa::act::door::{allowed, journal_check};
use serde_json::{Value, json};

const STATE: &str = "/var/lib/marusa";
const MEMORY_KIB: u64 = 32 << 20;
const FILES: [&str; 5] = [
    "/etc/sysctl.d/marusa.conf",
    "/etc/tmpfiles.d/marusa.conf",
    "/etc/security/limits.d/marusa.conf",
    "/etc/systemd/system/a.service.d/marusa.conf",
    "/proc/sys/vm/max_map_count",
];

/// A change whose words are the input's.
fn worded(input: &[u8]) -> Value {
    let (kind, rest) = input.split_first().unwrap_or((&0, &[]));
    let text = String::from_utf8_lossy(rest).into_owned();
    let mut words = text.split('\u{1}');
    let mut next = || words.next().unwrap_or_default().to_string();
    let number = |word: &str| word.parse::<u64>().map_or(json!(word), |number| json!(number));
    let file = match next() {
        given if given.is_empty() => FILES[usize::from(*kind) % FILES.len()].to_string(),
        given => given,
    };
    match kind % 7 {
        0 => json!({"kind": "create", "file": file, "content":
            {"of": "sysctl", "settings": [{"file": next(), "value": number(&next())}]}}),
        1 => json!({"kind": "create", "file": file, "content":
            {"of": "tmpfiles", "settings": [{"file": next(), "value": number(&next())}]}}),
        2 => json!({"kind": "create", "file": file, "content":
            {"of": "limits", "memlock": [{"who": next(), "kib": number(&next())}]}}),
        3 => json!({"kind": "create", "file": file, "content":
            {"of": "unit", "memlock_bytes": null, "java_options": [next(), next()]}}),
        4 => json!({"kind": "set", "file": file, "value": number(&next())}),
        5 => json!({"kind": "choose", "file": file, "word": next()}),
        _ => json!({"kind": "mount_tmpfs", "at": file, "options": next()}),
    }
}

/// Written again, without the tables that the check has.
fn is_line(content: &Content, line: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit());
    let word = |text: &str| {
        number(text) || text.bytes().all(|letter| letter.is_ascii_lowercase() || b"_+".contains(&letter))
    };
    match content {
        Content::Sysctl { .. } => line.split_once(" = ").is_some_and(|(name, value)| {
            (name.starts_with("vm.") || name.starts_with("kernel.shm"))
                && name.bytes().all(|letter| letter.is_ascii_lowercase() || b"._".contains(&letter))
                && number(value)
        }),
        Content::Tmpfiles { .. } => match line.split(' ').collect::<Vec<_>>()[..] {
            ["w", file, "-", "-", "-", "-", value] => {
                file.starts_with("/sys/")
                    && !file.contains("..")
                    && file.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"/_-".contains(&letter))
                    && word(value)
            }
            _ => false,
        },
        Content::Limits { .. } => match line.split(' ').collect::<Vec<_>>()[..] {
            [who, "-", "memlock", value] => {
                !who.is_empty() && !who.contains(['*', '%', ':', '#']) && number(value)
            }
            _ => false,
        },
        Content::Unit { .. } => {
            let options =
                line.strip_prefix("Environment=\"JAVA_TOOL_OPTIONS=").and_then(|rest| rest.strip_suffix('"'));
            let plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-+:=. ".contains(&letter);
            let fits = |options: &str| {
                options.bytes().all(plain)
                    && options.split(' ').all(|one| one.is_empty() || one.starts_with("-X"))
                    && ["agent", "OnError", "OnOutOfMemoryError", "Flags=", "File"]
                        .iter()
                        .all(|bad| !options.contains(bad))
            };
            line == "[Service]"
                || line.strip_prefix("LimitMEMLOCK=").is_some_and(number)
                || options.is_some_and(fits)
        }
    }
}

fn judge(change: &Change) {
    if allowed::check(change, STATE).is_err() {
        return;
    }
    match change {
        Change::Create { content, .. } => {
            let text = content::text(content);
            let ends = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
            let mut lines = text.strip_suffix('\n').expect("a last line").split(ends);
            assert!(lines.next().is_some_and(|head| head.starts_with("# Made by marusa")), "{text:?}");
            lines.for_each(|line| assert!(is_line(content, line), "{line:?} in {text:?}"));
        }
        Change::Set { file, value } => {
            assert!(!(file.ends_with("max_map_count") && *value < 65_530), "{change:?}");
            assert!(!(file.contains("/max_ptes_") && *value > 511), "{change:?}");
        }
        Change::Choose { word, .. } => {
            assert!(word.bytes().all(|letter| letter.is_ascii_lowercase() || b"_+".contains(&letter)));
        }
        Change::MountTmpfs { at, options } => {
            assert!(at.starts_with(STATE) || at.starts_with("/run/marusa/"), "{at:?}");
            assert!(!["suid", "dev", "exec", "uid", "gid"].iter().any(|word| options.contains(word)));
        }
        _ => {}
    }
    let json = serde_json::to_string(change).expect("JSON");
    assert_eq!(serde_json::from_str::<Change>(&json).expect("the same"), *change);
}

/// Lines of records, which get the checksums that they should have.
fn records(input: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    for line in input.split(|letter| *letter == b'\n') {
        match serde_json::from_slice::<Record>(line) {
            Ok(record) => file.extend(journal::line(&record).expect("JSON").into_bytes()),
            Err(_) => file.extend_from_slice(line),
        }
    }
    file
}

pub fn run(input: &[u8]) {
    match input {
        [b'j', rest @ ..] => {
            let parsed = journal::parse(&records(rest));
            if journal_check::check(&parsed.records, STATE, Some(MEMORY_KIB)).is_err() {
                return;
            }
            let Some(Entry::Begin(begin)) = parsed.records.first().map(|record| &record.entry) else {
                return;
            };
            begin.steps.iter().for_each(|step| judge(&step.change));
            for record in &parsed.records {
                // What was before a step is what undo writes: it must be what a step may set.
                if let Entry::Intent { step, before, .. } = &record.entry {
                    match (begin.steps[*step].change.clone(), before) {
                        (Change::Set { file, .. }, Seen::Number { value, .. }) => {
                            let back = Change::Set { file, value: *value };
                            assert_eq!(allowed::check(&back, STATE), Ok(()));
                        }
                        (Change::Choose { file, .. }, Seen::Word { word, .. }) => {
                            let back = Change::Choose { file, word: word.clone() };
                            assert_eq!(allowed::check(&back, STATE), Ok(()));
                        }
                        _ => {}
                    }
                }
            }
        }
        [b'{', ..] => {
            if let Ok(change) = serde_json::from_slice::<Change>(input) {
                judge(&change);
            }
        }
        [_, rest @ ..] => {
            if let Ok(change) = serde_json::from_value::<Change>(worded(rest)) {
                judge(&change);
            }
        }
        [] => {}
    }
}
