//! What a service that stores outlives: a damaged file of its ring, a full disk, its own death with half an object sent, and a store
//! of a newer Marusa.

use super::store::{files, head, read, request};
use super::survival::{grow, until};
use super::*;
use crate::common::small_disk::SmallDisk;
use crate::record::Directory;
use crate::record::parquet::python;
use std::net::TcpListener;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A ring of 40 s, with files of 5 s.
fn arguments<'a>(ring: &'a str, store: &'a str) -> [&'a str; 6] {
    ["--output", ring, "--keep", "40s", "--store", store]
}

fn all(below: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(below).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { all(&path) } else { vec![path] }).collect()
}

fn metric(service: &Service, name: &str) -> u64 {
    let text = service.text("/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    line.unwrap_or_else(|| panic!("{name}: {text}"))
}

/// A service without a store, until its ring has a finished file; then it is killed.
fn ring_with_finished_files(ring: &str) {
    let mut service = Service::start(&["--output", ring, "--keep", "40s"]);
    until("a file is finished", || Path::new(&format!("{ring}.000001")).exists().then_some(()));
    service.child.kill().expect("ours");
    service.child.wait().expect("ours");
}

#[test]
fn a_damaged_file_of_the_ring_is_counted_and_those_after_it_are_stored() {
    let Some(_jvm) = grow(&[]) else { return };
    let directory = Directory::new("store-damaged");
    let (ring, store) = (directory.file("node.marusa"), directory.file("store"));
    ring_with_finished_files(&ring);
    let damaged = format!("{ring}.000000");
    fs::write(&damaged, "PAR1 and more").expect("ours");
    let service = Service::start(&arguments(&ring, &store));
    until("the next one is stored", || (files(&store, "jvm") >= 1).then_some(()));
    until("it is counted", || (metric(&service, "marusa_store_lost_total") == 1).then_some(()));
    until("it goes on", || (files(&store, "jvm") >= 3).then_some(()));
    let said = service.said();
    assert_eq!(said.matches(&damaged).count(), 1, "once: {said}");
    assert!(said.contains("it is not a recording") && said.contains("; it is not stored"), "{said}");
    assert_eq!(metric(&service, "marusa_store_lost_total"), 1);
    assert_eq!(metric(&service, "marusa_store_failures_total"), 0);
}

#[test]
fn a_full_disk_leaves_no_part_of_a_file_and_is_gone_on_from() {
    let Some(_jvm) = grow(&[]) else { return };
    let directory = Directory::new("store-full");
    let (ring, store) = (directory.file("node.marusa"), directory.file("store"));
    ring_with_finished_files(&ring);
    fs::create_dir(&store).expect("ours");
    let Some(disk) = SmallDisk::new(Path::new(&store), "2m") else { return };
    // Room for some of a recording's files.
    let others = Path::new(&store).join("others");
    fs::write(&others, vec![1; (2 << 20) - (24 << 10)]).expect("room");
    let service = Service::start(&arguments(&ring, &store));
    until("it fails, and again", || (metric(&service, "marusa_store_failures_total") >= 2).then_some(()));
    let said = service.said();
    assert_eq!(said.matches("No space left on device").count(), 1, "once: {said}");
    let is_store = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "v1");
    for path in all(Path::new(&store)).into_iter().filter(is_store) {
        let bytes = fs::read(&path).expect("ours");
        assert!(path.extension().is_some_and(|ending| ending == "parquet"), "{}", path.display());
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{}", path.display());
    }
    assert_eq!(files(&store, "jvm"), 0, "the last table of a recording had no room");
    fs::remove_file(&others).expect("ours");
    until("it goes on", || (files(&store, "jvm") >= 1).then_some(()));
    until("it says so", || service.said().contains("the store is written to again").then_some(()));
    drop((service, disk));
}

/// What came as one PUT: its path and body.
type Put = (String, Vec<u8>);

/// Answers all that is put, until one is cut off.
fn puts(listener: TcpListener) -> Arc<Mutex<Vec<Put>>> {
    let all = Arc::new(Mutex::new(Vec::new()));
    let seen = all.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            let (head, body) = request(&mut stream);
            let path = head.split(' ').nth(1).expect("a path").to_string();
            seen.lock().expect("ours").push((path, body));
            stream.write_all(OK).expect("sent");
        }
    });
    all
}

#[test]
fn a_service_that_is_killed_in_the_middle_of_a_put_puts_it_again() {
    let Some(python) = python() else { return };
    let Some(_jvm) = grow(&[]) else { return };
    let directory = Directory::new("store-half");
    let ring = directory.file("node.marusa");
    ring_with_finished_files(&ring);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let arguments = arguments(&ring, "s3://fleet");
    let start = || {
        let variables =
            [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "hidden"), ("AWS_ENDPOINT_URL", &url)];
        Service::with(&arguments, &variables)
    };
    // The first object arrives; of the second a part, and then the service is dead.
    let mut service = start();
    let (mut stream, _) = listener.accept().expect("a client");
    let whole = request(&mut stream);
    stream.write_all(OK).expect("sent");
    let (mut stream, _) = listener.accept().expect("a client");
    let mut reader = BufReader::new(&mut stream);
    let (begun, length) = head(&mut reader);
    reader.read_exact(&mut vec![0; length / 2]).expect("a half");
    service.child.kill().expect("ours");
    service.child.wait().expect("ours");
    let key = |head: &str| head.split(' ').nth(1).expect("a path").to_string();
    let all = puts(listener);
    let _service = start();
    let tables = 6;
    until("two recordings are stored", || (all.lock().expect("ours").len() >= 2 * tables).then_some(()));
    let again = all.lock().expect("ours").clone();
    assert_eq!((&again[0].0, &again[1].0), (&key(&whole.0), &key(&begun)), "both again, under their names");
    assert_eq!(again[0].1, whole.1, "the same bytes");
    // What the bucket has, as an engine reads it.
    let store = directory.file("bucket");
    for (path, body) in &again {
        let path = path.strip_prefix("/fleet/").expect("the bucket").replace("%3D", "=");
        let path = Path::new(&store).join(path);
        fs::create_dir_all(path.parent().expect("ours")).expect("ours");
        fs::write(path, body).expect("ours");
    }
    let found = read(&python, &store);
    for table in ["samples", "series"] {
        assert_eq!(found[table][0], found[table][1], "no row twice: {found:#}");
    }
}

#[test]
fn what_a_killed_service_left_goes_and_a_store_of_a_newer_version_is_refused() {
    let Some(_jvm) = grow(&[]) else { return };
    let directory = Directory::new("store-left");
    let (ring, store) = (directory.file("node.marusa"), directory.file("store"));
    let mut service = Service::start(&arguments(&ring, &store));
    until("one is stored", || (files(&store, "jvm") >= 1).then_some(()));
    service.child.kill().expect("ours");
    service.child.wait().expect("ours");
    let of_table = |table: &str| {
        let files = all(&Path::new(&store).join("v1").join(table));
        files.into_iter().find(|path| path.extension().is_some_and(|it| it == "parquet")).expect("a file")
    };
    let path = of_table("account");
    let name = path.file_name().expect("ours").to_str().expect("letters");
    let left = path.with_file_name(format!(".{name}.0123456789abcdef.part"));
    fs::write(&left, "half").expect("ours");
    drop(Service::start(&arguments(&ring, &store)));
    assert!(!left.exists() && path.exists());
    // The version is a text among others, here of the same length.
    let path = of_table("process");
    let mut bytes = fs::read(&path).expect("ours");
    let at = bytes.windows(9).position(|nine| nine == b"process/1").expect("its version");
    bytes[at + 8] = b'2';
    fs::write(&path, bytes).expect("ours");
    let serve = [&["serve", "--listen", "127.0.0.1:0"][..], &arguments(&ring, &store)].concat();
    for command in [&serve[..], &["export", &ring, "--layout", "hive", "--parquet", &store]] {
        let output = marusa(command);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("has version 2 of the table process"), "{said}");
    }
}
