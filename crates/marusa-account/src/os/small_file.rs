//! Small files of text, whole: the kernel's figures and settings of /proc and /sys, with the forms that many of them have.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

/// Largest of the small files of /proc and /sys that is read here, in bytes: /proc/stat grows with the CPUs.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The file whole, or its start if it is longer than `bytes_max`, also where it grows while it is read.
pub fn start(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file whole, or its start if it is longer than `bytes_max`.
pub fn read_start(path: impl AsRef<Path>, bytes_max: u64) -> io::Result<Vec<u8>> {
    start(File::open(path)?, bytes_max)
}

/// As `read_start`, as text.
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read_start(path, FILE_BYTES_MAX)?).into_owned())
}

/// The number that is all of a small file.
pub fn number<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path).ok()?.trim().parse().ok()
}

/// What follows `key` in the first line that begins with it.
pub fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

/// The word in brackets: "always [madvise] never".
pub fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_string())
}
