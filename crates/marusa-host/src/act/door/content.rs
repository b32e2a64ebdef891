//! The files that a plan makes below /etc. The host's programs act on such files as root, so a plan carries no text of them: it
//! carries values, each of which is looked up in a table, and the text is made of them here, comments included.
//!
//! Why no text: each reader ends lines, quotes and expands in its own way, and a filter of text would have to know them
//! all. systemd, systemd-tmpfiles and systemd-sysctl end lines at \n, \r and NUL (src/basic/fileio.c,
//! `read_line_full` and `categorize_eol`); systemd continues a line that ends with a backslash and
//! expands `%` and C escapes in Environment= (systemd.exec(5)); tmpfiles.d expands `%` and globs (tmpfiles.d(5));
//! sysctl.d has globs and a leading "-" (sysctl.d(5)). Nothing that is generated here has any of that in it.

use super::jvm_option;
use super::settings::{self, Takes};
use crate::base::limits::DOOR_VALUES_MAX;
use crate::base::{Bytes, Refused, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// sysctl.d(5): files of /proc/sys.
    Sysctl { settings: Vec<Put> },
    /// tmpfiles.d(5): files of /sys, written at each start of the host.
    Tmpfiles { settings: Vec<Put> },
    /// limits.d, limits.conf(5): memory that a group or a user may lock.
    Limits { memlock: Vec<Memlock> },
    /// An addition to a systemd service. The options come to the JVM in JAVA_TOOL_OPTIONS.
    Unit { memlock_bytes: Option<Bytes>, java_options: Vec<String> },
}

/// A setting at the start of the host.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    /// A file of /proc/sys or /sys.
    pub file: String,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Number(u64),
    Word(String),
}

#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memlock {
    /// A user, or a group with "@" before it.
    pub who: String,
    pub kib: u64,
}

pub const SYSCTLS: &str = "/etc/sysctl.d";
pub const LIMITS: &str = "/etc/security/limits.d";
pub const TMPFILES: &str = "/etc/tmpfiles.d";
pub const UNITS: &str = "/etc/systemd/system";
/// systemd.unit(5): at most 255 letters, of which ".service" takes eight.
const UNIT_LETTERS_MAX: usize = 247;

const HEAD: &str = "# Made by marusa; `marusa pages undo` removes this file.\n";
/// What every process may lock since Linux 5.16 (include/uapi/linux/resource.h, MLOCK_LIMIT); less would take from it.
pub const MEMLOCK_BYTES_MIN: Bytes = 8 << 20;
/// More than any host has.
const MEMLOCK_BYTES_MAX: Bytes = 1 << 46;
/// useradd(8): "Usernames may only be up to 32 characters long".
const NAME_LETTERS_MAX: usize = 32;

/// Whether a plan may make this file with these values; else why not.
pub fn check(file: &str, content: &Content) -> Result<(), Refused> {
    let (directory, _) = file.rsplit_once('/').unwrap_or_default();
    let (is_place, values) = match content {
        Content::Sysctl { settings } => (directory == SYSCTLS, settings.len()),
        Content::Tmpfiles { settings } => (directory == TMPFILES, settings.len()),
        Content::Limits { memlock } => (directory == LIMITS, memlock.len()),
        Content::Unit { java_options, .. } => (unit_directory(directory), java_options.len()),
    };
    if !is_place {
        refuse!("{file} is not a place for a file of this kind");
    }
    if values > DOOR_VALUES_MAX {
        refuse!("{file}: more than {DOOR_VALUES_MAX} values");
    }
    let fits = match content {
        Content::Sysctl { settings } => all(settings, "/proc/sys/"),
        Content::Tmpfiles { settings } => all(settings, "/sys/"),
        Content::Limits { memlock } => memlock.iter().try_for_each(limit),
        Content::Unit { memlock_bytes, java_options } => memlock_bytes
            .map_or(Ok(()), locked)
            .and_then(|()| java_options.iter().try_for_each(|option| jvm_option::check(option))),
    };
    fits.map_err(|why| format!("{file}: {why}"))?;
    let text = text(content);
    match text.bytes().all(|letter| letter == b'\n' || (b' '..=b'~').contains(&letter)) {
        true => Ok(()),
        false => refuse!("{file}: its values are not plain text"),
    }
}

/// /etc/systemd/system/NAME.service.d
pub fn unit_directory(path: &str) -> bool {
    let name = path.strip_prefix(UNITS).and_then(|rest| rest.strip_prefix('/'));
    name.and_then(|name| name.strip_suffix(".service.d")).is_some_and(unit_name)
}

/// The name of one service, without ".service" (systemd.unit(5)). A name that ends with a dash is one whose additions count for
/// all services that start alike; a backslash is only that of systemd-escape(1), "\x2d".
pub fn unit_name(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.@:\\".contains(letter);
    let escaped = |rest: &str| {
        let hex = rest.strip_prefix('x').and_then(|rest| rest.get(..2));
        hex.is_some_and(|hex| hex.bytes().all(|one| one.is_ascii_hexdigit()))
    };
    (1..=UNIT_LETTERS_MAX).contains(&name.len())
        && !name.starts_with(['.', '-'])
        && !name.ends_with('-')
        && name.chars().all(plain)
        && name.split('\\').skip(1).all(escaped)
}

fn all(settings: &[Put], below: &str) -> Result<(), Refused> {
    for (at, put) in settings.iter().enumerate() {
        let setting = settings::of(&put.file).filter(|_| put.file.starts_with(below));
        let setting =
            setting.ok_or_else(|| format!("{:?} is not a setting that a plan may change", put.file))?;
        match &put.value {
            Value::Number(value) => setting.takes_number(&put.file, *value)?,
            Value::Word(word) => setting.takes_word(&put.file, word)?,
        }
        if settings[..at].iter().any(|earlier| earlier.file == put.file) {
            refuse!("{} is there twice", put.file);
        }
    }
    Ok(())
}

fn limit(limit: &Memlock) -> Result<(), Refused> {
    let name = limit.who.strip_prefix('@').unwrap_or(&limit.who);
    let mut letters = name.bytes();
    let plain = name.len() <= NAME_LETTERS_MAX
        && letters.next().is_some_and(|first| first.is_ascii_lowercase() || first == b'_')
        && letters.all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || b"_-".contains(&one));
    match plain {
        true => locked(limit.kib.saturating_mul(1024)),
        false => refuse!("{:?} is not the name of a user or @group", limit.who),
    }
}

fn locked(bytes: Bytes) -> Result<(), Refused> {
    match (MEMLOCK_BYTES_MIN..=MEMLOCK_BYTES_MAX).contains(&bytes) {
        true => Ok(()),
        false => refuse!(
            "{bytes} bytes of locked memory are outside of {MEMLOCK_BYTES_MIN} to {MEMLOCK_BYTES_MAX}, the range that a plan \
             may set"
        ),
    }
}

/// The file, byte for byte.
pub fn text(content: &Content) -> String {
    let lines = match content {
        Content::Sysctl { settings } => settings.iter().map(sysctl_line).collect(),
        Content::Tmpfiles { settings } => settings.iter().map(tmpfiles_line).collect(),
        Content::Limits { memlock } => memlock.iter().map(limit_line).collect(),
        Content::Unit { memlock_bytes, java_options } => unit_lines(*memlock_bytes, java_options),
    };
    lines.iter().fold(HEAD.to_string(), |text, line| text + line + "\n")
}

/// "vm.nr_hugepages = 12"
pub fn sysctl_line(put: &Put) -> String {
    let name = put.file.trim_start_matches("/proc/sys/").replace('/', ".");
    format!("{name} = {}", put.value)
}

/// "w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise"
fn tmpfiles_line(put: &Put) -> String {
    format!("w {} - - - - {}", put.file, put.value)
}

/// "@java - memlock 1048576"
pub fn limit_line(limit: &Memlock) -> String {
    format!("{} - memlock {}", limit.who, limit.kib)
}

/// Lines of a unit; what `check` does not let pass is quoted as systemd.exec(5) asks, for those who copy them.
pub fn unit_lines(memlock_bytes: Option<Bytes>, java_options: &[String]) -> Vec<String> {
    let quoted = java_options.join(" ").replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    let mut lines = vec!["[Service]".to_string()];
    lines.extend(memlock_bytes.map(|bytes| format!("LimitMEMLOCK={bytes}")));
    lines.push(format!("Environment=\"JAVA_TOOL_OPTIONS={quoted}\""));
    lines
}

impl std::fmt::Display for Value {
    fn fmt(&self, into: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Value::Number(value) => write!(into, "{value}"),
            Value::Word(word) => write!(into, "{word}"),
        }
    }
}

impl Content {
    /// Nothing to write.
    pub fn is_empty(&self) -> bool {
        match self {
            Content::Sysctl { settings } | Content::Tmpfiles { settings } => settings.is_empty(),
            Content::Limits { memlock } => memlock.is_empty(),
            Content::Unit { memlock_bytes, java_options } => {
                memlock_bytes.is_none() && java_options.is_empty()
            }
        }
    }

    /// The settings of /proc/sys and /sys in it.
    pub fn settings(&self) -> &[Put] {
        match self {
            Content::Sysctl { settings } | Content::Tmpfiles { settings } => settings,
            Content::Limits { .. } | Content::Unit { .. } => &[],
        }
    }

    /// Bytes of memory that each of its lines permits to lock.
    pub fn locked_bytes(&self) -> impl Iterator<Item = Bytes> + '_ {
        let (lines, unit) = match self {
            Content::Limits { memlock } => (memlock.as_slice(), None),
            Content::Unit { memlock_bytes, .. } => (&[][..], *memlock_bytes),
            _ => (&[][..], None),
        };
        lines.iter().map(|line| line.kib.saturating_mul(1024)).chain(unit)
    }
}

impl Put {
    /// Huge pages that it sets aside.
    pub fn pages(&self) -> Option<u64> {
        let is_pages = settings::of(&self.file).is_some_and(|setting| setting.takes == Takes::Pages);
        match self.value {
            Value::Number(pages) if is_pages => Some(pages),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
