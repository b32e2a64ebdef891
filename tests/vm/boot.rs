//! One emulated machine from its start to its end, and the files that it sent over its console.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Files by name.
pub type Sent = BTreeMap<String, Vec<u8>>;

/// What differs between processors: the emulator, its options, and the kernel's name of the console.
pub struct Emulator {
    pub program: &'static str,
    pub options: &'static [&'static str],
    pub console: &'static str,
}

/// What an emulated machine gets.
#[derive(Clone, Copy)]
pub struct Bounds {
    pub memory_mib: u32,
    pub time: Duration,
}

/// Boots and waits for the end. The error has the console's last lines.
pub fn boot(
    emulator: &Emulator,
    kernel: &Path,
    archive: &Path,
    bounds: Bounds,
    console: &Path,
) -> Result<Sent, String> {
    let log = File::create(console).map_err(|error| error.to_string())?;
    let mut command = Command::new(emulator.program);
    command.args(emulator.options).args(["-nic", "none", "-nographic", "-no-reboot", "-smp", "2"]);
    command.args(["-m", &bounds.memory_mib.to_string()]);
    command.arg("-kernel").arg(kernel).arg("-initrd").arg(archive);
    command.arg("-append").arg(format!("console={} quiet panic=-1", emulator.console));
    command.stdin(Stdio::null()).stderr(log.try_clone().map_err(|error| error.to_string())?).stdout(log);
    let started = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("cannot start {}: {error}", emulator.program))?;
    let mut in_time = true;
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if started.elapsed() > bounds.time {
            in_time = false;
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut text = Vec::new();
    File::open(console)
        .and_then(|mut file| file.read_to_end(&mut text))
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&text);
    let sent = received(&text);
    if sent.contains_key("done") {
        return Ok(sent);
    }
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(12)..].join("\n");
    let why = if in_time { "the machine ended early" } else { "the machine took too long" };
    Err(format!("{why}; its console, {}, ends with\n{last}", console.display()))
}

/// What lies between "@@ NAME" and "@@.": gzip in base64.
fn received(console: &str) -> Sent {
    let mut sent = Sent::new();
    let mut now: Option<(String, String)> = None;
    for line in console.lines().map(|line| line.trim_end_matches('\r')) {
        match (line, &mut now) {
            ("@@ done", _) => drop(sent.insert("done".to_string(), Vec::new())),
            ("@@.", Some((name, packed))) => {
                let mut bytes = Vec::new();
                let unpacked = base64(packed)
                    .map(|packed| flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes));
                if unpacked.is_some_and(|read| read.is_ok()) {
                    sent.insert(name.clone(), bytes);
                }
                now = None;
            }
            (line, Some((_, packed))) => packed.push_str(line),
            (line, None) => now = line.strip_prefix("@@ ").map(|name| (name.to_string(), String::new())),
        }
    }
    sent
}

/// RFC 4648, section 4.
fn base64(text: &str) -> Option<Vec<u8>> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut bits) = (0_u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let digit = DIGITS.iter().position(|digit| *digit == letter)?;
        word = word << 6 | digit as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    Some(bytes)
}
