//! Cores: headers that name the same bytes a thousand times, one long path for thousands of mappings.

use super::*;

const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const NT_FILE: u32 = 0x4649_4c45;

/// (kind, offset, address, bytes in the file, bytes) of each header, and what follows them.
fn core(headers: &[(u32, u64, u64, u64, u64)], rest: &[u8]) -> Vec<u8> {
    let machine: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
    bytes.resize(16, 0);
    [4, machine].iter().for_each(|half: &u16| bytes.extend(half.to_le_bytes()));
    bytes.extend(1_u32.to_le_bytes());
    [0, HEADER_BYTES as u64, 0].iter().for_each(|word: &u64| bytes.extend(word.to_le_bytes()));
    bytes.extend([0; 4]);
    for half in [HEADER_BYTES as u16, PROGRAM_HEADER_BYTES as u16, headers.len() as u16, 64, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    for (kind, offset, address, in_file, in_memory) in headers {
        bytes.extend(kind.to_le_bytes());
        bytes.extend(6_u32.to_le_bytes());
        for word in [*offset, *address, 0, *in_file, *in_memory, 4096] {
            bytes.extend(word.to_le_bytes());
        }
    }
    bytes.extend(rest);
    bytes
}

fn note(value: &[u8]) -> Vec<u8> {
    let mut note: Vec<u8> =
        [5, value.len() as u32, NT_FILE].iter().flat_map(|half| half.to_le_bytes()).collect();
    note.extend(b"CORE\0\0\0\0");
    note.extend(value);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn rest_at(headers: usize) -> u64 {
    (HEADER_BYTES + headers * PROGRAM_HEADER_BYTES) as u64
}

#[test]
fn notes_that_many_headers_name_are_read_once() {
    let directory = Directory::new();
    let files: u64 = 4_000;
    let mut value = words(&[files, 1]);
    (0..files).for_each(|at| value.extend(words(&[0x10_0000 + (at << 13), 0x10_1000 + (at << 13), 0])));
    (0..files).for_each(|at| value.extend(format!("/{at}\0").bytes()));
    let note = note(&value);
    let count = 40_000;
    let mut headers = vec![(PT_NOTE, rest_at(count + 1), 0, note.len() as u64, 0); count];
    headers.push((PT_LOAD, 0, 0x10_0000, 4096, files << 13));
    let file = directory.file("core", &core(&headers, &note));
    refused(&directory, &["map", "--from", &file], &file, "the core of no JVM");
}

#[test]
fn a_path_that_thousands_of_mappings_have_is_kept_no_more_often_than_the_file_allows() {
    let directory = Directory::new();
    let count = 60_000;
    let mut value = words(&[1, 1, 0x10_0000, 0x10_0000 + (count << 13), 0]);
    value.extend(format!("/{}\0", "a".repeat(4_000)).bytes());
    let note = note(&value);
    let mut headers = vec![(PT_NOTE, rest_at(count as usize + 1), 0, note.len() as u64, 0)];
    headers.extend((0..count).map(|at| (PT_LOAD, 0, 0x10_0000 + (at << 13), 0, 4096)));
    let file = directory.file("core", &core(&headers, &note));
    refused(&directory, &["map", "--from", &file], &file, "the core of no JVM");
}

#[test]
fn segments_that_lie_over_each_other_are_refused() {
    let directory = Directory::new();
    let rest = vec![1; 64 << 10];
    let headers: Vec<_> = (0..1_000_u64)
        .map(|at| (PT_LOAD, rest_at(1_000), 0x10_0000 + (at << 20), rest.len() as u64, rest.len() as u64))
        .collect();
    let file = directory.file("core", &core(&headers, &rest));
    refused(&directory, &["map", "--from", &file], &file, "claim more bytes than it has");
}
