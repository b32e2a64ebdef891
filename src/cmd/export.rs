//! `marusa export FILE`: a recording for other tools.

use super::diff::meant;
use super::record::file;
use super::store::Store;
use super::{Failure, check_output};
use crate::base::refuse;
use crate::os::file_mode;
use crate::os::output_file::OutputFile;
use crate::os::terminal::data;
use crate::record::Recording;
use crate::show::rows;
use crate::show::units::{counted, human};
use crate::store::layout::Place;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug)]
pub struct ExportArgs {
    /// A recording (`marusa record`); it may still be written to
    file: PathBuf,
    /// Apache Parquet: DuckDB, pandas, Spark
    #[arg(long, value_name = "OUT", required_unless_present_any = ["csv", "json_lines"])]
    parquet: Option<PathBuf>,
    /// One file of all rows, or the tables of a store of many nodes: --parquet is then its directory, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "LAYOUT", value_enum, default_value_t, requires = "parquet")]
    layout: Layout,
    /// The cluster's name in a store
    #[arg(long, value_name = "NAME", default_value = "default", requires = "parquet")]
    cluster: String,
    /// Comma-separated values; - is standard output
    #[arg(long, value_name = "OUT")]
    csv: Option<PathBuf>,
    /// One JSON object a line; - is standard output
    #[arg(long, value_name = "OUT")]
    json_lines: Option<PathBuf>,
    /// One JVM only, where it has several: a pid, or a part of its name
    #[arg(long, value_name = "PID|NAME")]
    jvm: Option<String>,
}

/// How Parquet files are laid out.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Layout {
    #[default]
    File,
    Hive,
}

pub fn run(args: &ExportArgs) -> anyhow::Result<u8> {
    let mut recording = file::load(&args.file)?;
    if let Some(jvm) = &args.jvm {
        let path = args.file.display().to_string();
        let history = meant::choose(&recording, Some(jvm), &path)?.clone();
        recording.jvms = vec![history];
    }
    if recording.jvms.is_empty() {
        return Err(Failure::target(format!("{}: no JVM is in it", args.file.display())));
    }
    let store = args.parquet.as_ref().filter(|_| args.layout == Layout::Hive);
    let file = args.parquet.as_ref().filter(|_| args.layout == Layout::File);
    for out in [file, args.csv.as_ref(), args.json_lines.as_ref()].into_iter().flatten() {
        if is_same(out, &args.file) {
            refuse!("{} is the recording itself: give another name", out.display());
        }
        check_output(out)?;
    }
    if let Some(path) = store {
        stored(path, &recording, &args.cluster)?;
    }
    if let Some(path) = file {
        // It has its table of contents at its end: no pipe takes that late.
        written(path, |file| rows::parquet::write(file, &recording))?;
    }
    if let Some(path) = &args.csv {
        lines(path, &recording, rows::csv)?;
    }
    if let Some(path) = &args.json_lines {
        lines(path, &recording, rows::json_lines)?;
    }
    Ok(0)
}

fn stored(path: &Path, recording: &Recording, cluster: &str) -> anyhow::Result<()> {
    let store = Store::open(&path.to_string_lossy()).map_err(Failure::usage)?;
    let node = recording.sessions.last().map_or("", |session| session.node.as_str());
    let put = store.put(recording, &Place::new(cluster, node)).map_err(Failure::target)?;
    let files = counted(put.files, "file");
    crate::say!("marusa: {}: {files}, {} rows, {}", path.display(), put.rows, human(put.bytes));
    Ok(())
}

/// Whether two names are of one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|facts| (facts.dev(), facts.ino())).ok();
    identity(one).is_some_and(|one| Some(one) == identity(other))
}

fn lines(
    path: &Path,
    recording: &Recording,
    write: fn(&mut dyn Write, &Recording) -> io::Result<()>,
) -> anyhow::Result<()> {
    if path == Path::new("-") {
        let mut out = BufWriter::new(data().lock());
        write(&mut out, recording)?;
        return Ok(out.flush()?);
    }
    written(path, |file| {
        let mut out = BufWriter::new(file);
        write(&mut out, recording)?;
        out.flush()
    })
}

fn written(path: &Path, write: impl FnOnce(&mut OutputFile) -> io::Result<()>) -> anyhow::Result<()> {
    let failed = |error: io::Error| Failure::unwritable(path, error);
    let mut file = OutputFile::create(path, file_mode::wanted()).map_err(failed)?;
    write(&mut file).map_err(failed)?;
    let bytes = file.finish().map_err(failed)?;
    crate::say!("marusa: {}: {}", path.display(), human(bytes));
    Ok(())
}
