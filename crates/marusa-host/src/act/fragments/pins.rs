//! Pages of the holder's own that the kernel cannot move, as after weeks in which its own data came to lie everywhere. A page in a
//! pipe has a reference that no page table accounts for, so compaction passes its block over (Linux 6.18, mm/compaction.c,
//! `isolate_migratepages_block`).

use crate::base::Addr;
use crate::os::machine::base_page;
use rustix::io::Result;
use rustix::pipe::{IoSliceRaw, PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, vmsplice};
use std::os::fd::OwnedFd;

/// What root may have, and others by default (`fs.pipe-max-size`).
const PIPE_BYTES: usize = 1 << 20;

#[derive(Default)]
pub struct Pins {
    pipes: Vec<(OwnedFd, OwnedFd)>,
    /// Pages that fit into the last pipe.
    room: usize,
    pub count: u64,
}

impl Pins {
    /// The page at an address of our own memory, which is in use.
    pub fn add(&mut self, at: Addr) -> Result<()> {
        if self.room == 0 {
            let pipe = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
            self.room = fcntl_setpipe_size(&pipe.1, PIPE_BYTES)? / base_page() as usize;
            self.pipes.push(pipe);
        }
        if let Some((_, into)) = self.pipes.last() {
            // SAFETY: a byte of our own memory, which is mapped to the end of the process. Nobody reads the pipe.
            unsafe {
                let byte = std::slice::from_raw_parts(at.0 as *const u8, 1);
                vmsplice(into, &[IoSliceRaw::from_slice(byte)], SpliceFlags::empty())?;
            }
            self.room -= 1;
            self.count += 1;
        }
        Ok(())
    }
}
