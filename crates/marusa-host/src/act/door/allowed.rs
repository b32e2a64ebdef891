//! What a plan may touch. A plan is an untrusted file: whatever it names is looked up here before
//! anything is opened, and again when a journal is undone.

use super::content::{self, unit_directory};
use super::settings::{self, Setting, THP, Takes, matches};
use super::step::Change;
use crate::base::limits::{DOOR_LINKED_MAX, DOOR_PATH_BYTES_MAX};
use crate::base::{Bytes, Refused, refuse};

/// Where files with "marusa" in their name may be made, which the host's own programs read.
const DIRECTORIES: [&str; 3] = [content::SYSCTLS, content::LIMITS, content::TMPFILES];
/// Where directories, mounts and copies may be made, next to the state directory.
const OWN: [&str; 2] = ["/var/lib/marusa", "/run/marusa"];
/// Where cgroups of memory are, by version 1 and 2; ours have a name of our own directly below.
const GROUPS: [&str; 2] = ["/sys/fs/cgroup/memory/marusa-", "/sys/fs/cgroup/marusa-"];
const GROUP_BYTES_MIN: u64 = 16 << 20;
const SWAP_BYTES_MIN: u64 = 1 << 20;
const SWAP_BYTES_MAX: u64 = 64 << 30;
/// What `huge=` of a tmpfs takes (Documentation/filesystems/tmpfs.rst).
const TMPFS_HUGE: [&str; 4] = ["never", "always", "within_size", "advise"];
/// A few pages at least; more than the largest JDK.
const TMPFS_BYTES_MIN: Bytes = 64 << 10;
const TMPFS_BYTES_MAX: Bytes = 64 << 30;
const TMPFS_FILES_MAX: u64 = 10_000_000;
/// Only its owner writes into it.
const TMPFS_MODE_MAX: u32 = 0o755;

/// Whether the change is one that the door makes; else why not.
pub fn check(change: &Change, state_directory: &str) -> Result<(), Refused> {
    path(change.place())?;
    let own = |path: &str| {
        OWN.iter().chain([&state_directory]).any(|directory| below(path, directory))
            && !below(path, &format!("{state_directory}/pages"))
    };
    let allowed = match change {
        Change::Add { file, by } => {
            setting(file, |takes| takes == Takes::Pages)?.takes_number(file, *by).map(|()| true)?
        }
        Change::Choose { file, word } => {
            setting(file, |takes| matches!(takes, Takes::Word(_)))?.takes_word(file, word).map(|()| true)?
        }
        Change::Set { file, value } => {
            let is_number = |takes| matches!(takes, Takes::Number { .. } | Takes::Limit { .. });
            setting(file, is_number)?.takes_number(file, *value).map(|()| true)?
        }
        Change::Create { file, content } => created(file) && content::check(file, content).map(|()| true)?,
        Change::Directory { path } => unit_directory(path) || own(path) || is_own(path),
        Change::MountTmpfs { at, options } => tmpfs_options(options)? && own(at),
        Change::CopyTree { from, to, linked } => {
            self::path(from)?;
            if linked.len() > DOOR_LINKED_MAX {
                refuse!("{from}: more than {DOOR_LINKED_MAX} links");
            }
            linked.iter().try_for_each(|below| self::path(&format!("{from}/{below}")))?;
            own(to)
        }
        Change::SwapFile { file, bytes } => {
            if !(SWAP_BYTES_MIN..=SWAP_BYTES_MAX).contains(bytes) {
                refuse!("{file}: {bytes} bytes are not a size of a swap file");
            }
            own(file)
        }
        Change::MemoryGroup { path, limit_bytes } => {
            if *limit_bytes < GROUP_BYTES_MIN {
                refuse!("{path}: no program runs in {limit_bytes} bytes");
            }
            own_group(path)
        }
    };
    if allowed { Ok(()) } else { Err(no_place(change.place())) }
}

fn no_place(place: &str) -> Refused {
    format!("{place} is none of the places that this kind of step may change").into()
}

/// The setting that a file is, where this kind of step may change it.
fn setting(file: &str, fits: impl Fn(Takes) -> bool) -> Result<&'static Setting, Refused> {
    settings::of(file).filter(|setting| fits(setting.takes)).ok_or_else(|| no_place(file))
}

/// The kernel's switch of huge pages moves its reserve of free memory too (mm/khugepaged.c,
/// `set_recommended_min_free_kbytes`), and does not always move it back.
pub fn moves_with(file: &str) -> Option<&'static str> {
    let switches = ["enabled", "shmem_enabled", "hugepages-*kB/enabled", "hugepages-*kB/shmem_enabled"];
    let moves = switches.iter().any(|name| matches(&format!("{THP}/{name}"), file));
    moves.then_some(settings::RESERVE.file)
}

/// Whether it is one of our own directories, in which each plan makes its own.
pub fn is_own(path: &str) -> bool {
    OWN.contains(&path)
}

/// That of them in which a path lies directly.
pub fn own_parent(path: &str) -> Option<&'static str> {
    let (parent, _) = path.rsplit_once('/')?;
    OWN.into_iter().find(|own| *own == parent)
}

/// A plain absolute path.
fn path(path: &str) -> Result<(), Refused> {
    let plain = path.len() <= DOOR_PATH_BYTES_MAX
        && !path.chars().any(hides)
        && path
            .strip_prefix('/')
            .is_some_and(|rest| rest.split('/').all(|part| !["", ".", ".."].contains(&part)));
    if !plain {
        refuse!("{path:?} is not a plain absolute path");
    }
    Ok(())
}

/// Letters that a person does not see, or that show what follows in another order (Unicode 16, Cf; separators of lines).
fn hides(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(letter, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

fn tmpfs_options(options: &str) -> Result<bool, Refused> {
    let fits = |option: &str| match option.split_once('=') {
        Some(("huge", word)) => TMPFS_HUGE.contains(&word),
        Some(("size", text)) => {
            tmpfs_size(text).is_some_and(|bytes| (TMPFS_BYTES_MIN..=TMPFS_BYTES_MAX).contains(&bytes))
        }
        Some(("nr_inodes", text)) => {
            plain_number(text).is_some_and(|files| (1..=TMPFS_FILES_MAX).contains(&files))
        }
        Some(("mode", text)) => {
            let mode =
                u32::from_str_radix(text, 8).ok().filter(|_| text.len() == 3 && plain_number(text).is_some());
            mode.is_some_and(|mode| mode & !TMPFS_MODE_MAX == 0)
        }
        _ => false,
    };
    if let Some(option) = options.split(',').find(|option| !fits(option)) {
        refuse!("{option:?} is not a tmpfs option that a plan may set");
    }
    let mut names: Vec<&str> = options.split(',').filter_map(|one| Some(one.split_once('=')?.0)).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => refuse!("the option {} of tmpfs is there twice", pair[0]),
        None => Ok(true),
    }
}

/// The size among options of tmpfs; without one the kernel takes half of the memory.
pub fn tmpfs_bytes(options: &str) -> Option<Bytes> {
    options.split(',').find_map(|option| tmpfs_size(option.strip_prefix("size=")?))
}

/// "600m"
fn tmpfs_size(text: &str) -> Option<Bytes> {
    let shift = match text.bytes().last()? {
        b'k' => 10,
        b'm' => 20,
        b'g' => 30,
        _ => 0,
    };
    let digits = if shift > 0 { &text[..text.len() - 1] } else { text };
    plain_number(digits)?.checked_mul(1 << shift)
}

/// Digits and nothing else: no sign, no blank.
fn plain_number(text: &str) -> Option<u64> {
    text.bytes().all(|letter| letter.is_ascii_digit()).then(|| text.parse().ok())?
}

fn own_group(path: &str) -> bool {
    let name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let rest = GROUPS.iter().find_map(|start| path.strip_prefix(start));
    rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(name))
}

fn created(file: &str) -> bool {
    let Some((directory, name)) = file.rsplit_once('/') else { return false };
    let named = name.contains("marusa") && name.ends_with(".conf") && file_name(name);
    named && (DIRECTORIES.contains(&directory) || unit_directory(directory))
}

fn file_name(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    !name.starts_with(['.', '-']) && name.chars().all(plain)
}

#[cfg(test)]
#[path = "allowed_tests.rs"]
mod tests;
