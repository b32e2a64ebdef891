//! Memory that an experiment makes scarce: a file of its own that the host swaps to, and a cgroup with a limit.
//!
//! The head of the file is that of include/linux/swap.h, `union swap_header`: version 1, the number of the last page, and
//! "SWAPSPACE2" at the end of the first page. The file is written whole, for the kernel swaps to no file with holes
//! (mm/swapfile.c, `generic_swapfile_activate`).

use crate::base::PAGE;
use crate::os::mounted::unescaped;
use crate::os::place::{Place, by_descriptor, open_at};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

const MAGIC: &[u8; 10] = b"SWAPSPACE2";
/// Behind the room for a boot loader.
const HEAD_AT: usize = 1024;
const VERSION: u32 = 1;
const WRITTEN_BYTES: usize = 1 << 20;
/// The limit of a group, by version 1 and 2.
const LIMITS: [&std::ffi::CStr; 2] = [c"memory.limit_in_bytes", c"memory.max"];

pub fn swap_on(place: &Place, bytes: u64) -> io::Result<()> {
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR;
    let mut file = open_at(&place.directory, &place.name, flags, 0o600)?;
    fill(&mut file, bytes)?;
    let path = CString::new(by_descriptor(&file))?;
    // SAFETY: the path outlives the call.
    worked(unsafe { libc::swapon(path.as_ptr(), 0) })
}

fn fill(file: &mut File, bytes: u64) -> io::Result<()> {
    let page = PAGE as usize;
    let mut head = vec![0_u8; page];
    let last = u32::try_from(bytes / PAGE).ok().and_then(|pages| pages.checked_sub(1));
    let last = last.ok_or(io::ErrorKind::InvalidInput)?;
    head[HEAD_AT..HEAD_AT + 4].copy_from_slice(&VERSION.to_ne_bytes());
    head[HEAD_AT + 4..HEAD_AT + 8].copy_from_slice(&last.to_ne_bytes());
    head[page - MAGIC.len()..].copy_from_slice(MAGIC);
    file.write_all(&head)?;
    let zeros = vec![0_u8; WRITTEN_BYTES];
    let mut left = u64::from(last) * PAGE;
    while left > 0 {
        // A hundred megabytes take a while, and a user who presses Ctrl-C does not want to wait.
        if crate::act::signals::pending() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let part = left.min(WRITTEN_BYTES as u64);
        file.write_all(&zeros[..part as usize])?;
        left -= part;
    }
    file.sync_all()
}

/// By what the kernel lists, whose paths are those of this mount namespace.
pub fn is_swap(file: &File) -> io::Result<bool> {
    let meta = file.metadata()?;
    let same = |path: &str| {
        let path = unescaped(path);
        std::fs::metadata(path).is_ok_and(|other| (other.dev(), other.ino()) == (meta.dev(), meta.ino()))
    };
    let swaps = std::fs::read_to_string("/proc/swaps")?;
    Ok(swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()).any(same))
}

pub fn swap_off(file: &File) -> io::Result<()> {
    let path = CString::new(by_descriptor(file))?;
    // SAFETY: the path outlives the call.
    worked(unsafe { libc::swapoff(path.as_ptr()) })
}

fn worked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub fn make_group(place: &Place, limit_bytes: u64) -> io::Result<()> {
    place.make_directory()?;
    let group = place.open(libc::O_PATH | libc::O_DIRECTORY)?;
    for limit in LIMITS {
        match open_at(&group, limit, libc::O_WRONLY, 0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            file => return file?.write_all(limit_bytes.to_string().as_bytes()),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "this group limits no memory: the controller is not on here",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn the_head_says_how_many_pages_and_the_file_has_no_hole() {
        let path = std::env::temp_dir().join(format!("marusa-swap-{}", std::process::id()));
        let mut file = File::options().create_new(true).read(true).write(true).open(&path).expect("a file");
        std::fs::remove_file(&path).expect("unlinked");
        fill(&mut file, (3 << 20) + 100).expect("filled");
        let meta = file.metadata().expect("meta");
        assert_eq!(meta.len(), 3 << 20);
        let mut bytes = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("read");
        assert_eq!(bytes[4086..4096], *MAGIC);
        assert_eq!(bytes[1024..1032], [1, 0, 0, 0, 255, 2, 0, 0]);
        assert!(!is_swap(&file).expect("/proc/swaps"));
    }
}
