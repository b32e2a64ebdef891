//! Frozen files: streams that unpack a thousandfold, pieces of one byte in a page each, views that no kernel gives.

use super::*;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde_json::{Value, json};
use std::io::Write;

const MAGIC: &[u8] = b"marusa-frozen 2\n";
/// One of the commands that read such a file: the account as text.
fn map(file: &str) -> Vec<&str> {
    vec!["map", "--from", file]
}

/// A recorded JVM: its header, and its pieces of memory.
fn recorded() -> (Value, Vec<u8>) {
    let file = std::fs::read(root().join("tests/data/frozen/jdk21-g1.frozen")).expect("a recorded JVM");
    let mut inside = Vec::new();
    GzDecoder::new(&file[MAGIC.len()..]).read_to_end(&mut inside).expect("gzip");
    let (length, rest) = inside.split_first_chunk::<8>().expect("a length");
    let (header, pieces) = rest.split_at(u64::from_le_bytes(*length) as usize);
    (serde_json::from_slice(header).expect("a header"), pieces.to_vec())
}

fn packed(header: &str, pieces: impl FnOnce(&mut dyn Write)) -> Vec<u8> {
    let mut packed = GzEncoder::new(MAGIC.to_vec(), Compression::fast());
    packed.write_all(&(header.len() as u64).to_le_bytes()).expect("a Vec takes everything");
    packed.write_all(header.as_bytes()).expect("a Vec takes everything");
    pieces(&mut packed);
    packed.finish().expect("a Vec takes everything")
}

/// Pieces of one byte, a page from each other: 4 bytes each, packed to hardly any.
fn scattered(out: &mut dyn Write, count: usize) {
    let piece = [0xff, 0x1f, 1, 7];
    let many = piece.repeat(4096);
    (0..count / 4096).for_each(|_| out.write_all(&many).expect("a Vec takes everything"));
}

#[test]
fn what_unpacks_a_thousandfold_is_refused() {
    let directory = Directory::new();
    let (header, _) = recorded();
    let file = directory.file("bomb", &packed(&header.to_string(), |out| scattered(out, 8 << 20)));
    refused(&directory, &map(&file), &file, "unpacks to more than 64 times its length");
    refused(&directory, &["diff", &file, &file], &file, "unpacks to more than 64 times its length");
    let page = directory.path("page.html").display().to_string();
    refused(&directory, &["report", &file, "-o", &page], &file, "unpacks to more than 64 times its length");
    let text = format!("\"{}\"", "x".repeat(40 << 20));
    let file = directory.file("text", &packed(&text, |_| {}));
    refused(&directory, &map(&file), &file, "unpacks to more than 64 times its length");
}

#[test]
fn a_byte_in_each_of_millions_of_pages_costs_no_page() {
    let directory = Directory::new();
    let (header, pieces) = recorded();
    // Behind the recorded ones, so that the JVM is still read.
    let bytes = packed(&header.to_string(), |out| {
        out.write_all(&pieces).expect("a Vec takes everything");
        scattered(out, 3 << 20);
    });
    let file = directory.file("scattered", &bytes);
    let ended = bounded(&directory, &map(&file), &file);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
}

#[test]
fn lists_that_the_bytes_can_not_hold_are_refused() {
    let directory = Directory::new();
    let (good, _) = recorded();
    // Structs may be lists of their fields, which is as short as they get.
    let mapping = r#"[[4096,8192],[true,true,false,false],0,"",0,""]"#;
    let run = "[[4096,8192],1,4096,1]";
    let with = |place: &str, one: &str, count: usize| {
        let mut header = good.clone();
        *header.pointer_mut(place).expect("a list") = json!("LIST");
        // As text: that many values would be a gigabyte of this process, which the kernel counts for the command too.
        let list = vec![one; count].join(",");
        packed(&header.to_string().replace("\"LIST\"", &format!("[{list}]")), |_| {})
    };
    let file = directory.file("mappings", &with("/os/mappings", mapping, 150_000));
    refused(&directory, &map(&file), &file, "150000 mappings, more than its");
    let file = directory.file("runs", &with("/os/pages/Ok", run, 600_000));
    refused(&directory, &map(&file), &file, "600000 runs of pages, more than its");
}

/// Every face of an account, of a JVM whose heap and whose malloc claim most of the address space.
#[test]
fn a_run_of_pages_without_end_is_one_run() {
    let directory = Directory::new();
    let (mut header, pieces) = recorded();
    let os = &mut header["os"];
    for name in ["[heap]", ""] {
        let mappings = os["mappings"].as_array().expect("mappings").clone();
        let end = |mapping: &Value| mapping["range"]["end"].as_u64().expect("an address");
        let start = |mapping: &Value| mapping["range"]["start"].as_u64().expect("an address");
        let mut gaps = mappings.windows(2).enumerate().filter(|(_, pair)| pair[0]["path"] == name);
        let (at, range) = gaps
            .by_ref()
            .max_by_key(|(_, pair)| start(&pair[1]) - end(&pair[0]))
            .map(|(at, pair)| (at, (start(&pair[0]), start(&pair[1]))))
            .expect("a mapping of that name");
        os["mappings"][at]["range"]["end"] = json!(range.1);
        let runs = os["pages"]["Ok"].as_array_mut().expect("runs");
        runs.retain(|run| {
            let start = run["range"]["start"].as_u64().expect("an address");
            !(range.0..range.1).contains(&start)
        });
        let place = runs.iter().position(|run| run["range"]["start"].as_u64() > Some(range.0));
        let whole = json!({"range": {"start": range.0, "end": range.1}, "bits": 1, "page_bytes": 4096, "mapped_times": 1});
        runs.insert(place.unwrap_or(runs.len()), whole);
    }
    let bytes = packed(&header.to_string(), |out| out.write_all(&pieces).expect("a Vec takes everything"));
    let file = directory.file("endless", &bytes);
    let page = directory.path("page.html").display().to_string();
    for more in [&[][..], &["--json"], &["--by", "mapping"], &["--by", "page-size"], &["--html", &page]] {
        let ended = bounded(&directory, &[&map(&file)[..], more].concat(), &file);
        assert_eq!(ended.status, Some(0), "{more:?}: {}", ended.stderr);
    }
    bounded(&directory, &["diff", &file, &file], &file);
    bounded(&directory, &["report", &file, "-o", &page, "--force"], &file);
}
