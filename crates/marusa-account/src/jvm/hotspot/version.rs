//! Which HotSpot it is. `Abstract_VM_Version::_s_vm_release` is in vmStructs from JDK 8 to 25.

use super::vmstructs::VmStructs;
use crate::base::limits::C_STRING_BYTES_MAX;
use crate::base::{Addr, Known};
use crate::os::Memory;

/// "17.0.15+6-Debian-1deb12u1", "25.504-b01" (JDK 8).
pub fn read(memory: &dyn Memory, structs: &VmStructs) -> Known<String> {
    let at = Addr(structs.read_static(memory, "Abstract_VM_Version", "_s_vm_release")?);
    memory.c_string(at, C_STRING_BYTES_MAX).map_err(|fault| fault.gap("Abstract_VM_Version::_s_vm_release"))
}

/// JDK 8's VM calls itself 25.x-bNN; the form "-b" distinguishes it from JDK 25's "25.0.3+9".
pub fn major(release: &str) -> Option<u32> {
    let first: u32 = release.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()?;
    if first == 25 && release.contains("-b") && !release.contains('+') { Some(8) } else { Some(first) }
}

/// The update within its feature release: 15 of "17.0.15+6-Debian", 372 of "25.372-b07" (JDK 8), 0 of "21+35".
pub fn update(release: &str) -> Option<u32> {
    let numbers = release.split(['+', '-', '_']).next()?;
    let mut parts = numbers.split('.').skip(if major(release)? == 8 { 1 } else { 2 });
    match parts.next() {
        Some(number) => number.parse().ok(),
        None => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::{major, update};

    #[test]
    fn the_update_of_each_form_of_release() {
        assert_eq!(update("17.0.15+6-Debian-1deb12u1"), Some(15));
        assert_eq!(update("25.504-b01"), Some(504));
        assert_eq!(update("21+35-2513"), Some(0));
        assert_eq!(update("17.0.9.1+1"), Some(9));
        assert_eq!(update("25.0.3+9-LTS"), Some(3));
        assert_eq!(update("26-ea"), Some(0));
        assert_eq!((update("17.0.x"), update("internal")), (None, None));
    }

    #[test]
    fn the_vm_of_jdk_8_is_not_jdk_25() {
        assert_eq!(major("25.504-b01"), Some(8));
        assert_eq!(major("25.0.3+9-LTS"), Some(25));
        assert_eq!(major("17.0.15+6-Debian-1deb12u1"), Some(17));
        assert_eq!(major("internal"), None);
    }
}
