//! `marusa bench reflection`: what calling getters and setters through java.lang.reflect.Method takes, by the account.

use super::account_of::{self, AccountArgs, failed};
use super::answer;
use super::jdk::{Jdk, JdkArgs};
use crate::act::programs::Programs;
use crate::act::signals::Blocked;
use crate::act::staged::{self, Staged};
use crate::base::Bytes;
use crate::cmd::progress;
use crate::cmd::{Failure, amount};
use crate::experiment::bench::reflection::{Accessors, Point, Sample};
use crate::show::bench::reflection as show;
use std::time::Duration;

/// 24 million calls in native code take some ten seconds.
const STAGE_LIMIT: Duration = Duration::from_secs(600);

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    jdk: JdkArgs,
    /// Fields in all; each has a getter and a setter
    #[arg(long, value_name = "COUNT", default_value_t = 6000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    fields: u32,
    /// Classes that the fields are in
    #[arg(long, value_name = "COUNT", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    classes: u32,
    /// Calls of each accessor, each number in a JVM of its own; with commas
    #[arg(long, value_name = "COUNTS", default_value = "10,100,2000", value_delimiter = ',', value_parser = calls())]
    calls: Vec<u64>,
    /// How Method.invoke gets to the method; with commas. A JDK that does not have one is left out
    #[arg(long, value_name = "KINDS", value_delimiter = ',', default_value = "default,native,generated", value_parser = accessors)]
    accessors: Vec<Accessors>,
    /// The Java heap
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = amount::bytes)]
    heap: Bytes,
    #[command(flatten)]
    of: AccountArgs,
}

fn calls() -> clap::builder::RangedU64ValueParser {
    clap::builder::RangedU64ValueParser::new().range(1..=1_000_000)
}

fn accessors(text: &str) -> Result<Accessors, String> {
    let found = Accessors::ALL.into_iter().find(|one| one.word() == text);
    found.ok_or_else(|| "there are default, native, generated".to_string())
}

pub fn run(args: &Args) -> anyhow::Result<u8> {
    let jdks = args.jdk.all()?;
    if args.classes > args.fields {
        return Err(Failure::usage("--classes: at most as many as --fields"));
    }
    // 65,535 constants are the most that a class file has; a field takes ten of them.
    if args.fields.div_ceil(args.classes) > 5000 {
        return Err(Failure::usage("--classes: a class has at most 5,000 of the fields"));
    }
    let mut points = points(args, &jdks);
    let setup = show::Setup {
        machine: account_of::machine(),
        options: options(args).join(" "),
        fields: args.fields,
        classes: args.classes,
        runs: args.of.runs,
    };
    if args.of.dry_run {
        answer::print(
            args.of.json,
            || show::BenchReflectionDocument::of(&setup, &points, None),
            |out| show::dry_run(out, &setup, &points),
        )?;
        return Ok(0);
    }
    let programs = Programs::unpack().map_err(|gap| Failure::target(gap.to_string()))?;
    let _blocked = Blocked::start();
    let ended = measure(args, &jdks, &programs, &mut points).err();
    let why = ended.as_ref().map(|error| format!("{error:#}"));
    let why = why.as_deref();
    answer::print(
        args.of.json,
        || show::BenchReflectionDocument::of(&setup, &points, why),
        |out| show::text(out, &setup, &points, why),
    )?;
    answer::status(ended, 0)
}

fn options(args: &Args) -> Vec<String> {
    vec![format!("-Xmx{}k", args.heap.div_ceil(1024)), "-XX:+UseSerialGC".to_string()]
}

/// What there is to measure, by JDK.
fn points(args: &Args, jdks: &[Jdk]) -> Vec<Point> {
    let mut points = Vec::new();
    for jdk in jdks {
        for accessors in args.accessors.iter().filter(|one| one.options(jdk.feature).is_some()) {
            for calls in &args.calls {
                let (jdk, feature) = (account_of::name(jdk), jdk.feature);
                points.push(Point {
                    jdk,
                    feature,
                    accessors: *accessors,
                    calls: *calls,
                    samples: Vec::new(),
                });
            }
        }
    }
    points
}

fn measure(args: &Args, jdks: &[Jdk], programs: &Programs, points: &mut [Point]) -> anyhow::Result<()> {
    let bar = progress::bar("bench reflection", points.len() * args.of.runs as usize, "runs");
    // One JVM of each kind after the other, so that what comes and goes on the machine is spread over all kinds.
    for _ in 0..args.of.runs {
        for point in points.iter_mut() {
            bar.set_message(format!("JDK {}, {}, {} calls", point.jdk, point.accessors.word(), point.calls));
            let jdk = jdks.iter().find(|jdk| account_of::name(jdk) == point.jdk);
            let jdk = jdk.ok_or_else(|| Failure::usage("the JDK is gone"))?;
            let sample = one(args, jdk, programs, point)?;
            point.samples.push(sample);
            bar.inc(1);
        }
    }
    Ok(())
}

fn one(args: &Args, jdk: &Jdk, programs: &Programs, point: &Point) -> anyhow::Result<Sample> {
    let mut options = options(args);
    options.extend(point.accessors.options(jdk.feature).unwrap_or_default());
    let arguments = [
        format!("fields={}", args.fields),
        format!("classes={}", args.classes),
        format!("calls={}", point.calls),
    ];
    let launch = staged::java(&jdk.java(), &options, "bench.Reflection", &arguments, programs.directory());
    let mut program = Staged::start(&format!("JDK {}", point.jdk), &launch).map_err(failed)?;
    program.reach("loaded", STAGE_LIMIT, || {}).map_err(failed)?;
    let pid = program.jvm().map_err(failed)?;
    account_of::rest(pid).map_err(failed)?;
    let loaded = account_of::look(pid)?;
    program.go_on().map_err(failed)?;
    let stage = program.reach("called", STAGE_LIMIT, || {}).map_err(failed)?;
    let at_rest = account_of::rest(pid).map_err(failed)?;
    let called = account_of::look(pid)?;
    Ok(Sample { loaded, called, call_ms: stage.figures.get("call_ms").copied(), at_rest })
}
