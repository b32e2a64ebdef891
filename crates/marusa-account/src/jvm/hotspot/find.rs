//! Which library in the process is HotSpot.

use crate::base::{Gap, Known, Why};
use crate::os::elf::{Image, Made};
use crate::os::{Target, loaded};

/// What every libjvm.so exports and no other library does.
const EXPORTED: &str = "gHotSpotVMStructs";

/// The image of libjvm.so; the first, if a process has loaded two. Of libraries in memory files with other names, the one that
/// exports what libjvm.so does.
pub fn library(target: &Target) -> Known<Image> {
    let candidates = loaded::hotspot(&target.view.mappings);
    let first = candidates.first().ok_or_else(|| {
        let hint = match loaded::native_image(&target.view.mappings) {
            Some(_) => "a GraalVM native image has its heap, collector and code in its own file, and no tables that describe them",
            None => "the process maps no libjvm.so: it is not a HotSpot JVM",
        };
        Gap::new("libjvm.so", Why::NotInThisRuntime).hint(hint)
    })?;
    if let Some(made) = Made::read(target.memory, first).filter(|made| !made.is_native()) {
        return Err(foreign(made));
    }
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

/// A JVM for another processor, which an emulator runs (qemu-user), or one of 32 bits: its pointers are not those of this machine.
fn foreign(made: Made) -> Gap {
    Gap::new(format!("the runtime: libjvm.so is made for {}", made.name()), Why::NotInThisRuntime)
        .hint("of a JVM for another processor, which an emulator runs, and of a 32-bit one the kernel's view is left")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Addr;
    use crate::os::maps;
    use crate::os::memory::Pieces;

    #[test]
    fn a_vm_for_another_machine_is_named() {
        let line = b"7f0000000000-7f0000200000 r--p 00000000 fe:00 7 /jdk/lib/server/libjvm.so\n";
        let made = |class: u8, machine: u16| {
            let mut memory = Pieces::default();
            let mut header = [0; 64];
            header[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1]);
            header[18..20].copy_from_slice(&machine.to_le_bytes());
            memory.put(Addr(0x7f00_0000_0000), &header);
            Made::read(&memory, &maps::parse(line).0[0]).expect("an ELF file")
        };
        let here = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        assert!(made(2, here).is_native());
        for (class, machine, name) in
            [(1, 3, "x86, 32-bit"), (1, 40, "Arm, 32-bit"), (2, 243, "RISC-V, 64-bit")]
        {
            let made = made(class, machine);
            assert!(!made.is_native() && foreign(made).what.contains(name), "{made:?}");
        }
    }
}
