//! What class loaders hold, as the reader of a runtime found it: one row a group of alike loaders.

use crate::base::{Bytes, Gap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The class of the loader that has no object: the VM itself loads with it.
pub const BOOTSTRAP: &str = "<bootstrap>";

/// Loaders of one class whose names differ at most in their numbers. `None`: not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct LoaderGroup {
    /// "org.apache.catalina.loader.ParallelWebappClassLoader", "<bootstrap>".
    pub class: Option<String>,
    /// Without its numbers: "plugin-#"; `None`: the loaders have no name.
    pub name: Option<String>,
    pub loaders: u64,
    /// In use in both spaces: "used" of `jcmd PID VM.metaspace show-loaders`. Blocks that were freed within chunks count.
    pub metaspace_bytes: Option<Bytes>,
    /// The part of `metaspace_bytes` in the class space.
    pub class_space_bytes: Option<Bytes>,
    /// The committed bytes of the loaders' chunks.
    pub metaspace_committed_bytes: Option<Bytes>,
    pub metaspace_resident_bytes: Option<Bytes>,
    /// Array classes and hidden classes included.
    pub classes: Option<u64>,
    /// The part of `classes` with a metaspace of its own: hidden classes that may be unloaded alone; anonymous classes before
    /// JDK 15.
    pub hidden_classes: Option<u64>,
    /// Blocks of malloc that the loaders and their classes lead to: dictionaries, packages, modules, handles, method ids.
    pub malloc_bytes: Option<Bytes>,
    /// Compiled code of the classes' methods, with its data in the code cache.
    pub code_bytes: Option<Bytes>,
}

impl LoaderGroup {
    /// "com.example.PluginLoader 'plugin-#'".
    pub fn title(&self) -> String {
        let class = self.class.as_deref().unwrap_or("class not known");
        self.name.as_ref().map_or_else(|| class.to_string(), |name| format!("{class} '{name}'"))
    }
}

/// All groups, the one with the most metaspace first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaders {
    pub rows: Vec<LoaderGroup>,
    pub gaps: Vec<Gap>,
}
