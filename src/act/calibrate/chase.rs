//! Chains of pointers through a mapping, and the time that a step takes.

use super::own::Own;
use super::{LINE, Layout, Pages, clock, order};
use crate::base::{Bytes, Known};
use crate::os::machine::base_page;

/// Chains that are followed at once: with eight, as many loads are under way as a first-level cache has room for about.
const MANY: usize = 8;
/// Steps that are timed at least, so that the clock's own time does not show.
const STEPS_MIN: u64 = 1 << 15;

/// Memory with nodes in it that can be visited.
pub struct Field {
    own: Own,
    layout: Layout,
    /// The lines of the nodes, as visited; a cycle.
    lines: Vec<u32>,
}

impl Field {
    /// Room for `footprint` bytes of pages, or for as many packed lines as these are pages.
    pub fn map(layout: Layout, footprint: Bytes, pages: Pages) -> Known<Field> {
        let bytes = match layout {
            Layout::OneToAPage => footprint,
            Layout::Dense => footprint / base_page() * order::DENSE_LINES * LINE,
        };
        Ok(Field { own: Own::map(bytes, pages)?, layout, lines: Vec::new() })
    }

    /// Links the nodes of the first `footprint` bytes.
    pub fn link(&mut self, footprint: Bytes) {
        let room = match self.layout {
            Layout::OneToAPage => self.own.bytes() / base_page(),
            Layout::Dense => self.own.bytes() / (order::DENSE_LINES * LINE),
        };
        self.lines = order::lines(self.layout, (footprint / base_page()).min(room) as usize);
        for (index, line) in self.lines.iter().enumerate() {
            let next = self.lines[(index + 1) % self.lines.len()];
            // SAFETY: `lines` gives lines within the room that was checked above, and each is aligned to a word.
            unsafe { self.node(*line).write(self.node(next) as usize) };
        }
    }

    fn node(&self, line: u32) -> *mut usize {
        self.own.start().wrapping_add((line as u64 * LINE) as usize).cast()
    }

    /// Nanoseconds of a step when `chains` (1 or 8) are followed, after a lap that warms the caches. `None` before `link`.
    pub fn ns_per_step(&self, chains: u32) -> Option<f64> {
        if self.lines.is_empty() {
            return None;
        }
        self.follow::<MANY>(self.lines.len() as u64);
        let steps = (self.lines.len() as u64).max(STEPS_MIN);
        Some(match chains {
            1 => self.follow::<1>(steps),
            _ => self.follow::<MANY>(steps),
        })
    }

    /// How many steps one `ns_per_step` takes, the ones that only warm included.
    pub fn steps(&self) -> u64 {
        let lap = self.lines.len() as u64;
        lap + lap.max(STEPS_MIN)
    }

    /// The chains start at equal distances on the one cycle, so that together they visit every node once a lap.
    fn follow<const CHAINS: usize>(&self, steps: u64) -> f64 {
        let start = |chain: usize| self.node(self.lines[chain * self.lines.len() / CHAINS]) as *const usize;
        let mut at: [*const usize; CHAINS] = std::array::from_fn(start);
        let turns = (steps / CHAINS as u64).max(1);
        let before = clock::thread_ns();
        for _ in 0..turns {
            for node in &mut at {
                // SAFETY: every node holds the address of a node of this field (`link`).
                *node = unsafe { **node } as *const usize;
            }
        }
        let passed = clock::thread_ns().saturating_sub(before);
        std::hint::black_box(at);
        passed as f64 / (turns * CHAINS as u64) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_form_one_cycle_through_all_pages() {
        let mut field = Field::map(Layout::OneToAPage, 4 << 20, Pages::Small).expect("memory");
        assert_eq!(field.ns_per_step(1), None, "nothing is linked");
        field.link(1 << 20);
        let first = field.node(field.lines[0]) as usize;
        let (mut at, mut steps) = (first, 0);
        loop {
            // SAFETY: a node holds the address of a node.
            at = unsafe { *(at as *const usize) };
            steps += 1;
            if at == first {
                break;
            }
        }
        assert_eq!(steps, 256);
        assert!(field.ns_per_step(1).is_some_and(|ns| ns > 0.0) && field.ns_per_step(8).is_some());
    }

    #[test]
    fn a_field_is_never_linked_beyond_its_end() {
        let mut field = Field::map(Layout::Dense, 4 << 20, Pages::Small).expect("memory");
        field.link(1 << 40);
        assert_eq!(field.lines.len() as u64, field.own.bytes() / (order::DENSE_LINES * LINE));
    }
}
