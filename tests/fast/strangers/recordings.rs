//! Recordings: records that unpack to gigabytes, lists of JVMs, of names and of moments that would take hours.

use super::*;
use marusa::base::varint;
use marusa::map::Area;
use marusa::record::frame::{self, Kind, MAGIC};
use marusa::record::key::{Key, Measure, Subject};

#[derive(Default)]
struct File(Vec<u8>);

impl File {
    fn new() -> File {
        let mut file = File(MAGIC.to_vec());
        file.put(Kind::Session, b"{}");
        file
    }

    fn put(&mut self, kind: Kind, payload: &[u8]) -> &mut File {
        frame::put(&mut self.0, kind, payload);
        self
    }

    fn jvm(&mut self, number: u64, pid: u64) -> &mut File {
        let mut payload = Vec::new();
        varint::put(&mut payload, number);
        payload.extend(format!("{{\"pid\":{pid}}}").bytes());
        self.put(Kind::Jvm, &payload)
    }

    fn keys(&mut self, number: u64, keys: impl Iterator<Item = Key>) -> &mut File {
        let (mut names, mut count) = (Vec::new(), 0);
        for key in keys {
            key.put(&mut names);
            count += 1;
        }
        let mut payload = Vec::new();
        for value in [number, 0, count] {
            varint::put(&mut payload, value);
        }
        payload.extend(names);
        self.put(Kind::Keys, &payload)
    }

    /// A sample a second after the one before, with these figures: the distance of each from the one before, and its change.
    fn sample(&mut self, number: u64, figures: &[(u64, i64)]) -> &mut File {
        let mut payload = Vec::new();
        varint::put(&mut payload, number);
        varint::put_signed(&mut payload, 1000);
        varint::put_signed(&mut payload, 0);
        varint::put(&mut payload, figures.len() as u64);
        for (step, change) in figures {
            varint::put(&mut payload, step << 1);
            varint::put_signed(&mut payload, *change);
        }
        self.put(Kind::Sample, &payload)
    }
}

fn process() -> impl Iterator<Item = Key> {
    [Measure::AccountAt, Measure::KernelResident].into_iter().map(Key::process)
}

fn parts(count: usize) -> impl Iterator<Item = Key> {
    let part = |at| Key::of(&Subject::Part(Area::JavaHeap, format!("{at}")), Measure::Resident);
    process().chain((0..count).map(part))
}

/// The ones that read a recording.
fn each(directory: &Directory, file: &str, mut with: impl FnMut(&[&str])) {
    let page = directory.path("page.html").display().to_string();
    let csv = directory.path("rows.csv").display().to_string();
    for command in [
        &["leak", file][..],
        &["leak", file, "--json", "--parts"],
        &["diff", file],
        &["export", file, "--csv", &csv, "--force"],
        &["report", file, "-o", &page, "--force"],
    ] {
        with(command);
    }
}

#[test]
fn records_that_unpack_to_gigabytes_are_refused() {
    let directory = Directory::new();
    let mut payload = Vec::new();
    for value in [0, 0, 30 << 20] {
        varint::put(&mut payload, value);
    }
    // A key of two bytes, again and again.
    payload.resize(60 << 20, 0);
    let mut file = File::new();
    file.jvm(0, 7).put(Kind::Keys, &payload);
    let file = directory.file("packed", &file.0);
    each(&directory, &file, |command| {
        refused(&directory, command, &file, "unpack to more than 64 times its length")
    });
}

#[test]
fn keys_and_changes_that_are_larger_in_memory_than_in_the_file_are_refused() {
    let directory = Directory::new();
    let mut file = File::new();
    let arena = |at: u64| Key::of(&Subject::Arena(at % 64), Measure::Resident);
    file.jvm(0, 7).keys(0, (0..2_000_000).map(arena));
    let file = directory.file("keys", &file.0);
    each(&directory, &file, |command| refused(&directory, command, &file, "more than 64 times its length"));
}

#[test]
fn a_hundred_thousand_jvms_cost_a_hundred_thousand_times_one() {
    let directory = Directory::new();
    let mut cpu = Vec::new();
    for count in [25_000, 100_000] {
        let mut file = File::new();
        for number in 0..count {
            file.jvm(number, number + 1).keys(number, process()).sample(number, &[(0, 1), (0, 4096)]);
            if number % 10 == 0 {
                file.put(Kind::Session, b"{}");
            }
        }
        let file = directory.file("jvms", &file.0);
        // It is read whole, and then there is nobody of that name.
        let ended = bounded(&directory, &["leak", &file, "--jvm", "nobody"], &file);
        assert_eq!(ended.status, Some(3), "{}", ended.stderr);
        cpu.push(ended.cpu);
    }
    // 16 times, where each one is compared with all others.
    assert!(cpu[1] < cpu[0] * 9, "{cpu:?}");
}

#[test]
fn a_jvm_that_is_named_again_and_again_costs_its_records() {
    let directory = Directory::new();
    let mut file = File::new();
    let parts_count = 50_000;
    let figures = vec![(0, 4096); parts_count + 2];
    file.jvm(0, 7).keys(0, parts(parts_count)).sample(0, &figures);
    for _ in 0..50_000 {
        file.jvm(0, 7).keys(0, process()).sample(0, &[(0, 1)]);
    }
    let file = directory.file("again", &file.0);
    let ended = bounded(&directory, &["leak", &file, "--jvm", "nobody"], &file);
    assert_eq!(ended.status, Some(3), "{}", ended.stderr);
    // 2.5 billion samples took minutes.
    assert!(ended.cpu < Duration::from_secs(60), "{:?}", ended.cpu);
}

#[test]
fn a_report_draws_as_many_figures_as_it_may() {
    let directory = Directory::new();
    let mut file = File::new();
    let count = 20_000;
    file.jvm(0, 7).keys(0, parts(count)).sample(0, &vec![(0, 4096); count + 2]);
    for _ in 0..20_000 {
        file.sample(0, &[(0, 1000), (0, 4096)]);
    }
    let file = directory.file("figures", &file.0);
    let page = directory.path("page.html").display().to_string();
    let ended = bounded(&directory, &["report", &file, "-o", &page], &file);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
}

#[test]
fn series_and_moments_that_would_take_hours_are_refused() {
    let directory = Directory::new();
    let mut file = File::new();
    let count = 100_000;
    file.jvm(0, 7).keys(0, parts(count));
    for _ in 0..60_000 {
        file.sample(0, &[]);
    }
    let file = directory.file("moments", &file.0);
    each(&directory, &file, |command| refused(&directory, command, &file, "100002 series at 60000 moments"));
}

#[test]
fn notes_are_drawn_once_for_each_jvm_and_no_more_than_a_page_has() {
    let directory = Directory::new();
    let mut file = File::new();
    let text = "x".repeat(200);
    for number in 0..1_500 {
        file.jvm(number, number + 1).keys(number, process()).sample(number, &[(0, 1), (0, 4096)]);
    }
    for _ in 0..1_500 {
        let mut payload = vec![0, 0];
        payload.extend(text.bytes());
        file.put(Kind::Note, &payload);
    }
    for number in 0..1_500 {
        file.sample(number, &[(0, 1000), (0, 4096)]);
    }
    let file = directory.file("notes", &file.0);
    let page = directory.path("page.html").display().to_string();
    let ended = bounded(&directory, &["report", &file, "-o", &page], &file);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let bytes = std::fs::metadata(&page).expect("a page").len();
    // 2.25 million notes of 200 bytes, if each JVM had them all.
    assert!(bytes < 100 << 20, "{bytes}");
}
