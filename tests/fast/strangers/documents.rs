//! The JSON of an account, as `diff` reads it.

use super::*;

const START: &str = r#"{"schema":"marusa/map/1","areas":["#;

#[test]
fn lists_that_nobody_asked_for_take_no_memory() {
    let directory = Directory::new();
    let more = "0,".repeat(8 << 20);
    let file = directory.file("numbers", format!("{START}],\"x\":[{more}0]}}").as_bytes());
    let ended = bounded(&directory, &["diff", &file, &file], &file);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    // Its text, and little else: as values these are 32 bytes for each two.
    let length = std::fs::metadata(&file).expect("ours").len();
    assert!(ended.peak_bytes < 4 * length + (160 << 20), "{} MiB", ended.peak_bytes >> 20);
}

#[test]
fn entries_without_a_name_deep_nesting_and_text_that_is_cut_are_refused() {
    let directory = Directory::new();
    for (name, text, words) in [
        ("unnamed", format!("{START}{}{{}}]}}", "{},".repeat(1 << 20)), "missing field `area`"),
        ("deep", format!("{START}],\"x\":{}", "[".repeat(10 << 20)), "EOF while parsing a list"),
        ("cut", START.to_string(), "EOF while parsing a list"),
        ("twice", format!("{START}],\"areas\":[]}}"), "duplicate field"),
    ] {
        let file = directory.file(name, text.as_bytes());
        refused(&directory, &["diff", &file, &file], &file, words);
    }
}

#[test]
fn a_file_that_is_too_long_is_refused_before_it_is_read() {
    let directory = Directory::new();
    let file = directory.file("long", START.as_bytes());
    let opened = File::options().write(true).open(&file).expect("ours");
    opened.set_len(1 << 40).expect("a file with a hole");
    let ended = marusa(&directory, &["diff", &file, &file]);
    assert_eq!(ended.status, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("longer than the 256 MiB"), "{}", ended.stderr);
    assert!(ended.peak_bytes < INPUT_PROCESS_BYTES_FREE, "{} MiB", ended.peak_bytes >> 20);
}
