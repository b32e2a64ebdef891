//! What a person sees: colours, bars and the width of a terminal, and none of them where nobody could read them. Each command runs
//! on a pseudo terminal of its own (openpty(3)).

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const XTERM: [(&str, &str); 2] = [("TERM", "xterm"), ("LANG", "C.UTF-8")];

fn recorded() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/frozen/jdk17-g1.frozen");
    path.to_string_lossy().into_owned()
}

/// Without the variables of whoever runs the tests.
fn command(environment: &[(&str, &str)], arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.args(arguments).env_clear().envs(environment.iter().copied()).stdin(Stdio::null());
    command
}

/// Our end of a terminal of this size, and that of a program.
fn terminal(columns: u16) -> (File, OwnedFd) {
    let (mut ours, mut theirs) = (-1, -1);
    let size = libc::winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call writes two descriptors and reads a size; it is given no name and no settings.
    let result =
        unsafe { libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null_mut(), &size) };
    assert_eq!(result, 0, "openpty");
    // SAFETY: both were opened just now and have no other owner.
    unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

/// Everything that a command writes to a terminal.
fn on_terminal(columns: u16, environment: &[(&str, &str)], arguments: &[&str]) -> String {
    let (status, written) = ended_on_terminal(columns, environment, arguments);
    assert_eq!(status, Some(0), "{arguments:?}: {written}");
    written
}

fn ended_on_terminal(
    columns: u16,
    environment: &[(&str, &str)],
    arguments: &[&str],
) -> (Option<i32>, String) {
    let (mut ours, theirs) = terminal(columns);
    let [input, errors] = [(); 2].map(|()| theirs.try_clone().expect("another descriptor"));
    let mut command = command(environment, arguments);
    let mut child = command.stdin(input).stdout(theirs).stderr(errors).spawn().expect("the program starts");
    // It holds the other end open.
    drop(command);
    let mut written = Vec::new();
    read_until_error(&mut ours, &mut written);
    let status = child.wait().expect("it ends");
    // EIO may come before the last bytes: n_tty_read() looks for input first and for the other end's close afterwards
    // (drivers/tty/n_tty.c, 6.18), and a program may write and end in between.
    read_until_error(&mut ours, &mut written);
    (status.code(), String::from_utf8(written).expect("UTF-8").replace("\r\n", "\n"))
}

/// A terminal without a program ends with EIO.
fn read_until_error(terminal: &mut File, written: &mut Vec<u8>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = terminal.read(&mut bytes) {
        written.extend_from_slice(&bytes[..count]);
    }
}

fn in_pipe(environment: &[(&str, &str)], arguments: &[&str]) -> String {
    let output = command(environment, arguments).output().expect("it runs");
    assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Without the sequences that select a style; any other stays.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut pieces = text.split("\u{1b}[0");
    plain.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (numbers, rest) = piece.split_once('m').unwrap_or((piece, ""));
        let is_style = numbers.chars().all(|letter| letter.is_ascii_digit() || letter == ';');
        plain.push_str(if is_style { rest } else { piece });
        assert!(is_style, "{piece:?}");
    }
    plain
}

#[test]
fn a_terminal_gets_colours_unless_somebody_says_no() {
    let file = recorded();
    let map = ["map", "--from", &file];
    let coloured = on_terminal(100, &XTERM, &map);
    assert!(coloured.contains("\u{1b}[0;1mAREA\u{1b}[0m"), "{coloured:?}");
    let never = ["--color", "never", "map", "--from", &file];
    let without = [
        on_terminal(100, &XTERM, &never),
        on_terminal(100, &[XTERM[0], XTERM[1], ("NO_COLOR", "1")], &map),
        on_terminal(100, &[("TERM", "dumb"), XTERM[1]], &map),
        on_terminal(100, &[XTERM[1]], &map),
    ];
    for text in without {
        assert_eq!(text, plain(&coloured), "the same words and bars");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
    assert!(on_terminal(100, &[XTERM[0], XTERM[1], ("NO_COLOR", "")], &map).contains('\u{1b}'));
}

#[test]
fn a_pipe_gets_text_alone_and_colours_where_they_are_asked_for() {
    let file = recorded();
    let text = in_pipe(&XTERM, &["map", "--from", &file]);
    assert!(!text.contains('\u{1b}') && !text.contains('█'), "{text}");
    let coloured = in_pipe(&XTERM, &["map", "--from", &file, "--color", "always"]);
    assert!(coloured.contains("\u{1b}[0;1mtotal\u{1b}[0m"), "{coloured:?}");
    assert_eq!(plain(&coloured), text);
    let json = in_pipe(&XTERM, &["map", "--from", &file, "--color", "always", "--json"]);
    assert!(!json.contains('\u{1b}'), "a document has no styles");
}

#[test]
fn help_has_colours_as_every_other_text() {
    for (words, has_colours) in [
        (&["map", "--help"][..], false),
        (&["map", "--help", "--color", "always"], true),
        (&["--color=never", "--help"], false),
    ] {
        assert_eq!(in_pipe(&XTERM, words).contains('\u{1b}'), has_colours, "{words:?} into a pipe");
    }
    assert!(on_terminal(100, &XTERM, &["--help"]).contains('\u{1b}'));
    assert!(!on_terminal(100, &XTERM, &["--help", "--color", "never"]).contains('\u{1b}'));
    assert!(!on_terminal(100, &[XTERM[0], XTERM[1], ("NO_COLOR", "1")], &["--help"]).contains('\u{1b}'));
}

#[test]
fn no_line_is_wider_than_the_terminal_and_bars_need_80_columns() {
    let file = recorded();
    for columns in [40, 60, 80, 100] {
        let all = [
            "area",
            "part",
            "thread",
            "library",
            "arena",
            "page-size",
            "mapping",
            "buffer",
            "holder",
            "loader",
        ];
        for by in all {
            let text = plain(&on_terminal(columns, &XTERM, &["map", "--from", &file, "--by", by]));
            let wide = text.lines().find(|line| line.chars().count() > usize::from(columns));
            assert!(wide.is_none(), "--by {by} in {columns} columns: {wide:?}");
            assert!(
                text.lines().any(|line| line.contains("RESIDENT") || line.contains("not known")),
                "--by {by} in {columns} columns: {text}"
            );
        }
        let has_bars = on_terminal(columns, &XTERM, &["map", "--from", &file]).contains('█');
        assert_eq!(has_bars, columns >= 80, "{columns} columns");
    }
}

#[test]
fn other_texts_fit_a_narrow_terminal_except_what_is_pasted() {
    let (file, other) = (recorded(), recorded().replace("jdk17-g1", "jdk8-parallel"));
    let texts: [&[&str]; 6] = [
        &["map", "--from", &file, "--taxonomy", "paper"],
        &["doctor", "--from", &file],
        &["doctor", "--list"],
        &["diff", &file, &other],
        &["diff", &file, &other, "--by", "arena"],
        &["list"],
    ];
    for words in texts {
        let text = plain(&on_terminal(40, &XTERM, words));
        let is_pasted = |line: &str| line.starts_with("    ") && !line.trim().contains("  ");
        let wide = text.lines().find(|line| line.chars().count() > 40 && !is_pasted(line));
        assert!(wide.is_none() && !text.is_empty(), "{words:?}: {wide:?}");
    }
}

#[test]
fn a_locale_without_utf_8_gets_ascii_and_documents_the_same_values() {
    let file = recorded();
    let narrow = ["map", "--from", &file, "--by", "library", "--width", "60"];
    assert!(in_pipe(&XTERM, &narrow).contains('…'));
    for environment in [&[("LC_ALL", "C"), ("LANG", "C.UTF-8")][..], &[("LC_CTYPE", "en_US.ISO-8859-1")]] {
        let text = in_pipe(environment, &narrow);
        assert!(text.is_ascii() && text.contains('~'), "{text}");
        let on_terminal = on_terminal(100, environment, &["map", "--from", &file]);
        assert!(on_terminal.is_ascii() && on_terminal.contains("  ###"), "{on_terminal}");
    }
    // Nothing says what a terminal without a locale can show.
    assert!(on_terminal(100, &[], &["map", "--from", &file]).is_ascii());
    let document = |environment: &[(&str, &str)]| -> serde_json::Value {
        let mut document: serde_json::Value =
            serde_json::from_str(&in_pipe(environment, &["map", "--from", &file, "--json"])).expect("JSON");
        document["taken"].take();
        document
    };
    assert_eq!(document(&[("LC_ALL", "C")]), document(&XTERM));
}

#[test]
fn what_cannot_be_drawn_on_gets_a_reason() {
    for environment in [&[("TERM", "dumb")][..], &[]] {
        let (status, written) = ended_on_terminal(80, environment, &["top"]);
        assert_eq!(status, Some(2), "{written}");
        assert!(written.contains("TERM is dumb or not set") && !written.contains('\u{1b}'), "{written:?}");
    }
}

#[test]
fn a_pipe_that_closes_ends_a_command_in_silence() {
    let file = recorded();
    for arguments in [
        &["map", "--from", &file][..],
        &["map", "--from", &file, "--by", "mapping"],
        &["map", "--from", &file, "--json"],
        &["doctor", "--list"],
        &["schema", "map"],
        &["man"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = command(&XTERM, arguments);
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn().expect("the program starts");
        drop(command);
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
    }
}
