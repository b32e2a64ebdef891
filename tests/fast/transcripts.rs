//! What pages show of Marusa's output is what it prints: an HTML comment above each such block says where the text comes from.
//!
//! - `<!-- marusa … -->`: a shell command, run here on a recorded JVM and compared; `MARUSA_BLESS=1` writes the block anew;
//! - `<!-- live: NAME -->`: an entry of `scripts/transcripts`, which starts the program and writes the block anew;
//! - `<!-- measured: cargo bench … -->`: figures of a bench, or a script, on the machine that the page names;
//! - `<!-- bench: NAME … -->`: what `marusa bench NAME …` printed; `scripts/bench-all` runs it and writes the block anew.

use crate::book::{columns, pages};
use crate::ratchets::root;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A fenced block, by the numbers of its first and last line between the fences.
struct Block<'a> {
    start: usize,
    end: usize,
    indent: usize,
    source: Option<&'a str>,
    lines: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let fences: Vec<usize> =
        (0..lines.len()).filter(|line| lines[*line].trim_start().starts_with("```")).collect();
    let block = |fence: &[usize]| {
        let (start, end) = (fence[0] + 1, fence[1]);
        let indent = lines[fence[0]].len() - lines[fence[0]].trim_start().len();
        let above = fence[0].checked_sub(1).map_or("", |line| lines[line].trim());
        let source = above.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
        let inner = lines[start..end].iter().map(|line| line.get(indent..).unwrap_or(""));
        Block { start, end, indent, source, lines: inner.collect() }
    };
    fences.chunks_exact(2).map(block).collect()
}

/// Whether a line has an amount of bytes as tables and sentences print them: `12.5 MiB`.
fn has_amount(line: &str) -> bool {
    let words: Vec<&str> = line.split([' ', ',', ';', ':', '(', ')']).collect();
    let is_unit = |word: &str| ["KiB", "MiB", "GiB"].contains(&word);
    words.windows(2).any(|pair| is_unit(pair[1]) && pair[0].ends_with(|last: char| last.is_ascii_digit()))
}

/// An overview of commands says amounts, too, behind the commands.
fn shows_output(block: &Block) -> bool {
    let is_overview = block.lines.first().is_some_and(|line| line.starts_with("marusa "));
    let is_output = |line: &&str| line.starts_with("$ ") || columns(line).is_some();
    block.lines.iter().any(|line| is_output(line) || !is_overview && has_amount(line))
}

/// What a shell prints for the command, in a terminal's width and without whatever the environment says.
fn printed(command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_marusa")).parent().expect("a directory");
    let path = format!("{}:/usr/bin:/bin", program.display());
    let environment = [("PATH", path.as_str()), ("LANG", "C.UTF-8"), ("COLUMNS", "100"), ("NO_COLOR", "1")];
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).current_dir(root()).env_clear().envs(environment);
    let output = shell.stdin(Stdio::null()).output().expect("a shell");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.stdout.is_empty(), "{command}: nothing printed; {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn blocks_of_recorded_jvms_show_what_is_printed_today() {
    let bless = std::env::var_os("MARUSA_BLESS").is_some();
    let (mut found, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        // From the end, so that line numbers stay right.
        for block in blocks(&text).iter().rev() {
            let Some(command) = block.source.filter(|source| source.starts_with("marusa ")) else { continue };
            found += 1;
            let now = printed(command);
            let now: Vec<&str> = now.lines().collect();
            if now == block.lines {
                continue;
            }
            let differs = (0..).find(|line| now.get(*line) != block.lines.get(*line)).unwrap_or_default();
            wrong.push(format!(
                "{}: {command}: {:?} was {:?}",
                page.display(),
                now.get(differs),
                block.lines.get(differs)
            ));
            let indented = now.iter().map(|line| format!("{}{line}", " ".repeat(block.indent)));
            lines.splice(block.start..block.end, indented.map(|line| line.trim_end().to_string()));
        }
        if bless {
            fs::write(&page, lines.join("\n") + "\n").expect("written");
        }
    }
    assert!(found >= 5, "{found} blocks");
    assert!(
        bless || wrong.is_empty(),
        "MARUSA_BLESS=1 if it is meant, and read the prose next to it: {wrong:#?}"
    );
}

#[test]
fn every_block_of_output_says_where_it_comes_from() {
    let script = fs::read_to_string(root().join("scripts/transcripts")).expect("a script");
    let entries: Vec<&str> = script
        .lines()
        .filter_map(|line| line.strip_prefix("    \"")?.split_once("\": Live(").map(|(name, _)| name))
        .collect();
    let (mut shown, mut wrong) = (Vec::new(), Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for block in blocks(&text) {
            let place = format!("{}:{}", page.display(), block.start);
            let (kind, rest) = block.source.and_then(|source| source.split_once(' ')).unwrap_or_default();
            match kind {
                "marusa" => {}
                "live:" if entries.contains(&rest) => shown.push(rest.to_string()),
                "live:" => wrong.push(format!("{place}: {rest} is not in scripts/transcripts")),
                "measured:" => {
                    let bench =
                        rest.strip_prefix("cargo bench --bench ").and_then(|rest| rest.split(' ').next());
                    let file = bench.map_or(rest.to_string(), |name| format!("benches/{name}.rs"));
                    if !root().join(file).exists() {
                        wrong.push(format!("{place}: {rest} is neither a bench nor a script"));
                    }
                }
                "bench:" => {
                    let name = rest.split(' ').next().unwrap_or_default();
                    if page.file_stem().is_none_or(|stem| stem != name) {
                        wrong.push(format!("{place}: bench {name} has a page of its own"));
                    }
                }
                _ if shows_output(&block) => wrong.push(format!("{place}: no command is named above it")),
                _ => {}
            }
        }
    }
    let unused = entries.iter().filter(|name| !shown.iter().any(|shown| shown == *name));
    wrong.extend(unused.map(|name| format!("scripts/transcripts: no page shows {name}")));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn blocks_and_output_are_distinguished() {
    let text = "1. a\n\n   <!-- live: a -->\n   ```\n   AREA  BYTES  SHARE\n\n     b\n   ```\n\n```sh\nmarusa map PID\n```\n";
    let blocks = blocks(text);
    let all: Vec<_> = blocks.iter().map(|block| (block.source, shows_output(block))).collect();
    assert_eq!(all, [(Some("live: a"), true), (None, false)]);
    assert_eq!(blocks[0].lines, ["AREA  BYTES  SHARE", "", "  b"]);
    assert!(has_amount("of (12.5 MiB)") && !has_amount("--above 100m of MiB"));
}
