//! The texts of `Symbol`s, by which HotSpot names classes, fields and methods (src/hotspot/share/oops/symbol.hpp, JDK 8 to 28).
//! Here, so that each reader of names keeps the same part of them in a recording.

use super::Hotspot;
use super::window::Windows;
use crate::base::{Addr, Known};
use crate::os::Memory;

/// The longest text that is read; a longer one is cut.
const NAME_BYTES_MAX: usize = 512;

/// Where a `Symbol` has its text.
#[derive(Default)]
pub struct Names {
    length: u64,
    body: u64,
}

impl Names {
    pub fn read(vm: &Hotspot) -> Known<Names> {
        let body = vm.structs.offset_of_any(&[("Symbol", "_body[0]"), ("Symbol", "_body")])?;
        Ok(Names { length: vm.structs.offset("Symbol", "_length")?, body })
    }

    pub fn length(&self, windows: &Windows, symbol: Addr) -> Option<usize> {
        windows.array(symbol.plus(self.length)).ok().map(|length| usize::from(u16::from_le_bytes(length)))
    }

    /// Only a name that is the right one is kept by a recording.
    pub fn is(&self, windows: &Windows, memory: &dyn Memory, symbol: Addr, name: &str) -> bool {
        let mut text = vec![0; name.len()];
        let at = symbol.plus(self.body);
        let is_it = self.length(windows, symbol) == Some(name.len())
            && memory.peek(at, &mut text).is_ok()
            && text == name.as_bytes();
        if is_it {
            memory.used(at, &text);
        }
        is_it
    }

    /// The text, if it is wanted.
    pub fn peeked(
        &self,
        windows: &Windows,
        memory: &dyn Memory,
        symbol: Addr,
        is_wanted: &impl Fn(&str) -> bool,
    ) -> Option<String> {
        let mut text = vec![0; self.length(windows, symbol)?.min(NAME_BYTES_MAX)];
        let at = symbol.plus(self.body);
        memory.peek(at, &mut text).ok()?;
        let found = std::str::from_utf8(&text).ok().filter(|text| is_wanted(text))?.to_string();
        memory.used(at, &text);
        Some(found)
    }

    pub fn text(&self, memory: &dyn Memory, symbol: Addr) -> Option<String> {
        Some(String::from_utf8_lossy(&self.bytes(memory, symbol)?).into_owned())
    }

    pub fn bytes(&self, memory: &dyn Memory, symbol: Addr) -> Option<Vec<u8>> {
        let length = memory.u16(symbol.plus(self.length)).ok()?;
        let mut text = vec![0; usize::from(length).min(NAME_BYTES_MAX)];
        memory.read_text(symbol.plus(self.body), &mut text).ok()?;
        Some(text)
    }
}
