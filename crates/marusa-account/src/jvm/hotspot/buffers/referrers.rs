//! Who refers to a buffer: from the buffer's object against the direction of references, a pass over the heap for each step. What
//! only carries a reference on (arrays, collections, views of a buffer, the JDK's and Netty's own wrappers) is passed; the first
//! field of another class is the holder, of several as near the one that holds the most.

use super::heads::Heads;
use super::moves::Moves;
use super::oops::Oops;
use super::scan::{Hit, What, scan};
use super::targets::Targets;
use super::types::{self, Types};
use crate::base::{Addr, Range};
use crate::jvm::hotspot::holders::classes::{FieldsOf, Form};
use crate::os::Target;
use std::collections::{HashMap, HashSet, VecDeque};

const STEPS_MAX: usize = 8;
const NODES_MAX: usize = 2_000_000;
const EDGES_MAX: usize = 8_000_000;
/// What cleans up after an object, or finds it without keeping it.
const IGNORED: [&str; 6] = [
    "jdk.internal.ref.",
    "sun.misc.Cleaner",
    "java.nio.BufferCleaner",
    "java.lang.ref.Finalizer",
    "java.lang.ref.PhantomReference",
    "sun.nio.Cleaner",
];
const IGNORED_FIELDS: [&str; 2] = ["referent", "discovered"];
const PASSED: [&str; 7] = [
    "java.util.",
    "java.nio.",
    "jdk.internal.foreign.",
    "java.lang.ThreadLocal",
    "java.lang.ref.",
    "io.netty.buffer.",
    "io.netty.util.",
];
/// The passed classes that hold: the classes whose names begin and end so, except other ways to the same memory.
const POOLS: [(&str, &str); 2] =
    [("io.netty.buffer.PoolChunk", "PoolChunk"), ("io.netty.buffer.AdaptivePoolingAllocator$", "Chunk")];
const POOL_OTHERS: [&str; 2] = ["io.netty.buffer.PoolChunk.base", "io.netty.buffer.PoolChunk.cleanable"];

/// The meaning of a field for the object that it refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Ignored,
    Passed(Step),
    Held(Step),
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Step {
    /// The name of the field.
    name: u32,
    /// A field of type `Object` in garbage that ZGC left behind may seem to refer to what lies there now.
    is_uncertain: bool,
}

/// The holder of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// By its place in `Referrers::names`.
    pub name: u32,
    /// The object whose field it is, as a plain address.
    pub object: u64,
}

struct Node {
    at: u64,
    /// The class, for objects that were met on the way.
    class: Addr,
    held: Vec<(Holder, Evidence)>,
}

/// A reference that is passed.
struct Edge {
    child: u32,
    parent: u32,
    name: u32,
    evidence: Evidence,
}

/// How good the evidence of a reference is, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    Certain,
    /// It may be one to another object that was there before.
    Uncertain,
    /// The object that has it is garbage.
    Dead,
}

/// Objects, and what refers to them.
pub struct Referrers<'a> {
    fields: &'a FieldsOf<'a>,
    types: Types<'a>,
    oops: Oops,
    nodes: Vec<Node>,
    by_address: HashMap<u64, u32>,
    edges: Vec<Edge>,
    pub names: Vec<String>,
    name_places: HashMap<String, u32>,
    /// By the place of the field, and the class that it refers to.
    ways: HashMap<(Addr, u32, bool, Addr), Way>,
    pub is_cut: bool,
}

impl<'a> Referrers<'a> {
    pub fn new(fields: &'a FieldsOf<'a>, types: Types<'a>, oops: Oops) -> Referrers<'a> {
        Referrers {
            fields,
            types,
            oops,
            nodes: Vec::new(),
            by_address: HashMap::new(),
            edges: Vec::new(),
            names: Vec::new(),
            name_places: HashMap::new(),
            ways: HashMap::new(),
            is_cut: false,
        }
    }

    /// The number of the object at this plain address.
    pub fn add(&mut self, at: u64, class: Addr) -> u32 {
        let next = self.nodes.len() as u32;
        *self.by_address.entry(at).or_insert_with(|| {
            self.nodes.push(Node { at, class, held: Vec::new() });
            next
        })
    }

    /// Follows references back from all objects that were added.
    pub fn climb(
        &mut self,
        target: &Target,
        ranges: &[Range],
        (heads, moves): (&Heads, &Moves),
        is_dead: &dyn Fn(Addr) -> bool,
    ) {
        let mut from = 0;
        for _ in 0..STEPS_MAX {
            let nodes = || self.nodes[from..].iter().zip(from as u32..);
            let keys: Vec<(u64, u32)> = nodes().map(|(node, number)| (node.at, number)).collect();
            if keys.is_empty() {
                return;
            }
            let moved = std::array::from_fn(|generation| {
                let before = nodes().flat_map(|(node, number)| {
                    let before = moves.before(node.at).iter().filter(|before| before.1 == generation);
                    before.map(move |(at, _)| (*at, number))
                });
                Targets::new(&before.collect::<Vec<(u64, u32)>>())
            });
            let targets = Targets::new(&keys);
            from = self.nodes.len();
            let what = What { heads, oops: self.oops, targets: &targets, moved: &moved, moves };
            let seen = scan(target, ranges, &what);
            self.is_cut |= seen.is_cut;
            self.take(&seen.hits, is_dead);
            if self.is_cut {
                return;
            }
        }
    }

    fn take(&mut self, hits: &[Hit], is_dead: &dyn Fn(Addr) -> bool) {
        let ways: Vec<Way> = hits.iter().map(|hit| self.way(hit)).collect();
        let evidence = |hit: &Hit, step: &Step| match hit.is_uncertain || step.is_uncertain {
            _ if is_dead(hit.head) => Evidence::Dead,
            true => Evidence::Uncertain,
            false => Evidence::Certain,
        };
        for (hit, way) in hits.iter().zip(&ways) {
            if let Way::Held(step) = way {
                let holder = Holder { name: step.name, object: self.oops.plain(hit.head) };
                let holder = (holder, evidence(hit, step));
                let held = &mut self.nodes[hit.target as usize].held;
                if !held.contains(&holder) {
                    held.push(holder);
                }
            }
        }
        for (hit, way) in hits.iter().zip(&ways) {
            let Way::Passed(step) = way else { continue };
            // Nearer holders are there and certain.
            if self.nodes[hit.target as usize].held.iter().any(|(_, evidence)| *evidence == Evidence::Certain)
            {
                continue;
            }
            if self.nodes.len() >= NODES_MAX || self.edges.len() >= EDGES_MAX {
                self.is_cut = true;
                return;
            }
            let parent = self.add(self.oops.plain(hit.head), hit.class);
            if parent != hit.target {
                let evidence = evidence(hit, step);
                self.edges.push(Edge { child: hit.target, parent, name: step.name, evidence });
            }
        }
    }

    fn way(&mut self, hit: &Hit) -> Way {
        let to = self.nodes[hit.target as usize].class;
        let key = match hit.form {
            Form::Mirror => (hit.head, hit.offset, true, to),
            Form::Objects | Form::Longs => (hit.class, 0, false, to),
            Form::Instance(_) => (hit.class, hit.offset, false, to),
        };
        if let Some(way) = self.ways.get(&key) {
            return *way;
        }
        let way = self.new_way(hit, to);
        self.ways.insert(key, way);
        way
    }

    fn new_way(&mut self, hit: &Hit, to: Addr) -> Way {
        let field = match hit.form {
            Form::Mirror => self.fields.of_static(hit.head, hit.offset),
            Form::Objects => self.fields.name(hit.class).map(|name| (types::shown(&name), name)),
            Form::Instance(_) => self.fields.of_instance(hit.class, hit.offset),
            Form::Longs => None,
        };
        let Some((name, signature)) = field else { return Way::Ignored };
        let signature = if hit.form == Form::Objects { types::element_of(&signature) } else { &signature };
        if !self.types.fits(signature, to) {
            return Way::Ignored;
        }
        let is_static = hit.form == Form::Mirror;
        let kind = kind_of(&name, hit.form == Form::Objects, is_static);
        let is_uncertain = self.oops.may_be_stale() && !is_static && Types::fits_all(signature);
        let step = Step { name: self.name(name), is_uncertain };
        match kind {
            Kind::Ignored => Way::Ignored,
            Kind::Passed => Way::Passed(step),
            Kind::Held => Way::Held(step),
        }
    }

    fn name(&mut self, name: String) -> u32 {
        let next = self.names.len() as u32;
        *self.name_places.entry(name.clone()).or_insert_with(|| {
            self.names.push(name);
            next
        })
    }

    /// For each object that was added, the nearest holder.
    pub fn holders(&self) -> Vec<Option<Holder>> {
        let mut counts = vec![0_u64; self.names.len()];
        for node in &self.nodes {
            let names: HashSet<u32> = node.held.iter().map(|(holder, _)| holder.name).collect();
            names.into_iter().for_each(|name| counts[name as usize] += 1);
        }
        let rank = |holder: &Holder| {
            let count = counts[holder.name as usize];
            (std::cmp::Reverse(count), &self.names[holder.name as usize], holder.object)
        };
        let mut found: Vec<Option<Holder>> = vec![None; self.nodes.len()];
        for worst in [Evidence::Certain, Evidence::Uncertain, Evidence::Dead] {
            for (node, found) in self.nodes.iter().zip(&mut found) {
                let held = node.held.iter().filter(|(_, evidence)| *evidence <= worst);
                *found = found.or(held.map(|(holder, _)| *holder).min_by_key(rank));
            }
            let mut sources: Vec<u32> =
                (0..self.nodes.len() as u32).filter(|node| found[*node as usize].is_some()).collect();
            sources.sort_by_key(|node| found[*node as usize].as_ref().map(rank));
            self.down(sources, worst, &mut found);
        }
        // Where nothing but what is passed leads to it, that is the holder.
        for edge in &self.edges {
            let object = self.nodes[edge.parent as usize].at;
            found[edge.child as usize].get_or_insert(Holder { name: edge.name, object });
        }
        found
    }

    /// For each object, what is said of the nearest one that leads to it, has a class of such a name and is one of those.
    pub fn below<T: Copy>(
        &self,
        of_class: impl Fn(&str) -> Option<T>,
        is_it: impl Fn(u64) -> bool,
    ) -> Vec<Option<T>> {
        let mut classes: HashMap<Addr, Option<T>> = HashMap::new();
        let mut of = |class: Addr| {
            *classes.entry(class).or_insert_with(|| self.fields.name(class).and_then(|name| of_class(&name)))
        };
        let of = |node: &Node| of(node.class).filter(|_| is_it(node.at));
        let mut found: Vec<Option<T>> = self.nodes.iter().map(of).collect();
        let sources = (0..self.nodes.len() as u32).filter(|node| found[*node as usize].is_some()).collect();
        self.down(sources, Evidence::Dead, &mut found);
        found
    }

    /// What is known of the sources is known of what they lead to, in breadth.
    fn down<T: Copy>(&self, sources: Vec<u32>, worst: Evidence, found: &mut [Option<T>]) {
        let edges = self.edges.iter().filter(|edge| edge.evidence <= worst);
        let mut edges: Vec<(u32, u32)> = edges.map(|edge| (edge.parent, edge.child)).collect();
        edges.sort_unstable();
        let mut todo: VecDeque<u32> = sources.into();
        while let Some(parent) = todo.pop_front() {
            let first = edges.partition_point(|edge| edge.0 < parent);
            for (_, child) in edges[first..].iter().take_while(|edge| edge.0 == parent) {
                if found[*child as usize].is_none() {
                    found[*child as usize] = found[parent as usize];
                    todo.push_back(*child);
                }
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Ignored,
    Passed,
    Held,
}

/// `name`: "class.field", or the class of an array.
fn kind_of(name: &str, is_array: bool, is_static: bool) -> Kind {
    let (class, field) = name.rsplit_once('.').unwrap_or((name, name));
    let is_pool = POOLS.iter().any(|(start, end)| class.starts_with(start) && class.ends_with(end));
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if starts(&IGNORED) || POOL_OTHERS.contains(&name) || IGNORED_FIELDS.contains(&field) && !is_static {
        Kind::Ignored
    } else if is_array {
        Kind::Passed
    } else if is_static || is_pool || !starts(&PASSED) {
        Kind::Held
    } else {
        Kind::Passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_are_passed_and_fields_of_programs_hold() {
        let kind = |name| kind_of(name, false, false);
        assert_eq!(kind("com.app.Cache.buffer"), Kind::Held);
        assert_eq!(kind("java.util.HashMap$Node.value"), Kind::Passed);
        assert_eq!(kind("java.nio.DirectByteBuffer.att"), Kind::Passed);
        assert_eq!(kind("sun.nio.ch.Util$BufferCache.buffers"), Kind::Held);
        assert_eq!(kind("jdk.internal.ref.Cleaner.thunk"), Kind::Ignored);
        assert_eq!(kind("java.lang.ref.WeakReference.referent"), Kind::Ignored);
        assert_eq!(kind("io.netty.buffer.PoolChunk.memory"), Kind::Held);
        assert_eq!(kind("io.netty.buffer.AdaptivePoolingAllocator$SizeClassedChunk.delegate"), Kind::Held);
        assert_eq!(kind("io.netty.buffer.AdaptivePoolingAllocator$AdaptiveByteBuf.tmpNioBuf"), Kind::Passed);
        assert_eq!(kind("io.netty.buffer.PooledUnsafeDirectByteBuf.memory"), Kind::Passed);
        assert_eq!(kind_of("java.util.Pool.shared", false, true), Kind::Held, "a static field");
        assert_eq!(kind_of("[Lcom.app.Buffer;", true, false), Kind::Passed);
    }
}
