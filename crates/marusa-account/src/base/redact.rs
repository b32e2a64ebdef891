//! Commands without what their arguments say. Arguments hold passwords, tokens and URLs with credentials, and what we print
//! or save is passed on; so names and known harmless values stay, and every other value becomes "…". `--show-arguments`
//! shows all of it.
//!
//! What a word is follows the launcher of Java: src/java.base/share/native/libjli/java.c (`IsWhiteSpaceOption`,
//! `IsModuleOption`, `IsLauncherOption`, JDK 25). A word that is not understood is not shown.

use std::sync::atomic::{AtomicBool, Ordering};

/// Stands for what is not shown.
pub const ELIDED: &str = "…";

/// Options of the Java launcher whose values, in the next word, hold paths.
const PATH_OPTIONS: &[&str] =
    &["-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "--patch-module"];

/// Options whose values are names of modules and packages, or a release.
const HARMLESS_OPTIONS: &[&str] = &[
    "--add-modules",
    "--limit-modules",
    "--add-exports",
    "--add-opens",
    "--add-reads",
    "--enable-native-access",
    "--source",
    "-d",
    "--describe-module",
];

/// Starts of options behind which a keyword, a package or a class stands.
const HARMLESS_STARTS: &[&str] = &[
    "-Xshare:",
    "-Xverify:",
    "-Xgcpolicy:",
    "-verbose:",
    "-ea:",
    "-da:",
    "-enableassertions:",
    "-disableassertions:",
];

/// Starts of options with a size or a number right behind.
const NUMBER_STARTS: &[&str] = &["-Xmx", "-Xms", "-Xmn", "-Xss", "-Xmos", "-Xmnx", "-Xmns"];

/// Words that HotSpot's flags take, next to numbers.
const HARMLESS_VALUES: &[&str] = &[
    "true",
    "false",
    "off",
    "summary",
    "detail",
    "adaptive",
    "compact",
    "static",
    "aggressive",
    "satb",
    "iu",
    "passive",
    "generational",
    "normal",
    "debug",
    "precond",
    "postcond",
    "auto",
    "always",
    "never",
];

/// Variables whose values are the options of a JVM.
const OPTION_VARIABLES: &[&str] = &["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "JAVA_OPTS"];

static SHOWN: AtomicBool = AtomicBool::new(false);

/// Shows arguments as they are from now on: the user asked for it.
pub fn show_arguments() {
    SHOWN.store(true, Ordering::Relaxed);
}

pub fn are_arguments_shown() -> bool {
    SHOWN.load(Ordering::Relaxed)
}

/// A command as it may be shown, in one line.
pub fn command(words: &[String]) -> String {
    command_words(words).join(" ")
}

/// A command of which only a line is left, so that it is not known where its words end: its first word.
pub fn line(text: &str) -> String {
    if are_arguments_shown() { text.to_string() } else { program_name(text) }
}

/// A program, the options of the runtime in it, and a line of what the runtime runs: its first word names that, the others are
/// arguments.
pub fn runtime(program: &str, options: &[String], line: &str) -> String {
    if are_arguments_shown() {
        let all = [&[program.to_string()], options, &[line.to_string()]].concat();
        return all.join(" ").trim_end().to_string();
    }
    redacted_runtime(program, options, line).join(" ")
}

/// As `command`, word by word.
pub fn command_words(words: &[String]) -> Vec<String> {
    if are_arguments_shown() { words.to_vec() } else { redacted(words) }
}

/// Options of a JVM or of a program, as they may be shown.
pub fn options(words: &[String]) -> Vec<String> {
    if are_arguments_shown() { words.to_vec() } else { redacted_options(words) }
}

/// The value of a variable of the environment, as it may be shown.
pub fn variable(name: &str, value: &str) -> String {
    if are_arguments_shown() { value.to_string() } else { redacted_variable(name, value) }
}

/// A URL as it may be shown: without credentials, path and query.
pub fn url(text: &str) -> String {
    if are_arguments_shown() { text.to_string() } else { redacted_url(text) }
}

/// The words of a line without quotation marks, for tests.
#[cfg(any(test, feature = "made-up"))]
pub fn words_of(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_string).collect()
}

/// Whether an option of the Java launcher takes its value from the next word.
pub fn takes_value(option: &str) -> bool {
    PATH_OPTIONS.contains(&option) || HARMLESS_OPTIONS.contains(&option)
}

/// Whether a word names the Java launcher.
pub fn is_java(word: &str) -> bool {
    matches!(word.rsplit('/').next(), Some("java" | "javaw"))
}

fn redacted(words: &[String]) -> Vec<String> {
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    if is_java(program) {
        return java(program, rest);
    }
    // "numactl -N0 java ...": what starts a launcher has arguments of its own before it.
    match rest.iter().position(|word| is_java(word)) {
        Some(at) => {
            let mut shown = vec![program_name(program)];
            shown.extend(application(&rest[..at]));
            shown.extend(java(&rest[at], &rest[at + 1..]));
            shown
        }
        None => [program_name(program)].into_iter().chain(application(rest)).collect(),
    }
}

/// A process may have written a whole line over its name (setproctitle).
fn program_name(program: &str) -> String {
    match program.split_once(' ') {
        Some((name, _)) => format!("{name} {ELIDED}"),
        None => program.to_string(),
    }
}

/// The launcher: its options, the main class or jar, which stays, and the program's own arguments.
fn java(launcher: &str, words: &[String]) -> Vec<String> {
    let mut shown = vec![launcher.to_string()];
    let mut rest = words.iter();
    // A file of arguments may name the main class: then the first plain word is the program's.
    let mut may_be_in_file = false;
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-m" | "--module" => {
                shown.push(word.clone());
                shown.extend(rest.next().cloned());
                break;
            }
            module if module.starts_with("--module=") => {
                shown.push(word.clone());
                break;
            }
            option if takes_value(option) => with_value(&mut shown, word, rest.next()),
            option if option.starts_with('-') => shown.push(option_word(option)),
            file if file.starts_with('@') => {
                shown.push(format!("@{ELIDED}"));
                may_be_in_file = true;
            }
            main => {
                shown.push(if may_be_in_file { ELIDED.to_string() } else { main.to_string() });
                break;
            }
        }
    }
    shown.extend(application(rest.as_slice()));
    shown
}

fn with_value(shown: &mut Vec<String>, option: &str, value: Option<&String>) {
    let is_harmless = HARMLESS_OPTIONS.contains(&option);
    shown.push(option.to_string());
    shown.extend(value.map(|value| if is_harmless { value.clone() } else { ELIDED.to_string() }));
}

fn redacted_runtime(program: &str, options: &[String], line: &str) -> Vec<String> {
    let words: Vec<String> = line.split(' ').filter(|word| !word.is_empty()).map(str::to_string).collect();
    let mut shown = vec![program.to_string()];
    shown.extend(redacted_options(options));
    if let Some((main, rest)) = words.split_first() {
        shown.push(main.clone());
        shown.extend(application(rest));
    }
    shown
}

fn redacted_options(words: &[String]) -> Vec<String> {
    let mut shown = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            option if takes_value(option) => with_value(&mut shown, word, rest.next()),
            option if option.starts_with('-') => shown.push(option_word(option)),
            _ => shown.push(ELIDED.to_string()),
        }
    }
    shown
}

/// An option of the launcher or of the VM.
fn option_word(option: &str) -> String {
    if let Some(flag) = option.strip_prefix("-XX:") {
        return vm_flag(option, flag);
    }
    if NUMBER_STARTS.iter().any(|start| option.strip_prefix(start).is_some_and(is_number)) {
        return option.to_string();
    }
    if let Some(start) = HARMLESS_STARTS.iter().find(|start| option.starts_with(*start)) {
        let value = &option[start.len()..];
        return if is_name(value.trim_end_matches("...")) {
            option.to_string()
        } else {
            format!("{start}{ELIDED}")
        };
    }
    if ["-javaagent:", "-agentpath:", "-agentlib:"].iter().any(|agent| option.starts_with(agent)) {
        return before_value(option, &['=']);
    }
    if let Some((name, _)) = option.split_once('=')
        && HARMLESS_OPTIONS.contains(&name)
    {
        return option.to_string();
    }
    before_value(option, &['=', ':'])
}

/// -XX:+Name, -XX:-Name, -XX:Name=value.
fn vm_flag(option: &str, flag: &str) -> String {
    let switched = flag.strip_prefix(['+', '-']).unwrap_or(flag);
    match switched.split_once('=') {
        None if is_name(switched) => option.to_string(),
        Some((name, value)) if is_name(name) && (is_number(value) || HARMLESS_VALUES.contains(&value)) => {
            option.to_string()
        }
        Some((name, _)) if is_name(name) => format!("-XX:{name}={ELIDED}"),
        _ => format!("-XX:{ELIDED}"),
    }
}

/// The option up to the first of `ends`; all of it, if it is a plain name.
fn before_value(option: &str, ends: &[char]) -> String {
    match option.find(ends) {
        Some(at) => format!("{}{ELIDED}", &option[..=at]),
        None if is_name(option.trim_start_matches('-')) || !ends.contains(&':') => option.to_string(),
        None => ELIDED.to_string(),
    }
}

/// Arguments of a program that is not known: names of options stay.
fn application(words: &[String]) -> Vec<String> {
    let mut is_value = false;
    let mut shown = Vec::new();
    for word in words {
        let one = application_word(word, is_value);
        is_value = one != ELIDED && !one.contains('=');
        shown.push(one);
    }
    shown
}

/// "--name", "--name=…", "-x", "-name=…". A letter with its value in the same word ("-pSecret") cannot be distinguished from a
/// name, and what follows an option and has one dash may be its value.
fn application_word(word: &str, may_be_value: bool) -> String {
    let (name, has_value) = word.split_once('=').map_or((word, false), |(name, _)| (name, true));
    let bare = name.trim_start_matches('-');
    let is_kept = match name.len() - bare.len() {
        2 => bare.is_empty() || is_name(bare),
        1 if may_be_value => false,
        1 => is_name(bare) && (has_value || bare.len() == 1),
        _ => false,
    };
    match (is_kept, has_value) {
        (true, true) => format!("{name}={ELIDED}"),
        (true, false) => name.to_string(),
        (false, _) => ELIDED.to_string(),
    }
}

fn redacted_variable(name: &str, value: &str) -> String {
    if OPTION_VARIABLES.contains(&name) {
        let words: Vec<String> = value.split_whitespace().map(str::to_string).collect();
        return redacted_options(&words).join(" ");
    }
    let is_harmless = name.starts_with("MALLOC_") || name == "GLIBC_TUNABLES" || name == "LD_PRELOAD";
    if is_harmless || value.is_empty() { value.to_string() } else { ELIDED.to_string() }
}

fn redacted_url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return ELIDED.to_string() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let path = if path.len() > 1 { format!("/{ELIDED}") } else { path.to_string() };
    format!("{scheme}://{host}{path}")
}

/// "UseG1GC", "spring.config.name", "gc-log": the name of an option, not a secret.
fn is_name(text: &str) -> bool {
    const NAME_BYTES_MAX: usize = 80;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/$".contains(letter);
    text.len() <= NAME_BYTES_MAX
        && text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(is_plain)
}

/// "4g", "25.0", "-1", "0x100000000", "50%".
fn is_number(text: &str) -> bool {
    const NUMBER_BYTES_MAX: usize = 20;
    let text = text.strip_prefix('-').unwrap_or(text);
    if let Some(digits) = text.strip_prefix("0x") {
        return !digits.is_empty()
            && digits.len() <= 16
            && digits.chars().all(|digit| digit.is_ascii_hexdigit());
    }
    let digits = text.strip_suffix(|unit: char| "kKmMgGtT%".contains(unit)).unwrap_or(text);
    text.len() <= NUMBER_BYTES_MAX
        && digits.starts_with(|digit: char| digit.is_ascii_digit())
        && digits.chars().all(|digit| digit.is_ascii_digit() || digit == '.')
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
