//! Owners of malloc's blocks without Native Memory Tracking, measured against it. A JVM that tracks is read as if it did
//! not: the owners see each block without its header, and afterwards the headers say which of them were right.

use crate::common::*;
use marusa::alloc;
use marusa::base::blocks::{Block, Blocks, Label, Labelled, NoWitness, UNKNOWN, Witness};
use marusa::base::{Addr, Known, Range};
use marusa::jvm::hotspot;
use marusa::os::Target;
use marusa::os::process::Process;
use marusa::snapshot::take;
use std::collections::{BTreeMap, HashMap};

/// Before each block of the VM (src/hotspot/share/services/mallocHeader.hpp; nmt/ from JDK 21).
const HEADER_BYTES: u64 = 16;
const LABELLED_SHARE_MIN: f64 = 0.70;
const AGREED_SHARE_MIN: f64 = 0.95;
/// What no header marks: libraries.
const NO_TAG: &str = "none (libraries)";

/// Blocks as they would be without headers.
struct Bare<'a> {
    heap: &'a mut alloc::Heap,
    /// By the start of the whole payload: what the VM asked for, and NMT's tag.
    tracked: HashMap<Addr, (u64, String)>,
}

impl Bare<'_> {
    fn bare(&self, block: Block) -> Block {
        match self.tracked.get(&block.payload.start) {
            Some((bytes, _)) => {
                // As malloc rounds: whole units of 16 bytes, of which 8 are malloc's.
                let rounded = ((bytes + 8 + 15) & !15).max(32) - 8;
                Block { payload: Range::sized(block.payload.start.plus(HEADER_BYTES), rounded), ..block }
            }
            None => block,
        }
    }
}

impl Blocks for Bare<'_> {
    fn each(&self, visit: &mut dyn FnMut(Block) -> bool) {
        self.heap.each(&mut |block| visit(self.bare(block)));
    }
}

impl Labelled for Bare<'_> {
    fn label(&mut self, payload: Addr, label: Label) {
        let whole = payload.minus(HEADER_BYTES);
        let start = if self.tracked.contains_key(&whole) { whole } else { payload };
        self.heap.label(start, label);
    }
}

/// Bytes of one tag, and those of them that got an owner with that tag, or with another.
#[derive(Default)]
struct Row {
    bytes: u64,
    right: u64,
    wrong: u64,
}

#[derive(Default)]
struct Measured {
    tags: BTreeMap<String, Row>,
    /// Owner by owner, bytes by tag.
    owners: BTreeMap<String, BTreeMap<String, u64>>,
    label_ms: f64,
}

impl Measured {
    fn sum(&self, of: impl Fn(&Row) -> u64) -> u64 {
        self.tags.values().map(of).sum()
    }
    fn labelled_share(&self) -> f64 {
        self.sum(|row| row.right + row.wrong) as f64 / self.sum(|row| row.bytes).max(1) as f64
    }
    fn agreed_share(&self) -> f64 {
        self.sum(|row| row.right) as f64 / self.sum(|row| row.right + row.wrong).max(1) as f64
    }

    fn print(&self, name: &str) {
        let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        let (bytes, labelled, agreed) =
            (self.sum(|row| row.bytes), self.labelled_share() * 100.0, self.agreed_share() * 100.0);
        println!(
            "{name}: {bytes} bytes in use, {labelled:.1} % have an owner, {agreed:.2} % of these agree, {:.1} ms",
            self.label_ms
        );
        let mut rows: Vec<_> = self.tags.iter().collect();
        rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.bytes));
        println!("| NMT's tag | bytes | same owner | another owner |\n|---|---:|---:|---:|");
        for (tag, row) in rows {
            let (right, wrong) = (percent(row.right, row.bytes), percent(row.wrong, row.bytes));
            println!("| {tag} | {} | {right:.1} % | {wrong:.1} % |", row.bytes);
        }
        for (owner, tags) in &self.owners {
            println!("  {owner}: {tags:?}");
        }
    }
}

/// Labels the blocks of a JVM that runs with NMT, and asks the headers.
fn measure(pid: i32) -> Known<Measured> {
    let process = Process::open(pid).expect("the process can be opened");
    take::with_target(&process, |taking, memory, symbols| {
        let target = Target { view: &taking.os, memory, symbols };
        let opened = hotspot::open(&target)?;
        let mut view = hotspot::read(&target, &opened);
        let vm = opened.vm(&target);
        let mut owned: Vec<Range> = view.extents.iter().map(|extent| extent.range).collect();
        owned.sort();
        let mut heap = alloc::read(&target, &marusa::base::joined(owned), &NoWitness)?;
        let witness = hotspot::owners::witness(&vm, &mut view);
        let tracked = tracked(&target, &heap, witness.as_ref(), &view.block_owners);
        view.block_owners.clear();
        let mut bare = Bare { heap: &mut heap, tracked };
        let started = std::time::Instant::now();
        hotspot::owners::label(&vm, &mut view, &mut bare);
        let mut measured =
            Measured { label_ms: started.elapsed().as_secs_f64() * 1e3, ..Measured::default() };
        let tracked = std::mem::take(&mut bare.tracked);
        heap.each(&mut |block| {
            let (bytes, tag) = match tracked.get(&block.payload.start) {
                Some((bytes, tag)) => (*bytes, tag.as_str()),
                None => (block.payload.bytes(), NO_TAG),
            };
            let row = measured.tags.entry(tag.to_string()).or_default();
            row.bytes += bytes;
            if block.label != UNKNOWN {
                let owner = &view.block_owners[block.label as usize - 1];
                let is_right = owner.nmt_tag.as_deref().unwrap_or(NO_TAG) == tag;
                *(if is_right { &mut row.right } else { &mut row.wrong }) += bytes;
                let name = format!("{} ({:?})", owner.part, owner.how);
                *measured.owners.entry(name).or_default().entry(tag.to_string()).or_default() += bytes;
            }
            true
        });
        Ok(measured)
    })
}

/// What the headers say.
fn tracked(
    target: &Target,
    heap: &alloc::Heap,
    witness: &dyn Witness,
    owners: &[marusa::jvm::types::BlockOwner],
) -> HashMap<Addr, (u64, String)> {
    let mut tracked = HashMap::new();
    heap.each(&mut |block| {
        let mut bytes = [0; 32];
        let length = (block.payload.bytes() as usize).min(bytes.len());
        if target.memory.read_once(block.payload.start, &mut bytes[..length]).is_ok() {
            let word = |at: usize| bytes[at * 8..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            let look = witness.look(block.payload, &[word(0), word(1), word(2), word(3)]);
            if let (Some(bytes), Some(owner)) =
                (look.requested_bytes, owners.get((look.label as usize).wrapping_sub(1)))
            {
                let tag = owner.nmt_tag.clone().unwrap_or_default();
                tracked.insert(block.payload.start, (bytes, tag));
            }
        }
        true
    });
    tracked
}

#[test]
fn owners_agree_with_the_tags_of_nmt() {
    let mut broken = Vec::new();
    for (jdk, gc) in
        [("11", "g1"), ("17", "g1"), ("17", "serial"), ("21", "g1"), ("25", "g1"), ("25", "parallel")]
    {
        let options = ["-Xmx256m", "-XX:NativeMemoryTracking=summary"];
        let load = ["quiet=1", "heap=60m", "threads=20", "classes=3000", "jit=1", "deflate=1", "direct=8m"];
        let Some(jvm) = Jvm::under_load(&row(jdk, gc), &options, &load) else { continue };
        // JDK 11 frees all of its pooled chunks at once, 35 MB here. Between the walk and the reading of the blocks they would
        // count as in use, and without an owner.
        signal(jvm.pid, libc::SIGSTOP);
        std::thread::sleep(std::time::Duration::from_millis(50));
        let measured = measure(jvm.pid);
        signal(jvm.pid, libc::SIGCONT);
        let measured = measured.expect("the JVM can be read");
        measured.print(&format!("jdk {jdk} {gc}"));
        let (labelled, agreed) = (measured.labelled_share(), measured.agreed_share());
        if labelled < LABELLED_SHARE_MIN || agreed < AGREED_SHARE_MIN {
            broken.push(format!("jdk {jdk} {gc}: {labelled:.3} labelled, {agreed:.3} of it agree"));
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn direct_buffers_are_known_without_nmt() {
    let wanted = 10_000.0 * f64::from(32 << 10);
    for jdk in ["8", "11", "17", "21", "25", "26", "28"] {
        let options = ["-Xmx32m", "-XX:MaxDirectMemorySize=400m"];
        let program = ["marusa.Direct", "count=10000", "size=32k"];
        let Some(java) = java(jdk) else { continue };
        let jvm = Jvm::start(&java, &options, &program);
        let map = map_json(jvm.pid);
        let buffers = &area(&map, "direct_buffers")["in_use_bytes"];
        let share = buffers.as_u64().unwrap_or(0) as f64 / wanted;
        println!("jdk {jdk}: {share:.4} of the direct buffers");
        assert!((0.99..=1.01).contains(&share), "jdk {jdk}: {share} of them: {:#}", map["malloc"]["owners"]);
    }
}

/// `scripts/owners` asks this of a JVM of its own.
#[test]
#[ignore = "needs MARUSA_OWNERS_PID, a JVM with NMT on"]
fn owners_of_a_given_jvm() {
    // `make test-long` runs the ignored tests too, and has no such JVM.
    let Ok(pid) = std::env::var("MARUSA_OWNERS_PID") else { return println!("no MARUSA_OWNERS_PID") };
    let pid = pid.parse().expect("a pid");
    measure(pid).expect("the JVM can be read").print(&format!("pid {pid}"));
}
