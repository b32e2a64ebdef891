//! The files that a recording is written to. A ring (`--keep`) is a row of files: FILE is the newest, FILE.000001 and so on
//! are those before, and the oldest go. At each moment FILE is there and whole: the next one is written next to it and put
//! into its place.

use super::file;
use crate::base::limits::RECORDING_BYTES_MAX;
use crate::base::{Bytes, refuse};
use crate::cmd::Failure;
use crate::os::place::Place;
use crate::os::{file_mode, input_file, output_file};
use crate::record::reader;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Time(Duration),
    Bytes(Bytes),
}

/// The files of a ring: what is kept is at most an eighth too long.
const FILES: u32 = 8;
const FILE_BYTES_MIN: Bytes = 64 << 10;
const FILE_TIME_MIN: Duration = Duration::from_secs(5);

pub struct Output {
    path: PathBuf,
    place: Place,
    file: File,
    keep: Option<Keep>,
    /// Bytes of the newest file up to the end of its last whole record.
    whole_bytes: Bytes,
    begun: Instant,
    pub segment: u64,
    /// Files of the ring, oldest first, their bytes, and when they were full.
    full: VecDeque<(PathBuf, Bytes, Instant)>,
    /// Files that the ring let go.
    pub dropped: u64,
    /// The hour, since 1970, that the newest file is of; `None`: a file is as long as `keep` says.
    hour: Option<u64>,
    /// The file was there and is gone on with.
    pub is_append: bool,
}

impl Output {
    pub fn open(path: &Path, keep: Option<Keep>, append: bool) -> anyhow::Result<Output> {
        let unwritable = |error: io::Error| Failure::unwritable(path, error);
        if path.is_symlink() {
            refuse!(
                "cannot write {}: it is a symbolic link, and the files of a ring lie next to their newest; give the path that \
                 it points to",
                path.display()
            );
        }
        let place = Place::of(path).map_err(unwritable)?;
        let is_there = place.facts().map_err(unwritable)?.is_some();
        let overwrites = output_file::overwrites() && !append;
        if is_there && !append && !overwrites {
            refuse!(
                "cannot write {}: it exists; give another name, --append to go on with it, or --force to overwrite it",
                path.display()
            );
        }
        if overwrites {
            output_file::check(path).and_then(|()| remove(path, &place)).map_err(unwritable)?;
        }
        let is_there = is_there && append;
        let older = file::older(path);
        if let (Some((_, left)), false) = (older.first(), append) {
            refuse!(
                "cannot write {}: it is of a ring that had this name; give another name, --append to go on with it, or --force to \
                 overwrite it",
                left.display()
            );
        }
        let older = without_second_name(path, older);
        let (file, whole_bytes) = match is_there {
            true => reopen(&place)?,
            false => (place.create_new(file_mode::wanted()).map_err(unwritable)?, 0),
        };
        let begun = Instant::now();
        let segment = older.last().map_or(0, |(number, _)| number + 1);
        let full = older.into_iter().map(|(_, path)| (path.clone(), super::bytes_of(&path), begun)).collect();
        let is_append = whole_bytes > 0;
        Ok(Output {
            path: path.to_path_buf(),
            place,
            file,
            keep,
            whole_bytes,
            begun,
            segment,
            full,
            dropped: 0,
            hour: None,
            is_append,
        })
    }

    /// Begins a new file each hour at the latest.
    pub fn turn_each_hour(&mut self) {
        self.hour = Some(hour());
    }

    /// The size of all files that are kept.
    pub fn bytes(&self) -> Bytes {
        self.whole_bytes + self.full.iter().map(|(_, bytes, _)| bytes).sum::<Bytes>()
    }

    pub fn files(&self) -> usize {
        self.full.len() + 1
    }

    /// Adds whole records, in one write. Where that fails (a full disk), what was written of them is undone, so that the file
    /// ends with a whole record.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.whole_bytes += bytes.len() as Bytes;
                Ok(())
            }
            Err(error) => {
                // A file that cannot be cut is torn at its end, which readers tell.
                let _ = self.file.set_len(self.whole_bytes);
                Err(error)
            }
        }
    }

    /// Whether the newest file has had its share.
    pub fn is_full(&self) -> bool {
        if self.hour.is_some_and(|of| of != hour()) {
            return true;
        }
        match self.keep {
            None => false,
            Some(Keep::Time(keep)) => self.begun.elapsed() >= (keep / FILES).max(FILE_TIME_MIN),
            Some(Keep::Bytes(keep)) => self.whole_bytes >= (keep / Bytes::from(FILES)).max(FILE_BYTES_MIN),
        }
    }

    /// Goes on in a new file that begins with `start`, and lets go of what is too old or too much.
    pub fn next(&mut self, start: &[u8]) -> io::Result<()> {
        let next = self.near(&file::next_of_ring(&self.path))?;
        // A killed recorder may have left one.
        let mut file = next.create_afresh(file_mode::wanted())?;
        if let Err(error) = file.write_all(start) {
            let _ = next.remove();
            return Err(error);
        }
        let old = file::numbered(&self.path, self.segment);
        let numbered = self.near(&old)?;
        // A second name first, so that no moment is without FILE; where there are no second names, the gap is a moment.
        if self.place.link_to(&numbered).is_err() {
            self.place.rename_to(&numbered)?;
        }
        next.rename_to(&self.place)?;
        self.full.push_back((old, self.whole_bytes, Instant::now()));
        (self.file, self.whole_bytes, self.begun) = (file, start.len() as Bytes, Instant::now());
        self.segment += 1;
        self.hour = self.hour.map(|_| hour());
        self.let_go();
        Ok(())
    }

    /// A file of the ring, by its place in the directory that is open.
    fn near(&self, path: &Path) -> io::Result<Place> {
        self.place.sibling(path.file_name().unwrap_or_default())
    }

    fn let_go(&mut self) {
        while let Some((path, bytes, since)) = self.full.front() {
            let is_too_much = match self.keep {
                None => false,
                Some(Keep::Time(keep)) => since.elapsed() > keep,
                Some(Keep::Bytes(keep)) => self.bytes() - bytes >= keep,
            };
            // A removed file is gone anyway.
            let removed = || self.near(path).and_then(|place| place.remove());
            if !is_too_much || removed().is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
                break;
            }
            self.full.pop_front();
            self.dropped += 1;
        }
    }
}

/// By the clock on the wall.
fn hour() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 3600)
}

/// A recording with all files of its ring, or what else has its name.
fn remove(path: &Path, place: &Place) -> io::Result<()> {
    for (_, older) in file::older(path) {
        Place::of(&older)?.remove()?;
    }
    match place.remove() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// A recorder that was killed while it turned its ring may have left FILE with the number that it was to have.
fn without_second_name(path: &Path, mut older: Vec<(u64, PathBuf)>) -> Vec<(u64, PathBuf)> {
    let identity = |path: &Path| fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()));
    let is_same = |other: &(u64, PathBuf)| identity(path).is_some_and(|it| identity(&other.1) == Some(it));
    if older.last().is_some_and(is_same) {
        let _ = older.pop().map(|(_, second)| fs::remove_file(second));
    }
    older
}

/// A recording that is there, without what is torn at its end.
fn reopen(place: &Place) -> anyhow::Result<(File, Bytes)> {
    let path = &place.shown;
    let failed = |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", path.display()));
    let mut file = place.open_own(libc::O_RDWR | libc::O_APPEND).map_err(|error| failed(&error))?;
    let bytes = input_file::read_all(&mut file, RECORDING_BYTES_MAX).map_err(|error| failed(&error))?;
    let whole =
        if bytes.is_empty() { 0 } else { reader::whole_bytes(&bytes).map_err(|error| failed(&error))? };
    if whole < bytes.len() {
        crate::say!(
            "marusa: {}: its last {} bytes are not a whole record and are cut off",
            path.display(),
            bytes.len() - whole
        );
        file.set_len(whole as u64).map_err(|error| failed(&error))?;
    }
    Ok((file, whole as Bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::writer::{Session, Writer};

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path = std::env::temp_dir().join(format!("marusa-output-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a directory");
            Directory(path)
        }
        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).expect("ours");
            let mut names: Vec<String> =
                entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_ring_by_size_keeps_the_newest_files() {
        let directory = Directory::new("ring");
        let path = directory.0.join("a.marusa");
        let mut output = Output::open(&path, Some(Keep::Bytes(256 << 10)), false).expect("new");
        for round in 0..20 {
            while !output.is_full() {
                output.write(&[round; 8 << 10]).expect("room");
            }
            output.next(b"start").expect("room");
        }
        assert!(output.bytes() <= (256 << 10) + (64 << 10), "{}", output.bytes());
        assert_eq!(output.dropped as usize + output.files(), 21);
        let names = directory.names();
        assert_eq!((names[0].as_str(), names.len()), ("a.marusa", output.files()));
        assert!(names.last().is_some_and(|last| last == "a.marusa.000019"), "{names:?}");
        assert_eq!(fs::read(&path).expect("ours"), b"start");
        fs::remove_file(&path).expect("ours");
        assert!(Output::open(&path, None, false).is_err(), "its older files would be taken for ours");
    }

    #[test]
    fn what_is_there_is_not_written_over_and_a_torn_end_is_cut_off_before_going_on() {
        let directory = Directory::new("append");
        let path = directory.0.join("a.marusa");
        let whole = Writer::new(&Session::default()).take();
        fs::write(&path, [&whole[..], &[4, 200, 1]].concat()).expect("ours");
        assert!(Output::open(&path, None, false).is_err());
        let output = Output::open(&path, None, true).expect("a recording");
        assert!(output.is_append);
        assert_eq!(fs::read(&path).expect("ours"), whole);
        fs::write(&path, b"something else").expect("ours");
        assert!(Output::open(&path, None, true).is_err());
    }

    #[test]
    fn a_second_name_that_a_kill_left_is_taken_away() {
        let directory = Directory::new("second-name");
        let path = directory.0.join("a.marusa");
        let whole = Writer::new(&Session::default()).take();
        fs::write(&path, &whole).expect("ours");
        fs::write(file::numbered(&path, 0), &whole).expect("ours");
        fs::hard_link(&path, file::numbered(&path, 1)).expect("ours");
        let output = Output::open(&path, Some(Keep::Bytes(1 << 20)), true).expect("a recording");
        assert_eq!((output.segment, output.files()), (1, 2));
        assert_eq!(directory.names(), ["a.marusa", "a.marusa.000000"]);
    }

    #[test]
    fn a_full_disk_leaves_whole_records() {
        let Ok(file) = File::options().write(true).open("/dev/full") else { return };
        let path = PathBuf::from("/dev/full");
        let place = Place::of(&path).expect("it is there");
        let mut output = Output {
            path,
            place,
            file,
            keep: None,
            whole_bytes: 0,
            begun: Instant::now(),
            segment: 0,
            full: VecDeque::new(),
            dropped: 0,
            hour: None,
            is_append: false,
        };
        let error = output.write(b"records").expect_err("full");
        assert_eq!((error.kind(), output.bytes()), (io::ErrorKind::StorageFull, 0));
    }
}
