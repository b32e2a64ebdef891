//! Single objects, read by the names of their fields: counters of the JDK, the thread locals of a thread, a pool's own figures.

use super::moves::Moves;
use super::oops::Oops;
use crate::base::{Addr, Range};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::holders::classes::{Classes, FieldsOf};
use crate::jvm::hotspot::holders::fields::Field;
use crate::jvm::hotspot::window::Windows;

/// Distinct addresses at which a heap is mapped.
const VIEWS_MAX: usize = 3;
const ELEMENTS_MAX: u32 = 1 << 16;

pub struct Single<'a> {
    pub vm: &'a Hotspot<'a>,
    pub windows: &'a Windows<'a>,
    pub classes: &'a Classes,
    pub fields: &'a FieldsOf<'a>,
    pub oops: Oops,
    pub moves: &'a Moves,
    /// What makes addresses of plain ones.
    bases: Vec<u64>,
}

impl<'a> Single<'a> {
    pub fn new(
        vm: &'a Hotspot<'a>,
        windows: &'a Windows<'a>,
        classes: &'a Classes,
        fields: &'a FieldsOf<'a>,
        (oops, moves): (Oops, &'a Moves),
        used: &[Range],
    ) -> Single<'a> {
        let mut bases: Vec<u64> = used.iter().map(|it| it.start.0 - oops.plain(it.start)).collect();
        bases.dedup();
        bases.truncate(VIEWS_MAX);
        Single { vm, windows, classes, fields, oops, moves, bases }
    }

    /// Where the object with this plain address can be read, and its class.
    pub fn object(&self, plain: u64) -> Option<(Addr, Addr)> {
        self.bases.iter().find_map(|base| {
            let at = Addr(base.checked_add(plain)?);
            let mut head = [0; 16];
            self.windows.read(at, &mut head).ok().filter(|()| plain != 0 && at.is_aligned(8))?;
            let word = |at: usize| head[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            self.classes.of_head(word(0), word(8)).map(|(_, class)| (at, class))
        })
    }

    pub fn field(&self, class: Addr, name: &str) -> Option<Field> {
        self.fields.of(class).iter().find(|field| field.name == name).cloned()
    }

    /// What the field of this name of the object leads to.
    pub fn reference(&self, plain: u64, name: &str) -> Option<u64> {
        let (at, class) = self.object(plain)?;
        let field = self.field(class, name).filter(Field::is_reference)?;
        self.reference_at(at.plus(u64::from(field.offset)))
    }

    pub fn reference_at(&self, at: Addr) -> Option<u64> {
        let mut bytes = vec![0; self.oops.bytes()];
        self.windows.read(at, &mut bytes).ok()?;
        self.reference_in(&bytes, 0).filter(|to| *to != 0)
    }

    /// What the reference at `at` of `bytes` leads to.
    pub fn reference_in(&self, bytes: &[u8], at: u32) -> Option<u64> {
        Some(self.moves.follow(self.oops, self.oops.in_bytes(bytes, at)?))
    }

    /// The number in the field of this name: `int`, `long` or `boolean`.
    pub fn number(&self, plain: u64, name: &str) -> Option<i64> {
        let (at, class) = self.object(plain)?;
        let field = self.field(class, name)?;
        self.number_at(at.plus(u64::from(field.offset)), field.kind())
    }

    pub fn number_at(&self, at: Addr, signature: u8) -> Option<i64> {
        let mut bytes = [0; 8];
        let width = match signature {
            b'J' => 8,
            b'I' => 4,
            b'Z' => 1,
            _ => return None,
        };
        self.windows.read(at, &mut bytes[..width]).ok()?;
        let number = i64::from_le_bytes(bytes);
        Some(if width == 4 { i64::from(number as i32) } else { number })
    }

    /// The elements of an array of references that are not null.
    pub fn elements(&self, plain: u64) -> Vec<u64> {
        let step = self.oops.bytes() as u64;
        let Some((first, length)) = self.array(plain, step) else { return Vec::new() };
        (0..length).filter_map(|index| self.reference_at(first.plus(index * step))).collect()
    }

    /// The elements of an array of `int`.
    pub fn numbers(&self, plain: u64) -> Vec<i64> {
        let Some((first, length)) = self.array(plain, 4) else { return Vec::new() };
        (0..length).filter_map(|index| self.number_at(first.plus(index * 4), b'I')).collect()
    }

    /// Where the first element of an array lies, and how many there are. Classes of primitive arrays are not among `classes`.
    fn array(&self, plain: u64, element_bytes: u64) -> Option<(Addr, u64)> {
        let header = u64::from(self.classes.word().header_bytes());
        let length_of = |at: Addr| self.number_at(at.plus(header), b'I').map(|length| (at, length));
        let places = self.bases.iter().filter_map(|base| base.checked_add(plain));
        let (at, length) =
            places.map(Addr).filter(|at| plain != 0 && at.is_aligned(8)).find_map(length_of)?;
        let length = length.clamp(0, i64::from(ELEMENTS_MAX));
        Some((at.plus((header + 4).next_multiple_of(element_bytes)), length as u64))
    }

    /// What a pointer of the VM to an object leads to: a handle since JDK 10 or 16, the object itself before.
    pub fn of_handle(&self, handle: u64) -> Option<u64> {
        let behind = self.windows.u64(Addr(handle)).unwrap_or(0);
        let decoded = match self.oops {
            // Handles are not compressed.
            Oops::Narrow(..) => behind,
            oops => self.moves.follow(oops, behind),
        };
        [decoded, self.oops.plain(Addr(handle))].into_iter().find(|plain| self.object(*plain).is_some())
    }

    /// Where the static fields of a class lie.
    pub fn mirror(&self, class: Addr) -> Option<Addr> {
        let at = class.plus(self.vm.structs.offset("Klass", "_java_mirror").ok()?);
        let mirror = self.of_handle(self.windows.u64(at).ok()?)?;
        self.object(mirror).map(|(at, _)| at)
    }
}
