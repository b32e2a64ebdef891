//! What a plan may touch. A plan is a file that anybody may have written: whatever it names is looked up here before
//! anything is opened, and again when a journal is undone.

use super::content;
use super::step::Change;
use crate::base::limits::{DOOR_LINKED_MAX, DOOR_PATH_BYTES_MAX, DOOR_TEXT_BYTES_MAX};

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

/// Numbers that are sums of what several programs need. `*` stands for digits.
const ADDED: [&str; 5] = [
    "/proc/sys/vm/nr_hugepages",
    "/proc/sys/vm/nr_overcommit_hugepages",
    "/sys/kernel/mm/hugepages/hugepages-*kB/nr_hugepages",
    "/sys/kernel/mm/hugepages/hugepages-*kB/nr_overcommit_hugepages",
    "/sys/devices/system/node/node*/hugepages/hugepages-*kB/nr_hugepages",
];
/// Choices among words, below `THP`.
const CHOSEN: [&str; 5] =
    ["enabled", "defrag", "shmem_enabled", "hugepages-*kB/enabled", "hugepages-*kB/shmem_enabled"];
/// Other numbers, below `THP`.
const SET_THP: [&str; 9] = [
    "use_zero_page",
    "shrink_underused",
    "khugepaged/defrag",
    "khugepaged/max_ptes_none",
    "khugepaged/max_ptes_swap",
    "khugepaged/max_ptes_shared",
    "khugepaged/pages_to_scan",
    "khugepaged/scan_sleep_millisecs",
    "khugepaged/alloc_sleep_millisecs",
];
/// Other numbers, below /proc/sys.
const SET: [&str; 7] = [
    "vm/hugetlb_shm_group",
    "vm/hugetlb_optimize_vmemmap",
    "vm/max_map_count",
    "vm/compaction_proactiveness",
    "kernel/shmmax",
    "kernel/shmall",
    "kernel/shmmni",
];
/// Where files with "marusa" in their name may be made, which the host's own programs read.
const FOLDERS: [&str; 3] = ["/etc/sysctl.d", "/etc/security/limits.d", "/etc/tmpfiles.d"];
const UNITS: &str = "/etc/systemd/system";
/// Where folders, mounts and copies may be made, beside the state folder.
const OWN: [&str; 2] = ["/var/lib/marusa", "/run/marusa"];
/// Where control groups of memory are, by version 1 and 2; ours have a name of our own directly below.
const GROUPS: [&str; 2] = ["/sys/fs/cgroup/memory/marusa-", "/sys/fs/cgroup/marusa-"];
const GROUP_BYTES_MIN: u64 = 16 << 20;
const SWAP_BYTES_MIN: u64 = 1 << 20;
const SWAP_BYTES_MAX: u64 = 64 << 30;
/// Options of tmpfs that a plan may give (Documentation/filesystems/tmpfs.rst).
const TMPFS_OPTIONS: [&str; 5] = ["huge", "size", "nr_inodes", "mode", "mpol"];

/// Whether the change is one that the door makes; else why not.
pub fn check(change: &Change, state_folder: &str) -> Result<(), String> {
    path(change.place())?;
    let own = |path: &str| {
        OWN.iter().chain([&state_folder]).any(|folder| below(path, folder))
            && !below(path, &format!("{state_folder}/pages"))
    };
    let allowed = match change {
        Change::Add { file, .. } => ADDED.iter().any(|pattern| matches(pattern, file)),
        Change::Choose { file, word } => {
            choice(word)? && CHOSEN.iter().any(|name| matches(&format!("{THP}/{name}"), file))
        }
        Change::Set { file, .. } => {
            SET_THP.iter().any(|name| matches(&format!("{THP}/{name}"), file))
                || SET.iter().any(|name| matches(&format!("/proc/sys/{name}"), file))
        }
        Change::Create { file, text, mode } => {
            if mode & !0o644 != 0 {
                return Err(format!("{file}: mode {mode:o} is more than 644"));
            }
            if text.len() > DOOR_TEXT_BYTES_MAX || text.contains('\0') {
                return Err(format!("{file}: no text, or longer than {DOOR_TEXT_BYTES_MAX} bytes"));
            }
            if created(file) {
                content::check(file, text)?;
            }
            created(file)
        }
        Change::Folder { path } => unit_folder(path) || own(path) || is_own(path),
        Change::MountTmpfs { at, options } => tmpfs_options(options)? && own(at),
        Change::CopyTree { from, to, linked } => {
            self::path(from)?;
            if linked.len() > DOOR_LINKED_MAX {
                return Err(format!("{from}: more than {DOOR_LINKED_MAX} links"));
            }
            linked.iter().try_for_each(|below| self::path(&format!("{from}/{below}")))?;
            own(to)
        }
        Change::SwapFile { file, bytes } => {
            if !(SWAP_BYTES_MIN..=SWAP_BYTES_MAX).contains(bytes) {
                return Err(format!("{file}: {bytes} bytes are no size of a file to swap to"));
            }
            own(file)
        }
        Change::MemoryGroup { path, limit_bytes } => {
            if *limit_bytes < GROUP_BYTES_MIN {
                return Err(format!("{path}: no program runs in {limit_bytes} bytes"));
            }
            own_group(path)
        }
    };
    if allowed {
        return Ok(());
    }
    Err(format!("{} is none of the places that this kind of step may change", change.place()))
}

/// The kernel's switch of huge pages moves its reserve of free memory too (mm/khugepaged.c,
/// `set_recommended_min_free_kbytes`), and does not always move it back.
pub fn moves_with(file: &str) -> Option<&'static str> {
    let switches = ["enabled", "shmem_enabled", "hugepages-*kB/enabled", "hugepages-*kB/shmem_enabled"];
    let moves = switches.iter().any(|name| matches(&format!("{THP}/{name}"), file));
    moves.then_some("/proc/sys/vm/min_free_kbytes")
}

/// Whether it is one of our own folders, in which each plan makes its own.
pub fn is_own(path: &str) -> bool {
    OWN.contains(&path)
}

/// That of them in which a path lies directly.
pub fn own_parent(path: &str) -> Option<&'static str> {
    let (parent, _) = path.rsplit_once('/')?;
    OWN.into_iter().find(|own| *own == parent)
}

/// A plain absolute path.
fn path(path: &str) -> Result<(), String> {
    let plain = path.len() <= DOOR_PATH_BYTES_MAX
        && !path.chars().any(char::is_control)
        && path
            .strip_prefix('/')
            .is_some_and(|rest| rest.split('/').all(|part| !["", ".", ".."].contains(&part)));
    if plain { Ok(()) } else { Err(format!("{path:?} is no plain absolute path")) }
}

fn below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn choice(word: &str) -> Result<bool, String> {
    let fits = (1..=32).contains(&word.len())
        && word.chars().all(|letter| letter.is_ascii_lowercase() || ['_', '+'].contains(&letter));
    if fits { Ok(true) } else { Err(format!("{word:?} is no word that a setting takes")) }
}

fn tmpfs_options(options: &str) -> Result<bool, String> {
    let fits = |option: &str| {
        let Some((name, value)) = option.split_once('=') else { return false };
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "_%:-".contains(letter);
        TMPFS_OPTIONS.contains(&name) && !value.is_empty() && value.chars().all(plain)
    };
    match options.split(',').find(|option| !fits(option)) {
        Some(option) => Err(format!("{option:?} is no option of tmpfs that a plan may give")),
        None => Ok(true),
    }
}

/// /etc/systemd/system/NAME.service.d
pub fn unit_folder(path: &str) -> bool {
    let name = path.strip_prefix(UNITS).and_then(|rest| rest.strip_prefix('/'));
    name.and_then(|name| name.strip_suffix(".service.d")).is_some_and(file_name)
}

fn own_group(path: &str) -> bool {
    let name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let rest = GROUPS.iter().find_map(|start| path.strip_prefix(start));
    rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(name))
}

fn created(file: &str) -> bool {
    let Some((folder, name)) = file.rsplit_once('/') else { return false };
    let named = name.contains("marusa") && name.ends_with(".conf") && file_name(name);
    named && (FOLDERS.contains(&folder) || unit_folder(folder))
}

fn file_name(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.@:\\".contains(letter);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(plain)
}

/// `*` stands for one digit or more.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    for part in parts {
        let digits = rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        let Some(after) = rest[digits..].strip_prefix(part).filter(|_| digits > 0) else { return false };
        rest = after;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: Change) -> String {
        check(&change, "/state").expect_err("must be refused")
    }
    fn add(file: &str) -> Change {
        Change::Add { file: file.into(), by: 1 }
    }
    fn create(file: &str, text: &str) -> Change {
        Change::Create { file: file.into(), text: text.into(), mode: 0o644 }
    }

    #[test]
    fn the_pools_of_each_size_and_node_and_nothing_beside_them() {
        for file in [
            "/proc/sys/vm/nr_hugepages",
            "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_overcommit_hugepages",
            "/sys/devices/system/node/node12/hugepages/hugepages-2048kB/nr_hugepages",
        ] {
            assert_eq!(check(&add(file), "/state"), Ok(()));
        }
        for file in [
            "/proc/sys/vm/drop_caches",
            "/proc/sys/vm/../kernel/core_pattern",
            "/sys/kernel/mm/hugepages/hugepages-kB/nr_hugepages",
            "/sys/kernel/mm/hugepages/hugepages-2048kB/../../x/nr_hugepages",
            "/sys/kernel/mm/hugepages/hugepages-2048kB//nr_hugepages",
            "proc/sys/vm/nr_hugepages",
            "/proc/sys/vm/nr_hugepages\n",
            "",
        ] {
            refused(add(file));
        }
    }

    #[test]
    fn a_file_is_ours_by_its_folder_its_name_and_its_mode() {
        let text = "vm.nr_hugepages = 5\n";
        assert_eq!(check(&create("/etc/sysctl.d/60-marusa.conf", text), "/state"), Ok(()));
        refused(create("/etc/sysctl.d/60-other.conf", text));
        refused(create("/etc/sysctl.d/sub/marusa.conf", text));
        refused(create("/etc/cron.d/marusa.conf", text));
        refused(create("/etc/sysctl.d/.marusa.conf", text));
        let file = "/etc/sysctl.d/marusa.conf".to_string();
        refused(Change::Create { file, text: text.into(), mode: 0o4755 });
    }

    #[test]
    fn mounts_and_folders_lie_in_our_own_folders() {
        let mount = |at: &str, options: &str| Change::MountTmpfs { at: at.into(), options: options.into() };
        assert_eq!(check(&mount("/var/lib/marusa/jdk/17", "huge=always,size=600m"), "/state"), Ok(()));
        assert_eq!(check(&Change::Folder { path: "/state/jdk".into() }, "/state"), Ok(()));
        assert_eq!(
            check(&Change::Folder { path: "/etc/systemd/system/tomcat@a.service.d".into() }, "/state"),
            Ok(())
        );
        refused(mount("/etc", "huge=always"));
        refused(mount("/var/lib/marusa", "huge=always"));
        refused(mount("/state/pages/x", "huge=always"));
        refused(mount("/state/jdk", "huge=always,suid"));
        refused(mount("/state/jdk", "size=1g\x2cuid=3"));
        refused(Change::Folder { path: "/etc/systemd/system".into() });
        let copy = |to: &str, linked: &str| Change::CopyTree {
            from: "/usr/lib/jvm/x".into(),
            to: to.into(),
            linked: vec![linked.into()],
        };
        refused(copy("/usr", "lib/src.zip"));
        refused(copy("/run/marusa/x", "../../etc"));
        assert_eq!(check(&copy("/run/marusa/x", "lib/src.zip"), "/state"), Ok(()));
    }

    #[test]
    fn swap_and_groups_are_our_own_and_of_a_sensible_size() {
        let swap = |file: &str, bytes: u64| Change::SwapFile { file: file.into(), bytes };
        let group = |path: &str| Change::MemoryGroup { path: path.into(), limit_bytes: 1 << 30 };
        assert_eq!(check(&swap("/state/bench-1/swap", 1 << 30), "/state"), Ok(()));
        assert_eq!(check(&group("/sys/fs/cgroup/memory/marusa-bench-1"), "/state"), Ok(()));
        assert_eq!(check(&group("/sys/fs/cgroup/marusa-bench-1"), "/state"), Ok(()));
        refused(swap("/var/swap", 1 << 30));
        refused(swap("/state/pages/swap", 1 << 30));
        refused(swap("/state/swap", 1 << 60));
        refused(group("/sys/fs/cgroup/memory/system.slice"));
        refused(group("/sys/fs/cgroup/memory/marusa-"));
        refused(group("/sys/fs/cgroup/memory/marusa-x/y"));
        refused(Change::MemoryGroup { path: "/sys/fs/cgroup/marusa-x".into(), limit_bytes: 1 });
    }

    #[test]
    fn words_are_words() {
        let choose =
            |word: &str| Change::Choose { file: format!("{THP}/hugepages-64kB/enabled"), word: word.into() };
        assert_eq!(check(&choose("within_size"), "/state"), Ok(()));
        refused(choose("always\n1"));
        refused(choose(""));
        assert_eq!(moves_with(&format!("{THP}/shmem_enabled")), Some("/proc/sys/vm/min_free_kbytes"));
        assert_eq!(moves_with(&format!("{THP}/defrag")), None);
    }
}
