//! The code of an unmodified JDK on huge pages: the kernel maps a file's text with huge pages where the file lies on a tmpfs
//! that has them, so a plan puts the JDK's libraries on one. What has no text to gain (modules, sources, archives, documents)
//! stays where it is, and links in the copy lead there: a JVM takes its home from where its libjvm.so lies, follows links
//! below it, and starts.
//!
//! huge=within_size, not huge=always: the latter takes a huge page for each small file too, three times the memory. Archives
//! of class data are mapped private and written to, so no huge page could hold them.

use super::types::{Change, Feasible, HostId, Mode, Need, Outlook, Plan, SCHEMA, Step, Subject};
use crate::base::Bytes;
use crate::map::Area;
use crate::os::elf_file::Segment;
use crate::os::host_memory::HostMemory;
use crate::os::machine::{base_page, huge_page};

/// Files from this size on that are not libraries are linked.
const LINKED_FROM_BYTES: Bytes = 1 << 20;
/// The directories of a JDK that are copied; JDK 8 has a `jre`.
const COPIED: [&str; 3] = ["bin", "lib", "jre"];
/// Below it are the mounts.
const COPIES: &str = "/run/marusa";
/// Room in the mount beyond what is copied: directories and links.
const SPARE_BYTES: Bytes = 8 << 20;

/// A file, directory or link below a JDK's home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// "lib/server/libjvm.so".
    pub path: String,
    pub is_directory: bool,
    pub is_file: bool,
    pub bytes: Bytes,
}

/// A JDK as it lies on the disk.
#[derive(Clone, Debug)]
pub struct Tree {
    pub home: String,
    pub entries: Vec<Entry>,
    /// Where libjvm.so lies, and its segments.
    pub libjvm: String,
    pub segments: Vec<Segment>,
}

/// What a plan needs besides.
pub struct Request<'a> {
    pub tree: &'a Tree,
    pub subject: Subject,
    pub name: String,
    pub host: &'a HostMemory,
    pub host_id: HostId,
    pub made_at: String,
    pub made_by: String,
}

impl Tree {
    /// What is linked, not copied: whole directories of the top, and large files that are not libraries.
    pub fn linked(&self) -> Vec<String> {
        let top = |path: &str| path.split('/').next().unwrap_or_default().to_string();
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_string();
        let is_library = |path: &str| name(path).contains(".so");
        let mut linked: Vec<String> = Vec::new();
        for entry in &self.entries {
            let is_top = !entry.path.contains('/');
            let is_left = match is_top {
                true => !COPIED.contains(&entry.path.as_str()),
                false => entry.is_file && entry.bytes >= LINKED_FROM_BYTES && !is_library(&entry.path),
            };
            let covered = !is_top && !COPIED.contains(&top(&entry.path).as_str());
            if is_left && !covered {
                linked.push(entry.path.clone());
            }
        }
        linked.sort();
        linked
    }

    /// Files that are copied, and their bytes in whole pages.
    pub fn copied(&self, linked: &[String]) -> (usize, Bytes) {
        let is_below = |path: &str, directory: &str| {
            path == directory || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
        };
        let copied = self.entries.iter().filter(|entry| {
            entry.is_file && !linked.iter().any(|directory| is_below(&entry.path, directory))
        });
        copied.fold((0, 0), |(files, bytes), entry| {
            (files + 1, bytes.saturating_add(entry.bytes.next_multiple_of(base_page())))
        })
    }

    /// Huge pages that lie whole in a segment that is never written to, and the bytes of those segments. The kernel puts a
    /// mapping of such a file where address and offset agree (mm/huge_memory.c, `thp_get_unmapped_area`).
    pub fn huge_pages(&self) -> (u64, Bytes) {
        let first = self.segments.iter().map(|segment| segment.address).min().unwrap_or(0);
        let kept = self.segments.iter().filter(|segment| !segment.writable);
        kept.fold((0, 0), |(pages, bytes), segment| {
            let start = segment.address.saturating_sub(first);
            let end = start.saturating_add(segment.bytes);
            let whole = (end / huge_page()).saturating_sub(start.div_ceil(huge_page()));
            (pages + whole, bytes.saturating_add(segment.bytes))
        })
    }
}

/// Whether a plan's option is the launcher of a copy, which takes the place of options.
pub fn is_launcher(option: &str) -> bool {
    let name = option.strip_prefix(COPIES).and_then(|rest| rest.strip_prefix('/')?.strip_suffix("/bin/java"));
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    name.is_some_and(|name| !name.is_empty() && name.chars().all(is_plain))
}

/// The plan.
pub fn plan(request: Request) -> Plan {
    let tree = request.tree;
    let at = format!("{COPIES}/{}", request.name);
    let linked = tree.linked();
    let (files, bytes) = tree.copied(&linked);
    let size = bytes.saturating_add(SPARE_BYTES).div_ceil(1 << 20);
    let (feasible, feasible_why) = feasible(request.host, bytes);
    let mut gaps = Vec::new();
    if tree.segments.is_empty() {
        let what = format!("the segments of {}", tree.libjvm);
        gaps.push(crate::base::Gap::new(what, crate::base::Why::NotRead));
    }
    let outlook =
        Outlook { name: request.name.clone(), feasible, feasible_why, instances: 1, ..Outlook::default() };
    Plan {
        schema: SCHEMA.to_string(),
        made_at: request.made_at,
        made_by: request.made_by,
        host: request.host_id,
        subject: Subject { java_home: Some(at.clone()), ..request.subject },
        mode: Mode::Thp,
        needs: vec![need(tree)],
        pools: Vec::new(),
        steps: steps(tree, &at, size, linked, files),
        persist: Vec::new(),
        boot: Vec::new(),
        jvm_options: vec![format!("{at}/bin/java")],
        gc_threads: None,
        costs: vec![format!(
            "{} MiB of memory as long as it is mounted, shared by all JVMs that are started from it",
            size
        )],
        risks: vec![
            format!("a later update of {} does not reach the copy: undo, plan and apply again", tree.home),
            "it is gone when the host starts again: apply the plan again before the service starts"
                .to_string(),
            "what is linked must stay where it is".to_string(),
        ],
        gaps,
        outlook,
    }
}

fn need(tree: &Tree) -> Need {
    let (pages, bytes) = tree.huge_pages();
    let rule = format!("whole huge pages in the segments of {} that are not written to", tree.libjvm);
    let need = Need::new(Area::Code, "libjvm.so text", bytes, huge_page(), &rule);
    Need { pages, pages_at_least: pages, ..need }
}

fn steps(tree: &Tree, at: &str, size: Bytes, linked: Vec<String>, files: usize) -> Vec<Step> {
    let step = |what: String, why: &str, risk: Option<&str>, change| Step {
        what,
        why: why.to_string(),
        risk: risk.map(str::to_string),
        change,
    };
    let options = format!("huge=within_size,size={size}m,mode=755");
    vec![
        step(
            format!("the directory {at}"),
            "a place for the mount",
            None,
            Change::Directory { path: at.to_string() },
        ),
        step(
            format!("a tmpfs of at most {size} MiB with huge pages"),
            "the kernel maps text with huge pages from such a mount, whatever transparent_hugepage says",
            Some("its pages cannot be reclaimed, only swapped"),
            Change::MountTmpfs { at: at.to_string(), options },
        ),
        step(
            format!("a copy of {files} files of {}; {} places are links to it", tree.home, linked.len()),
            "programs and libraries have text; modules, sources and archives stay where they are",
            None,
            Change::CopyTree { from: tree.home.clone(), to: at.to_string(), linked },
        ),
    ]
}

fn feasible(host: &HostMemory, bytes: Bytes) -> (Feasible, String) {
    let thp = host.pages.thp.as_ref();
    let shared = thp.and_then(|thp| thp.shmem_enabled.as_deref());
    let available = host.available_bytes();
    match (thp, shared) {
        (None, _) => (Feasible::No, "this kernel has no transparent huge pages".to_string()),
        (_, Some("deny")) => {
            (Feasible::No, "transparent_hugepage/shmem_enabled is deny, which no mount overrides".to_string())
        }
        _ if available < bytes.saturating_mul(2) => (
            Feasible::No,
            format!("{} MiB of memory are available, {} are needed", available >> 20, bytes >> 20),
        ),
        _ => {
            let why = format!(
                "{} MiB of {} that are available; `verify` reports how much is huge",
                bytes >> 20,
                available >> 20
            );
            (Feasible::Yes, why)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, bytes: Bytes) -> Entry {
        Entry { path: path.to_string(), is_directory: bytes == 0, is_file: bytes > 0, bytes }
    }

    #[test]
    fn only_the_launcher_of_a_copy_stands_for_options() {
        assert!(is_launcher("/run/marusa/jdk-17/bin/java"));
        for other in [
            "/tmp/x/bin/java",
            "/run/marusa//bin/java",
            "/run/marusa/../tmp/bin/java",
            "/run/marusa/a b/bin/java",
        ] {
            assert!(!is_launcher(other), "{other}");
        }
    }

    fn tree() -> Tree {
        let entries = vec![
            entry("bin", 0),
            entry("bin/java", 16_000),
            entry("conf", 0),
            entry("conf/net.properties", 9_000),
            entry("jmods", 0),
            entry("jmods/java.base.jmod", 20 << 20),
            entry("lib", 0),
            entry("lib/modules", 130 << 20),
            entry("lib/src.zip", 50 << 20),
            entry("lib/tzdb.dat", 100_000),
            entry("lib/libfontmanager.so", 2 << 20),
            entry("lib/server", 0),
            entry("lib/server/classes.jsa", 15 << 20),
            entry("lib/server/libjvm.so", 28 << 20),
            entry("release", 500),
        ];
        // Temurin 25.0.3, x86-64: readelf -lW.
        let segment = |address, bytes, writable| Segment { offset: address, address, bytes, writable };
        let segments = vec![
            segment(0, 0x2e_2548, false),
            segment(0x2e_3000, 0x108_bc85, false),
            segment(0x136_f000, 0x31_0f64, false),
            segment(0x168_0110, 0x11_5e18, true),
        ];
        Tree { home: "/opt/jdk".to_string(), entries, libjvm: "lib/server/libjvm.so".to_string(), segments }
    }

    #[test]
    fn programs_and_libraries_are_copied_and_the_rest_is_linked() {
        let linked = tree().linked();
        assert_eq!(
            linked,
            ["conf", "jmods", "lib/modules", "lib/server/classes.jsa", "lib/src.zip", "release"]
        );
        let (files, bytes) = tree().copied(&linked);
        assert_eq!(files, 4);
        assert_eq!(bytes, (30 << 20) + 16_384 + 102_400);
    }

    #[test]
    fn pages_of_the_text_as_they_were_found() {
        // 2048, 14336 and 2048 kB of ShmemPmdMapped.
        assert_eq!(tree().huge_pages().0, 9);
        assert_eq!(Tree { segments: Vec::new(), ..tree() }.huge_pages(), (0, 0));
        let hostile = Segment { offset: 0, address: u64::MAX, bytes: u64::MAX, writable: false };
        assert_eq!(Tree { segments: vec![hostile], ..tree() }.huge_pages().1, u64::MAX);
    }
}
