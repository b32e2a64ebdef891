//! The recorded JVMs, loaded when first asked for.

use marusa::snapshot::file::Frozen;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// One recorded JVM, and the addresses at which something was read.
pub struct Recorded {
    pub frozen: Frozen,
    /// (address, bytes), sorted.
    pub pieces: Vec<(u64, u64)>,
}

/// The recording that `choice` falls on.
pub fn choose(choice: u8) -> &'static Recorded {
    static FILES: OnceLock<Vec<(PathBuf, OnceLock<Recorded>)>> = OnceLock::new();
    let files = FILES.get_or_init(|| files().into_iter().map(|path| (path, OnceLock::new())).collect());
    let (path, recorded) = &files[choice as usize % files.len()];
    recorded.get_or_init(|| load(path))
}

fn load(path: &Path) -> Recorded {
    let mut file = File::open(path).expect("a recording that can be opened");
    let frozen = Frozen::load(&mut file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let pieces = frozen.memory.pieces().iter().map(|(at, bytes)| (at.0, bytes.len() as u64)).collect();
    Recorded { frozen, pieces }
}

/// `$MARUSA_FROZEN/*.frozen`, sorted by name.
fn files() -> Vec<PathBuf> {
    let directory = std::env::var("MARUSA_FROZEN").unwrap_or_else(|_| "tests/data/frozen".to_string());
    let mut files: Vec<PathBuf> = std::fs::read_dir(&directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "frozen"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no recordings in {directory}: run scripts/record-frozen");
    files
}
