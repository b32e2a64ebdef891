//! What the account says of the runtime as a whole.

use crate::base::{Bytes, Known};
use crate::jvm::{BlobCount, ClassView, CodeHeapView, HeapView, JvmView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The runtime. `None`: not known, and why is in the account's gaps.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Jvm {
    pub vm: String,
    pub version: Option<String>,
    pub major: Option<u32>,
    pub gc: Option<String>,
    pub nmt: Option<String>,
    pub java_threads: Option<usize>,
    pub library: String,
    pub build_id: Option<String>,
    pub flags: BTreeMap<String, String>,
    pub heap: Option<Heap>,
    pub code_heaps: Option<Vec<CodeHeap>>,
    pub classes: Option<Classes>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Heap {
    pub reserved: Vec<String>,
    pub max_bytes: Option<Bytes>,
    pub committed_bytes: Option<Bytes>,
    pub used_bytes: Option<Bytes>,
    pub region_bytes: Option<Bytes>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CodeHeap {
    pub name: String,
    pub reserved_bytes: Bytes,
    pub committed_bytes: Bytes,
    pub used_bytes: Option<Bytes>,
    pub blobs: BTreeMap<String, BlobCount>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Classes {
    pub loaders: Option<u64>,
    pub classes: Option<u64>,
    pub metaspace_used_bytes: Option<Bytes>,
    pub class_space_used_bytes: Option<Bytes>,
}

impl Jvm {
    pub fn of(jvm: &JvmView) -> Jvm {
        let java_threads = jvm.threads.iter().filter(|thread| thread.is_java()).count();
        Jvm {
            vm: jvm.vm.clone(),
            version: known(&jvm.version),
            major: known(&jvm.major),
            gc: jvm.gc.as_ref().ok().map(|gc| gc.name().to_string()),
            nmt: known(&jvm.nmt),
            java_threads: (!jvm.threads.is_empty()).then_some(java_threads),
            library: jvm.library.clone(),
            build_id: jvm.build_id.clone(),
            flags: jvm.flags.clone(),
            heap: jvm.heap.as_ref().ok().map(heap),
            code_heaps: jvm.code.as_ref().ok().map(|heaps| heaps.iter().map(code_heap).collect()),
            classes: jvm.classes.as_ref().ok().map(classes),
        }
    }
}

fn known<T: Clone>(value: &Known<T>) -> Option<T> {
    value.as_ref().ok().cloned()
}

fn heap(heap: &HeapView) -> Heap {
    Heap {
        reserved: heap.reserved.iter().map(|range| range.to_string()).collect(),
        max_bytes: known(&heap.max_bytes),
        committed_bytes: known(&heap.committed_bytes),
        used_bytes: known(&heap.used_bytes),
        region_bytes: heap.region_bytes,
    }
}

fn code_heap(heap: &CodeHeapView) -> CodeHeap {
    CodeHeap {
        name: heap.name.clone(),
        reserved_bytes: heap.reserved.bytes(),
        committed_bytes: heap.committed.bytes(),
        used_bytes: known(&heap.used_bytes),
        blobs: heap.blobs.clone(),
    }
}

fn classes(classes: &ClassView) -> Classes {
    Classes {
        loaders: known(&classes.loaders),
        classes: known(&classes.classes),
        metaspace_used_bytes: known(&classes.metaspace_used_bytes),
        class_space_used_bytes: known(&classes.class_space_used_bytes),
    }
}
