use super::*;
use crate::base::blocks::Labelled;

/// Blocks for tests: (start, bytes).
pub struct Listed(pub Vec<Block>);

impl Listed {
    pub fn of(blocks: &[(u64, u64)]) -> Listed {
        let block =
            |(at, bytes): &(u64, u64)| Block { payload: Range::sized(Addr(*at), *bytes), label: UNKNOWN };
        Listed(blocks.iter().map(block).collect())
    }
}

impl Blocks for Listed {
    fn each(&self, visit: &mut dyn FnMut(Block) -> bool) {
        self.0.iter().all(|block| visit(*block));
    }
}

impl Labelled for Listed {
    fn label(&mut self, payload: Addr, label: Label) {
        if let Some(block) = self.0.iter_mut().find(|block| block.payload.start == payload) {
            block.label = label;
        }
    }
}

#[test]
fn a_block_is_found_by_its_start_and_by_what_lies_in_it() {
    let mut blocks: Vec<(u64, u64)> = (0..1000).map(|n| (0x7f00_0000_0010 + n * 48, 40)).collect();
    blocks.extend([(0x7f12_3400_0010, 1 << 20), (0x7f12_3600_0010, 5 << 32)]);
    let index = Index::of(&Listed::of(&blocks));
    for (place, (at, _)) in blocks.iter().enumerate() {
        assert_eq!(index.at_start(*at), Some(place));
        assert_eq!(index.at_start(at + 16), None);
        assert_eq!(index.holding(at + 39), Some(place));
    }
    assert_eq!(index.holding(0x7f00_0000_0010 + 40), None);
    for word in [0, 16, 0x7f00_0000_0000, 0x7f11_0000_0010, 0x8000_0000_0000, !15] {
        assert_eq!((index.at_start(word), index.holding(word)), (None, None), "{word:#x}");
    }
    assert_eq!(index.payload(1001).bytes(), u64::from(u32::MAX));
    assert_eq!(
        index.holding(0x7f12_3600_0010 + (1 << 30)),
        Some(1001),
        "slots behind the one where it starts"
    );
}

#[test]
fn blocks_that_have_an_owner_are_left_out_and_chunks_that_were_seen_are_not() {
    let mut listed = Listed::of(&[(0x1000, 24), (0x1020, 24)]);
    listed.label(Addr(0x1000), 3);
    listed.label(Addr(0x1020), SEEN);
    let index = Index::of(&listed);
    assert_eq!(index.seen(), [0]);
    assert_eq!((index.len(), index.at_start(0x1000), index.at_start(0x1020)), (1, None, Some(0)));
}
