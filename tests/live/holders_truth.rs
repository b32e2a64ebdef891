//! Holders against the truth: `scripts/holders` starts programs of public jars whose every malloc is noted by the library that
//! asked (tests/native/malloc_truth.c), and this compares the two block by block.

use marusa::base::Addr;
use marusa::jvm::{Held, HeldBy};
use marusa::map::{self, Account};
use marusa::os::process::Process;
use marusa::snapshot::{Want, take_once};
use std::collections::BTreeMap;

const RECORDS: usize = 1 << 20;
const RECORD_BYTES: usize = 24;
const NAME_BYTES: usize = 128;
const BYTES_MIN: u64 = 4096;
/// The Java classes that call a library; what the VM and the JDK ask for comes from libjvm, and a buffer of `Unsafe` too.
const CALLERS: [(&str, &[&str]); 7] = [
    ("org.rocksdb.", &["librocksdb"]),
    ("com.github.luben.zstd.", &["libzstd"]),
    ("java.util.zip.", &["libzip", "libz.so"]),
    ("org.sqlite.", &["libsqlitejdbc", "sqlite-"]),
    ("ai.onnxruntime.", &["libonnxruntime"]),
    ("java.", &["libjvm", "libnio", "libnet", "libjava"]),
    ("sun.", &["libjvm", "libnio", "libnet", "libjava"]),
];

struct Noted {
    bytes: u64,
    library: String,
}

fn noted(path: &str) -> BTreeMap<Addr, Noted> {
    let bytes = std::fs::read(path).expect("the notes");
    let (records, names) = bytes.split_at(RECORDS * RECORD_BYTES);
    let names: Vec<String> = names
        .chunks(NAME_BYTES)
        .map(|name| String::from_utf8_lossy(name).trim_end_matches('\0').to_string())
        .collect();
    let word = |record: &[u8], place: usize| {
        u64::from_le_bytes(record[place * 8..place * 8 + 8].try_into().expect("eight bytes"))
    };
    let of = |record: &[u8]| {
        let noted = Noted { bytes: word(record, 1), library: names[word(record, 2) as usize].clone() };
        (noted.bytes >= BYTES_MIN).then(|| (Addr(word(record, 0)), noted))
    };
    records.chunks_exact(RECORD_BYTES).filter_map(of).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_right(held: &Held, truth: &str) -> bool {
    let by_class = CALLERS.iter().find(|(prefix, _)| held.holder.starts_with(prefix));
    match (held.how, by_class) {
        (HeldBy::Field | HeldBy::Static, Some((_, libraries))) => {
            libraries.iter().any(|library| truth.starts_with(library))
        }
        _ => held.library.as_deref().is_some_and(|library| file_name(library) == truth),
    }
}

#[test]
#[ignore = "scripts/holders runs it"]
fn holders_of_a_given_jvm() {
    // `make test-long` runs the ignored tests too, and has no such JVM.
    let Ok(pid) = std::env::var("MARUSA_HOLDERS_PID") else { return println!("no MARUSA_HOLDERS_PID") };
    let of = |name: &str| std::env::var(name).expect("set by scripts/holders");
    let process = Process::open(pid.parse().expect("a pid")).expect("the process");
    let snapshot = take_once(&process, Want { holders: true, ..Want::default() }).expect("a snapshot");
    let account = Account::of(&snapshot, &map::join(&snapshot));
    let mut noted = noted(&of("MARUSA_TRUTH"));
    let (mut all, mut named, mut right) = (0, 0, 0);
    let mut wrong: BTreeMap<(String, String, String), (u64, Addr)> = BTreeMap::new();
    for held in account.holders.as_deref().expect("holders") {
        let is_named = !matches!(held.how, HeldBy::ThreadArena | HeldBy::Unreached);
        for block in &held.large {
            // memalign's blocks start behind the start of their chunk.
            let Some(at) = noted.range(block.start..block.end).next().map(|(at, _)| *at) else { continue };
            let truth = noted.remove(&at).expect("it");
            all += truth.bytes;
            named += if is_named { truth.bytes } else { 0 };
            if is_named && is_right(held, &truth.library) {
                right += truth.bytes;
            } else {
                let key = (truth.library, held.holder.clone(), format!("{:?} {:?}", held.how, held.library));
                wrong.entry(key).or_insert((0, at)).0 += truth.bytes;
            }
        }
    }
    let left: u64 = noted.values().map(|noted| noted.bytes).sum();
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    println!(
        "| {} | {:.1} MiB | {:.1} % | {:.1} % |",
        of("MARUSA_NAME"),
        all as f64 / 1048576.0,
        percent(named, all),
        percent(right, named)
    );
    println!("! {:.1} MiB were noted and not seen", left as f64 / 1048576.0);
    let mut wrong: Vec<_> = wrong.into_iter().collect();
    wrong.sort_by_key(|(_, (bytes, _))| std::cmp::Reverse(*bytes));
    for ((truth, holder, how), (bytes, at)) in wrong.iter().take(12) {
        println!("! {bytes:>12} asked by {truth}, given to {holder} ({how}), one at {at}");
    }
    assert!(all > 0, "nothing was noted");
}
