//! From the objects that a pass met to the memory that they stand for. Each piece of memory counts once, by the object that will
//! free it: the JDK's `Deallocator` in its list of cleaners, the `Unmapper` of a mapping, the clean-up of an arena. What none of
//! these covers is a buffer of `Unsafe` or of a native library.
//!
//! src/java.base/share/classes: java/nio/Direct-X-Buffer.java.template, jdk/internal/ref/Cleaner.java,
//! sun/nio/ch/FileChannelImpl.java, jdk/internal/foreign/{NativeMemorySegmentImpl,SegmentFactories}.java, JDK 8 to 26;
//! java/nio/BufferCleaner.java, JDK 26.

use super::scan::Object;
use super::single::Single;
use crate::base::{Addr, Bytes, Known, Range};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::holders::classes::{Classes, Form};
use crate::jvm::hotspot::window::Windows;
use std::collections::{HashMap, HashSet};

/// What an object of a class is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Cleaner,
    /// JDK 26.
    BufferCleaner,
    Deallocator,
    Unmapper,
    Buffer,
    Segment,
    /// What an arena does at its end.
    CleanUp,
}

/// More than the fields that are read, none of them is behind.
const OBJECT_BYTES_MAX: u32 = 512;

fn role_of(class: &str) -> Option<Role> {
    Some(match class {
        "sun/misc/Cleaner" | "jdk/internal/ref/Cleaner" => Role::Cleaner,
        "java/nio/BufferCleaner$PhantomCleaner" => Role::BufferCleaner,
        "java/nio/DirectByteBuffer$Deallocator" => Role::Deallocator,
        "java/nio/DirectByteBuffer" | "java/nio/DirectByteBufferR" => Role::Buffer,
        "jdk/internal/foreign/NativeMemorySegmentImpl" | "jdk/internal/foreign/MappedMemorySegmentImpl" => {
            Role::Segment
        }
        _ if class.starts_with("sun/nio/ch/FileChannelImpl$") && class.ends_with("Unmapper") => {
            Role::Unmapper
        }
        "jdk/internal/foreign/NativeMemorySegmentImpl$1" | "jdk/internal/foreign/SegmentFactories$1" => {
            Role::CleanUp
        }
        _ => return None,
    })
}

impl Role {
    /// The fields that are read, by their names in this or that release.
    fn fields(self) -> &'static [&'static [&'static str]] {
        match self {
            Role::Cleaner => &[&["thunk"], &["next"], &["prev"]],
            Role::BufferCleaner => &[&["action"], &["node"]],
            Role::Deallocator => &[&["address"], &["size"], &["capacity"]],
            Role::Unmapper => &[&["address"], &["size"], &["cap"]],
            Role::Buffer => &[&["address"], &["capacity"], &["att"], &["cleaner"]],
            Role::Segment => &[&["min"], &["length"]],
            Role::CleanUp => &[
                &["val$allocationBase", "val$buf"],
                &["val$allocationSize", "val$alignedSize"],
                // The last is JDK 26's.
                &["val$byteSize", "val$bytesSize", "val$cleanupByteSize"],
                &["val$shouldReserve"],
            ],
        }
    }
}

/// The offset of a field, and the first letter of its signature.
type Place = (u32, u8);

/// The classes whose objects are read: their role, and where their fields lie.
pub struct Wanted {
    classes: HashMap<Addr, (Role, Vec<Option<Place>>)>,
    pub bytes: Vec<(Addr, u32)>,
    pub cleaner: Option<Addr>,
}

impl Wanted {
    pub fn read(vm: &Hotspot, windows: &Windows, classes: &Classes, single: &Single) -> Known<Wanted> {
        let mut wanted = Wanted { classes: HashMap::new(), bytes: Vec::new(), cleaner: None };
        for (class, name) in classes.named(vm, windows, |name| role_of(name).is_some())? {
            let Some((role, Form::Instance(bytes))) = role_of(&name).zip(classes.form(class)) else {
                continue;
            };
            let place = |names: &&[&str]| {
                let field = names.iter().find_map(|name| single.field(class, name))?;
                Some((field.offset, field.kind()))
            };
            wanted.classes.insert(class, (role, role.fields().iter().map(place).collect()));
            wanted.bytes.push((class, bytes.min(OBJECT_BYTES_MAX)));
            if role == Role::Cleaner {
                wanted.cleaner = Some(class);
            }
        }
        Ok(wanted)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    Direct,
    Mapped,
    Arena,
    /// An object of `java.lang.foreign` alone.
    Segment,
    /// A `ByteBuffer` alone.
    Buffer,
}

/// A piece of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub source: Source,
    pub base: u64,
    /// What was asked of malloc or mapped.
    pub size: Bytes,
    pub capacity: Bytes,
    /// Whether `java.nio.Bits` counts it.
    pub is_counted: bool,
    /// The objects that lead to it, by plain address and class.
    pub objects: Vec<(u64, Addr)>,
    /// The object that frees it.
    owner: u64,
    /// `objects` are the buffers whose cleaner calls the owner. Buffers that are garbage may have had the same address before.
    is_proven: bool,
}

impl Memory {
    fn of(object: &Object, source: Source, base: u64, (size, capacity): (Bytes, Bytes)) -> Memory {
        let is_counted = source == Source::Direct;
        Memory {
            source,
            base,
            size,
            capacity,
            is_counted,
            objects: Vec::new(),
            owner: object.at,
            is_proven: false,
        }
    }
}

/// What malloc says of an address: whether a block in use of this size starts there. `None`: malloc was not read.
pub type InUse<'a> = &'a dyn Fn(u64, Bytes) -> Option<bool>;

/// Reads fields of objects by their places.
struct Fields<'a> {
    single: &'a Single<'a>,
    wanted: &'a Wanted,
}

impl Fields<'_> {
    fn role(&self, object: &Object) -> Option<Role> {
        self.wanted.classes.get(&object.class).map(|class| class.0)
    }

    fn number(&self, object: &Object, field: usize) -> Option<u64> {
        let (at, signature) = (*self.wanted.classes.get(&object.class)?.1.get(field)?)?;
        let rest = object.bytes.get(at as usize..)?;
        Some(match signature {
            b'J' => u64::from_le_bytes(*rest.first_chunk()?),
            b'I' => u64::try_from(i32::from_le_bytes(*rest.first_chunk()?)).ok()?,
            b'Z' => u64::from(*rest.first()?),
            _ => return None,
        })
    }

    fn reference(&self, object: &Object, field: usize) -> Option<u64> {
        let (at, _) = (*self.wanted.classes.get(&object.class)?.1.get(field)?)?;
        self.single.reference_in(&object.bytes, at)
    }
}

/// All memory that the objects stand for, sorted by address.
pub fn memory(objects: &[Object], wanted: &Wanted, single: &Single, in_use: InUse) -> Vec<Memory> {
    let fields = Fields { single, wanted };
    let mut by_role: HashMap<u8, Vec<&Object>> = HashMap::new();
    let mut met: HashSet<u64> = HashSet::new();
    for object in objects.iter().filter(|object| met.insert(object.at)) {
        if let Some(role) = fields.role(object) {
            by_role.entry(role as u8).or_default().push(object);
        }
    }
    let of = |role: Role| by_role.get(&(role as u8)).map_or(&[][..], |found| found);
    let cleaned = Cleaned::of(of(Role::Cleaner), of(Role::BufferCleaner), &fields);
    let owned = [
        of(Role::Deallocator)
            .iter()
            .filter_map(|object| deallocated(object, &fields, &cleaned, in_use))
            .collect::<Vec<Memory>>(),
        of(Role::Unmapper).iter().filter_map(|object| unmapped(object, &fields, single)).collect(),
        of(Role::CleanUp).iter().filter_map(|object| of_arena(object, &fields)).collect(),
    ];
    let mut found = disjoint(owned.concat());
    let mut alone = Vec::new();
    for object in of(Role::Buffer).iter().chain(of(Role::Segment)) {
        alone.extend(attach(object, &fields, &cleaned, &mut found));
    }
    found.extend(alone);
    disjoint(found)
}

/// Merges buffers that begin at one address into the first, with the objects of all.
fn disjoint(mut found: Vec<Memory>) -> Vec<Memory> {
    found.sort_by_key(|memory| memory.base);
    let mut kept: Vec<Memory> = Vec::with_capacity(found.len());
    for memory in found {
        match kept.last_mut() {
            Some(last) if last.base == memory.base => last.objects.extend(memory.objects),
            _ => kept.push(memory),
        }
    }
    kept
}

/// Which `Deallocator`s wait in a list.
struct Cleaned {
    waiting: HashSet<u64>,
    done: HashSet<u64>,
    /// What each cleaner calls.
    owners: HashMap<u64, u64>,
    /// The list was followed to its end.
    is_whole: bool,
}

impl Cleaned {
    fn of(cleaners: &[&Object], newer: &[&Object], fields: &Fields) -> Cleaned {
        let (mut waiting, mut done) = (HashSet::new(), HashSet::new());
        let listed = listed(cleaners, fields);
        for cleaner in cleaners {
            let (next, prev) = (fields.reference(cleaner, 1), fields.reference(cleaner, 2));
            // A cleaner that has run leads to itself both ways (`Cleaner.remove`).
            let is_removed = next == Some(cleaner.at) || (next == prev && next != Some(0));
            let is_waiting = listed.as_ref().map_or(!is_removed, |listed| listed.contains(&cleaner.at));
            let into = if is_waiting { &mut waiting } else { &mut done };
            into.extend(fields.reference(cleaner, 0));
        }
        for cleaner in newer {
            let is_waiting = fields.reference(cleaner, 1).is_some_and(|node| node != 0);
            let into = if is_waiting { &mut waiting } else { &mut done };
            into.extend(fields.reference(cleaner, 0));
        }
        let both = cleaners.iter().chain(newer);
        let owners = both.filter_map(|cleaner| Some((cleaner.at, fields.reference(cleaner, 0)?))).collect();
        // JDK 26 has no such list.
        Cleaned { waiting, done, owners, is_whole: listed.is_some() }
    }
}

/// The cleaners in the list that begins at `Cleaner.first`; `None`: it cannot be followed to its end.
fn listed(cleaners: &[&Object], fields: &Fields) -> Option<HashSet<u64>> {
    let single = fields.single;
    let class = fields.wanted.cleaner?;
    let first = single.field(class, "first").filter(|field| field.is_static)?;
    let at = single.mirror(class)?.plus(u64::from(first.offset));
    let mut bytes = vec![0; single.oops.bytes()];
    single.windows.read(at, &mut bytes).ok()?;
    let mut at = single.reference_in(&bytes, 0)?;
    let by_address: HashMap<u64, &&Object> = cleaners.iter().map(|cleaner| (cleaner.at, cleaner)).collect();
    let mut listed = HashSet::new();
    while at != 0 {
        let cleaner = by_address.get(&at)?;
        if !listed.insert(at) {
            return None;
        }
        at = fields.reference(cleaner, 1)?;
    }
    Some(listed)
}

fn deallocated(object: &Object, fields: &Fields, cleaned: &Cleaned, in_use: InUse) -> Option<Memory> {
    // Up to JDK 17 a `Deallocator` that has run holds no address.
    let base = fields.number(object, 0).filter(|base| *base != 0)?;
    let size = fields.number(object, 1)?;
    let capacity = fields.number(object, 2).filter(|capacity| *capacity <= size)?;
    let is_waiting = cleaned.waiting.contains(&object.at)
        // Where the list cannot be followed and references may be stale, malloc decides.
        || !cleaned.is_whole
            && fields.single.oops.may_be_stale()
            && !cleaned.done.contains(&object.at)
            && in_use(base, size) == Some(true);
    // The buffer is found by its address.
    is_waiting.then(|| Memory::of(object, Source::Direct, base, (size, capacity)))
}

fn unmapped(object: &Object, fields: &Fields, single: &Single) -> Option<Memory> {
    // 0 once it is unmapped.
    let base = fields.number(object, 0).filter(|base| *base != 0)?;
    let (size, capacity) = (fields.number(object, 1)?, fields.number(object, 2)?);
    // A copy that is left over may name what is gone.
    let mapping = single.vm.target.mapping(Addr(base)).filter(|mapping| mapping.is_file())?;
    let is_mapped = mapping.range.covers(Range::sized(Addr(base), size.max(1))) && capacity <= size;
    is_mapped.then(|| Memory::of(object, Source::Mapped, base, (size, capacity)))
}

fn of_arena(object: &Object, fields: &Fields) -> Option<Memory> {
    let base = fields.number(object, 0).filter(|base| *base != 0)?;
    let size = fields.number(object, 1)?;
    let capacity = fields.number(object, 2).filter(|capacity| *capacity <= size)?;
    Some(Memory {
        is_counted: fields.number(object, 3) != Some(0),
        objects: vec![(object.at, object.class)],
        ..Memory::of(object, Source::Arena, base, (size, capacity))
    })
}

/// Notes that a buffer or segment leads to the memory that has its address; one that no memory has is memory of its own.
fn attach(object: &Object, fields: &Fields, cleaned: &Cleaned, found: &mut [Memory]) -> Option<Memory> {
    let base = fields.number(object, 0).filter(|base| *base != 0)?;
    let capacity = fields.number(object, 1).filter(|capacity| *capacity > 0)?;
    let is_buffer = fields.role(object) == Some(Role::Buffer);
    if is_buffer && fields.reference(object, 2) != Some(0) {
        return None;
    }
    let cleaner = fields.reference(object, 3).filter(|_| is_buffer);
    let owner = cleaner.and_then(|cleaner| cleaned.owners.get(&cleaner));
    let before = found.partition_point(|memory| memory.base <= base);
    if let Some(memory) = found[..before].last_mut().filter(|it| base - it.base < it.size.max(1)) {
        let is_proven = owner == Some(&memory.owner);
        if is_proven && !memory.is_proven {
            (memory.is_proven, memory.objects) = (true, Vec::new());
        }
        // A part of it may have another holder.
        if is_proven || !memory.is_proven && (capacity == memory.capacity || base == memory.base) {
            memory.objects.push((object.at, object.class));
        }
        return None;
    }
    // What its cleaner frees was there, if it were not freed.
    let has_cleaner = is_buffer && cleaner != Some(0);
    let source = if is_buffer { Source::Buffer } else { Source::Segment };
    (!has_cleaner).then(|| Memory {
        objects: vec![(object.at, object.class)],
        ..Memory::of(object, source, base, (capacity, capacity))
    })
}
