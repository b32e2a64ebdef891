//! vmStructs: the tables by which HotSpot describes its own fields, types and constants to the outside.
//!
//! libjvm.so exports 24 data symbols: the addresses of four tables and the strides and offsets of their entries
//! (src/hotspot/share/runtime/vmStructs.cpp, JDK 8 to 25). Strides and offsets are read, never assumed. JDK 25 dropped
//! many entries, so every look-up may end in a gap that names what is missing.

use super::names::{Table, Text, Texts};
use crate::base::limits::{VM_NAME_BYTES_MAX, VMSTRUCTS_ENTRIES_MAX};
use crate::base::{Addr, Gap, Known, Why};
use crate::os::elf::{Exports, Image};
use crate::os::{Fault, Memory};

/// Entries that are read at once, about a page.
const ENTRIES_AT_ONCE: usize = 64;

/// All four tables.
#[derive(Debug, Default)]
pub struct VmStructs {
    texts: Texts,
    fields: Table<Field>,
    types: Table<Type>,
    constants: Table<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// Bytes from the start of the object.
    Member { offset: u64 },
    /// Where the C++ static lies in the target.
    Static { at: Addr },
}

#[derive(Debug)]
struct Type {
    superclass: Option<Text>,
    bytes: u64,
}

/// What types and constants have in place of an owner.
const NO_OWNER: &str = "";

impl VmStructs {
    /// Reads the tables of the libjvm that is loaded as `image`.
    pub fn read(memory: &dyn Memory, image: &Image) -> Known<VmStructs> {
        let reader = Reader { memory, exports: image.exports(memory) };
        let mut structs = VmStructs::default();
        reader.fields(&mut structs)?;
        reader.types(&mut structs)?;
        reader.constants(&mut structs, "Int")?;
        reader.constants(&mut structs, "Long")?;
        if structs.fields.is_empty() {
            return Err(Gap::new("vmStructs of libjvm.so", Why::NotInThisRuntime));
        }
        Ok(structs)
    }

    /// The field, also when an ancestor of `owner` declares it.
    pub fn field(&self, owner: &str, name: &str) -> Known<&Field> {
        let mut class = Some(owner);
        for _ in 0..16 {
            let Some(this) = class else { break };
            if let Some(field) = self.fields.get(&self.texts, this, name) {
                return Ok(field);
            }
            let superclass = self.type_of(this).and_then(|class| class.superclass);
            class = superclass.map(|name| self.texts.get(name));
        }
        Err(Gap::new(format!("vmStructs entry {owner}::{name}"), Why::NotInThisRuntime))
    }

    /// Offset of a member, in bytes.
    pub fn offset(&self, owner: &str, name: &str) -> Known<u64> {
        match self.field(owner, name)? {
            Field::Member { offset } => Ok(*offset),
            Field::Static { .. } => Err(Gap::new(format!("member {owner}::{name}"), Why::NotInThisRuntime)),
        }
    }

    /// The first of several names that this VM knows: eras differ in the owner's or the field's name.
    pub fn offset_of_any(&self, names: &[(&str, &str)]) -> Known<u64> {
        let mut gap = Gap::new("vmStructs entry", Why::NotInThisRuntime);
        for (owner, name) in names {
            match self.offset(owner, name) {
                Ok(offset) => return Ok(offset),
                Err(missing) => gap = missing,
            }
        }
        Err(gap)
    }

    /// Address of a static.
    pub fn static_at(&self, owner: &str, name: &str) -> Known<Addr> {
        match self.field(owner, name)? {
            Field::Static { at } => Ok(*at),
            Field::Member { .. } => Err(Gap::new(format!("static {owner}::{name}"), Why::NotInThisRuntime)),
        }
    }

    /// Size of a type in bytes.
    pub fn size_of(&self, name: &str) -> Known<u64> {
        let found = self.type_of(name).map(|class| class.bytes).filter(|bytes| *bytes > 0);
        found.ok_or_else(|| Gap::new(format!("vmStructs type {name}"), Why::NotInThisRuntime))
    }

    pub fn has_type(&self, name: &str) -> bool {
        self.type_of(name).is_some()
    }

    fn type_of(&self, name: &str) -> Option<&Type> {
        self.types.get(&self.texts, NO_OWNER, name)
    }

    /// An integer constant, from either table.
    pub fn constant(&self, name: &str) -> Known<u64> {
        let found = self.constants.get(&self.texts, NO_OWNER, name).copied();
        found.ok_or_else(|| Gap::new(format!("vmStructs constant {name}"), Why::NotInThisRuntime))
    }

    /// The word in the static `owner::name`.
    pub fn read_static(&self, memory: &dyn Memory, owner: &str, name: &str) -> Known<u64> {
        let at = self.static_at(owner, name)?;
        memory.u64(at).map_err(|fault| fault.gap(format!("{owner}::{name}")))
    }

    /// The word in the member `owner::name` of `object`.
    pub fn read_word(&self, memory: &dyn Memory, object: Addr, owner: &str, name: &str) -> Known<u64> {
        let at = object.plus(self.offset(owner, name)?);
        memory.u64(at).map_err(|fault| fault.gap(format!("{owner}::{name}")))
    }

    /// The pointer in the member `owner::name` of `object`.
    pub fn read_addr(&self, memory: &dyn Memory, object: Addr, owner: &str, name: &str) -> Known<Addr> {
        self.read_word(memory, object, owner, name).map(Addr)
    }
}

/// One entry of a table: its bytes, or where they lie when nothing but what is needed may be read.
struct Entry<'a> {
    memory: &'a dyn Memory,
    at: Addr,
    bytes: Option<&'a [u8]>,
}

impl Entry<'_> {
    fn u32(&self, offset: u64) -> Result<u32, Fault> {
        match self.bytes.and_then(|bytes| bytes.get(offset as usize..)?.first_chunk()) {
            Some(bytes) => Ok(u32::from_le_bytes(*bytes)),
            None => self.memory.u32(self.at.plus(offset)),
        }
    }
    fn u64(&self, offset: u64) -> Result<u64, Fault> {
        match self.bytes.and_then(|bytes| bytes.get(offset as usize..)?.first_chunk()) {
            Some(bytes) => Ok(u64::from_le_bytes(*bytes)),
            None => self.memory.u64(self.at.plus(offset)),
        }
    }
    fn addr(&self, offset: u64) -> Result<Addr, Fault> {
        self.u64(offset).map(Addr)
    }
    /// The text that the pointer at `offset` points to.
    fn text(&self, offset: u64, texts: &mut Texts) -> Result<Text, Fault> {
        texts.read_at_most(self.memory, self.addr(offset)?, VM_NAME_BYTES_MAX)
    }
}

struct Reader<'a> {
    memory: &'a dyn Memory,
    exports: Result<Option<Exports>, Fault>,
}

impl Reader<'_> {
    fn fields(&self, structs: &mut VmStructs) -> Known<()> {
        let type_name = self.word("gHotSpotVMStructEntryTypeNameOffset")?;
        let field_name = self.word("gHotSpotVMStructEntryFieldNameOffset")?;
        let is_static = self.word("gHotSpotVMStructEntryIsStaticOffset")?;
        let offset = self.word("gHotSpotVMStructEntryOffsetOffset")?;
        let address = self.word("gHotSpotVMStructEntryAddressOffset")?;
        let VmStructs { texts, fields, .. } = structs;
        // The fields of one owner are in a row, and mostly point to the same text.
        let mut last = None;
        self.each("gHotSpotVMStructs", "gHotSpotVMStructEntryArrayStride", type_name, |entry| {
            let owner_at = entry.addr(type_name)?;
            let owner = match last {
                Some((at, owner)) if at == owner_at => owner,
                _ => texts.read_at_most(self.memory, owner_at, VM_NAME_BYTES_MAX)?,
            };
            last = Some((owner_at, owner));
            let name = entry.text(field_name, texts)?;
            let field = match entry.u32(is_static)? {
                0 => Field::Member { offset: entry.u64(offset)? },
                _ => Field::Static { at: entry.addr(address)? },
            };
            fields.insert(texts, owner, name, field);
            Ok(())
        })
    }

    fn types(&self, structs: &mut VmStructs) -> Known<()> {
        let name = self.word("gHotSpotVMTypeEntryTypeNameOffset")?;
        let superclass = self.word("gHotSpotVMTypeEntrySuperclassNameOffset")?;
        let size = self.word("gHotSpotVMTypeEntrySizeOffset")?;
        let VmStructs { texts, types, .. } = structs;
        self.each("gHotSpotVMTypes", "gHotSpotVMTypeEntryArrayStride", name, |entry| {
            let superclass = match entry.addr(superclass)? {
                Addr::NULL => None,
                at => Some(texts.read_at_most(self.memory, at, VM_NAME_BYTES_MAX)?),
            };
            let bytes = entry.u64(size)?;
            let name = entry.text(name, texts)?;
            types.insert(texts, Text::default(), name, Type { superclass, bytes });
            Ok(())
        })
    }

    /// `which` is "Int" (entries of 4 bytes) or "Long" (8 bytes).
    fn constants(&self, structs: &mut VmStructs, which: &str) -> Known<()> {
        let name = self.word(&format!("gHotSpotVM{which}ConstantEntryNameOffset"))?;
        let value = self.word(&format!("gHotSpotVM{which}ConstantEntryValueOffset"))?;
        let stride = format!("gHotSpotVM{which}ConstantEntryArrayStride");
        let VmStructs { texts, constants, .. } = structs;
        self.each(&format!("gHotSpotVM{which}Constants"), &stride, name, |entry| {
            let number = match which {
                "Int" => entry.u32(value)? as i32 as i64 as u64,
                _ => entry.u64(value)?,
            };
            let name = entry.text(name, texts)?;
            constants.insert(texts, Text::default(), name, number);
            Ok(())
        })
    }

    /// Calls `visit` with each entry of a table up to the one whose name is null.
    fn each(
        &self,
        table: &str,
        stride: &str,
        name_offset: u64,
        mut visit: impl FnMut(&Entry) -> Result<(), Fault>,
    ) -> Known<()> {
        let start = Addr(self.word(table)?);
        let stride = self.word(stride)?;
        let gap = |fault: Fault| fault.gap(format!("table {table}"));
        if stride == 0 || stride > 4096 {
            return Err(Gap::new(format!("stride of {table}"), Why::BadData(start)));
        }
        let mut several = Vec::new();
        for index in 0..VMSTRUCTS_ENTRIES_MAX {
            let at = start.plus(index as u64 * stride);
            let place = index % ENTRIES_AT_ONCE;
            if place == 0 {
                several = self.several(at, stride);
            }
            let bytes = several.chunks_exact(stride as usize).nth(place);
            let entry = Entry { memory: self.memory, at, bytes };
            if entry.addr(name_offset).map_err(gap)?.is_null() {
                return Ok(());
            }
            visit(&entry).map_err(gap)?;
        }
        Err(Gap::new(format!("table {table}"), Why::OverLimit))
    }

    /// The bytes of the next entries. None where nothing but what is needed may be read, or not all of it can be: the
    /// table may end before.
    fn several(&self, at: Addr, stride: u64) -> Vec<u8> {
        let mut bytes = vec![0; ENTRIES_AT_ONCE * stride as usize];
        let is_read = !self.memory.keeps_what_is_read() && self.memory.read(at, &mut bytes).is_ok();
        if is_read { bytes } else { Vec::new() }
    }

    /// The word in the exported variable `symbol`.
    fn word(&self, symbol: &str) -> Known<u64> {
        let at = match self.exports {
            Ok(Some(exports)) => exports.find(self.memory, symbol),
            Ok(None) => Ok(None),
            Err(fault) => Err(fault),
        };
        let at = at.map_err(|fault| fault.gap(format!("symbol {symbol}")))?;
        let at = at.ok_or_else(|| {
            Gap::new(format!("symbol {symbol} of libjvm.so"), Why::NotInThisRuntime)
                .hint("this libjvm.so does not export vmStructs; it is not HotSpot or was stripped of its dynamic symbols")
        })?;
        self.memory.u64(at).map_err(|fault| fault.gap(symbol))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl VmStructs {
        /// Tables for tests.
        pub fn with(
            fields: &[(&str, &str, Field)],
            types: &[(&str, u64)],
            constants: &[(&str, u64)],
        ) -> VmStructs {
            let mut structs = VmStructs::default();
            for (owner, name, field) in fields {
                let (owner, name) = (structs.texts.push(owner), structs.texts.push(name));
                structs.fields.insert(&structs.texts, owner, name, field.clone());
            }
            for (name, bytes) in types {
                let name = structs.texts.push(name);
                structs.types.insert(
                    &structs.texts,
                    Text::default(),
                    name,
                    Type { superclass: None, bytes: *bytes },
                );
            }
            for (name, value) in constants {
                let name = structs.texts.push(name);
                structs.constants.insert(&structs.texts, Text::default(), name, *value);
            }
            structs
        }
    }
}
