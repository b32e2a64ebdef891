//! The `-XX` flags as they are now, read from the VM's own array.
//!
//! The array is `Flag::flags` in JDK 8 and `JVMFlag::flags` after. An entry's `_type` is a C string up to JDK 15 and a
//! number from 16 on (src/hotspot/share/runtime/flags/jvmFlag.hpp, `JVM_FLAG_ALL_TYPES_DO`). The numbers are not in
//! vmStructs, so they are proved by flags whose types have not changed; a number that is not proved leaves its flags out.

pub use super::flags_kept::KEPT;
use super::names::{Table, Text, Texts};
use super::vmstructs::VmStructs;
use super::window::{array, word};
use crate::base::limits::{C_STRING_BYTES_MAX, FLAGS_MAX};
use crate::base::{Addr, Gap, Known, Why};
use crate::os::{Fault, Memory};
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display, Formatter};

#[derive(Debug, Default)]
pub struct Flags {
    texts: Texts,
    values: Table<Result<Value, Missing>>,
}

/// Why there is no value.
#[derive(Debug)]
enum Missing {
    Type,
    Fault(Fault),
}

/// The value of a flag. Most are never asked for, so they are printed only then.
#[derive(Debug)]
enum Value {
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Double(f64),
    Text(String),
}

impl Display for Value {
    fn fmt(&self, into: &mut Formatter) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(into, "{value}"),
            Value::Signed(value) => write!(into, "{value}"),
            Value::Unsigned(value) => write!(into, "{value}"),
            Value::Double(value) => write!(into, "{value:.6}"),
            Value::Text(value) => write!(into, "{value}"),
        }
    }
}

/// The C++ type of a flag's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Bool,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Double,
    Text,
}

/// The types in the order of `JVM_FLAG_ALL_TYPES_DO`, JDK 16 to 25.
const TYPES_BY_NUMBER: &[Type] = &[
    Type::Bool,
    Type::Int32,
    Type::Uint32,
    Type::Int64,
    Type::Uint64,
    Type::Uint64,
    Type::Uint64,
    Type::Double,
    Type::Text,
    Type::Text,
];

/// Flags that had the same type from JDK 16 to 25, one for each width: they prove what a number means.
const WITNESSES: &[(&str, Type)] = &[
    ("UseSerialGC", Type::Bool),
    ("ParallelGCThreads", Type::Uint32),
    ("ThreadStackSize", Type::Int64),
    ("MaxDirectMemorySize", Type::Uint64),
    ("MaxHeapSize", Type::Uint64),
    ("MaxRAMPercentage", Type::Double),
    ("NativeMemoryTracking", Type::Text),
];

struct Entries {
    texts: Texts,
    entries: Vec<Entry>,
    /// What a `kind` means, as far as it is known.
    types: HashMap<u64, Type>,
}

#[derive(Clone, Copy)]
struct Entry {
    name: Text,
    kind: u64,
    value_at: Addr,
}

impl Flags {
    pub fn read(memory: &dyn Memory, structs: &VmStructs) -> Known<Flags> {
        let Entries { texts, entries, types } = Entries::read(memory, structs)?;
        let mut values = Table::default();
        for entry in entries {
            let value = match types.get(&entry.kind) {
                Some(kind) => read_value(memory, *kind, entry.value_at).map_err(Missing::Fault),
                None => Err(Missing::Type),
            };
            values.insert(&texts, Text::default(), entry.name, value);
        }
        Ok(Flags { texts, values })
    }

    /// The value as `-XX:+PrintFlagsFinal` prints it.
    pub fn text(&self, name: &str) -> Known<String> {
        match self.value(name) {
            Some(Ok(value)) => Ok(value.to_string()),
            Some(Err(Missing::Type)) => Err(Gap::new(format!("type of flag {name}"), Why::NotInThisRuntime)),
            Some(Err(Missing::Fault(fault))) => Err(fault.gap(format!("flag {name}"))),
            None => Err(Gap::new(format!("flag {name}"), Why::NotInThisRuntime)),
        }
    }
    fn value(&self, name: &str) -> Option<&Result<Value, Missing>> {
        self.values.get(&self.texts, "", name)
    }
    pub fn number(&self, name: &str) -> Known<u64> {
        let text = self.text(name)?;
        text.parse().map_err(|_| Gap::new(format!("flag {name}"), Why::NotInThisRuntime))
    }
    pub fn is_on(&self, name: &str) -> bool {
        match self.value(name) {
            Some(Ok(Value::Bool(value))) => *value,
            Some(Ok(Value::Text(value))) => value == "true",
            _ => false,
        }
    }
    pub fn kept(&self) -> BTreeMap<String, String> {
        KEPT.iter().filter_map(|name| Some((name.to_string(), self.text(name).ok()?))).collect()
    }
}

/// Where the values of the text flags lie: (name, address of the first letter). Empty where the flags cannot be read.
pub fn texts(memory: &dyn Memory, structs: &VmStructs) -> Vec<(String, Addr)> {
    let Ok(Entries { texts, entries, types }) = Entries::read(memory, structs) else { return Vec::new() };
    let found = entries.iter().filter(|entry| types.get(&entry.kind) == Some(&Type::Text));
    let found = found
        .filter_map(|entry| Some((texts.get(entry.name).to_string(), memory.addr(entry.value_at).ok()?)));
    found.filter(|(_, at)| !at.is_null()).collect()
}

impl Entries {
    fn read(memory: &dyn Memory, structs: &VmStructs) -> Known<Entries> {
        let owner = if structs.has_type("JVMFlag") { "JVMFlag" } else { "Flag" };
        let mut texts = Texts::default();
        let entries = entries(memory, structs, owner, &mut texts)?;
        let types = match is_named(structs, owner) {
            true => types_by_name(memory, &entries),
            false => types_by_number(&texts, &entries),
        };
        Ok(Entries { texts, entries, types })
    }
}

/// Whether `_type` is a pointer to a name: it then has 8 bytes up to `_name`; the number has 4 at the end.
fn is_named(structs: &VmStructs, owner: &str) -> bool {
    structs.offset(owner, "_type") == Ok(0)
}

fn entries(memory: &dyn Memory, structs: &VmStructs, owner: &str, texts: &mut Texts) -> Known<Vec<Entry>> {
    let table = Addr(structs.read_static(memory, owner, "flags")?);
    let count = structs.read_static(memory, owner, "numFlags")?;
    let stride = structs.size_of(owner)?;
    let (name, value) = (structs.offset(owner, "_name")?, structs.offset(owner, "_addr")?);
    let (kind, named) = (structs.offset(owner, "_type")?, is_named(structs, owner));
    let fits = |offset: u64, bytes: u64| offset.saturating_add(bytes) <= stride;
    if stride > 256 || !fits(name, 8) || !fits(value, 8) || !fits(kind, if named { 8 } else { 4 }) {
        return Err(Gap::new(format!("layout of {owner}"), Why::BadData(table)));
    }
    if count > FLAGS_MAX as u64 {
        return Err(Gap::new("flags", Why::OverLimit));
    }
    let mut bytes = vec![0; (count * stride) as usize];
    memory.read(table, &mut bytes).map_err(|fault| fault.gap(format!("{owner}::flags")))?;
    let mut found = Vec::new();
    for entry in bytes.chunks_exact(stride as usize) {
        let name_at = Addr(word(entry, name as usize));
        // The last entry is empty (JDK 8 to 25).
        if name_at.is_null() {
            continue;
        }
        let name = texts.read(memory, name_at).map_err(|fault| fault.gap("name of a flag"))?;
        let number = || array(entry, kind as usize).map_or(0, |bytes| u64::from(u32::from_le_bytes(bytes)));
        let kind = if named { word(entry, kind as usize) } else { number() };
        found.push(Entry { name, kind, value_at: Addr(word(entry, value as usize)) });
    }
    Ok(found)
}

fn types_by_name(memory: &dyn Memory, entries: &[Entry]) -> HashMap<u64, Type> {
    let mut kinds = HashMap::new();
    for entry in entries {
        if kinds.contains_key(&entry.kind) {
            continue;
        }
        let name = memory.c_string(Addr(entry.kind), 32);
        if let Some(kind) = name.ok().as_deref().and_then(type_named) {
            kinds.insert(entry.kind, kind);
        }
    }
    kinds
}

fn type_named(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "int" => Type::Int32,
        "uint" => Type::Uint32,
        "intx" => Type::Int64,
        "uintx" | "uint64_t" | "size_t" => Type::Uint64,
        "double" => Type::Double,
        "ccstr" | "ccstrlist" => Type::Text,
        _ => return None,
    })
}

/// The whole known numbering when no witness speaks against it, else only what the witnesses say.
fn types_by_number(texts: &Texts, entries: &[Entry]) -> HashMap<u64, Type> {
    let number =
        |name: &str| entries.iter().find(|entry| texts.get(entry.name) == name).map(|entry| entry.kind);
    let proved: HashMap<u64, Type> =
        WITNESSES.iter().filter_map(|(name, kind)| Some((number(name)?, *kind))).collect();
    let known = || TYPES_BY_NUMBER.iter().enumerate().map(|(number, kind)| (number as u64, *kind));
    let agrees = known().all(|(number, kind)| proved.get(&number).is_none_or(|witness| *witness == kind));
    let past = proved.keys().any(|number| *number >= TYPES_BY_NUMBER.len() as u64);
    if agrees && !past { known().collect() } else { proved }
}

fn read_value(memory: &dyn Memory, kind: Type, at: Addr) -> Result<Value, Fault> {
    Ok(match kind {
        Type::Bool => Value::Bool(memory.u8(at)? != 0),
        Type::Int32 => Value::Signed(memory.i32(at)?.into()),
        Type::Uint32 => Value::Unsigned(memory.u32(at)?.into()),
        Type::Int64 => Value::Signed(memory.u64(at)? as i64),
        Type::Uint64 => Value::Unsigned(memory.u64(at)?),
        Type::Double => Value::Double(f64::from_bits(memory.u64(at)?)),
        Type::Text => match memory.addr(at)? {
            Addr::NULL => Value::Text(String::new()),
            text => Value::Text(memory.c_string(text, C_STRING_BYTES_MAX)?),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::vmstructs::Field;
    use super::*;
    use crate::os::memory::Pieces;

    /// JDK 17's entry: `_addr` +0, `_name` +8, `_flags` +16, `_type` +20.
    fn one_flag(name: &str, kind: u32, value: &[u8]) -> Known<Flags> {
        let mut memory = Pieces::default();
        memory.put_words(Addr(0x1000), &[0x2000, 2]);
        memory.put_words(Addr(0x2000), &[0x4000, 0x3000, (kind as u64) << 32, 0, 0, 0]);
        memory.put(Addr(0x3000), &[name.as_bytes(), &[0; 64]].concat());
        memory.put(Addr(0x4000), value);
        let member = |offset| Field::Member { offset };
        let structs = VmStructs::with(
            &[
                ("JVMFlag", "flags", Field::Static { at: Addr(0x1000) }),
                ("JVMFlag", "numFlags", Field::Static { at: Addr(0x1008) }),
                ("JVMFlag", "_addr", member(0)),
                ("JVMFlag", "_name", member(8)),
                ("JVMFlag", "_type", member(20)),
            ],
            &[("JVMFlag", 24)],
            &[],
        );
        Flags::read(&memory, &structs)
    }

    fn value_of(name: &str, kind: u32, value: &[u8]) -> Option<String> {
        one_flag(name, kind, value).and_then(|flags| flags.text(name)).ok()
    }

    #[test]
    fn numbered_types_print_as_print_flags_final_does() {
        assert_eq!(value_of("UseSerialGC", 0, &[1]), Some("true".into()));
        assert_eq!(value_of("ThreadStackSize", 3, &1024_u64.to_le_bytes()), Some("1024".into()));
        assert_eq!(value_of("CICompilerCountPerCPU", 1, &(-3_i32).to_le_bytes()), Some("-3".into()));
        assert_eq!(value_of("MaxRAMPercentage", 7, &25.0_f64.to_le_bytes()), Some("25.000000".into()));
        assert_eq!(value_of("AllocateHeapAt", 8, &0_u64.to_le_bytes()), Some(String::new()));
    }

    #[test]
    fn a_witness_that_disagrees_takes_the_unproved_numbers_away() {
        assert_eq!(value_of("MaxHeapSize", 3, &64_u64.to_le_bytes()), Some("64".into()));
        let flags = one_flag("UseSerialGC", 1, &[1, 0, 0, 0]);
        assert_eq!(flags.and_then(|flags| flags.text("UseSerialGC")), Ok("true".into()));
    }

    #[test]
    fn a_hostile_count_is_over_the_limit() {
        let mut memory = Pieces::default();
        memory.put_words(Addr(0x1000), &[0x2000, u64::MAX]);
        let structs = VmStructs::with(
            &[
                ("Flag", "flags", Field::Static { at: Addr(0x1000) }),
                ("Flag", "numFlags", Field::Static { at: Addr(0x1008) }),
                ("Flag", "_type", Field::Member { offset: 0 }),
                ("Flag", "_name", Field::Member { offset: 8 }),
                ("Flag", "_addr", Field::Member { offset: 16 }),
            ],
            &[("Flag", 32)],
            &[],
        );
        assert_eq!(Flags::read(&memory, &structs).map(|_| ()).map_err(|gap| gap.why), Err(Why::OverLimit));
    }
}
