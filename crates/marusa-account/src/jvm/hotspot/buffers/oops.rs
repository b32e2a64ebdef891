//! What a reference in the Java heap leads to. Addresses are made *plain*: of the three at which the older ZGC maps its heap, the
//! offset that they share; so an object has one plain address wherever it is seen.
//!
//! src/hotspot/cpu/{x86,aarch64}/gc/z/zAddress_*.hpp, JDK 21: the colour of generational ZGC lies below the address. On x86-64 one
//! of the bits 12 to 15 is set, and the address begins above it; on aarch64 it begins at bit 16.

use crate::base::{Addr, Known};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::heap::z_heap::Z;
use crate::jvm::hotspot::objects::packing;
use crate::jvm::types::Gc;
use crate::os::machine::is_aarch64;

const Z_COLOUR_FIRST: u32 = 12;
const Z_COLOURS: u64 = 0xf;
const Z_SHIFT_AARCH64: u32 = 16;
/// "Remembered" of generational ZGC; both bits: an old object's reference to an old one.
const Z_REMEMBERED: u64 = 0x30;
/// The ones that move objects at times of their own: generational ZGC's old and young one.
pub const GENERATIONS: usize = 2;
const OLD: usize = 0;
const YOUNG: usize = 1;
/// No address is higher.
const ADDRESS_BITS: u32 = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oops {
    Whole,
    /// Base and shift.
    Narrow(u64, u32),
    /// The older ZGC: the bits of the offset, and those of a reference that may be stale.
    Offset(u64, u64),
    /// Generational ZGC: the bits of a reference that may be stale.
    Coloured(u64),
}

impl Oops {
    pub fn read(vm: &Hotspot, gc: Gc) -> Known<Oops> {
        if vm.flags.is_on("UseCompressedOops") {
            let (base, shift) = packing(vm, "CompressedOops", "_narrow_oop")?;
            return Ok(Oops::Narrow(base, shift));
        }
        if !matches!(gc, Gc::Z | Gc::ZGenerational) {
            return Ok(Oops::Whole);
        }
        let z = Z::read(vm)?;
        Ok(match z.generational {
            true => Oops::Coloured(z.global(vm, "PointerLoadBadMask")?),
            false => Oops::Offset(z.offset_max - 1, z.global(vm, "AddressWeakBadMask")?),
        })
    }

    /// Bytes of a reference.
    pub fn bytes(self) -> usize {
        if matches!(self, Oops::Narrow(..)) { 4 } else { 8 }
    }

    /// Whether references may lead to where objects were before they moved.
    pub fn may_be_stale(self) -> bool {
        matches!(self, Oops::Offset(..) | Oops::Coloured(_))
    }

    /// Whether this one may.
    pub fn is_stale(self, reference: u64) -> bool {
        match self {
            Oops::Offset(_, bad) | Oops::Coloured(bad) => reference & bad != 0,
            Oops::Whole | Oops::Narrow(..) => false,
        }
    }

    /// The generations whose moves a stale reference may not know of yet, the likeliest first; none where it is not stale.
    ///
    /// src/hotspot/share/gc/z/{zAddress.cpp,zBarrier.inline.hpp}, JDK 21 and 25: of the number of the colour's bit, 1 changes when
    /// young objects are moved, 2 when old ones are (`flip_young_relocate_start`); `ZBarrier::remap_generation`.
    #[inline(always)]
    pub fn moved_with(self, reference: u64) -> impl Iterator<Item = usize> {
        let (first, second) = match self {
            Oops::Offset(..) => (self.is_stale(reference).then_some(OLD), None),
            Oops::Coloured(bad) if self.is_stale(reference) => {
                let bit = |colours: u64| (colours >> Z_COLOUR_FIRST & Z_COLOURS).trailing_zeros();
                match bit(reference) ^ bit(!bad) {
                    1 => (Some(YOUNG), None),
                    2 => (Some(OLD), None),
                    _ if reference & Z_REMEMBERED == Z_REMEMBERED => (Some(OLD), None),
                    _ => (Some(YOUNG), Some(OLD)),
                }
            }
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }

    pub fn plain(self, at: Addr) -> u64 {
        match self {
            Oops::Offset(mask, _) => at.0 & mask,
            _ => at.0,
        }
    }

    /// The plain address that a reference leads to; 0: nowhere.
    #[inline(always)]
    pub fn decoded(self, reference: u64) -> u64 {
        match self {
            Oops::Whole => reference,
            Oops::Narrow(_, _) if reference == 0 => 0,
            Oops::Narrow(base, shift) => base.wrapping_add(reference << shift),
            Oops::Offset(mask, _) => reference & mask,
            Oops::Coloured(_) => uncoloured(reference),
        }
    }

    /// The reference at `at` of `bytes`.
    pub fn in_bytes(self, bytes: &[u8], at: u32) -> Option<u64> {
        let rest = bytes.get(at as usize..)?;
        Some(match self.bytes() {
            4 => u64::from(u32::from_le_bytes(*rest.first_chunk()?)),
            _ => u64::from_le_bytes(*rest.first_chunk()?),
        })
    }
}

#[inline(always)]
fn uncoloured(reference: u64) -> u64 {
    let shift = if is_aarch64() {
        Z_SHIFT_AARCH64
    } else {
        let colour = reference >> Z_COLOUR_FIRST & Z_COLOURS;
        if !colour.is_power_of_two() {
            return 0;
        }
        Z_COLOUR_FIRST + colour.trailing_zeros() + 1
    };
    let at = reference >> shift;
    if at >> ADDRESS_BITS == 0 { at } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_every_form() {
        assert_eq!(Oops::Narrow(0x1000, 3).decoded(0x10), 0x1080);
        assert_eq!((Oops::Narrow(0x1000, 3).decoded(0), Oops::Whole.decoded(7)), (0, 7));
        // "marked0" and "remapped" of JDK 11, and the same object.
        let older = Oops::Offset((1 << 42) - 1, 1 << 44);
        assert_eq!(older.decoded(1 << 42 | 0x5008), older.plain(Addr(1 << 44 | 0x5008)));
        assert!(older.is_stale(1 << 44 | 0x5008) && !older.is_stale(1 << 42 | 0x5008));
        assert_eq!(Oops::Narrow(0, 0).in_bytes(&[1, 0, 0, 0, 2, 1, 0, 0], 4), Some(0x102));
        assert_eq!(Oops::Whole.in_bytes(&[0; 8], 4), None, "it ends before");
    }

    #[cfg(not(target_arch = "aarch64"))]
    #[test]
    fn the_colour_of_generational_zgc_says_where_the_address_begins() {
        let at = 0x400_0020_0040_u64;
        for bit in 0..4 {
            assert_eq!(Oops::Coloured(0).decoded(at << (13 + bit) | 1 << (12 + bit) | 0x530), at);
        }
        assert_eq!(Oops::Coloured(0).decoded(at << 13), 0, "no colour");
        assert_eq!(Oops::Coloured(0).decoded(0x3000), 0, "two colours");
    }
}
