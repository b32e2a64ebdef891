//! The walls of the house, kept by a machine: which room may name which, how long a file may be, and that every module
//! says why it exists.

use crate::ratchets::{source_roots, sources};
use std::path::Path;

/// A room, and the rooms it may name.
const ROOMS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("os", &["base"]),
    ("act", &["base", "os"]),
    ("jvm", &["base", "os"]),
    ("alloc", &["base", "os"]),
    ("snapshot", &["base", "os", "jvm", "alloc"]),
    ("map", &["base", "os", "jvm", "alloc", "snapshot"]),
    ("ledger", &["base", "os", "jvm", "alloc", "snapshot", "map"]),
    ("measure", &["base", "os", "jvm", "snapshot", "map"]),
    ("pages", &["base", "os", "act", "jvm", "snapshot", "map"]),
    ("record", &["base", "os", "jvm", "alloc", "snapshot", "map", "ledger", "measure"]),
    ("doctor", &["base", "os", "jvm", "alloc", "snapshot", "map", "ledger", "measure", "record", "pages"]),
    ("why", &["base", "os", "jvm", "snapshot", "map", "record", "doctor"]),
    ("experiment", &["base", "os", "act", "jvm", "snapshot", "map", "measure", "pages"]),
    ("serve", &["base", "os", "jvm", "map", "record", "doctor"]),
    ("store", &["base", "os", "map", "record", "doctor"]),
    ("advise", &["base", "os", "map", "measure", "record"]),
    (
        "show",
        &[
            "base",
            "os",
            "jvm",
            "alloc",
            "snapshot",
            "map",
            "ledger",
            "measure",
            "record",
            "pages",
            "doctor",
            "why",
            "experiment",
            "serve",
            "store",
            "advise",
        ],
    ),
    (
        "cmd",
        &[
            "base",
            "os",
            "act",
            "jvm",
            "snapshot",
            "map",
            "ledger",
            "measure",
            "record",
            "pages",
            "doctor",
            "why",
            "experiment",
            "serve",
            "store",
            "advise",
            "show",
        ],
    ),
];
const FILE_LINES_MAX: usize = 400;
const LINE_COLUMNS_MAX: usize = 132;

/// The room of a source file; `None` for main.rs and lib.rs.
fn room(path: &Path) -> Option<String> {
    let relative = source_roots().iter().find_map(|root| path.strip_prefix(root).ok())?.to_path_buf();
    (relative.components().count() > 1)
        .then(|| relative.components().next()?.as_os_str().to_str().map(str::to_string))?
}

/// Lines before the tests of a module.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

#[test]
fn a_room_names_only_rooms_below_it() {
    let mut broken = Vec::new();
    for (path, text) in sources() {
        let Some(room) = room(&path) else { continue };
        let allowed = ROOMS.iter().find(|(name, _)| *name == room).map(|(_, allowed)| *allowed);
        let Some(allowed) = allowed else {
            broken.push(format!("{} is in no known room", path.display()));
            continue;
        };
        for (name, _) in ROOMS.iter().filter(|(name, _)| *name != room && !allowed.contains(name)) {
            if text.contains(&format!("crate::{name}::")) || text.contains(&format!("crate::{name};")) {
                broken.push(format!("{} names {name}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn only_os_act_and_cmd_touch_the_machine() {
    let words = ["std::fs::", "std::net::", "std::process::", " libc::", "(libc::", "std::env::"];
    let mut broken = Vec::new();
    for (path, text) in sources() {
        let Some(room) = room(&path) else { continue };
        if ["os", "act", "cmd"].contains(&room.as_str()) {
            continue;
        }
        for word in words.iter().filter(|word| without_tests(&text).contains(**word)) {
            broken.push(format!("{} uses {word}", path.display()));
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Names of a target are in whatever is printed, so there is one way to the terminal, which escapes them; `say!` is a part of it.
#[test]
fn only_the_terminal_module_writes_to_the_terminal() {
    let mut broken = Vec::new();
    for (path, text) in sources() {
        // A bar is drawn by a library, and its words are escaped there.
        if path.ends_with("os/terminal.rs") || path.ends_with("cmd/progress.rs") {
            continue;
        }
        for (index, line) in without_tests(&text).lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            if !is_comment && reaches_the_terminal(line) {
                broken.push(format!("{}:{} {}", path.display(), index + 1, line.trim()));
            }
        }
    }
    assert!(broken.is_empty(), "use os::terminal and say!: {broken:#?}");
}

fn reaches_the_terminal(line: &str) -> bool {
    let words = [
        "println!(",
        "eprintln!(",
        "print!(",
        "eprint!(",
        "dbg!(",
        "io::stdout",
        "io::stderr",
        "/dev/tty",
        "ProgressDrawTarget::stderr",
        "ProgressDrawTarget::stdout",
        ".set_message(",
        ".with_message(",
        ".with_prefix(",
        ".set_prefix(",
    ];
    let imports = line.contains("std::io::{") && (line.contains("stdout") || line.contains("stderr"));
    imports || words.iter().any(|word| line.contains(word))
}

#[test]
fn ways_to_the_terminal_are_known() {
    for line in
        ["eprintln!(\"x\");", "use std::io::{Write, stdout};", "io::stderr().write_all(b)?;", "print!(\"\")"]
    {
        assert!(reaches_the_terminal(line), "{line}");
    }
    for line in ["writeln!(out, \"x\")?;", "use std::io::{Read, Write};", "crate::say!(\"x\");"] {
        assert!(!reaches_the_terminal(line), "{line}");
    }
}

/// Whether a text has this word, and not at the end of a longer one: `OutputFile::create(` is not `File::create(`.
fn names(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| !text[..at].ends_with(|letter: char| letter.is_alphanumeric()))
}

/// What is written to a file that the user or the target named goes through os/place.rs, which follows no stranger's link.
#[test]
fn only_the_output_module_and_the_door_create_files() {
    let words = ["File::create(", "fs::write(", "OpenOptions::new()", "File::options()"];
    // These open files below directories that root or this process made.
    let own = [
        "act/door/",
        "act/promote/receipt.rs",
        "act/server/",
        "act/programs.rs",
        "act/tracing",
        "os/output_file.rs",
    ];
    let reading = ["os/foreign/", "os/core/extents.rs"];
    let mut broken = Vec::new();
    for (path, text) in sources() {
        let name = path.to_string_lossy();
        if own.iter().chain(&reading).any(|known| name.contains(known)) || name.ends_with("tests.rs") {
            continue;
        }
        let text = without_tests(&text);
        for word in words.iter().filter(|word| names(text, word)) {
            broken.push(format!("{name} uses {word}"));
        }
    }
    assert!(broken.is_empty(), "use os::output_file or os::place: {broken:#?}");
}

#[test]
fn unsafe_code_lives_in_os_and_act_and_says_why_it_is_safe() {
    let mut broken = Vec::new();
    for (path, text) in sources() {
        let here = room(&path);
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("unsafe {")) {
            let explained = lines[index.saturating_sub(4)..index].iter().any(|line| line.contains("SAFETY:"));
            if !explained || !matches!(here.as_deref(), Some("os" | "act")) {
                broken.push(format!("{}:{} {}", path.display(), index + 1, line.trim()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn no_file_is_mapped() {
    // A page of a file that its owner has cut off raises SIGBUS, and who maps libjvm.so is taken for a JVM. `os::file_bytes`
    // reads instead.
    let words = ["Mmap::map(", ".map_copy", ".map_mut(", ".map_exec(", ".map_raw", "MAP_FILE"];
    let mut broken = Vec::new();
    for (path, text) in sources() {
        for word in words.iter().filter(|word| text.contains(**word)) {
            broken.push(format!("{} uses {word}", path.display()));
        }
        // mmap(2) itself: without a descriptor only.
        let calls = text.split("libc::mmap(").skip(1).map(|call| call.split(';').next().unwrap_or_default());
        if calls.into_iter().any(|call| !call.contains(" -1,")) {
            broken.push(format!("{} maps a descriptor", path.display()));
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn what_a_process_links_to_is_opened_in_one_place() {
    // A link below /proc/PID leads to what the target names: `os::foreign` refuses what is not a regular file.
    let links = ["\"root", "\"cwd", "\"exe", "\"fd/", "&format!(\"fd/", "map_files"];
    let mut broken = Vec::new();
    for (path, text) in sources() {
        // The attach protocol opens directories of the target, through helpers of its own.
        let is_elsewhere =
            ["os/foreign", "act/attach"].iter().any(|room| path.to_string_lossy().contains(room));
        let calls = without_tests(&text)
            .split("open_file(")
            .skip(1)
            .chain(without_tests(&text).split(".path(").skip(1));
        for call in calls {
            let start: String = call.chars().take(24).collect();
            if !is_elsewhere && links.iter().any(|link| start.starts_with(link)) {
                broken.push(format!("{}: {start}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_module_opens_with_why_it_exists_and_stays_short() {
    let mut broken = Vec::new();
    for (path, text) in sources() {
        if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with("tests.rs")) {
            continue;
        }
        if !text.starts_with("//!") && path.file_name().is_some_and(|name| name != "main.rs") {
            broken.push(format!("{} has no opening paragraph", path.display()));
        }
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            broken.push(format!("{} has {lines} lines, more than {FILE_LINES_MAX}", path.display()));
        }
        for (index, line) in without_tests(&text)
            .lines()
            .enumerate()
            .filter(|(_, line)| line.chars().count() > LINE_COLUMNS_MAX)
        {
            broken.push(format!(
                "{}:{} is longer than {LINE_COLUMNS_MAX}: {line}",
                path.display(),
                index + 1
            ));
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
