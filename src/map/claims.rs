//! Every claim on memory, from the strongest source to the weakest: the runtime, the allocator, pointers from libraries,
//! loaded images, and last the mapping itself.

use super::area::{Area, of_kind};
use super::types::{Instance, Owner};
use crate::alloc::AllocView;
use crate::base::{Bytes, Range};
use crate::jvm::{Extent, How, JvmView, Kind};
use crate::os::maps::Mapping;
use crate::snapshot::Snapshot;
use std::collections::{HashMap, HashSet};

/// One claim. A lower `rank` wins; among equals the smaller range.
#[derive(Clone, Debug)]
pub struct Claim {
    pub range: Range,
    pub rank: u8,
    pub owner: Owner,
    pub in_use: Option<Bytes>,
}

pub const RANK_JVM: u8 = 0;
pub const RANK_ALLOC: u8 = 1;
pub const RANK_IMAGE: u8 = 2;
pub const RANK_LINK: u8 = 3;
pub const RANK_MAPPING: u8 = 4;

/// All claims of a snapshot.
pub fn all(snapshot: &Snapshot) -> Vec<Claim> {
    let mut claims = Vec::new();
    if let Ok(jvm) = &snapshot.jvm {
        of_jvm(jvm, &mut claims);
    }
    if let Ok(alloc) = &snapshot.alloc {
        of_alloc(alloc, &mut claims);
    }
    of_images(snapshot, &mut claims);
    for link in &snapshot.links {
        let name = file_name(&link.library).to_string();
        let owner = Owner {
            area: Area::NativeLibrary,
            part: format!("{name} (mapped memory)"),
            instance: library(&link.library),
            how: link.how.clone(),
        };
        claims.push(Claim { range: link.range, rank: RANK_LINK, owner, in_use: None });
    }
    of_mappings(snapshot, &mut claims);
    claims
}

fn of_jvm(jvm: &JvmView, claims: &mut Vec<Claim>) {
    let threads: HashMap<Range, i32> =
        jvm.threads.iter().filter_map(|thread| Some((thread.stack.clone().ok()?, thread.tid))).collect();
    claims.extend(jvm.extents.iter().map(|extent| Claim {
        range: extent.range,
        rank: RANK_JVM,
        owner: owner_of(extent, &threads),
        in_use: extent.in_use_bytes,
    }));
}

fn owner_of(extent: &Extent, threads: &HashMap<Range, i32>) -> Owner {
    let instance = match extent.kind {
        Kind::Stack => threads.get(&extent.range).map_or(Instance::None, |tid| Instance::Thread(*tid)),
        _ => Instance::None,
    };
    Owner { area: of_kind(extent.kind), part: extent.part.clone(), instance, how: how(&extent.how) }
}

fn how(how: &How) -> String {
    match how {
        How::VmStructs => "vmStructs".to_string(),
        How::Symbol => "symbol".to_string(),
        How::PointedFrom(root) => format!("pointed to from {root}"),
        How::Shape => "shape".to_string(),
        How::NmtHeader => "NMT header".to_string(),
        How::VirtualTable => "virtual table".to_string(),
        How::ThreadArena => "thread's arena (weak)".to_string(),
    }
}

fn of_alloc(alloc: &AllocView, claims: &mut Vec<Claim>) {
    let mut claim = |range, area, part: &str, instance, how: &str| {
        let owner = Owner { area, part: part.to_string(), instance, how: how.to_string() };
        claims.push(Claim { range, rank: RANK_ALLOC, owner, in_use: None });
    };
    for arena in &alloc.arenas {
        let part = if arena.number == 0 { "malloc main arena" } else { "malloc thread arenas" };
        for heap in &arena.heaps {
            let instance = Instance::Arena(arena.number);
            claim(heap.in_arena, Area::JvmWork, part, instance.clone(), "arena ring");
            if heap.reserved != heap.in_arena {
                claim(
                    heap.reserved,
                    Area::MallocFreed,
                    "malloc arenas, not in use yet",
                    instance,
                    "arena ring",
                );
            }
        }
    }
    for range in &alloc.mmapped {
        claim(*range, Area::JvmWork, "malloc mmapped chunks", Instance::None, "chunk header");
    }
}

/// Text and data of loaded images; the zeroed part of the data (.bss) lies in an anonymous mapping behind the file's.
fn of_images(snapshot: &Snapshot, claims: &mut Vec<Claim>) {
    for image in &snapshot.images {
        for (range, writable) in &image.segments {
            let section = if *writable { "data" } else { "text" };
            let owner = Owner {
                area: Area::Code,
                part: format!("{} {section}", file_name(&image.path)),
                instance: library(&image.path),
                how: "loaded image".to_string(),
            };
            claims.push(Claim {
                range: range.widened(crate::base::PAGE),
                rank: RANK_IMAGE,
                owner,
                in_use: None,
            });
        }
    }
}

fn of_mappings(snapshot: &Snapshot, claims: &mut Vec<Claim>) {
    let with_code: HashSet<&str> = snapshot
        .os
        .mappings
        .iter()
        .filter(|mapping| mapping.is_file() && mapping.rights.execute)
        .map(|mapping| mapping.path.as_str())
        .collect();
    for mapping in &snapshot.os.mappings {
        let owner = of_mapping(mapping, with_code.contains(mapping.path.as_str()));
        claims.push(Claim { range: mapping.range, rank: RANK_MAPPING, owner, in_use: None });
    }
}

/// What the mapping alone tells.
fn of_mapping(mapping: &Mapping, has_code: bool) -> Owner {
    let owner =
        |area, part: String, instance, how: &str| Owner { area, part, instance, how: how.to_string() };
    let library = || library(&mapping.path);
    match mapping.path.as_str() {
        "[stack]" => owner(Area::Stack, "primordial thread stack".into(), Instance::None, "mapping's name"),
        "[heap]" => owner(Area::JvmWork, "malloc main arena".into(), Instance::Arena(0), "mapping's name"),
        "[vdso]" | "[vvar]" | "[vsyscall]" | "[vvar_vclock]" => {
            owner(Area::Code, mapping.path.clone(), Instance::None, "mapping's name")
        }
        path if path.starts_with("[anon:") => {
            owner(Area::Unattributed, path.to_string(), Instance::None, "mapping's name")
        }
        _ if mapping.is_file() && has_code => {
            owner(Area::Code, format!("{} other segments", mapping.file_name()), library(), "mapped file")
        }
        path if path.starts_with("/memfd:") => {
            owner(Area::MappedFile, mapping.file_path().into(), Instance::None, "mapped file")
        }
        path if path.starts_with("/SYSV") => {
            owner(Area::MappedFile, "System V shared memory".into(), Instance::None, "mapped file")
        }
        _ if mapping.is_file() && !mapping.is_hugetlb_name() => {
            owner(Area::MappedFile, mapping.file_name().to_string(), library(), "mapped file")
        }
        _ if !mapping.rights.any() => {
            owner(Area::Unattributed, "reserved, no access".into(), Instance::None, "no claim")
        }
        _ => owner(Area::Unattributed, "anonymous memory".into(), Instance::None, "no claim"),
    }
}

/// A library that unpacked itself and was deleted is the same one under both names.
fn library(path: &str) -> Instance {
    Instance::Library(not_deleted(path).to_string())
}

fn file_name(path: &str) -> &str {
    let path = not_deleted(path);
    path.rsplit('/').next().unwrap_or(path)
}

fn not_deleted(path: &str) -> &str {
    path.strip_suffix(" (deleted)").unwrap_or(path)
}
