//! The directory of the journals, and the lock by which one run at a time changes the host.

use super::journal::{self, Begin, Entry, Parsed, PlanMark, Record};
use super::machine::Machine;
use super::{DoorError, denied};
use crate::act::file_lock;
use crate::base::limits::{DOOR_JOURNAL_BYTES_MAX, DOOR_JOURNALS_MAX};
use crate::base::rfc3339;
use crate::os::foreign;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where the journals are, unless the user says otherwise.
pub const DIRECTORY: &str = "/var/lib/marusa";

#[derive(Clone, Debug)]
pub struct Store {
    /// The state directory; journals are in `pages` below it.
    pub directory: PathBuf,
}

/// Ends with the process, however that ends.
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        file_lock::unlock(&self.file);
    }
}

/// A journal that is written.
pub struct Journal {
    pub id: String,
    pub path: PathBuf,
    file: File,
    n: u64,
    pub records: Vec<Record>,
}

/// A journal as it lies in the directory.
#[derive(Clone, Debug)]
pub struct Kept {
    pub id: String,
    pub path: PathBuf,
    pub parsed: Parsed,
}

impl Store {
    pub fn new(directory: impl Into<PathBuf>) -> Store {
        Store { directory: directory.into() }
    }

    fn journals(&self) -> PathBuf {
        self.directory.join("pages")
    }

    /// Only one run at a time; makes the directory where it is missing.
    pub fn lock(&self) -> Result<Lock, DoorError> {
        let journals = self.journals();
        let failed =
            |error: io::Error| denied(&format!("the state directory {}", self.directory.display()), &error);
        // Copies that JVMs of other users run from lie in the state directory; the journals are ours alone.
        if !journals.is_dir() {
            DirBuilder::new().recursive(true).mode(0o755).create(&self.directory).map_err(failed)?;
            DirBuilder::new().recursive(true).mode(0o700).create(&journals).map_err(failed)?;
            let above = self.directory.parent().unwrap_or(&self.directory);
            let sync = |directory: &Path| File::open(directory)?.sync_all();
            sync(&self.directory).and_then(|()| sync(above)).map_err(failed)?;
        }
        self.trusted(&self.directory)?;
        self.trusted(&journals)?;
        let path = journals.join("lock");
        let mut options = OpenOptions::new();
        options
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW);
        let mut file = options.open(&path).map_err(failed)?;
        if !file_lock::try_lock(&file).map_err(failed)? {
            let mut holder = String::new();
            let _ = file.take(32).read_to_string(&mut holder);
            let holder = if holder.trim().is_empty() { "?" } else { holder.trim() };
            return Err(DoorError::No(format!(
                "another marusa (pid {holder}) changes this host now; {} is locked until it ends",
                path.display()
            )));
        }
        file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())).map_err(failed)?;
        Ok(Lock { file })
    }

    /// Journals say what is written into the host: no other user may have written them.
    fn trusted(&self, directory: &Path) -> Result<(), DoorError> {
        let Ok(meta) = std::fs::symlink_metadata(directory) else { return Ok(()) };
        let own = rustix::process::geteuid().as_raw();
        if meta.is_dir() && (meta.uid() == own || meta.uid() == 0) && meta.mode() & 0o022 == 0 {
            return Ok(());
        }
        Err(DoorError::Refused(format!(
            "the state directory {} is not ours alone: it must be a directory of this user that others cannot write",
            directory.display()
        )))
    }

    /// All journals, oldest first.
    pub fn list(&self) -> Result<Vec<Kept>, DoorError> {
        self.trusted(&self.directory)?;
        self.trusted(&self.journals())?;
        let entries = match std::fs::read_dir(self.journals()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| denied(&format!("{}", self.journals().display()), &error))?,
        };
        let mut ids: Vec<String> = entries
            .flatten()
            .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".journal")?.to_string()))
            .take(DOOR_JOURNALS_MAX)
            .collect();
        ids.sort_unstable_by_key(|id| order(id));
        ids.iter().map(|id| self.kept(id)).collect()
    }

    fn kept(&self, id: &str) -> Result<Kept, DoorError> {
        let path = self.journals().join(format!("{id}.journal"));
        let read = || {
            let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(&path)?;
            foreign::start(file, DOOR_JOURNAL_BYTES_MAX + 1)
        };
        let bytes =
            read().map_err(|error: io::Error| denied(&format!("the journal {}", path.display()), &error))?;
        let mut parsed = journal::parse(&bytes);
        if bytes.len() as u64 > DOOR_JOURNAL_BYTES_MAX {
            parsed.damage.get_or_insert_with(|| format!("longer than {DOOR_JOURNAL_BYTES_MAX} bytes"));
        }
        Ok(Kept { id: id.to_string(), path, parsed })
    }

    /// A new journal with its first record; it appears whole or not at all.
    pub fn create(
        &self,
        machine: &dyn Machine,
        lock: &Lock,
        begin: impl FnOnce(String, String) -> Begin,
    ) -> Result<Journal, DoorError> {
        let _ = lock;
        let now = SystemTime::now();
        let at = rfc3339(now);
        let id = self.free_id(&at[..10])?;
        let path = self.journals().join(format!("{id}.journal"));
        let draft = self.journals().join("draft");
        let failed = |error: io::Error| denied(&format!("the journal {}", path.display()), &error);
        let _ = std::fs::remove_file(&draft);
        let mut options = OpenOptions::new();
        options.create_new(true).append(true).mode(0o600);
        let file = options.open(&draft).map_err(failed)?;
        let mut journal = Journal { id: id.clone(), path: path.clone(), file, n: 0, records: Vec::new() };
        journal.append(machine, vec![Entry::Begin(Box::new(begin(id, at)))])?;
        std::fs::rename(&draft, &path)
            .and_then(|()| File::open(self.journals())?.sync_all())
            .map_err(failed)?;
        machine.moment().map_err(failed)?;
        Ok(journal)
    }

    /// "2026-01-31-1", the first that is free of the day.
    fn free_id(&self, day: &str) -> Result<String, DoorError> {
        (1..=DOOR_JOURNALS_MAX)
            .map(|number| format!("{day}-{number}"))
            .find(|id| !self.journals().join(format!("{id}.journal")).exists())
            .ok_or_else(|| DoorError::Refused(format!("{} is full", self.journals().display())))
    }

    /// To go on with a journal; what a crash left of its last line is cut off.
    pub fn open(&self, kept: &Kept, lock: &Lock) -> Result<Journal, DoorError> {
        let _ = lock;
        let failed = |error: io::Error| denied(&format!("the journal {}", kept.path.display()), &error);
        let mut options = OpenOptions::new();
        let file = options.append(true).custom_flags(libc::O_NOFOLLOW).open(&kept.path).map_err(failed)?;
        if kept.parsed.torn {
            file.set_len(kept.parsed.whole_bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        }
        let n = kept.parsed.records.len() as u64;
        let (id, path, records) = (kept.id.clone(), kept.path.clone(), kept.parsed.records.clone());
        Ok(Journal { id, path, file, n, records })
    }

    /// Keeps what a damaged journal holds next to it, and makes a journal again of what can be read; without that it is gone.
    pub fn put_aside(&self, kept: &mut Kept, lock: &Lock) -> Result<PathBuf, DoorError> {
        let _ = lock;
        let aside = kept.path.with_extension("damaged");
        let put = || {
            if kept.parsed.records.is_empty() {
                std::fs::rename(&kept.path, &aside)?;
            } else {
                std::fs::copy(&kept.path, &aside)?;
                File::open(&aside)?.sync_all()?;
                let file = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(&kept.path)?;
                file.set_len(kept.parsed.whole_bytes)?;
                file.sync_all()?;
            }
            File::open(self.journals())?.sync_all()
        };
        put().map_err(|error: io::Error| denied(&format!("the journal {}", kept.path.display()), &error))?;
        (kept.parsed.damage, kept.parsed.torn) = (None, false);
        Ok(aside)
    }
}

/// Days, then numbers of a day as numbers.
fn order(id: &str) -> (String, u64) {
    let (day, number) = id.rsplit_once('-').unwrap_or((id, ""));
    (day.to_string(), number.parse().unwrap_or(u64::MAX))
}

impl Journal {
    /// The source of the tmpfs that a step of this run mounts, by which it is known again.
    pub fn mount_source(&self, step: usize) -> String {
        format!("marusa:{}:{step}", self.id)
    }

    /// Returns when the records are in the file, and on the disk where something is done upon them.
    pub fn append(&mut self, machine: &dyn Machine, entries: Vec<Entry>) -> Result<(), DoorError> {
        let now = SystemTime::now();
        let at_ns = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
        let path = self.path.display().to_string();
        let failed = |error: io::Error| denied(&format!("the journal {path}"), &error);
        machine.moment().map_err(failed)?;
        let synced = entries.iter().any(Entry::is_acted_upon);
        for entry in entries {
            let record = Record { n: self.n, at: rfc3339(now), at_ns, entry };
            let line = journal::line(&record).map_err(|error| failed(error.into()))?;
            self.file.write_all(line.as_bytes()).map_err(failed)?;
            self.n += 1;
            self.records.push(record);
        }
        if synced {
            self.file.sync_data().map_err(failed)?;
        }
        machine.moment().map_err(failed)
    }
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Something of it is there, and the run did not come to its end.
    Interrupted,
    Applied,
    /// Undone except for what others changed in the meantime, or what is busy.
    PartlyUndone,
    Undone,
    Damaged,
}

impl Kept {
    pub fn begin(&self) -> Option<&Begin> {
        journal::begin(&self.parsed.records)
    }

    /// Why it cannot be read whole.
    pub fn damage(&self) -> String {
        self.parsed.damage.clone().unwrap_or_else(|| "it is empty".to_string())
    }

    pub fn state(&self) -> State {
        if self.parsed.damage.is_some() || self.parsed.records.is_empty() {
            return State::Damaged;
        }
        let mut state = State::Interrupted;
        for record in &self.parsed.records {
            state = match record.entry {
                Entry::Applied => State::Applied,
                Entry::UndoBegin { .. } => State::Interrupted,
                Entry::UndoEnd { complete: true } => State::Undone,
                Entry::UndoEnd { complete: false } => State::PartlyUndone,
                _ => state,
            };
        }
        state
    }

    pub fn applies(&self, plan: &PlanMark) -> bool {
        self.begin().is_some_and(|begin| begin.plan.is(plan))
    }
}
