//! Giving blocks to those who reach them first, step by step from all sources at once.

use super::native::Graph;
use super::types::Types;
use crate::jvm::hotspot::owners::index::Index;
use crate::os::Memory;

/// No source, or no type.
pub const NONE: u32 = u32::MAX;

pub struct Spread<'a, 'b> {
    graph: &'a Graph,
    /// The paths of the libraries, as the graph numbers them.
    libraries: Vec<&'a str>,
    pub types: &'a mut Types<'b>,
    pub is_vm: Vec<bool>,
    is_given: Vec<bool>,
    /// Which blocks a source of the last step had the address of.
    pub is_root: Vec<bool>,
    /// By block: the source that reached it, as its step numbers them.
    pub sources: Vec<u32>,
    /// By block: its type, else that of the nearest block that leads to it, else the library that it points into.
    pub kinds: Vec<u32>,
    /// What was given since somebody took this list.
    pub given: Vec<usize>,
}

impl<'a, 'b> Spread<'a, 'b> {
    pub fn new(
        index: &Index,
        graph: &'a Graph,
        libraries: Vec<&'a str>,
        types: &'a mut Types<'b>,
        is_vm: Vec<bool>,
    ) -> Spread<'a, 'b> {
        let blocks = index.len();
        Spread {
            graph,
            libraries,
            types,
            is_vm,
            is_given: vec![false; blocks],
            is_root: vec![false; blocks],
            sources: vec![NONE; blocks],
            kinds: vec![NONE; blocks],
            given: Vec::new(),
        }
    }

    /// From these blocks and their sources, in breadth. Of sources that are as near, the one that comes first has a block. Blocks
    /// of the VM are not given; they lead on where `vm_leads`.
    pub fn from(&mut self, roots: Vec<(usize, usize)>, vm_leads: bool) {
        let mut now: Vec<usize> = Vec::with_capacity(roots.len());
        for (block, source) in roots {
            if self.is_vm[block] && vm_leads {
                self.sources[block] = source as u32;
                now.push(block);
            } else if !self.is_vm[block] && self.give(block, source as u32, NONE) {
                self.is_root[block] = true;
                now.push(block);
            }
        }
        // Pointers far into blocks are followed only where no others lead on.
        let mut passed: Vec<usize> = Vec::new();
        loop {
            while !now.is_empty() {
                let next = self.step(&now, false);
                passed.append(&mut now);
                now = next;
            }
            now = self.step(&passed, true);
            passed.clear();
            if now.is_empty() {
                return;
            }
        }
    }

    /// What these blocks point to.
    fn step(&mut self, blocks: &[usize], is_inner: bool) -> Vec<usize> {
        let (mut next, graph) = (Vec::new(), self.graph);
        for block in blocks {
            let (source, kind) = (self.sources[*block], self.kinds[*block]);
            for to in graph.edges_of(*block, is_inner) {
                if !self.is_vm[to] && self.give(to, source, kind) {
                    next.push(to);
                }
            }
        }
        next
    }

    /// What nothing leads to: first the objects with a type and what they lead to, then all else.
    pub fn rest(&mut self) {
        let left = |spread: &Spread| -> Vec<usize> {
            (0..spread.is_given.len())
                .filter(|block| !spread.is_given[*block] && !spread.is_vm[*block])
                .collect()
        };
        let typed =
            left(self).into_iter().filter(|block| self.types.of_head(self.graph.heads[*block]).is_some());
        let typed: Vec<(usize, usize)> = typed.map(|block| (block, 0)).collect();
        self.from(typed, false);
        let all = left(self).into_iter().map(|block| (block, 0)).collect();
        self.from(all, false);
    }

    /// A recording needs the first words of objects that have a type.
    pub fn keep_heads(&mut self, memory: &dyn Memory, index: &Index) {
        if !memory.keeps_what_is_read() {
            return;
        }
        for (block, head) in self.graph.heads.iter().enumerate() {
            if self.types.of_head(*head).is_some() {
                memory.used(index.payload(block).start, &head.to_le_bytes());
            }
        }
    }

    /// From here on these are the VM's, unless somebody has them.
    pub fn leave_to_vm(&mut self, blocks: &[usize]) {
        for block in blocks.iter().filter(|block| !self.is_given[**block]) {
            self.is_vm[*block] = true;
        }
    }

    fn give(&mut self, block: usize, source: u32, kind: u32) -> bool {
        if std::mem::replace(&mut self.is_given[block], true) {
            return false;
        }
        self.sources[block] = source;
        let own = self.types.of_head(self.graph.heads[block]);
        self.kinds[block] = match (own, kind, self.graph.libraries[block]) {
            (Some(own), ..) => own,
            (None, NONE, place @ 1..) => self.types.of_library(self.libraries[usize::from(place) - 1]),
            _ => kind,
        };
        self.given.push(block);
        true
    }
}
