//! A file that the host swaps to, and a JVM that is swapped out by request.

use super::made::{Made, Program};
use crate::common::skip;
use std::path::PathBuf;
use std::process::Command;

/// A file that the host swaps to, for as long as it lives.
pub struct Swap {
    path: std::ffi::CString,
}

impl Drop for Swap {
    fn drop(&mut self) {
        // SAFETY: the path is a NUL-terminated string.
        unsafe { libc::swapoff(self.path.as_ptr()) };
        let _ = std::fs::remove_file(self.path.to_string_lossy().as_ref());
    }
}

impl Swap {
    fn on(bytes: u64) -> Option<Swap> {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("swap-{}", std::process::id()));
        let text = file.to_string_lossy().into_owned();
        let run = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output();
            output.is_ok_and(|output| output.status.success())
        };
        let is_made =
            run("dd", &["if=/dev/zero", &format!("of={text}"), "bs=1M", &format!("count={}", bytes >> 20)])
                && run("chmod", &["600", &text])
                && run("mkswap", &[&text]);
        let path = std::ffi::CString::new(text.clone()).expect("no NUL");
        // SAFETY: the path is a NUL-terminated string.
        if is_made && unsafe { libc::swapon(path.as_ptr(), 0) } == 0 {
            return Some(Swap { path });
        }
        let _ = std::fs::remove_file(file);
        skip("no file can be swapped to here");
        None
    }
}

/// A JVM with `bytes` of its heap swapped out by request.
pub fn swapped_heap(program: Program, bytes: u64) -> Option<Made> {
    let swap = Swap::on(2 * bytes)?;
    let jvm = program.start()?;
    if !swap_out(jvm.pid, bytes) {
        skip("this kernel swaps nothing out by request");
        return None;
    }
    Some(Made::jvm(jvm).with(swap))
}

/// The start of the heap, the largest private memory that may be written.
pub fn swap_out(pid: i32, bytes: u64) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let ranges = maps.lines().filter(|line| line.contains("rw-p 00000000 00:00 0")).filter_map(|line| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        Some((hex(start)?, hex(end)?))
    });
    let Some((start, end)) = ranges.max_by_key(|(start, end)| end - start) else { return false };
    let iov_len = (end - start).min(bytes) as usize;
    // SAFETY: a file descriptor is made, used once, and closed; the range is another process'.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, pid, 0) as i32;
        let range = libc::iovec { iov_base: start as *mut libc::c_void, iov_len };
        let advised = libc::syscall(libc::SYS_process_madvise, process, &range, 1, libc::MADV_PAGEOUT, 0);
        libc::close(process);
        advised > 0
    }
}
