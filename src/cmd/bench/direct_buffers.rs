//! `marusa bench direct-buffers`: buffers are taken, freed and trimmed, and the account at each step is held against what the
//! program knows of itself and what the kernel says.

use super::account_of::{self, AccountArgs, count, failed};
use super::jdk::{Jdk, JdkArgs, of_version};
use super::machine;
use super::rounds::{self, Bench, Run};
use crate::act::staged::{self, Staged};
use crate::base::{Bytes, refuse};
use crate::cmd::amount;
use crate::experiment::arm_pages::ArmError;
use crate::experiment::bench::direct_buffers::{Arm, AtStep, Figures, Settings, Step, expected_bytes};
use crate::experiment::bench::trials::Arranged;
use crate::show::bench::rounds::Nothing;
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
        refuse!("--size: from one byte to 1G");
    }
    let turns = args.of.turns();
    let settings = Settings {
        machine: machine::here(),
        jdks: jdks.iter().map(|jdk| jdk.version.clone()).collect(),
        options: options(args).join(" "),
        buffers: args.buffers,
        buffer_bytes: args.size,
        page_aligned: args.page_aligned,
        expected_bytes: expected_bytes(args.buffers, args.size, args.page_aligned),
        rounds: args.of.runs as usize,
        seed: turns.turns.seed(),
    };
    let mut arms = Vec::new();
    for jdk in &jdks {
        arms.extend(args.threads.iter().map(|threads| Arm { jdk: jdk.version.clone(), threads: *threads }));
    }
    let live = Live { jdks: &jdks, options: options(args) };
    rounds::run(live, settings, &arms, &Nothing {}, &turns, args.of.json)
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

struct Live<'a> {
    jdks: &'a [Jdk],
    options: Vec<String>,
}

impl Bench for Live<'_> {
    type Of = Settings;

    fn arranged(&mut self, _settings: &Settings, _arm: &Arm) -> Result<Arranged<Nothing>, ArmError> {
        Ok(Arranged { options: self.options.clone(), more: Nothing {}, steps: Vec::new() })
    }

    fn trial(&mut self, mut run: Run<Settings>) -> anyhow::Result<bool> {
        count(self.work(&mut run), run.trial)
    }
}

impl Live<'_> {
    fn work(&self, run: &mut Run<Settings>) -> anyhow::Result<()> {
        let Run { settings, programs, options, trial, .. } = run;
        let arguments = [
            format!("buffers={}", settings.buffers),
            format!("bytes={}", settings.buffer_bytes),
            format!("threads={}", trial.arm.threads),
        ];
        let java = of_version(self.jdks, &trial.arm.jdk)?.java();
        let launch = staged::java(&java, options, "bench.DirectBuffers", &arguments, programs.directory());
        let mut program = Staged::start(&format!("JDK {}", trial.arm.jdk), &launch).map_err(failed)?;
        let mut steps = Vec::new();
        let mut pid = 0;
        for step in [Step::Before, Step::Allocated, Step::Freed] {
            program.reach(&step.word(), STAGE_LIMIT, || {}).map_err(failed)?;
            pid = program.jvm().map_err(failed)?;
            account_of::rest(pid).map_err(failed)?;
            steps.push(AtStep { step, account: account_of::look(pid)? });
            if step != Step::Freed {
                program.go_on().map_err(failed)?;
            }
        }
        let trimmed = account_of::trim(pid)?;
        if trimmed.is_ok() {
            steps.push(AtStep { step: Step::Trimmed, account: account_of::look(pid)? });
        }
        trial.figures = Figures::of(steps, trimmed, settings);
        Ok(())
    }
}
