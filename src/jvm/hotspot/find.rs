//! Which library in the process is HotSpot.

use crate::base::{Gap, Known, Why};
use crate::os::elf::Image;
use crate::os::{Target, loaded};

/// What every libjvm.so exports and no other library does.
const EXPORTED: &str = "gHotSpotVMStructs";

/// The image of libjvm.so; the first, if a process has loaded two. Of libraries in memory files with other names, the one that
/// exports what libjvm.so does.
pub fn library(target: &Target) -> Known<Image> {
    let candidates = loaded::hotspot(&target.view.mappings);
    let first = candidates.first().ok_or_else(|| {
        Gap::new("libjvm.so", Why::NotInThisRuntime)
            .hint("the process maps no libjvm.so: it is not a HotSpot JVM")
    })?;
    if candidates.len() > 1 {
        let images = candidates.iter().filter_map(|start| Image::read(target.memory, start).ok());
        let mut images =
            images.filter(|image| matches!(image.exported(target.memory, EXPORTED), Ok(Some(_))));
        if let Some(image) = images.next() {
            return Ok(image);
        }
    }
    Image::read(target.memory, first).map_err(|fault| fault.gap("headers of libjvm.so"))
}
