//! A made-up heap of malloc with damage: the input is the number of words to overwrite, those (place and value), and one
//! byte for each chunk. Whatever it says, the walk ends and its books balance.

use marusa::alloc::glibc::synthetic::{START, Synthetic, check_laws};
use marusa::base::blocks::NoWitness;

const DAMAGE_BYTES: usize = 6;

pub fn run(bytes: &[u8]) {
    let [how, rest @ ..] = bytes else { return };
    let (damage, chunks) = rest.split_at((*how as usize / 2 * DAMAGE_BYTES).min(rest.len()));
    let mut heap = Synthetic::of(chunks);
    heap.is_bulk = how & 1 == 0;
    for step in damage.as_chunks::<DAMAGE_BYTES>().0 {
        let at = START + u64::from(u32::from_le_bytes([step[0], step[1], step[2], 0])) % (1 << 17) * 8;
        let number = u64::from(u16::from_le_bytes([step[4], step[5]]));
        let value = match step[3] % 6 {
            0 => number,
            1 => number.wrapping_neg(),
            2 => START + number * 16,
            3 => (START + number * 16) ^ at >> 12,
            4 => 1 << (number % 64),
            _ => u64::MAX,
        };
        heap.put(at, &[value]);
    }
    let view = heap.view();
    check_laws(Synthetic::walked(&heap, &view, &NoWitness));
}
