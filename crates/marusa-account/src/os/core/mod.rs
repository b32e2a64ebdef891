//! A core dump as a process that can be asked: its mappings, the pages that the file holds, its threads, its memory.
//!
//! A core is not the process. It holds no residency (the pages that were written stand for the resident ones), none of the
//! kernel's sums, and by default no pages of files that were not changed: those come from the files themselves where they
//! are the same. All that is missing is reported. The file may be many gigabytes and cut short anywhere, also while it is read: it
//! is never read whole, and every place in it is checked.

pub mod arguments;
pub mod extents;
pub mod files;
pub mod headers;
pub mod memory;
pub mod notes;
pub mod view;

pub use memory::{CoreMemory, CoreSymbols};

use super::file_bytes::FileBytes;
use super::input_file;
use super::target::OsView;
use crate::base::redact;
use crate::base::{Gap, rfc3339};
use crate::os::machine;
use extents::Extents;
use files::Files;
use headers::Headers;
use notes::Notes;
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Why a file cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is packed: unpack it first, with `{0} FILE` or `coredumpctl dump PID -o FILE`")]
    Packed(&'static str),
    #[error("it is not a core dump: the first bytes are not those of an ELF file")]
    Foreign,
    #[error("it is an ELF file, but not a core dump: a program or a library")]
    NoCore,
    #[error("it is the core of {0}: read it with a marusa of that machine")]
    Machine(String),
    #[error("it is a truncated or damaged core: {0}")]
    Damaged(String),
}

/// An open core.
pub struct Core {
    bytes: FileBytes,
    headers: Headers,
    notes: Notes,
    files: Files,
    view: OsView,
    /// When the file was written last: RFC 3339, UTC.
    pub written: Option<String>,
}

/// Windows of the core that are kept: 16 MiB.
const WINDOWS: usize = 256;

impl Core {
    /// Whether a file with these first bytes is to be opened as a core: an ELF file, or something packed.
    pub fn begins_like_one(bytes: &[u8]) -> bool {
        bytes.starts_with(b"\x7fELF") || headers::packer(bytes).is_some()
    }

    pub fn open(path: &Path) -> Result<Core, CoreError> {
        let file = input_file::open(path)?;
        let metadata = file.metadata()?;
        if metadata.len() == 0 {
            return Err(CoreError::Damaged("it is empty".to_string()));
        }
        let extents = Extents::of_file(&file, metadata.len());
        Core::build(FileBytes::of(file, WINDOWS)?, extents, metadata.modified().ok(), true)
    }

    /// A core of literal bytes. The files that it names are not looked for.
    pub fn of_bytes(bytes: Vec<u8>) -> Result<Core, CoreError> {
        let extents = Extents::whole(bytes.len() as u64);
        Core::build(FileBytes::given(bytes), extents, None, false)
    }

    fn build(
        bytes: FileBytes,
        extents: Extents,
        written: Option<SystemTime>,
        look_for_files: bool,
    ) -> Result<Core, CoreError> {
        let headers = Headers::parse(&bytes)?;
        let mut notes = Notes::default();
        let mut done = 0;
        for (at, length) in &headers.notes {
            // Headers may name the same bytes a thousand times: what was read is not read again.
            if *at >= done {
                notes.add(&bytes, *at, *length);
            } else {
                notes.damaged += 1;
            }
            done = done.max(at.saturating_add(*length));
        }
        notes.sort();
        if notes.auxiliary_value(notes::AT_PAGESZ).is_some_and(|bytes| !machine::is_base(bytes)) {
            return Err(CoreError::Machine("a machine whose page size no processor has".to_string()));
        }
        machine::of_file(notes.auxiliary_value(notes::AT_PAGESZ), cfg!(target_arch = "aarch64"));
        if headers.loads.is_empty() {
            return Err(CoreError::Damaged("it has no memory".to_string()));
        }
        if headers.overlap_in_file(bytes.length()) {
            return Err(CoreError::Damaged("its segments claim more bytes than it has".to_string()));
        }
        let mut view = view::build(&bytes, &headers, &notes, &extents);
        let held = CoreMemory::of(&bytes, &headers.loads, &[], &[]);
        let files = match look_for_files {
            true => Files::look(&held, &view, &headers, written),
            false => Files::default(),
        };
        view.gaps.extend(files.gaps.iter().cloned());
        match arguments::read(&held, &view, &notes) {
            Ok(arguments) => view.process.set_arguments(arguments),
            Err(gap) => {
                view.gaps.push(gap);
                view.process.command = redact::line(&notes.arguments);
            }
        }
        let written = written.map(rfc3339);
        Ok(Core { bytes, headers, notes, files, view, written })
    }

    /// The kernel's view, as far as a core tells it.
    pub fn view(&self) -> &OsView {
        &self.view
    }

    pub fn memory(&self) -> CoreMemory<'_> {
        CoreMemory::of(&self.bytes, &self.headers.loads, &self.view.mappings, &self.files.found)
    }

    pub fn symbols(&self) -> CoreSymbols<'_> {
        CoreSymbols { mappings: &self.view.mappings, files: &self.files.found }
    }

    /// What is wrong with the file behind the mappings of `path`. Its bytes may all be in the core.
    pub fn trouble(&self, path: &str) -> Option<&Gap> {
        self.files.troubles.get(path)
    }

    /// The signal that ended the process.
    pub fn signal(&self) -> Option<i32> {
        self.notes.signal
    }

    /// Whether the file ends before its notes do, which name the mapped files.
    pub fn is_cut_within_notes(&self) -> bool {
        self.headers.notes_are_cut
    }

    /// Where the program begins: a place in the executable.
    pub fn entry(&self) -> Option<crate::base::Addr> {
        self.notes.auxiliary_value(notes::AT_ENTRY).map(crate::base::Addr)
    }
}
