//! Which parts of a sparse file hold data. The kernel leaves a hole in a core for every page that was never touched
//! (fs/coredump.c, `dump_user_range`), so the holes tell what was in memory, as long as no copy has filled them.

use crate::base::limits::CORE_EXTENTS_MAX;
use rustix::fs::{SeekFrom, seek};
use std::fs::File;

/// The data of a file: start and end, sorted, disjoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extents {
    pub data: Vec<(u64, u64)>,
}

impl Extents {
    /// A file without holes.
    pub fn whole(length: u64) -> Extents {
        Extents { data: vec![(0, length)] }
    }

    /// A file system that knows no holes says that all is data.
    pub fn of_file(file: &File, length: u64) -> Extents {
        let mut data = Vec::new();
        let mut at = 0;
        while at < length {
            // No code reads this file by its position. An error: behind the last data, or seeking cannot tell.
            let Ok(start) = seek(file, SeekFrom::Data(at)) else { break };
            let end = seek(file, SeekFrom::Hole(start)).unwrap_or(length).min(length);
            if data.len() == CORE_EXTENTS_MAX || end <= start {
                data.push((start, length));
                break;
            }
            data.push((start, end));
            at = end;
        }
        Extents { data }
    }

    /// The data within `start..end`, in the file's bytes.
    pub fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let first = self.data.partition_point(|(_, data_end)| *data_end <= start);
        let overlapping = self.data[first..].iter().take_while(move |(data_start, _)| *data_start < end);
        overlapping.map(move |(data_start, data_end)| ((*data_start).max(start), (*data_end).min(end)))
    }

    /// Whether `start..end` is data throughout.
    pub fn covers(&self, start: u64, end: u64) -> bool {
        self.within(start, end).map(|(start, end)| end - start).sum::<u64>() == end - start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn the_data_of_a_sparse_file() {
        let path = std::env::temp_dir().join(format!("marusa-extents-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        file.write_all_at(&[1; 4096], 256 << 10).unwrap();
        let extents = Extents::of_file(&file, 1 << 20);
        std::fs::remove_file(&path).unwrap();
        assert!(extents.covers(256 << 10, (256 << 10) + 4096));
        // Every block is data on a file system without holes.
        if extents.data.len() == 1 && extents.data[0].1 < 1 << 20 {
            assert_eq!(extents.within(0, 128 << 10).count(), 0);
            assert!(!extents.covers(0, 1 << 20));
        }
    }
}
