//! Owners of malloc's blocks from Native Memory Tracking, where the JVM runs with it: each block of HotSpot then has a header
//! with its size and its tag. Blocks without one are those of the C library and of other libraries.

mod counters;
mod header;
pub mod tags;

use super::Hotspot;
use crate::base::blocks::{Head, LABELS_MAX, Label, Look, Mark, UNKNOWN, Witness};
use crate::base::limits::{IMAGE_DATA_BYTES_MAX, NMT_TAGS_MAX};
use crate::base::{Bytes, Gap, Known, Range, Why};
use crate::jvm::types::{JvmView, NmtCount};
use crate::os::memory::read_or_zeros;
pub use header::HEADER_BYTES;
use header::{FOOTER, Layout};

/// `mtThread`: 2 in every release.
const THREAD_TAG: u8 = 2;
/// Threads whose `OSThread` is looked at to learn which layout it is.
const PROBES_MAX: usize = 16;
/// How much a tag may have grown since its counter was read.
const GROWN_BYTES_MAX: Bytes = 16 << 20;

/// Knows a block by its header.
pub struct NmtWitness {
    layout: Layout,
    /// By the number of the tag.
    labels: [Label; NMT_TAGS_MAX],
    /// No block of a tag is larger.
    largest: [Bytes; NMT_TAGS_MAX],
}

/// The witness of a JVM that tracks; `None`, with a gap where that is not a plain "off", for others. Notes what NMT counted.
pub fn witness(vm: &Hotspot, view: &mut JvmView) -> Option<NmtWitness> {
    let is_on = view.nmt.as_ref().is_ok_and(|level| level == "summary" || level == "detail");
    if !is_on {
        view.nmt_counts = Err(Gap::new("Native Memory Tracking's counters", Why::NotInThisRuntime)
            .hint("it is off in this JVM: -XX:NativeMemoryTracking=summary switches it on"));
        return None;
    }
    let names = tags::names(vm).map_err(|gap| view.gaps.push(gap)).ok()?;
    view.nmt_counts = counters::read(vm, &names);
    if let Err(gap) = &view.nmt_counts {
        view.gaps.push(gap.clone());
    }
    let layout = layout(vm, view).map_err(|gap| view.gaps.push(gap)).ok()?;
    let mut witness = NmtWitness {
        layout,
        labels: [UNKNOWN; NMT_TAGS_MAX],
        largest: largest(&names, view.nmt_counts.as_deref().ok()),
    };
    for (name, label) in names.iter().zip(&mut witness.labels) {
        if view.block_owners.len() < LABELS_MAX {
            view.block_owners.push(tags::owner(name, vm.major));
            *label = view.block_owners.len() as Label;
        }
    }
    Some(witness)
}

/// Which layout the headers have: that of the `OSThread` of the first threads, each a block of its own.
fn layout(vm: &Hotspot, view: &JvmView) -> Known<Layout> {
    let bytes = vm.structs.size_of("OSThread")?;
    let objects = view.threads.iter().filter_map(|thread| thread.object).take(PROBES_MAX);
    let (mut plain, mut marked, mut bare) = (0, 0, 0);
    for object in objects {
        let Ok(block) = vm.addr(object, "JavaThread", "_osthread") else { continue };
        let header = block.minus(HEADER_BYTES);
        let Ok(words) = vm.memory().peek_words(header, 2) else { continue };
        let found = Layout::of([words[0], words[1]], bytes, THREAD_TAG);
        if let Some(layout) = found {
            let evidence = layout.evidence([words[0], words[1]]);
            vm.memory().used(header, evidence.map(u64::to_le_bytes).as_flattened());
        }
        match found {
            Some(Layout::Plain) => plain += 1,
            Some(Layout::Marked) => marked += 1,
            None => bare += 1,
        }
    }
    match plain.max(marked) {
        most if most == 0 || most <= bare => {
            Err(Gap::new("headers of Native Memory Tracking", Why::NotInThisRuntime)
                .hint("the VM's own blocks have no header of a known form before them"))
        }
        most => Ok(if most == marked { Layout::Marked } else { Layout::Plain }),
    }
}

/// The bytes of a range of libjvm; zeros for pages that cannot be read.
fn image_bytes(vm: &Hotspot, range: Range) -> Vec<u8> {
    const PIECE_BYTES: u64 = 64 << 10;
    let mut bytes = vec![0; range.bytes().min(IMAGE_DATA_BYTES_MAX) as usize];
    let mut done = 0;
    while done < bytes.len() {
        let at = range.start.plus(done as u64);
        let end = ((at.plus(1).up_to(PIECE_BYTES).0 - range.start.0) as usize).min(bytes.len());
        read_or_zeros(at, &mut bytes[done..end], |at, into| vm.memory().read_once(at, into).is_ok());
        done = end;
    }
    bytes
}

fn largest(names: &[String], counts: Option<&[NmtCount]>) -> [Bytes; NMT_TAGS_MAX] {
    let mut largest = [0; NMT_TAGS_MAX];
    for (index, (name, largest)) in names.iter().zip(&mut largest).enumerate() {
        *largest = match counts.and_then(|counts| counts.get(index)) {
            Some(count) if count.bytes == 0 => 0,
            Some(count) => count.bytes.saturating_add(GROWN_BYTES_MAX),
            // Nothing but the heap and the stacks themselves has these tags.
            None if matches!(name.as_str(), "Java Heap" | "Thread Stack") => 0,
            None => Bytes::MAX,
        };
    }
    largest
}

impl NmtWitness {
    fn label(&self, tag: u8) -> Label {
        self.labels.get(usize::from(tag)).copied().unwrap_or(UNKNOWN)
    }
}

impl Witness for NmtWitness {
    fn look(&self, payload: Range, head: &Head) -> Look {
        let Some(header) = self.layout.of_block(payload, head) else { return Look::default() };
        let label = self.label(header.tag);
        // Without a canary a block of another library may look like one of ours.
        let largest = self.largest.get(usize::from(header.tag)).copied().unwrap_or(0);
        if label == UNKNOWN || (self.layout == Layout::Plain && header.requested_bytes > largest) {
            return Look::default();
        }
        Look { label, requested_bytes: Some(header.requested_bytes) }
    }

    fn evidence(&self, head: &Head) -> [u64; 2] {
        self.layout.evidence([head[0], head[1]])
    }

    fn marks_blocks(&self) -> bool {
        self.layout == Layout::Marked
    }

    fn next_mark(&self, bytes: &[u8], from: usize) -> Option<Mark> {
        let (at, header) = self.layout.next(bytes, from)?;
        Some(Mark {
            at,
            label: self.label(header.tag),
            header_bytes: HEADER_BYTES,
            requested_bytes: header.requested_bytes,
            footer: FOOTER,
        })
    }
}
