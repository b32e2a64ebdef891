//! The JDK's own counters of buffers: static fields of `java.nio.Bits` and `sun.nio.ch.FileChannelImpl` (JDK 8 to 25).

use super::single::Single;
use crate::base::{Addr, Known};
use crate::jvm::BufferPool;

const BITS: &str = "java/nio/Bits";
/// Names up to JDK 8, and since.
const OF_BITS: [[&str; 2]; 3] =
    [["reservedMemory", "RESERVED_MEMORY"], ["totalCapacity", "TOTAL_CAPACITY"], ["count", "COUNT"]];
const OF_MAPPED: [[&str; 2]; 3] =
    [["totalSize", "totalSize"], ["totalCapacity", "totalCapacity"], ["count", "count"]];

/// Direct and mapped. A class that was not loaded has counted nothing.
pub fn read(single: &Single) -> Known<(Option<BufferPool>, Option<BufferPool>)> {
    let is_mapped =
        |name: &str| name.starts_with("sun/nio/ch/FileChannelImpl$") && name.ends_with("Unmapper");
    let named = single.classes.named(single.vm, single.windows, |name| name == BITS || is_mapped(name))?;
    let (mut direct, mut mapped) = (None, None);
    for (class, name) in named {
        if name == BITS {
            direct = pool(single, class, &OF_BITS);
        } else if let Some(pool) = pool(single, class, &OF_MAPPED) {
            mapped.get_or_insert(BufferPool::default()).add(pool);
        }
    }
    Ok((direct, mapped))
}

fn pool(single: &Single, class: Addr, names: &[[&str; 2]; 3]) -> Option<BufferPool> {
    let mirror = single.mirror(class)?;
    let number = |names: &[&str; 2]| {
        let field =
            names.iter().find_map(|name| single.field(class, name).filter(|field| field.is_static))?;
        let at = mirror.plus(u64::from(field.offset));
        // An `AtomicLong`, or the number itself.
        let number = match field.is_reference() {
            true => single.number(single.reference_at(at)?, "value"),
            false => single.number_at(at, field.kind()),
        };
        u64::try_from(number?).ok()
    };
    Some(BufferPool {
        reserved_bytes: number(&names[0])?,
        capacity_bytes: number(&names[1])?,
        count: number(&names[2])?,
    })
}

impl BufferPool {
    fn add(&mut self, other: BufferPool) {
        self.reserved_bytes = self.reserved_bytes.saturating_add(other.reserved_bytes);
        self.capacity_bytes = self.capacity_bytes.saturating_add(other.capacity_bytes);
        self.count = self.count.saturating_add(other.count);
    }
}
