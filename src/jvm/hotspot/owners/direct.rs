//! Direct buffers: every one that Java code allocated has a `Cleaner` in the list that begins at `Cleaner.first`, whose
//! `DirectByteBuffer$Deallocator` holds the address of the memory (JDK 8 to 25). No field's place need be known: whatever
//! in an object decodes to an object of one of the two classes leads on, and whatever is the start of a block is the
//! buffer. Heaps with coloured pointers (ZGC) are not followed.

use super::given::Given;
use super::leads::SmallClass;
use super::owner::Owner;
use crate::base::limits::DIRECT_BUFFERS_MAX;
use crate::base::{Addr, Range};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::window::Windows;
use crate::jvm::types::{JvmView, Kind};
use std::collections::{HashMap, HashSet};

const CLEANERS: [&str; 2] = ["jdk/internal/ref/Cleaner", "sun/misc/Cleaner"];
const DEALLOCATOR: &str = "java/nio/DirectByteBuffer$Deallocator";
/// Less memory of large blocks without an owner than this is not worth the search.
const WORTH_BYTES: u64 = 64 << 10;
const LARGE_BYTES: u64 = 1 << 10;
/// The mirror of `Cleaner`, its statics included, is not longer.
const MIRROR_BYTES_MAX: usize = 512;

pub fn buffers(vm: &Hotspot, view: &JvmView, classes: &[SmallClass], given: &mut Given) {
    let unowned = |block: usize| match given.owners[block] {
        None => Some(given.index.payload(block).bytes()).filter(|bytes| *bytes >= LARGE_BYTES),
        Some(_) => None,
    };
    if (0..given.index.len()).filter_map(unowned).sum::<u64>() < WORTH_BYTES {
        return;
    }
    let windows = Windows::new(vm.target);
    let Some(search) = Search::new(vm, view, &windows, classes) else { return };
    for at in search.buffers() {
        given.give(at, Owner::DirectBuffers);
    }
}

struct Search<'a> {
    windows: &'a Windows<'a>,
    heap: Vec<Range>,
    /// Base and shift of compressed pointers to objects; `None`: they are not compressed.
    narrow: Option<(u64, u32)>,
    class_word: ClassWord,
    /// Class, and bytes of an object.
    cleaner: (u64, usize),
    deallocator: (u64, usize),
    mirror: (Addr, usize),
}

/// How an object names its class.
#[derive(Clone, Copy)]
enum ClassWord {
    Whole,
    /// Base and shift, at +8.
    Narrow(u64, u32),
    /// Base and shift, in the upper 22 bits of the mark word (-XX:+UseCompactObjectHeaders).
    InMark(u64, u32),
}

impl<'a> Search<'a> {
    fn new(
        vm: &Hotspot,
        view: &JvmView,
        windows: &'a Windows<'a>,
        classes: &[SmallClass],
    ) -> Option<Search<'a>> {
        let named = named(vm, windows, classes);
        let cleaner = CLEANERS.iter().find_map(|name| named.get(name)).copied()?;
        let deallocator = named.get(DEALLOCATOR).copied()?;
        let coding = |owners: &[(&str, &str)]| {
            let of = |name: &str| {
                owners
                    .iter()
                    .find_map(|(owner, prefix)| vm.structs.static_at(owner, &format!("{prefix}{name}")).ok())
            };
            let base = vm.memory().u64(of("_base")?).ok()?;
            Some((base, vm.memory().u32(of("_shift")?).ok().filter(|shift| *shift < 16)?))
        };
        let narrow = match vm.flags.is_on("UseCompressedOops") {
            true => Some(coding(&[
                ("CompressedOops", "_narrow_oop."),
                ("CompressedOops", ""),
                ("Universe", "_narrow_oop."),
            ])?),
            false => None,
        };
        let class_word = match vm.flags.is_on("UseCompressedClassPointers") {
            true => {
                let (base, shift) = coding(&[
                    ("CompressedKlassPointers", "_narrow_klass."),
                    ("CompressedKlassPointers", ""),
                    ("Universe", "_narrow_klass."),
                ])?;
                match vm.flags.is_on("UseCompactObjectHeaders") {
                    true => ClassWord::InMark(base, shift),
                    false => ClassWord::Narrow(base, shift),
                }
            }
            false => ClassWord::Whole,
        };
        let heap = view.extents.iter().filter(|extent| extent.kind == Kind::JavaHeap);
        let heap = heap.map(|extent| extent.range).collect();
        let mirror =
            windows.addr(Addr(cleaner.0).plus(vm.structs.offset("Klass", "_java_mirror").ok()?)).ok()?;
        // A handle since JDK 10, the object itself before.
        let mirror = if vm.major == Some(8) { mirror } else { windows.addr(mirror).ok()? };
        let size_at = vm.structs.static_at("java_lang_Class", "_oop_size_offset").ok()?;
        let size_at = mirror.plus(u64::from(vm.memory().u32(size_at).ok()?));
        let words = vm.memory().u32(size_at).ok()? as usize;
        let mirror = (mirror, words.saturating_mul(8).min(MIRROR_BYTES_MAX));
        Some(Search { windows, heap, narrow, class_word, cleaner, deallocator, mirror })
    }

    /// Every word of every `Deallocator` that may be an address.
    fn buffers(&self) -> Vec<u64> {
        let (mut seen, mut found) = (HashSet::new(), Vec::new());
        let mut todo = self.objects_in(self.mirror.0, self.mirror.1);
        while let Some((object, class)) = todo.pop() {
            if seen.len() == DIRECT_BUFFERS_MAX {
                break;
            }
            if !seen.insert(object) {
                continue;
            }
            if class == self.cleaner.0 {
                todo.extend(self.objects_in(object, self.cleaner.1));
            } else {
                let mut bytes = vec![0; self.deallocator.1];
                if self.windows.read(object, &mut bytes).is_ok() {
                    found.extend(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)));
                }
            }
        }
        found
    }

    /// Objects of the two classes to which an object points.
    fn objects_in(&self, object: Addr, bytes: usize) -> Vec<(Addr, u64)> {
        let mut buffer = vec![0; bytes];
        if self.windows.read(object, &mut buffer).is_err() {
            return Vec::new();
        }
        let addresses: Vec<u64> = match self.narrow {
            Some((base, shift)) => {
                let narrow =
                    buffer.as_chunks::<4>().0.iter().map(|slot| u64::from(u32::from_le_bytes(*slot)));
                narrow.filter(|slot| *slot != 0).map(|slot| base.wrapping_add(slot << shift)).collect()
            }
            None => buffer.as_chunks::<8>().0.iter().map(|slot| u64::from_le_bytes(*slot)).collect(),
        };
        let objects = addresses.into_iter().map(Addr).filter(|at| at.is_aligned(8));
        let objects = objects.filter(|at| self.heap.iter().any(|range| range.has(*at)));
        objects.filter_map(|at| Some((at, self.class_of(at)?))).collect()
    }

    /// The class of the object at `at`, if it is one of the two.
    fn class_of(&self, at: Addr) -> Option<u64> {
        let class = match self.class_word {
            ClassWord::Whole => self.windows.u64(at.plus(8)).ok()?,
            ClassWord::Narrow(base, shift) => {
                base.wrapping_add((self.windows.u64(at.plus(8)).ok()? & 0xffff_ffff) << shift)
            }
            ClassWord::InMark(base, shift) => base.wrapping_add((self.windows.u64(at).ok()? >> 42) << shift),
        };
        (class == self.cleaner.0 || class == self.deallocator.0).then_some(class)
    }
}

/// The classes of the boot loader that have one of the names.
fn named(vm: &Hotspot, windows: &Windows, classes: &[SmallClass]) -> HashMap<&'static str, (u64, usize)> {
    let mut found = HashMap::new();
    let offset = |owner, name| vm.structs.offset(owner, name);
    let (Ok(loader), Ok(length)) = (offset("ClassLoaderData", "_class_loader"), offset("Symbol", "_length"))
    else {
        return found;
    };
    let Ok(body) = offset("Symbol", "_body[0]").or_else(|_| offset("Symbol", "_body")) else { return found };
    let mut is_boot: HashMap<Addr, bool> = HashMap::new();
    for class in classes {
        let is_boot = is_boot
            .entry(class.loader)
            .or_insert_with(|| windows.u64(class.loader.plus(loader)).is_ok_and(|loader| loader == 0));
        let mut bytes = [0; 2];
        if !*is_boot || windows.read(class.name.plus(length), &mut bytes).is_err() {
            continue;
        }
        let length = usize::from(u16::from_le_bytes(bytes));
        for name in CLEANERS.into_iter().chain([DEALLOCATOR]).filter(|name| name.len() == length) {
            let mut text = vec![0; length];
            if windows.read(class.name.plus(body), &mut text).is_ok() && text == name.as_bytes() {
                found.insert(name, (class.class.0, class.bytes));
            }
        }
    }
    found
}
