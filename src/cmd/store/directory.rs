//! A store in a directory: files that are there whole or not at all, what a killed service left, and what a newer Marusa wrote.

use crate::os::output_file::{DRAFT_ENDING, OutputFile};
use crate::os::{file_mode, input_file};
use crate::record::Recording;
use crate::store::layout::{File, Place};
use crate::store::{sheet, tables};
use anyhow::bail;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Days whose directories are searched for what a killed service left, the newest first: the ones that a ring may have been of.
const LEFT_DAYS_MAX: usize = 60;
/// Files of a table whose version is read, the newest days first.
const VERSIONS_MAX: usize = 1000;
/// The length of a file's table of contents, and Parquet's mark.
const FOOTER_BYTES: u64 = 8;
const CONTENTS_BYTES_MAX: u32 = 16 << 20;

/// Rows and bytes. A table without rows is written, too: it says that there was nothing, and an engine that finds no file of a
/// table refuses to read it.
pub fn write(root: &Path, file: &File, recording: &Recording, place: &Place) -> io::Result<(u64, u64)> {
    let path = root.join(&file.path);
    fs::create_dir_all(path.parent().unwrap_or(root))?;
    let mut out = OutputFile::replace(&path, file_mode::wanted())?;
    let rows = tables::write(&mut out, file, recording, place)?;
    out.sync()?;
    Ok((rows, out.finish()?))
}

/// Removes the unfinished files of this node and cluster; a service that was killed may have left some. Only for the one that has
/// the store's lock. Returns their number.
pub fn remove_left(root: &Path, place: &Place) -> usize {
    let cluster = place.partition();
    let days = tables::Table::ALL.iter().flat_map(|table| {
        let days = newest_first(&root.join(table.directory()));
        days.into_iter().take(LEFT_DAYS_MAX)
    });
    let names = days.flat_map(|day| below(&day.join(&cluster)));
    let is_left = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_prefix('.')?.strip_suffix(DRAFT_ENDING))
            .and_then(|name| name.rsplit_once('.'))
            .is_some_and(|(name, _)| place.is_name_of(name))
    };
    names.filter(is_left).filter(|path| fs::remove_file(path).is_ok()).count()
}

/// Fails where a table has files of a later version than ours.
pub fn check(root: &Path) -> anyhow::Result<()> {
    for table in tables::Table::ALL {
        let clusters = newest_first(&root.join(table.directory())).into_iter().flat_map(|day| below(&day));
        let files = clusters.flat_map(|cluster| below(&cluster));
        let is_file = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "parquet");
        for path in files.filter(is_file).take(VERSIONS_MAX) {
            // What cannot be read is not ours to judge.
            let found = schema(&path);
            let version = found.as_deref().and_then(|schema| schema.rsplit_once('/')?.1.parse::<u64>().ok());
            if version.is_some_and(|version| version > tables::SCHEMA) {
                let (root, path) = (root.display(), path.display());
                bail!(
                    "cannot store into {root}: a newer marusa writes there: {path} has version {} of the table {}, and this \
                     marusa writes {}; update marusa, or give another directory",
                    version.unwrap_or_default(),
                    table.name(),
                    tables::SCHEMA
                );
            }
        }
    }
    Ok(())
}

/// What a Parquet file says of its schema, in the table of contents at its end.
fn schema(path: &Path) -> Option<String> {
    let file = input_file::open(path).ok()?;
    let mut footer = [0; FOOTER_BYTES as usize];
    let end = file.metadata().ok()?.len().checked_sub(FOOTER_BYTES)?;
    file.read_exact_at(&mut footer, end).ok()?;
    let length = u32::from_le_bytes(*footer.first_chunk()?);
    if !footer.ends_with(b"PAR1") || length > CONTENTS_BYTES_MAX {
        return None;
    }
    let mut contents = vec![0; length as usize];
    file.read_exact_at(&mut contents, end.checked_sub(length.into())?).ok()?;
    sheet::schema_in(&contents)
}

fn newest_first(path: &Path) -> Vec<PathBuf> {
    let mut days: Vec<PathBuf> = below(path).collect();
    days.sort_by(|one, other| other.cmp(one));
    days
}

fn below(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::made_up::small;
    use crate::store::layout::files;
    use crate::store::sheet::{About, Sheet};
    use crate::store::tables::Table;

    fn stored() -> (tempfile::TempDir, Place, File) {
        let root = tempfile::tempdir().expect("a directory");
        let (recording, place) = (small(), Place::new("eu1", "node-1"));
        let all = files(&recording, &place);
        for file in &all {
            write(root.path(), file, &recording, &place).expect("room");
        }
        let first = all.into_iter().next().expect("a file");
        (root, place, first)
    }

    #[test]
    fn what_a_kill_left_goes_and_what_others_write_stays() {
        let (root, place, file) = stored();
        let path = root.path().join(&file.path);
        let (directory, name) = (path.parent().expect("ours"), path.file_name().expect("ours").to_str());
        let name = name.expect("letters");
        let left = [format!(".{name}.0123.part")];
        let of_others = [
            format!(".{}.0123.part", name.replace("node-1-", "node-1-b-")),
            format!(".{}.0123.part", name.replace("node-1-", "node-")),
            format!(".{name}.0123"),
            name.to_string(),
        ];
        left.iter().chain(&of_others).for_each(|name| fs::write(directory.join(name), "half").expect("ours"));
        assert_eq!(remove_left(root.path(), &place), 1);
        assert!(left.iter().all(|name| !directory.join(name).exists()));
        assert!(of_others.iter().all(|name| directory.join(name).exists()));
        assert_eq!(remove_left(&root.path().join("none"), &place), 0);
    }

    #[test]
    fn files_of_a_newer_version_are_refused_and_damaged_ones_are_not_judged() {
        let (root, _, file) = stored();
        assert!(check(root.path()).is_ok());
        let next_to_it = root.path().join(&file.path).with_file_name("other.parquet");
        for damaged in [&b""[..], b"PAR1", b"\xff\xff\xff\xffPAR1", b"\x04\0\0\0PAR1", b"abcd\x04\0\0\0PAR1"]
        {
            fs::write(&next_to_it, damaged).expect("ours");
            assert!(check(root.path()).is_ok(), "{damaged:?}");
        }
        let about = About { schema: Some("process/2".to_string()), ..About::default() };
        let mut out = Vec::new();
        Sheet::new(&mut out, &Table::Process.columns(), &about).finish().expect("memory");
        fs::write(&next_to_it, out).expect("ours");
        let why = check(root.path()).expect_err("newer").to_string();
        assert!(why.contains("version 2 of the table process") && why.contains("update marusa"), "{why}");
    }
}
