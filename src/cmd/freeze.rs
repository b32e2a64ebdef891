//! `marusa freeze TARGET -o FILE`: the snapshot plus the bytes it was read from: a bug report, a golden test.

use super::{Failure, map};
use crate::os::file_mode;
use crate::show::units::human;
use crate::snapshot::{Want, file, take};
use std::io::BufWriter;
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub struct FreezeArgs {
    /// A pid, or a part of the main class, jar or container name
    target: String,
    /// Where to write it
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Machine-readable, schema marusa/freeze/1
    #[arg(long)]
    json: bool,
}

pub fn run(args: &FreezeArgs) -> anyhow::Result<u8> {
    let process = map::open(&args.target)?;
    let frozen = take::with_target(&process, |mut taking, memory, symbols| {
        taking.want = Want { page_sizes: true, smaps: true };
        file::freeze(taking, &process, memory, symbols)
    });
    let (_, frozen) = frozen.map_err(|gap| map::unreadable(&process, &gap))?;
    let unwritable = |error: std::io::Error| Failure::usage(format!("{}: {error}", args.output.display()));
    let mut out = BufWriter::new(file_mode::create(&args.output).map_err(unwritable)?);
    frozen.save(&mut out).map_err(unwritable)?;
    let bytes = std::fs::metadata(&args.output).map_or(0, |metadata| metadata.len());
    if args.json {
        let file = args.output.display().to_string();
        println!("{}", serde_json::json!({"schema": "marusa/freeze/1", "file": file, "bytes": bytes}));
    } else {
        eprintln!(
            "{}: {}; no command line, environment, user or home directory is in it; names of threads and \
             paths of mapped files are",
            args.output.display(),
            human(bytes)
        );
    }
    Ok(0)
}
