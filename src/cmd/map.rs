//! `marusa map TARGET`: the account of one JVM.

mod read;
mod shown;

use super::deadline::DeadlineArgs;
use super::map_pages::PageArgs;
use super::{Failure, check_output};
use crate::base::limits::{TARGET_ALONE, TARGET_FILE};
use crate::base::refuse;
use crate::os::budget;
use crate::os::terminal::stdout;
use shown::Shown;
use std::io::{BufWriter, Write};
use std::mem::ManuallyDrop;
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub struct MapArgs {
    /// A pid, or a part of the main class, jar or container name
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    target: Option<String>,
    /// What the rows are [default: area]
    #[arg(long, value_enum)]
    by: Option<By>,
    /// With --by thread or library: each thread and file in a row of its own, not by pools and directories
    #[arg(long)]
    each: bool,
    /// Marusa's areas, or the paper's eight (OOPSLA 2010) and the Java heap
    #[arg(long, value_enum, default_value_t = Taxonomy::Marusa)]
    taxonomy: Taxonomy,
    /// Read a file that `marusa freeze` wrote, or a core dump
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Machine-readable, schema marusa/map/2: the whole account; with --by page-size or --require also page_sizes,
    /// page_findings (why not larger), page_claims and host_pages; with --zeros zeros; with --by mapping page_sizes and
    /// mappings; with --by holder holders; with --by loader loaders; with --by buffer buffers and buffer_totals; with
    /// --require requirements
    #[arg(long)]
    json: bool,
    /// Write one offline page instead: treemap, picture of all pages, tables, findings (the host is watched for a second)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "by", "taxonomy", "require"])]
    html: Option<PathBuf>,
    #[command(flatten)]
    pages: PageArgs,
    #[command(flatten)]
    deadline: DeadlineArgs,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Area,
    Part,
    Mapping,
    PageSize,
    Thread,
    Library,
    Arena,
    /// Java fields, C++ types, libraries and threads that hold the blocks of malloc
    Holder,
    /// Class loaders that hold metaspace, blocks of malloc and compiled code
    Loader,
    /// Direct, mapped, foreign and pooled buffers outside the heap, by who holds them
    Buffer,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Taxonomy {
    Marusa,
    Paper,
}

pub fn run(args: &MapArgs) -> anyhow::Result<u8> {
    args.deadline.set(if args.from.is_some() { TARGET_FILE } else { TARGET_ALONE });
    budget::within(budget::limits(), || account(args))
}

/// What is read and shown is not freed piece by piece: the process ends here, and that would take a fiftieth of its time.
fn account(args: &MapArgs) -> anyhow::Result<u8> {
    args.check()?;
    args.html.iter().try_for_each(|path| check_output(path))?;
    let read = ManuallyDrop::new(read::read(args)?);
    let shown = ManuallyDrop::new(Shown::of(args, &read)?);
    let mut out = BufWriter::new(stdout().lock());
    shown.write(args, &mut out)?;
    out.flush()?;
    Ok(shown.verdict())
}

impl MapArgs {
    fn by(&self) -> By {
        self.by.unwrap_or(By::Area)
    }

    /// Whether the reasons and the claims are asked for.
    fn wants_pages(&self) -> bool {
        self.html.is_none() && (self.by == Some(By::PageSize) || !self.pages.require.is_empty())
    }

    fn check(&self) -> anyhow::Result<()> {
        let needs_page_size = |is_given, why| match is_given && self.by() != By::PageSize {
            true => Err(Failure::usage(format!("{why}: it needs --by page-size"))),
            false => Ok(()),
        };
        if self.each && !matches!(self.by(), By::Thread | By::Library) {
            refuse!("--each has rows of threads or files: it needs --by thread or --by library");
        }
        if self.taxonomy == Taxonomy::Paper && self.by() != By::Area {
            refuse!("--taxonomy paper has areas only: leave --by out");
        }
        needs_page_size(self.pages.ask, "--ask asks the JVM for its page sizes")?;
        needs_page_size(self.pages.zeros, "--zeros looks into large pages")
    }
}
