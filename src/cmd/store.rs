//! Where the files of a store go: below a directory, or into a bucket of an S3-compatible service. A file is there whole or not at
//! all, and one that is put again replaces itself.

mod bucket;
pub mod directory;

use crate::record::Recording;
use crate::store::layout::{self, File, Place};
use crate::store::tables;
use anyhow::anyhow;
use bucket::Bucket;
use std::io::{self, Seek, Write};
use std::path::PathBuf;

pub enum Store {
    Directory(PathBuf),
    Bucket(Box<Bucket>),
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Put {
    pub files: u64,
    pub rows: u64,
    pub bytes: u64,
}

impl Store {
    /// "s3://BUCKET/PREFIX", or a directory. What a bucket has is not looked at: who may write there need not be able to list it.
    pub fn open(text: &str) -> anyhow::Result<Store> {
        match text.strip_prefix("s3://") {
            Some(rest) => Ok(Store::Bucket(Box::new(Bucket::open(rest)?))),
            None if text.contains("://") => {
                Err(anyhow!("cannot store into {text}: give a directory or s3://BUCKET/PREFIX"))
            }
            None => {
                let root = PathBuf::from(text);
                directory::check(&root)?;
                Ok(Store::Directory(root))
            }
        }
    }

    /// Writes all tables of a recording. After an error, the same call goes on: a file that is there already is written again.
    pub fn put(&self, recording: &Recording, place: &Place) -> anyhow::Result<Put> {
        let mut put = Put::default();
        for file in layout::files(recording, place) {
            let written = match self {
                Store::Directory(root) => directory::write(root, &file, recording, place)
                    .map_err(|error| anyhow!("cannot write {}: {error}", root.join(&file.path).display())),
                Store::Bucket(bucket) => into_bucket(bucket, &file, recording, place),
            };
            let (rows, bytes) = written?;
            put.files += 1;
            put.rows += rows;
            put.bytes += bytes;
        }
        Ok(put)
    }
}

fn into_bucket(
    bucket: &Bucket,
    file: &File,
    recording: &Recording,
    place: &Place,
) -> anyhow::Result<(u64, u64)> {
    let failed =
        |error: io::Error| anyhow!("cannot write a temporary file: {error}; TMPDIR names another directory");
    let mut out = tempfile::tempfile().map_err(failed)?;
    let rows = tables::write(&mut out, file, recording, place).map_err(failed)?;
    out.flush().and_then(|()| out.rewind()).map_err(failed)?;
    bucket.put(&file.path, &out).map(|bytes| (rows, bytes))
}
