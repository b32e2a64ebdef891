//! `marusa bench direct-buffers`: buffers are taken, freed and trimmed, and the account at each step is held against what the
//! program knows of itself and what the kernel says.

use super::account_of::{self, AccountArgs, failed};
use super::answer;
use super::jdk::{Jdk, JdkArgs};
use crate::act::programs::Programs;
use crate::act::signals::Blocked;
use crate::act::staged::{self, Staged};
use crate::base::Bytes;
use crate::cmd::progress;
use crate::cmd::{Failure, amount};
use crate::experiment::bench::direct_buffers::{Buffers, Run, Step};
use crate::show::bench::direct_buffers as show;
use std::time::Duration;

/// Filling the buffers takes a second; a JVM in a swapping host may take long.
const STAGE_LIMIT: Duration = Duration::from_secs(120);

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    jdk: JdkArgs,
    /// How many buffers
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    buffers: u64,
    /// Bytes of each
    #[arg(long, value_name = "SIZE", default_value = "32K", value_parser = amount::bytes)]
    size: Bytes,
    /// Threads that allocate them, each in an arena of malloc of its own; several numbers with commas
    #[arg(long, value_name = "COUNTS", default_value = "1,8", value_delimiter = ',', value_parser = threads())]
    threads: Vec<u64>,
    /// The Java heap
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = amount::bytes)]
    heap: Bytes,
    /// A page more for each buffer, as every JDK took it before 7: what the paper measured
    #[arg(long)]
    page_aligned: bool,
    #[command(flatten)]
    of: AccountArgs,
}

fn threads() -> clap::builder::RangedU64ValueParser {
    clap::builder::RangedU64ValueParser::new().range(1..=64)
}

pub fn run(args: &Args) -> anyhow::Result<u8> {
    let jdks = args.jdk.all()?;
    if args.size == 0 || args.size > 1 << 30 {
        return Err(Failure::usage("--size: from one byte to 1G"));
    }
    let options = options(args);
    let setup = show::Setup {
        machine: account_of::machine(),
        options: options.join(" "),
        jdks: jdks.iter().map(account_of::name).collect(),
        runs: args.of.runs,
        buffers: args.buffers,
        size: args.size,
        page_aligned: args.page_aligned,
    };
    if args.of.dry_run {
        answer::print(
            args.of.json,
            || show::BenchDirectBuffersDocument::of(&setup, &[], None),
            |out| show::dry_run(out, &setup),
        )?;
        return Ok(0);
    }
    let programs = Programs::unpack().map_err(|gap| Failure::target(gap.to_string()))?;
    // From here on a signal ends the experiment between two samples, and what was measured is shown.
    let _blocked = Blocked::start();
    let mut runs = Vec::new();
    let ended = measure(args, &jdks, &options, &programs, &mut runs).err();
    let why = ended.as_ref().map(|error| format!("{error:#}"));
    let why = why.as_deref();
    answer::print(
        args.of.json,
        || show::BenchDirectBuffersDocument::of(&setup, &runs, why),
        |out| show::text(out, &setup, &runs, why),
    )?;
    answer::status(ended, u8::from(!runs.iter().all(Run::holds)))
}

fn options(args: &Args) -> Vec<String> {
    // Room for freed buffers that are not yet collected, and for the page that each may take more.
    let direct_kilobytes = (args.buffers * (args.size + 8192)).div_ceil(1024);
    let mut options = vec![
        format!("-Xmx{}k", args.heap.div_ceil(1024)),
        // Other collectors do not start with so small a heap everywhere, and have tables of their own.
        "-XX:+UseSerialGC".to_string(),
        format!("-XX:MaxDirectMemorySize={direct_kilobytes}k"),
    ];
    if args.page_aligned {
        options.push("-Dsun.nio.PageAlignDirectMemory=true".to_string());
    }
    options
}

fn measure(
    args: &Args,
    jdks: &[Jdk],
    options: &[String],
    programs: &Programs,
    runs: &mut Vec<Run>,
) -> anyhow::Result<()> {
    let bar = progress::bar(
        "bench direct-buffers",
        jdks.len() * args.threads.len() * args.of.runs as usize,
        "runs",
    );
    for run in 1..=args.of.runs as usize {
        for jdk in jdks {
            for threads in &args.threads {
                bar.set_message(format!("JDK {}, {threads} threads", account_of::name(jdk)));
                let buffers = Buffers {
                    count: args.buffers,
                    bytes: args.size,
                    threads: *threads,
                    page_aligned: args.page_aligned,
                };
                runs.push(one(jdk, options, programs, buffers, run)?);
                bar.inc(1);
            }
        }
    }
    Ok(())
}

fn one(
    jdk: &Jdk,
    options: &[String],
    programs: &Programs,
    buffers: Buffers,
    run: usize,
) -> anyhow::Result<Run> {
    let arguments = [
        format!("buffers={}", buffers.count),
        format!("bytes={}", buffers.bytes),
        format!("threads={}", buffers.threads),
    ];
    let launch = staged::java(&jdk.java(), options, "bench.DirectBuffers", &arguments, programs.directory());
    let mut program = Staged::start(&format!("JDK {}", account_of::name(jdk)), &launch).map_err(failed)?;
    let mut steps = Vec::new();
    let mut pid = 0;
    for step in [Step::Before, Step::Allocated, Step::Freed] {
        program.reach(step.word(), STAGE_LIMIT, || {}).map_err(failed)?;
        pid = program.jvm().map_err(failed)?;
        account_of::rest(pid).map_err(failed)?;
        steps.push((step, account_of::look(pid)?));
        if step != Step::Freed {
            program.go_on().map_err(failed)?;
        }
    }
    let trimmed = account_of::trim(pid)?;
    if trimmed.is_ok() {
        steps.push((Step::Trimmed, account_of::look(pid)?));
    }
    Ok(Run { jdk: account_of::name(jdk), run, buffers, steps, trimmed })
}
