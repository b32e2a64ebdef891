//! Every claim on memory, from the strongest source to the weakest: the runtime, the allocator, pointers from libraries,
//! loaded images, and last the mapping itself.

use super::area::{Area, of_kind};
use super::claim::{Claims, RANK_IMAGE, RANK_JVM, RANK_LINK, RANK_MAPPING, how};
use super::malloc;
use super::types::{Instance, Owner};
use crate::base::Range;
use crate::jvm::{Extent, JvmView, Kind};
use crate::os::maps::Mapping;
use crate::snapshot::Snapshot;
use std::collections::{HashMap, HashSet};

/// All claims of a snapshot.
pub fn all(snapshot: &Snapshot) -> Claims {
    let mut claims = Claims::default();
    let jvm = snapshot.jvm.as_ref().ok();
    if let Some(jvm) = jvm {
        of_jvm(jvm, &mut claims);
    }
    if let Ok(alloc) = &snapshot.alloc {
        malloc::owners::claim(alloc, jvm, &mut claims);
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
        claims.one(link.range, RANK_LINK, owner, None);
    }
    of_mappings(snapshot, &mut claims);
    claims
}

fn of_jvm(jvm: &JvmView, claims: &mut Claims) {
    let threads: HashMap<Range, i32> =
        jvm.threads.iter().filter_map(|thread| Some((thread.stack.clone().ok()?, thread.tid))).collect();
    for extent in &jvm.extents {
        claims.one(extent.range, RANK_JVM, owner_of(extent, &threads), extent.in_use_bytes);
    }
}

fn owner_of(extent: &Extent, threads: &HashMap<Range, i32>) -> Owner {
    let instance = match extent.kind {
        Kind::Stack => threads.get(&extent.range).map_or(Instance::None, |tid| Instance::Thread(*tid)),
        _ => Instance::None,
    };
    Owner { area: of_kind(extent.kind), part: extent.part.clone(), instance, how: how(&extent.how) }
}

/// Text and data of loaded images; the zeroed part of the data (.bss) lies in an anonymous mapping behind the file's.
fn of_images(snapshot: &Snapshot, claims: &mut Claims) {
    for image in &snapshot.images {
        for (range, writable) in &image.segments {
            let section = if *writable { "data" } else { "text" };
            let owner = Owner {
                area: Area::Code,
                part: format!("{} {section}", file_name(&image.path)),
                instance: library(&image.path),
                how: "loaded image".to_string(),
            };
            claims.one(range.widened(crate::os::machine::base_page()), RANK_IMAGE, owner, None);
        }
    }
}

fn of_mappings(snapshot: &Snapshot, claims: &mut Claims) {
    let with_code: HashSet<&str> = snapshot
        .os
        .mappings
        .iter()
        .filter(|mapping| mapping.is_file() && mapping.rights.execute)
        .map(|mapping| mapping.path.as_str())
        .collect();
    for mapping in &snapshot.os.mappings {
        let owner = of_mapping(mapping, with_code.contains(mapping.path.as_str()));
        claims.one(mapping.range, RANK_MAPPING, owner, None);
    }
}

/// What is known from the mapping alone.
fn of_mapping(mapping: &Mapping, has_code: bool) -> Owner {
    let owner =
        |area, part: String, instance, how: &str| Owner { area, part, instance, how: how.to_string() };
    let library = || library(&mapping.path);
    match mapping.path.as_str() {
        "[stack]" => owner(Area::Stack, "primordial thread stack".into(), Instance::None, "mapping's name"),
        "[heap]" => malloc::owners::unwalked_main_arena("mapping's name"),
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
