//! The fields of a class by their offsets, from `InstanceKlass`: up to JDK 20 an array of six 2-byte numbers a field
//! (src/hotspot/share/oops/fieldInfo.hpp, jdk-17), since 21 a stream of compressed numbers (the same file, jdk-21 and jdk-28,
//! and src/hotspot/share/utilities/unsigned5.hpp). Names and signatures are entries of the class's constant pool.

use crate::base::Addr;
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::symbols::Names;
use crate::jvm::hotspot::window::Windows;
use crate::os::Memory;

const FIELDS_MAX: usize = 4096;
const SUPERS_MAX: usize = 64;
const STREAM_BYTES_MAX: usize = 1 << 20;
/// `FieldInfo::field_slots`, and where in them the offset and its tag lie.
const SLOTS: usize = 6;
const TAG_BITS: u32 = 2;
const TAG_OFFSET: u32 = 1;
const ACC_STATIC: u32 = 8;
/// `UNSIGNED5`: bytes below 192 end a number.
const LOW_CODES: u32 = 192;

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    /// "J", "Ljava/lang/String;".
    pub signature: String,
    /// In the object, or in the mirror of the class.
    pub offset: u32,
    pub is_static: bool,
}

/// The signature of Java type `long`, which may hold a native address.
pub const LONG: u8 = b'J';

impl Field {
    /// The first letter of its signature.
    pub fn kind(&self) -> u8 {
        self.signature.bytes().next().unwrap_or(0)
    }

    pub fn is_reference(&self) -> bool {
        matches!(self.kind(), b'L' | b'[')
    }
}

/// Where the parts lie, in this VM.
pub struct Layout {
    constants: u64,
    pool_bytes: u64,
    fields: Fields,
    super_class: u64,
    array_data: u64,
    names: Names,
}

#[derive(Clone, Copy)]
enum Fields {
    /// The offsets of the array, and of the number of the fields that are not the VM's own.
    Array { at: u64, count: u64 },
    /// The offset of the stream; which flags of a field add a number to it.
    Stream { at: u64, optional: u32 },
}

/// The flags with a number of their own, and the bits of JDK 21 to 27; those without one came with value classes in JDK 28.
const OPTIONAL: [(&str, Option<u32>); 5] = [
    ("_ff_initialized", Some(0)),
    ("_ff_generic", Some(2)),
    ("_ff_contended", Some(4)),
    ("_ff_flat", None),
    ("_ff_null_marker", None),
];

fn optional_flags(vm: &Hotspot) -> u32 {
    let bit = |(name, default): (&str, Option<u32>)| {
        let constant = vm.structs.constant(&format!("FieldInfo::FieldFlags::{name}")).ok();
        constant.and_then(|bit| u32::try_from(bit).ok()).or(default).and_then(|bit| 1_u32.checked_shl(bit))
    };
    OPTIONAL.into_iter().filter_map(bit).fold(0, |all, bit| all | bit)
}

impl Layout {
    pub fn read(vm: &Hotspot) -> crate::base::Known<Layout> {
        let structs = vm.structs;
        let fields = match structs.offset("InstanceKlass", "_fieldinfo_stream") {
            Ok(at) => Fields::Stream { at, optional: optional_flags(vm) },
            Err(_) => Fields::Array {
                at: structs.offset("InstanceKlass", "_fields")?,
                count: structs.offset("InstanceKlass", "_java_fields_count")?,
            },
        };
        Ok(Layout {
            constants: structs.offset("InstanceKlass", "_constants")?,
            pool_bytes: structs.size_of("ConstantPool")?,
            fields,
            super_class: structs.offset("Klass", "_super")?,
            array_data: structs.offset("Array<u1>", "_data").unwrap_or(4),
            names: Names::read(vm)?,
        })
    }

    /// The fields of a class and of those above it whose types are wanted, by the first letters of their signatures; of those above
    /// only what is not static.
    pub fn fields(
        &self,
        windows: &Windows,
        memory: &dyn Memory,
        class: Addr,
        is_wanted: fn(u8) -> bool,
    ) -> Vec<Field> {
        let (mut found, mut class, mut depth) = (Vec::new(), class, 0);
        while !class.is_null() && depth < SUPERS_MAX {
            let own = self.own(windows, memory, class, is_wanted).unwrap_or_default();
            found.extend(own.into_iter().filter(|field| depth == 0 || !field.is_static));
            class = windows.addr(class.plus(self.super_class)).unwrap_or_default();
            depth += 1;
        }
        found
    }

    /// Where instances of a class have the field of this name that the class itself declares.
    pub fn offset(&self, windows: &Windows, memory: &dyn Memory, class: Addr, name: &[u8]) -> Option<u32> {
        let pool = windows.addr(class.plus(self.constants)).ok()?;
        let mut raw = self.raw(windows, class)?.into_iter().filter(|raw| !raw.is_static);
        raw.find(|raw| self.symbol(memory, pool, raw.name).is_some_and(|text| text == name))
            .map(|raw| raw.offset)
    }

    fn own(
        &self,
        windows: &Windows,
        memory: &dyn Memory,
        class: Addr,
        is_wanted: fn(u8) -> bool,
    ) -> Option<Vec<Field>> {
        let pool = windows.addr(class.plus(self.constants)).ok()?;
        let raw = self.raw(windows, class)?;
        let named = raw.into_iter().filter_map(|raw| {
            let text = |index| Some(String::from_utf8_lossy(&self.symbol(memory, pool, index)?).into_owned());
            let signature = text(raw.signature)?;
            if !is_wanted(signature.bytes().next()?) {
                return None;
            }
            Some(Field { name: text(raw.name)?, signature, offset: raw.offset, is_static: raw.is_static })
        });
        Some(named.collect())
    }

    fn raw(&self, windows: &Windows, class: Addr) -> Option<Vec<Raw>> {
        Some(match self.fields {
            Fields::Array { at, count } => {
                let array = windows.addr(class.plus(at)).ok()?;
                let count = u16::from_le_bytes(windows.array(class.plus(count)).ok()?);
                of_array(&self.bytes(windows, array, 2)?, usize::from(count))
            }
            Fields::Stream { at, optional } => {
                of_stream(&self.bytes(windows, windows.addr(class.plus(at)).ok()?, 1)?, optional)
            }
        })
    }

    /// An `Array` of elements of `size` bytes.
    fn bytes(&self, windows: &Windows, array: Addr, size: usize) -> Option<Vec<u8>> {
        let length = u32::from_le_bytes(windows.array(array).ok()?);
        let bytes = (length as usize).checked_mul(size)?;
        let mut data = vec![0; Some(bytes).filter(|bytes| *bytes <= STREAM_BYTES_MAX)?];
        // The data of 2-byte elements begins where that of single bytes does.
        windows.read(array.plus(self.array_data), &mut data).ok()?;
        Some(data)
    }

    /// The text of entry `index` of a constant pool. Entries of resolved and of unresolved texts are alike: a `Symbol`.
    fn symbol(&self, memory: &dyn Memory, pool: Addr, index: u16) -> Option<Vec<u8>> {
        let symbol = memory.addr(pool.plus(self.pool_bytes + u64::from(index) * 8)).ok()?;
        self.names.bytes(memory, symbol)
    }
}

/// A field before its texts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Raw {
    name: u16,
    signature: u16,
    offset: u32,
    is_static: bool,
}

fn of_array(bytes: &[u8], count: usize) -> Vec<Raw> {
    let numbers: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
    let fields = numbers.as_chunks::<SLOTS>().0.iter().take(count.min(FIELDS_MAX));
    let field = |[flags, name, signature, _, low, high]: &[u16; SLOTS]| {
        let packed = u32::from(*high) << 16 | u32::from(*low);
        (packed & TAG_OFFSET != 0).then_some(Raw {
            name: *name,
            signature: *signature,
            offset: packed >> TAG_BITS,
            is_static: u32::from(*flags) & ACC_STATIC != 0,
        })
    };
    fields.filter_map(field).collect()
}

fn of_stream(bytes: &[u8], optional: u32) -> Vec<Raw> {
    let mut numbers = Numbers(bytes);
    let mut fields = Vec::new();
    let Some((java, _injected)) = numbers.next().zip(numbers.next()) else { return fields };
    for _ in 0..(java as usize).min(FIELDS_MAX) {
        let Some([name, signature, offset, access, flags]) = numbers.five() else { break };
        for _ in 0..(flags & optional).count_ones() {
            numbers.next();
        }
        fields.push(Raw {
            name: name as u16,
            signature: signature as u16,
            offset,
            is_static: access & ACC_STATIC != 0,
        });
    }
    fields
}

/// Numbers of `UNSIGNED5`: no byte is 0; each byte less one counts 64 times what the one before does, up to the fifth.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn next(&mut self) -> Option<u32> {
        let mut sum = 0_u32;
        for place in 0..5 {
            let (byte, rest) = self.0.split_first()?;
            let code = u32::from(*byte).checked_sub(1)?;
            self.0 = rest;
            sum = sum.wrapping_add(code << (place * 6));
            if code < LOW_CODES - 1 {
                break;
            }
        }
        Some(sum)
    }

    fn five(&mut self) -> Option<[u32; 5]> {
        let mut five = [0; 5];
        for number in &mut five {
            *number = self.next()?;
        }
        Some(five)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_stream_are_those_of_unsigned5() {
        // X - 1 for one byte, and (191 + n) + 64 * m for two: unsigned5.hpp.
        let mut numbers = Numbers(&[1, 2, 191, 192, 1, 193, 3, 0]);
        let read: Vec<Option<u32>> = (0..6).map(|_| numbers.next()).collect();
        assert_eq!(read, [Some(0), Some(1), Some(190), Some(191), Some(192 + 128), None]);
        assert_eq!(Numbers(&[255, 255]).next(), None, "it ends in a number");
    }

    #[test]
    fn fields_of_both_forms() {
        let field = |offset, is_static| Raw { name: 5, signature: 6, offset, is_static };
        let numbers: [u16; 12] = [8, 5, 6, 0, 104 << 2 | 1, 0, 0, 5, 6, 0, 16 << 2 | 1, 0];
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!(of_array(&bytes, 2), [field(104, true), field(16, false)]);
        assert_eq!(of_array(&bytes, 1), [field(104, true)], "what is behind is the VM's own");
        // Two fields, the first with a constant value: name 5, signature 6, offset 16, access 8, flags 1, value 9.
        let stream = [3, 1, 6, 7, 17, 9, 2, 10, 6, 7, 25, 1, 1, 0];
        assert_eq!(of_stream(&stream, 1), [field(16, true), field(24, false)]);
        assert_eq!(of_stream(&stream[..4], 1), []);
        assert_eq!(of_stream(&[], 1), []);
        // JDK 28: name 5, signature 6, offset 16, access 0, flat (bit 1) with a null marker (bit 2) and stable (bit 6).
        let flat = [3, 1, 6, 7, 17, 1, 1 + 0b100_0110, 20, 2, 6, 7, 25, 1, 1, 0];
        assert_eq!(of_stream(&flat, 0b1010_1110), [field(16, false), field(24, false)]);
    }
}
