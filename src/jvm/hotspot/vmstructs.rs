//! vmStructs: the tables by which HotSpot describes its own fields, types and constants to the outside.
//!
//! libjvm.so exports 24 data symbols: the addresses of four tables and the strides and offsets of their entries
//! (src/hotspot/share/runtime/vmStructs.cpp, JDK 8 to 25). Strides and offsets are read, never assumed. JDK 25 dropped
//! many entries, so every look-up may end in a gap that names what is missing.

use crate::base::limits::{C_STRING_BYTES_MAX, VMSTRUCTS_ENTRIES_MAX};
use crate::base::{Addr, Gap, Known, Why};
use crate::os::elf::Image;
use crate::os::{Fault, Memory};
use std::collections::HashMap;

/// All four tables.
#[derive(Debug, Default)]
pub struct VmStructs {
    fields: HashMap<String, HashMap<String, Field>>,
    types: HashMap<String, Type>,
    constants: HashMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// Bytes from the start of the object.
    Member { offset: u64 },
    /// Where the C++ static lies in the target.
    Static { at: Addr },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    pub superclass: Option<String>,
    pub bytes: u64,
}

impl VmStructs {
    /// Reads the tables of the libjvm that is loaded as `image`.
    pub fn read(memory: &dyn Memory, image: &Image) -> Known<VmStructs> {
        let reader = Reader { memory, image };
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

    /// Tables for tests.
    pub fn with(
        fields: &[(&str, &str, Field)],
        types: &[(&str, u64)],
        constants: &[(&str, u64)],
    ) -> VmStructs {
        let mut structs = VmStructs::default();
        for (owner, name, field) in fields {
            structs.fields.entry(owner.to_string()).or_default().insert(name.to_string(), field.clone());
        }
        for (name, bytes) in types {
            structs.types.insert(name.to_string(), Type { superclass: None, bytes: *bytes });
        }
        structs.constants = constants.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        structs
    }

    /// The field, also when an ancestor of `owner` declares it.
    pub fn field(&self, owner: &str, name: &str) -> Known<&Field> {
        let mut class = Some(owner);
        for _ in 0..16 {
            let Some(this) = class else { break };
            if let Some(field) = self.fields.get(this).and_then(|fields| fields.get(name)) {
                return Ok(field);
            }
            class = self.types.get(this).and_then(|class| class.superclass.as_deref());
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
        let found = self.types.get(name).map(|class| class.bytes).filter(|bytes| *bytes > 0);
        found.ok_or_else(|| Gap::new(format!("vmStructs type {name}"), Why::NotInThisRuntime))
    }

    pub fn has_type(&self, name: &str) -> bool {
        self.types.contains_key(name)
    }

    /// An integer constant, from either table.
    pub fn constant(&self, name: &str) -> Known<u64> {
        let found = self.constants.get(name).copied();
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

struct Reader<'a> {
    memory: &'a dyn Memory,
    image: &'a Image,
}

impl Reader<'_> {
    fn fields(&self, structs: &mut VmStructs) -> Known<()> {
        let type_name = self.word("gHotSpotVMStructEntryTypeNameOffset")?;
        let field_name = self.word("gHotSpotVMStructEntryFieldNameOffset")?;
        let is_static = self.word("gHotSpotVMStructEntryIsStaticOffset")?;
        let offset = self.word("gHotSpotVMStructEntryOffsetOffset")?;
        let address = self.word("gHotSpotVMStructEntryAddressOffset")?;
        self.each("gHotSpotVMStructs", "gHotSpotVMStructEntryArrayStride", type_name, |entry| {
            let owner = self.string(entry.plus(type_name))?;
            let name = self.string(entry.plus(field_name))?;
            let field = match self.memory.u32(entry.plus(is_static))? {
                0 => Field::Member { offset: self.memory.u64(entry.plus(offset))? },
                _ => Field::Static { at: self.memory.addr(entry.plus(address))? },
            };
            structs.fields.entry(owner).or_default().insert(name, field);
            Ok(())
        })
    }

    fn types(&self, structs: &mut VmStructs) -> Known<()> {
        let name = self.word("gHotSpotVMTypeEntryTypeNameOffset")?;
        let superclass = self.word("gHotSpotVMTypeEntrySuperclassNameOffset")?;
        let size = self.word("gHotSpotVMTypeEntrySizeOffset")?;
        self.each("gHotSpotVMTypes", "gHotSpotVMTypeEntryArrayStride", name, |entry| {
            let superclass = match self.memory.addr(entry.plus(superclass))? {
                Addr::NULL => None,
                at => Some(self.memory.c_string(at, C_STRING_BYTES_MAX)?),
            };
            let bytes = self.memory.u64(entry.plus(size))?;
            structs.types.insert(self.string(entry.plus(name))?, Type { superclass, bytes });
            Ok(())
        })
    }

    /// `which` is "Int" (entries of 4 bytes) or "Long" (8 bytes).
    fn constants(&self, structs: &mut VmStructs, which: &str) -> Known<()> {
        let name = self.word(&format!("gHotSpotVM{which}ConstantEntryNameOffset"))?;
        let value = self.word(&format!("gHotSpotVM{which}ConstantEntryValueOffset"))?;
        let stride = format!("gHotSpotVM{which}ConstantEntryArrayStride");
        self.each(&format!("gHotSpotVM{which}Constants"), &stride, name, |entry| {
            let number = match which {
                "Int" => self.memory.i32(entry.plus(value))? as i64 as u64,
                _ => self.memory.u64(entry.plus(value))?,
            };
            structs.constants.insert(self.string(entry.plus(name))?, number);
            Ok(())
        })
    }

    /// Calls `visit` with each entry of a table up to the one whose name is null.
    fn each(
        &self,
        table: &str,
        stride: &str,
        name_offset: u64,
        mut visit: impl FnMut(Addr) -> Result<(), Fault>,
    ) -> Known<()> {
        let start = Addr(self.word(table)?);
        let stride = self.word(stride)?;
        let gap = |fault: Fault| fault.gap(format!("table {table}"));
        if stride == 0 || stride > 4096 {
            return Err(Gap::new(format!("stride of {table}"), Why::BadData(start)));
        }
        for index in 0..VMSTRUCTS_ENTRIES_MAX as u64 {
            let entry = start.plus(index * stride);
            if self.memory.addr(entry.plus(name_offset)).map_err(gap)?.is_null() {
                return Ok(());
            }
            visit(entry).map_err(gap)?;
        }
        Err(Gap::new(format!("table {table}"), Why::OverLimit))
    }

    /// The word in the exported variable `symbol`.
    fn word(&self, symbol: &str) -> Known<u64> {
        let at = self
            .image
            .exported(self.memory, symbol)
            .map_err(|fault| fault.gap(format!("symbol {symbol}")))?;
        let at = at.ok_or_else(|| {
            Gap::new(format!("symbol {symbol} of libjvm.so"), Why::NotInThisRuntime)
                .hint("this libjvm.so does not export vmStructs; it is no HotSpot or was stripped of its dynamic symbols")
        })?;
        self.memory.u64(at).map_err(|fault| fault.gap(symbol))
    }

    fn string(&self, at: Addr) -> Result<String, Fault> {
        self.memory.c_string(self.memory.addr(at)?, C_STRING_BYTES_MAX)
    }
}
