//! Puts the finished files of the recording into a store (`--store`): once an hour one file for each table. The recording's ring
//! is the buffer: a store that is down, a full disk and a restart cost nothing while the ring still has the files.

use super::super::record::file;
use crate::act::file_lock;
use crate::cmd::store::{Put, Store, directory};
use crate::os::{file_mode, input_file, output_file};
use crate::serve::Node;
use crate::store::layout::Place;
use anyhow::anyhow;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the ring is looked at. Each failure doubles the pause, up to a limit.
const LOOK_EVERY: Duration = Duration::from_secs(10);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How often the same failure is said.
const SAY_EVERY: Duration = Duration::from_secs(3600);
const STATE_BYTES_MAX: u64 = 64;

/// Where to, and what of.
pub struct Storing {
    pub store: Store,
    pub place: Place,
    /// The newest file of the ring.
    pub recording: PathBuf,
    /// The number that the newest file of the ring will have.
    pub next: u64,
    /// Held while the process lives: two services would write the same files.
    pub _lock: Option<File>,
}

impl Storing {
    /// Stores until the process ends.
    pub fn start(self, node: Arc<Node>) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("store".to_string());
        thread.spawn(move || self.run(&node)).map(drop)
    }

    fn run(self, node: &Node) {
        let mut next = self.first();
        node.state().own.stored.is_on = true;
        let (mut said, mut pause): (Option<Instant>, _) = (None, LOOK_EVERY);
        loop {
            let before = node.state().own.stored.files;
            let done = self.round(&mut next, node);
            if node.state().own.stored.files > before && said.take().is_some() {
                crate::say!("marusa: the store is written to again");
            }
            match done {
                Ok(()) => {
                    std::thread::sleep(LOOK_EVERY);
                    pause = LOOK_EVERY;
                }
                Err(why) => {
                    node.state().own.stored.failures += 1;
                    if said.is_none_or(|at| at.elapsed() >= SAY_EVERY) {
                        crate::say!("marusa: {why}; the recording is kept and stored later");
                        said = Some(Instant::now());
                    }
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Stores what is finished and not stored, oldest first. `next`: the number of the first file that is not stored.
    fn round(&self, next: &mut u64, node: &Node) -> anyhow::Result<()> {
        for (number, path) in file::older(&self.recording) {
            if number < *next {
                continue;
            }
            // The ring let go of those between.
            node.state().own.stored.lost += number - *next;
            *next = number;
            match file::load(&path) {
                Ok(recording) => {
                    let Put { files, bytes, .. } = self.store.put(&recording, &self.place)?;
                    let stored = &mut node.state().own.stored;
                    stored.files += files;
                    stored.bytes += bytes;
                }
                // It will not be readable later: the files behind it must not wait for it.
                Err(error) => {
                    crate::say!("marusa: {error}; it is not stored");
                    node.state().own.stored.lost += 1;
                }
            }
            *next = number + 1;
            self.write_state(number)?;
        }
        Ok(())
    }

    /// The number of the first file to store.
    fn first(&self) -> u64 {
        if let Some(stored) = self.state() {
            return stored + 1;
        }
        // It would say something of this ring as soon as that has as many files.
        let _ = fs::remove_file(self.state_path());
        file::older(&self.recording).first().map_or(self.next, |(number, _)| *number)
    }

    /// A small file next to the ring says which of its files is stored.
    fn state_path(&self) -> PathBuf {
        let mut name = self.recording.as_os_str().to_owned();
        name.push(".stored");
        PathBuf::from(name)
    }

    /// One of a ring that was begun anew says nothing of this one.
    fn state(&self) -> Option<u64> {
        let text = input_file::read(self.state_path(), STATE_BYTES_MAX).ok()?;
        String::from_utf8(text).ok()?.trim().parse().ok().filter(|number| *number < self.next)
    }

    fn write_state(&self, number: u64) -> anyhow::Result<()> {
        let path = self.state_path();
        output_file::replace(&path, file_mode::wanted(), format!("{number}\n").as_bytes())
            .map(drop)
            .map_err(|error| anyhow!("cannot write {}: {error}", path.display()))
    }
}

/// For a directory, a lock that no second service of this node gets. What a killed one left there is removed.
pub fn lock(store: &Store, place: &Place) -> anyhow::Result<Option<File>> {
    let Store::Directory(root) = store else { return Ok(None) };
    let path = root.join(format!(".marusa-{}.lock", place.node));
    let failed = |error: io::Error| anyhow!("cannot write {}: {error}", path.display());
    fs::create_dir_all(root).map_err(failed)?;
    let file = open(&path).map_err(failed)?;
    if file_lock::try_lock(&file).map_err(failed)? {
        directory::remove_left(root, place);
        return Ok(Some(file));
    }
    Err(anyhow!(
        "cannot store into {}: another marusa serve of node {} does; stop it, or give another directory",
        root.display(),
        place.node
    ))
}

fn open(path: &Path) -> io::Result<File> {
    let place = crate::os::place::Place::of(path)?;
    place.open_log(file_mode::wanted())
}
