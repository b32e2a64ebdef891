//! Functions that an image calls in others, by the slots that the dynamic linker fills (System V gABI, "Dynamic Linking"; the
//! types of relocations by the psABI of x86-64 and of AArch64). A slot that is filled at the first call says whether there was
//! one. HotSpot loads libraries so (`dlopen` with RTLD_LAZY, os/linux/os_linux.cpp).

use super::elf::Image;
use super::memory::{Fault, Memory};
use crate::base::{Addr, Bytes, Why};
use memchr::memchr;

/// Whether an image calls a function of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Import {
    /// It has.
    Called,
    /// It has not so far.
    Uncalled,
    /// It may have: its slots were filled when it was loaded.
    Unknown,
}

const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_STRSZ: u64 = 10;
const DT_JMPREL: u64 = 23;
const DT_RELACOUNT: u64 = 0x6fff_fff9;
/// `R_X86_64_JUMP_SLOT`, `R_AARCH64_JUMP_SLOT`: of a call. `GLOB_DAT` of both: a pointer, filled when the image is loaded.
const JUMP_SLOTS: [u32; 2] = [7, 1026];
const POINTERS: [u32; 2] = [6, 1025];
const RELOCATION_BYTES: usize = 24;
const SYMBOL_BYTES: usize = 24;
/// Of each table: 174,762 relocations.
const TABLE_BYTES_MAX: Bytes = 4 << 20;

/// Whether it calls one of these functions of other images. `None`: it does not name them.
pub fn import(image: &Image, memory: &dyn Memory, names: &[&str]) -> Result<Option<Import>, Fault> {
    let entries = image.dynamic_entries(memory)?;
    let value = |tag| entries.iter().find(|(of, _)| *of == tag).map(|(_, value)| *value);
    let table = |at, bytes, skipped: Bytes| -> Result<Vec<u8>, Fault> {
        let (Some(at), Some(bytes)) = (value(at), value(bytes)) else { return Ok(Vec::new()) };
        read(memory, image.address(at).plus(skipped), bytes.saturating_sub(skipped))
    };
    let calls = relocations(&table(DT_JMPREL, DT_PLTRELSZ, 0)?, &JUMP_SLOTS);
    let relative = value(DT_RELACOUNT).unwrap_or(0).saturating_mul(RELOCATION_BYTES as u64);
    let pointers = relocations(&table(DT_RELA, DT_RELASZ, relative)?, &POINTERS);
    let Some(last) = calls.iter().chain(&pointers).map(|slot| slot.symbol).max() else { return Ok(None) };
    let strings = table(DT_STRTAB, DT_STRSZ, 0)?;
    let symbols = match value(DT_SYMTAB) {
        Some(at) => read(memory, image.address(at), (u64::from(last) + 1) * SYMBOL_BYTES as u64)?,
        None => return Ok(None),
    };
    let is_named = |slot: &&Slot| {
        let entry = symbols.get(slot.symbol as usize * SYMBOL_BYTES..).and_then(|rest| rest.first_chunk());
        let name = entry.and_then(|at| strings.get(u32::from_le_bytes(*at) as usize..)).unwrap_or_default();
        let name = &name[..memchr(0, name).unwrap_or(name.len())];
        names.iter().any(|one| one.as_bytes() == name)
    };
    let leads_out = |slot: &Slot| {
        let to = memory.u64(Addr(image.bias.wrapping_add(slot.at)))?;
        Ok(!image.extent().has(Addr(to)))
    };
    let Some(call) = calls.iter().find(is_named) else {
        return Ok(pointers.iter().find(is_named).map(|_| Import::Unknown));
    };
    if !leads_out(call)? {
        return Ok(Some(Import::Uncalled));
    }
    // Where none waits for its first call, all were filled when the image was loaded.
    for other in &calls {
        if !leads_out(other)? {
            return Ok(Some(Import::Called));
        }
    }
    Ok(Some(Import::Unknown))
}

/// A slot, as an address of the file, and the function for which it is.
struct Slot {
    at: u64,
    symbol: u32,
}

fn relocations(table: &[u8], kinds: &[u32]) -> Vec<Slot> {
    let number = |entry: &[u8; RELOCATION_BYTES], at: usize| {
        entry[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    let entries = table.as_chunks::<RELOCATION_BYTES>().0.iter();
    entries
        .filter(|entry| kinds.contains(&(number(entry, 8) as u32)))
        .map(|entry| Slot { at: number(entry, 0), symbol: (number(entry, 8) >> 32) as u32 })
        .collect()
}

/// One that is larger than any of a real image is an error.
fn read(memory: &dyn Memory, at: Addr, bytes: Bytes) -> Result<Vec<u8>, Fault> {
    if bytes > TABLE_BYTES_MAX {
        return Err(Fault { at, why: Why::OverLimit });
    }
    let mut table = vec![0; bytes as usize];
    memory.read(at, &mut table)?;
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Range;
    use crate::os::memory::Pieces;

    const FORK: u32 = 1;
    const OTHER: u32 = 2;
    const FAR_NAME: u32 = 3;

    /// An image at 0x10000 with slots at 0x8000 that hold these words, of `fork` and of another function.
    fn loaded(kind: u32, slots: &[(u32, u64)]) -> (Image, Pieces) {
        let mut memory = Pieces::default();
        let base = 0x10000;
        let image = Image::made_up(
            base,
            Range::new(Addr(base), Addr(base + 0x9000)),
            Range::new(Addr(base), Addr(base + 0x100)),
        );
        let table = if JUMP_SLOTS.contains(&kind) { (DT_JMPREL, DT_PLTRELSZ) } else { (DT_RELA, DT_RELASZ) };
        let bytes = (slots.len() * RELOCATION_BYTES) as u64;
        let dynamic = [
            (DT_STRTAB, 0x1000),
            (DT_STRSZ, 13),
            (DT_SYMTAB, base + 0x2000),
            (table.0, 0x3000),
            (table.1, bytes),
            (0, 0),
        ];
        memory.put_words(Addr(base), &dynamic.map(|(tag, value)| [tag, value]).concat());
        memory.put(Addr(base + 0x1000), b"\0vfork\0other\0");
        // "fork" is the end of "vfork", as linkers store it.
        memory.put_words(Addr(base + 0x2000), &[0, 0, 0, 2, 0, 0, 7, 0, 0, u64::from(u32::MAX), 0, 0]);
        for (index, (symbol, word)) in slots.iter().enumerate() {
            let at = 0x8000 + index as u64 * 8;
            let entry = [at, u64::from(*symbol) << 32 | u64::from(kind), 0];
            memory.put_words(Addr(base + 0x3000 + (index * RELOCATION_BYTES) as u64), &entry);
            memory.put_words(Addr(base + at), &[*word]);
        }
        (image, memory)
    }

    #[test]
    fn a_filled_slot_is_a_call_only_where_another_waits() {
        let (out, waits) = (0x7f00_0000, 0x10500);
        let of = |kind, slots: &[(u32, u64)]| {
            let (image, memory) = loaded(kind, slots);
            import(&image, &memory, &["fork"])
        };
        assert_eq!(of(7, &[(FORK, out), (OTHER, waits)]), Ok(Some(Import::Called)));
        assert_eq!(of(1026, &[(OTHER, out), (FORK, waits)]), Ok(Some(Import::Uncalled)));
        assert_eq!(
            of(7, &[(FORK, out), (OTHER, out)]),
            Ok(Some(Import::Unknown)),
            "bound when it was loaded"
        );
        assert_eq!(of(6, &[(FORK, out)]), Ok(Some(Import::Unknown)), "a pointer");
        assert_eq!(of(7, &[(OTHER, out)]), Ok(None));
        assert_eq!(of(8, &[(FORK, out)]), Ok(None), "of another kind");
    }

    #[test]
    fn damaged_tables_are_an_error_or_name_nothing() {
        let far = |symbol| {
            let (image, memory) = loaded(7, &[(symbol, 0)]);
            import(&image, &memory, &["fork"])
        };
        assert!(far(u32::MAX).is_err(), "a symbol far behind the table");
        assert_eq!(far(FAR_NAME), Ok(None), "a name behind the names");
    }
}
