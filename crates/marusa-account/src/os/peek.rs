//! Reads a few bytes of a process again and again: the files are opened once. As everywhere, a page that is not in memory is
//! not read, since reading it would bring it in.

use super::live::read_memory;
use super::look::look;
use super::process::{Process, gap};
use super::rights::{self, Capability};
use crate::base::{Gap, Known, PAGE, Range, Why};
use std::fs::File;

/// More is not a peek.
const BYTES_MAX: u64 = 1 << 20;

pub struct Peek {
    memory: File,
    pagemap: File,
}

impl Peek {
    pub fn open(process: &Process) -> Known<Peek> {
        let open = |name: &str| {
            process.open_file(name).map_err(|error| {
                gap(&format!("/proc/PID/{name}"), &error).hint(rights::hint(
                    &[Capability::SYS_PTRACE],
                    "run as root, or with CAP_SYS_PTRACE, or as the JVM's user",
                ))
            })
        };
        Ok(Peek { memory: open("mem")?, pagemap: open("pagemap")? })
    }

    /// The bytes of `range`; pages at its end that are not in memory are left out.
    pub fn read(&self, range: Range) -> Known<Vec<u8>> {
        if range.bytes() > BYTES_MAX {
            return Err(Gap::new("a few bytes of the process", Why::OverLimit));
        }
        let mut end = range.start;
        while end < range.end {
            let page = Range::sized(end.down_to(PAGE), PAGE);
            let now = look(&self.pagemap, page)?;
            if now.resident + now.zero == 0 {
                break;
            }
            end = page.end.min(range.end);
        }
        let mut bytes = vec![0; Range::new(range.start, end).bytes() as usize];
        if bytes.is_empty() {
            return Err(Gap::new("a few bytes of the process", Why::NotResident(range.start)));
        }
        read_memory(&self.memory, range.start, &mut bytes)
            .map_err(|fault| fault.gap("a few bytes of the process"))?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Addr;

    #[test]
    fn my_own_bytes() {
        let me = Process::open(std::process::id() as i32).expect("myself");
        let text = vec![7_u8; 9000];
        let at = Range::sized(Addr(text.as_ptr() as u64), text.len() as u64);
        assert_eq!(Peek::open(&me).and_then(|peek| peek.read(at)), Ok(text));
        assert!(Peek::open(&me).is_ok_and(|peek| peek.read(Range::of(0, 1 << 21)).is_err()), "too much");
    }
}
