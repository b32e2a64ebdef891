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
    /// Blocks given since this list was last taken.
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

    /// From here on these are the VM's, unless they have an owner.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::hotspot::heap::test_target::with_maps;
    use crate::jvm::hotspot::owners::index::tests::Listed;

    /// Who has each of eight blocks, of which `vm` are the VM's.
    fn sources(
        pointers: &[(u32, u32, bool)],
        vm: &[usize],
        roots: &[(usize, usize)],
        vm_leads: bool,
    ) -> Vec<u32> {
        let blocks: Vec<(u64, u64)> = (0..8).map(|at| (0x10_0010 + at * 256, 100)).collect();
        let index = Index::with(&Listed::of(&blocks), |_| true);
        let graph = Graph::made_up(index.len(), pointers);
        let mut found = Vec::new();
        with_maps("", |target| {
            let mut types = Types::new(target);
            let is_vm = (0..8).map(|block| vm.contains(&block)).collect();
            let mut spread = Spread::new(&index, &graph, Vec::new(), &mut types, is_vm);
            spread.from(roots.to_vec(), vm_leads);
            let of = |block: usize| if spread.is_given[block] { spread.sources[block] } else { NONE };
            found = (0..8).map(of).collect();
        });
        found
    }

    #[test]
    fn the_nearest_source_has_a_block_and_pointers_far_into_one_come_last() {
        let near = |from, to| (from, to, false);
        // 0 -> 1 -> 2, 3 -> 2: from 0 two steps, from 3 one.
        let found = sources(&[near(0, 1), near(1, 2), near(3, 2)], &[], &[(0, 5), (3, 6)], false);
        assert_eq!(found, [5, 5, 6, 6, NONE, NONE, NONE, NONE]);
        let found = sources(&[(0, 2, true), near(1, 3), near(3, 2)], &[], &[(0, 5), (1, 6)], false);
        assert_eq!(found[2], 6, "two steps at starts come before one far into it");
        assert_eq!(sources(&[(0, 2, true)], &[], &[(0, 5)], false)[2], 5, "where nothing else leads there");
        // A circle ends.
        assert_eq!(sources(&[near(0, 1), near(1, 0)], &[], &[(1, 4)], false)[..2], [4, 4]);
    }

    #[test]
    fn blocks_of_the_vm_are_not_given_and_lead_on_only_for_the_vm() {
        let pointers = [(0, 1, false), (1, 2, false)];
        assert_eq!(sources(&pointers, &[1], &[(0, 5)], false)[..3], [5, NONE, NONE]);
        assert_eq!(sources(&pointers, &[1], &[(1, 7)], false)[..3], [NONE, NONE, NONE]);
        assert_eq!(sources(&pointers, &[1], &[(1, 7)], true)[..3], [NONE, NONE, 7]);
    }
}
