//! What was put on huge pages, and of which process: kept in a file so that exactly that can be undone, also after a
//! crash of ours between any two moments.
//!
//! One JSON object a line. A batch of blocks is written before it is begun ("going") and again, as far as it went, when it
//! is done ("on_2m", "split"). A batch that is only "going" may have been changed in part; since its blocks were not on
//! huge pages before, all of it is undone. Lines are appended with one write each, so a crash of ours leaves whole
//! lines; a crash of the host ends the target too.

use super::block_bytes;
use crate::base::limits::{RECEIPT_BLOCKS_MAX, RECEIPT_BLOCKS_NAMED_MAX, RECEIPT_BYTES_MAX};
use crate::base::{Addr, Range, joined, rfc3339};
use crate::os::host;
use crate::os::input_file;
use crate::os::process::Process;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub const SCHEMA: &str = "marusa/promotion/1";
/// Below the state directory.
const DIRECTORY: &str = "promotions";

/// Which process: a pid alone is used again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub pid: i32,
    /// Clock ticks after the start of the host.
    pub start_ticks: u64,
    /// The text of /proc/sys/kernel/random/boot_id.
    pub boot_id: String,
}

impl Identity {
    pub fn of(process: &Process) -> Identity {
        let boot_id = host::text("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string();
        Identity { pid: process.pid, start_ticks: process.start_ticks, boot_id }
    }
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    schema: String,
    #[serde(flatten)]
    target: Identity,
    at: String,
    marusa: String,
}

/// Every other line has one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Going(Vec<String>),
    #[serde(rename = "on_2m")]
    On2M(Vec<String>),
    Split(Vec<String>),
}

/// A receipt that is being written.
pub struct Receipt {
    file: File,
    pub path: PathBuf,
    /// What the blocks become.
    is_split: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ReceiptError {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("{0} is not a receipt of `marusa pages collapse`")]
    NoReceipt(PathBuf),
    #[error("{path}, line {line}: damaged")]
    Damaged { path: PathBuf, line: usize },
    #[error("{0} is larger than a receipt can be")]
    TooLarge(PathBuf),
    #[error(
        "{path} is of another process: pid {pid}, which was started {start_ticks} ticks after the start of the host \
         {boot_id}; what it had on huge pages ended with it"
    )]
    OtherProcess { path: PathBuf, pid: i32, start_ticks: u64, boot_id: String },
}

impl Receipt {
    /// A new one in the state directory. Fails before anything is changed where it cannot be written.
    pub fn create(state: &Path, process: &Process) -> Result<Receipt, ReceiptError> {
        let directory = state.join(DIRECTORY);
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |error| ReceiptError::Io { path, error }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(failed(&directory))?;
        let target = Identity::of(process);
        let at = rfc3339(SystemTime::now());
        let marusa = env!("CARGO_PKG_VERSION").to_string();
        for number in 0.. {
            let path = directory.join(format!("{}-{}-{number}.jsonl", target.pid, target.start_ticks));
            let opened = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
            let file = match opened {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 100_000 => continue,
                opened => opened.map_err(failed(&path))?,
            };
            let mut receipt = Receipt { file, path: path.clone(), is_split: false };
            let head = Head { schema: SCHEMA.to_string(), target, at, marusa };
            receipt.write(&head).map_err(failed(&path))?;
            return Ok(receipt);
        }
        Err(ReceiptError::NoReceipt(directory))
    }

    /// One that is there, to note what is undone.
    pub fn reopen(path: &Path) -> Result<Receipt, ReceiptError> {
        let failed = |error| ReceiptError::Io { path: path.to_path_buf(), error };
        let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
        Ok(Receipt { file, path: path.to_path_buf(), is_split: true })
    }

    pub(super) fn going(&mut self, blocks: impl Iterator<Item = Range>) -> io::Result<()> {
        // What is to be split is on huge pages, whether that is done or not.
        if self.is_split { Ok(()) } else { self.write(&Line::Going(texts(blocks))) }
    }

    pub(super) fn reached(&mut self, blocks: &[Range]) -> io::Result<()> {
        let texts = texts(blocks.iter().copied());
        let line = if self.is_split { Line::Split(texts) } else { Line::On2M(texts) };
        self.write(&line)
    }

    fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes)
    }
}

fn texts(blocks: impl Iterator<Item = Range>) -> Vec<String> {
    joined(blocks).iter().map(|range| format!("{range:?}")).collect()
}

/// The blocks that a receipt says are on huge pages of this process; sorted.
pub fn blocks(path: &Path, process: &Process) -> Result<Vec<Range>, ReceiptError> {
    let failed = |error| ReceiptError::Io { path: path.to_path_buf(), error };
    let bytes = input_file::start(path, RECEIPT_BYTES_MAX).map_err(failed)?;
    if bytes.len() as u64 == RECEIPT_BYTES_MAX {
        return Err(ReceiptError::TooLarge(path.to_path_buf()));
    }
    let (target, blocks) = parse(path, &bytes)?;
    if target != Identity::of(process) {
        let Identity { pid, start_ticks, boot_id } = target;
        return Err(ReceiptError::OtherProcess { path: path.to_path_buf(), pid, start_ticks, boot_id });
    }
    Ok(blocks.into_iter().map(|start| Range::sized(Addr(start), block_bytes())).collect())
}

fn parse(path: &Path, bytes: &[u8]) -> Result<(Identity, BTreeSet<u64>), ReceiptError> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let head = lines.next().and_then(|line| serde_json::from_slice::<Head>(line).ok());
    let head = head.filter(|head| head.schema == SCHEMA);
    let target = head.ok_or_else(|| ReceiptError::NoReceipt(path.to_path_buf()))?.target;
    let mut on_2m = BTreeSet::new();
    let mut going = BTreeSet::new();
    // A range of a few bytes names millions of blocks, and a file may do so in each line.
    let mut left = RECEIPT_BLOCKS_NAMED_MAX;
    for (index, line) in lines.enumerate() {
        // A line that a full disk cut short was the last.
        if !line.ends_with(b"\n") {
            break;
        }
        let damaged = || ReceiptError::Damaged { path: path.to_path_buf(), line: index + 2 };
        let line: Line = serde_json::from_slice(line).map_err(|_| damaged())?;
        match &line {
            Line::Going(ranges) => {
                on_2m.append(&mut going);
                going = starts(ranges, &mut left).ok_or_else(damaged)?;
            }
            Line::On2M(ranges) => {
                going.clear();
                on_2m.append(&mut starts(ranges, &mut left).ok_or_else(damaged)?);
            }
            Line::Split(ranges) => {
                on_2m.append(&mut going);
                starts(ranges, &mut left).ok_or_else(damaged)?.iter().for_each(|start| {
                    on_2m.remove(start);
                });
            }
        }
        if on_2m.len() > RECEIPT_BLOCKS_MAX {
            return Err(ReceiptError::TooLarge(path.to_path_buf()));
        }
    }
    on_2m.append(&mut going);
    Ok((target, on_2m))
}

/// The blocks of ranges in hexadecimal. `None`: one makes no sense, or there are more than are left to be named.
fn starts(ranges: &[String], left: &mut u64) -> Option<BTreeSet<u64>> {
    let mut starts = BTreeSet::new();
    for range in ranges {
        let (start, end) = range.split_once('-')?;
        let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        let is_whole =
            start < end && start.is_multiple_of(block_bytes()) && end.is_multiple_of(block_bytes());
        if !is_whole {
            return None;
        }
        *left = left.checked_sub((end - start) / block_bytes())?;
        starts.extend((start..end).step_by(block_bytes() as usize));
    }
    Some(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u64) -> Range {
        Range::sized(Addr(number * block_bytes()), block_bytes())
    }

    fn kept(text: &str) -> Result<Vec<u64>, String> {
        let head =
            r#"{"schema":"marusa/promotion/1","pid":7,"start_ticks":8,"boot_id":"b","at":"","marusa":""}"#;
        let parsed = parse(Path::new("r"), format!("{head}\n{text}").as_bytes());
        parsed
            .map(|(_, starts)| starts.iter().map(|start| start / block_bytes()).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn what_was_begun_and_not_finished_is_taken_back_too() {
        let going = "{\"going\":[\"200000-800000\"]}\n";
        assert_eq!(kept(going), Ok(vec![1, 2, 3]));
        assert_eq!(kept(&format!("{going}{{\"on_2m\":[\"200000-400000\"]}}\n")), Ok(vec![1]));
        assert_eq!(kept(&format!("{going}{{\"going\":[\"a00000-c00000\"]}}\n")), Ok(vec![1, 2, 3, 5]));
        assert_eq!(kept(&format!("{going}{{\"split\":[\"400000-600000\"]}}\n")), Ok(vec![1, 3]));
        assert_eq!(kept(&format!("{going}{{\"on_2m\":[\"2000")), Ok(vec![1, 2, 3]), "a line cut short");
    }

    #[test]
    fn damage_is_found() {
        for damaged in [
            "nonsense\n",
            "{\"going\":[\"200000\"]}\n",
            "{\"going\":[\"200001-400000\"]}\n",
            "{\"on_2m\":[\"400000-200000\"]}\n",
            "{\"on_2m\":[\"0-ffffffffffe00000\"]}\n",
            "{\"other\":[]}\n",
        ] {
            assert_eq!(kept(damaged), Err("r, line 2: damaged".to_string()), "{damaged}");
        }
        assert!(parse(Path::new("r"), b"").is_err() && parse(Path::new("r"), b"{}\n").is_err());
    }

    #[test]
    fn what_is_written_is_read_again_and_only_for_the_same_process() {
        let state = std::env::temp_dir().join(format!("marusa-receipt-{}", std::process::id()));
        let me = Process::open(std::process::id() as i32).expect("myself");
        let mut receipt = Receipt::create(&state, &me).expect("written");
        let second = Receipt::create(&state, &me).expect("written");
        assert_ne!(receipt.path, second.path);
        receipt.going([block(3), block(4), block(9)].into_iter()).expect("written");
        receipt.reached(&[block(3), block(9)]).expect("written");
        assert_eq!(blocks(&receipt.path, &me).expect("read"), [block(3), block(9)]);
        let mut back = Receipt::reopen(&receipt.path).expect("opened");
        back.going([block(3)].into_iter()).expect("nothing to write");
        back.reached(&[block(3)]).expect("written");
        assert_eq!(blocks(&receipt.path, &me).expect("read"), [block(9)]);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let other = Process::open(child.id() as i32).expect("it is there");
        let refused = blocks(&receipt.path, &other).expect_err("of another process").to_string();
        assert!(refused.contains("another process"), "{refused}");
        child.kill().and_then(|()| child.wait()).expect("ended");
        std::fs::remove_dir_all(&state).expect("removed");
    }
}
