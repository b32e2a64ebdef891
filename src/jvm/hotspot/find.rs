//! Which library in the process is HotSpot.

use crate::base::{Gap, Known, Why};
use crate::os::Target;
use crate::os::elf::Image;
use crate::os::maps::Mapping;

/// The name under which every HotSpot build ships its VM.
pub const LIBRARY_NAME: &str = "libjvm.so";

/// Whether this mapping is the start of a HotSpot VM's image.
pub fn is_libjvm(mapping: &Mapping) -> bool {
    mapping.offset == 0 && mapping.is_file() && mapping.file_name() == LIBRARY_NAME
}

/// Whether this mapping is the start of any JVM's image: HotSpot's, or OpenJ9's (libj9vm29.so), which is only recognised.
pub fn is_jvm(mapping: &Mapping) -> bool {
    let name = mapping.file_name();
    is_libjvm(mapping) || (mapping.is_file() && name.starts_with("libj9vm") && name.ends_with(".so"))
}

/// The image of libjvm.so; the first, if a process has loaded two.
pub fn library(target: &Target) -> Known<Image> {
    let first = target.view.mappings.iter().find(|mapping| is_libjvm(mapping)).ok_or_else(|| {
        Gap::new("libjvm.so", Why::NotInThisRuntime)
            .hint("the process maps no libjvm.so: it is no HotSpot JVM")
    })?;
    Image::read(target.memory, first).map_err(|fault| fault.gap("headers of libjvm.so"))
}
