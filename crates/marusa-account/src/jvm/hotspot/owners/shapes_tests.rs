use super::super::evidence;
use super::super::index::tests::Listed;
use super::*;

const AT: u64 = 0x7f00_0000_0010;

fn index() -> Index {
    Index::of(&Listed::of(&[(AT, 1024), (AT + 2048, 1024)]))
}

fn symbol(is_in_node: bool) -> Shapes {
    let fields = SymbolFields { length: 4, references: 0, body: 6, is_in_node };
    Shapes { symbol: Some(fields), ..Shapes::default() }
}

/// The shape of a block that malloc gave for these bytes.
fn shape(shapes: &Shapes, mut bytes: Vec<u8>) -> Shape {
    let rounded = ((bytes.len() + 8 + 15) & !15).max(32) - 8;
    bytes.resize(rounded, 0);
    shapes.of(Range::sized(Addr(AT), rounded as u64), &bytes, &index())
}

#[test]
fn a_symbol_is_as_long_as_its_block() {
    // JDK 17: hash and references, length, text; in whole words.
    let text = |length: u8| [&[1, 0, 7, 7, length, 0], b"java/lang/Object$Inner".as_slice()].concat();
    assert_eq!(shape(&symbol(false), text(22)), Shape::Symbol);
    assert_eq!(shape(&symbol(false), text(60)), Shape::None);
    assert_eq!(shape(&symbol(false), [text(2), vec![0; 40]].concat()), Shape::None);
    // JDK 21: behind the link, and with the length counted twice.
    let node = [&[0; 8], text(22).as_slice()].concat();
    assert_eq!(shape(&symbol(true), node.clone()), Shape::SymbolNode);
    assert_eq!(shape(&symbol(true), [node, vec![0; 28]].concat()), Shape::SymbolNode);
}

#[test]
fn a_chunk_of_an_arena_says_its_length() {
    let chunk = |next: u64, length: u64| {
        [next.to_le_bytes(), length.to_le_bytes()].concat().into_iter().chain([7; 976]).collect::<Vec<u8>>()
    };
    assert_eq!(shape(&Shapes::default(), chunk(AT + 2048, 976)), Shape::Chunk);
    assert_eq!(shape(&Shapes::default(), chunk(AT + 2056, 976)), Shape::None, "no block may start there");
    assert_eq!(shape(&Shapes::default(), chunk(0, 900)), Shape::None);
}

#[test]
fn oop_maps_count_their_bytes() {
    let maps = |size: u32| -> Vec<u8> {
        [2, size, 10, 0, 20, 4, 9, 9].iter().flat_map(|number: &u32| number.to_le_bytes()).collect()
    };
    assert_eq!(shape(&Shapes::default(), maps(32)), Shape::OopMaps);
    assert_eq!(shape(&Shapes::default(), maps(128)), Shape::None);
}

#[test]
fn what_stands_for_words_of_a_recording_looks_as_it_must() {
    let shapes = Shapes::default();
    assert_eq!(shape(&shapes, evidence::LOCK_NAME.to_vec()), Shape::LockName);
    let node = |link: [u8; 8]| [link, (AT + 8).to_le_bytes()].concat();
    assert_eq!(shape(&shapes, node([0; 8])), Shape::InnerNode);
    assert_eq!(shape(&shapes, node(evidence::NOTHING)), Shape::None);
}

#[test]
fn hostile_blocks_have_no_shape() {
    let shapes = Shapes { buffers: vec![u64::MAX / 16, 0], ..symbol(true) };
    for byte in [0, 1, 0x7f, 0xff] {
        for length in [0, 1, 8, 24, 40, 136, 312, 632, 1000] {
            assert_eq!(shape(&shapes, vec![byte; length]), Shape::None, "{length} times {byte}");
        }
    }
}
