//! What an exporter keeps of an account: a few hundred bytes, where the account itself has hundreds of kilobytes.

use crate::base::Bytes;
use crate::doctor::budget::Budget;
use crate::doctor::{JvmFacts, Level};
use crate::map::Area;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Areas whose committed memory says something that the resident does not.
const COMMITTED: [Area; 5] = [Area::JavaHeap, Area::Gc, Area::ClassMetadata, Area::JitCode, Area::Stack];

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct AreaNow {
    pub area: Area,
    pub resident_bytes: Bytes,
    /// `None`: it is not exported.
    #[serde(skip)]
    pub committed_bytes: Option<Bytes>,
}

/// Something the doctor found.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct FoundNow {
    pub id: &'static str,
    pub level: Level,
    pub title: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    pub areas: Vec<AreaNow>,
    /// By part and size of page.
    pub page_sizes: BTreeMap<(&'static str, Bytes), Bytes>,
    pub proportional_bytes: Option<Bytes>,
    pub malloc_in_use_bytes: Option<Bytes>,
    pub malloc_trimmable_bytes: Option<Bytes>,
    pub malloc_arenas: Option<u64>,
    pub needed_bytes: Option<Bytes>,
    pub classes: Option<u64>,
    pub nmt: Option<String>,
    /// "glibc 2.36".
    pub libc: Option<String>,
    /// The pages that were asked for by options: "hugetlb", "thp", "small".
    pub pages: Option<&'static str>,
}

impl Summary {
    pub fn of(jvm: &JvmFacts) -> Summary {
        let account = &jvm.account;
        let mut page_sizes = BTreeMap::new();
        for area in &account.areas {
            let part = match area.area {
                Area::JavaHeap => "heap",
                Area::JitCode => "jit_code",
                _ => "other",
            };
            for (size, bytes) in area.amounts.by_page_size.iter().filter(|(_, bytes)| **bytes > 0) {
                *page_sizes.entry((part, *size)).or_default() += *bytes;
            }
        }
        let areas = account.areas.iter().map(|area| AreaNow {
            area: area.area,
            resident_bytes: area.amounts.resident_bytes,
            committed_bytes: COMMITTED.contains(&area.area).then_some(area.amounts.committed_bytes),
        });
        let malloc = account.malloc.as_ref();
        let group = jvm.group.as_ref().ok().and_then(Option::as_ref);
        Summary {
            areas: areas.collect(),
            page_sizes,
            proportional_bytes: account.totals.proportional_bytes,
            malloc_in_use_bytes: malloc.and_then(|malloc| malloc.sums.in_use_bytes),
            malloc_trimmable_bytes: malloc.and_then(|malloc| malloc.sums.trimmable_bytes),
            malloc_arenas: malloc.map(|malloc| malloc.arenas.len() as u64),
            needed_bytes: group.and_then(|group| Budget::of(jvm, group)).map(|budget| budget.full_bytes()),
            classes: account.jvm.as_ref().and_then(|jvm| jvm.classes.as_ref()?.classes),
            nmt: account.jvm.as_ref().and_then(|jvm| jvm.nmt.clone()),
            libc: malloc.map(|malloc| malloc.allocator.clone()),
            pages: account.jvm.as_ref().map(|_| pages(jvm)),
        }
    }
}

fn pages(jvm: &JvmFacts) -> &'static str {
    match () {
        () if jvm.is_on("UseTransparentHugePages") => "thp",
        () if jvm.is_on("UseLargePages") => "hugetlb",
        () => "small",
    }
}
