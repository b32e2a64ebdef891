//! The loaded executables and libraries: whose memory a mapped segment is, its zeroed tail (.bss) included, which the
//! kernel shows as an anonymous mapping without a name.

use crate::os::Target;
use crate::os::elf::Image;
use std::collections::HashSet;

/// Every image that has an executable mapping. One whose headers cannot be read is left out: its mappings still carry
/// its path.
pub fn read(target: &Target) -> Vec<Image> {
    let mappings = &target.view.mappings;
    let with_code: HashSet<&str> =
        mappings.iter().filter(|m| m.is_file() && m.rights.execute).map(|m| m.path.as_str()).collect();
    mappings
        .iter()
        .filter(|mapping| mapping.offset == 0 && with_code.contains(mapping.path.as_str()))
        .filter_map(|first| {
            let image = Image::read(target.memory, first).ok()?;
            // A file that is mapped for reading, not loaded, has no segment that lies where its headers say.
            let loaded = image.segments.iter().any(|(range, _)| {
                target.mapping(range.start).is_some_and(|m| m.path == first.path && m.rights.execute)
            });
            loaded.then_some(image)
        })
        .collect()
}
