//! `marusa freeze TARGET -o FILE`: the snapshot plus the bytes it was read from: a bug report, a golden test.

use super::deadline::DeadlineArgs;
use super::{Failure, check_output, progress, target};
use crate::base::limits::TARGET_ALONE;
use crate::os::file_mode;
use crate::os::output_file::OutputFile;
use crate::os::terminal::stdout;
use crate::show::json::{FreezeDocument, print_line};
use crate::show::units::human;
use crate::snapshot::{LoaderDetail, Want, file, take};
use indicatif::ProgressBar;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub struct FreezeArgs {
    /// A pid, or a part of the main class, jar or container name
    target: String,
    /// Where to write it
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Also save what `map --by holder` and `--by buffer` need: the fields, libraries and threads that lead to memory outside the
    /// heap
    #[arg(long)]
    holders: bool,
    /// Machine-readable, schema marusa/freeze/2
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    deadline: DeadlineArgs,
}

pub fn run(args: &FreezeArgs) -> anyhow::Result<u8> {
    args.deadline.set(TARGET_ALONE);
    check_output(&args.output)?;
    let process = target::open(&args.target)?;
    let bar = ProgressBar::with_draw_target(None, progress::target()).with_style(progress::style("{msg}"));
    progress::say(&bar, &format!("reading pid {} ...", process.pid));
    bar.tick();
    let frozen = take::with_target(&process, |mut taking, memory, symbols| {
        taking.want = Want {
            page_sizes: true,
            smaps: true,
            holders: args.holders,
            loaders: LoaderDetail::All,
            buffers: args.holders,
            ..Want::default()
        };
        file::freeze(taking, &process, memory, symbols)
    });
    let (_, frozen) = frozen.map_err(|gap| {
        bar.finish_and_clear();
        target::unreadable(&process, &gap)
    })?;
    let unwritable = |error: std::io::Error| Failure::unwritable(&args.output, error);
    let mut out = BufWriter::new(OutputFile::create(&args.output, file_mode::wanted()).map_err(unwritable)?);
    bar.set_style(progress::style("writing  [{wide_bar:.}] {binary_bytes} of {binary_total_bytes}"));
    let mut progress = |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    };
    frozen.save_with(&mut out, &mut progress).and_then(|()| out.flush()).map_err(unwritable)?;
    bar.finish_and_clear();
    let written = out.into_inner().map_err(|error| unwritable(error.into_error()))?;
    let bytes = written.finish().map_err(unwritable)?;
    if args.json {
        print_line(&mut stdout(), &FreezeDocument::of(&args.output, bytes))?;
    } else {
        crate::say!(
            "{}: {}; no command line, environment, user or home directory is in it; names of threads and \
             paths of mapped files are",
            args.output.display(),
            human(bytes)
        );
    }
    Ok(0)
}
