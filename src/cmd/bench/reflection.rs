//! `marusa bench reflection`: what calling getters and setters through java.lang.reflect.Method takes, by the account.

use super::account_of::{self, AccountArgs, count, failed};
use super::jdk::{Jdk, JdkArgs, of_version};
use super::machine;
use super::rounds::{self, Bench, Run};
use crate::act::staged::{self, Staged};
use crate::base::{Bytes, Refused, refuse};
use crate::cmd::amount;
use crate::experiment::arm_pages::ArmError;
use crate::experiment::bench::reflection::{Accessors, Arm, Figures, Settings};
use crate::experiment::bench::trials::Arranged;
use crate::show::bench::rounds::Nothing;
use itertools::iproduct;
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

fn accessors(text: &str) -> Result<Accessors, Refused> {
    let found = Accessors::ALL.into_iter().find(|one| one.word() == text);
    found.ok_or("there are default, native, generated".into())
}

pub fn run(args: &Args) -> anyhow::Result<u8> {
    let jdks = args.jdk.all()?;
    if args.classes > args.fields {
        refuse!("--classes: at most as many as --fields");
    }
    // 65,535 constants are the most that a class file has; a field takes ten of them.
    if args.fields.div_ceil(args.classes) > 5000 {
        refuse!("--classes: a class has at most 5,000 of the fields");
    }
    let turns = args.of.turns();
    let settings = Settings {
        machine: machine::here(),
        options: options(args).join(" "),
        fields: args.fields,
        classes: args.classes,
        rounds: args.of.runs as usize,
        seed: turns.turns.seed(),
    };
    let live = Live { jdks: &jdks, options: options(args) };
    rounds::run(live, settings, &arms(args, &jdks), &Nothing {}, &turns, args.of.json)
}

fn options(args: &Args) -> Vec<String> {
    vec![format!("-Xmx{}k", args.heap.div_ceil(1024)), "-XX:+UseSerialGC".to_string()]
}

/// By JDK and accessors.
fn arms(args: &Args, jdks: &[Jdk]) -> Vec<Arm> {
    iproduct!(jdks, &args.accessors, &args.calls)
        .filter(|(jdk, accessors, _)| accessors.options(jdk.feature).is_some())
        .map(|(Jdk { version: jdk, feature, .. }, &accessors, &calls)| Arm {
            jdk: jdk.clone(),
            feature: *feature,
            accessors,
            calls,
        })
        .collect()
}

struct Live<'a> {
    jdks: &'a [Jdk],
    options: Vec<String>,
}

impl Bench for Live<'_> {
    type Of = Settings;

    fn arranged(&mut self, _settings: &Settings, arm: &Arm) -> Result<Arranged<Nothing>, ArmError> {
        let of_accessors = arm.accessors.options(arm.feature).unwrap_or_default();
        let options = self.options.iter().cloned().chain(of_accessors).collect();
        Ok(Arranged { options, more: Nothing {}, steps: Vec::new() })
    }

    fn trial(&mut self, mut run: Run<Settings>) -> anyhow::Result<bool> {
        count(self.work(&mut run), run.trial)
    }
}

impl Live<'_> {
    fn work(&self, run: &mut Run<Settings>) -> anyhow::Result<()> {
        let Run { settings, programs, options, trial, .. } = run;
        let arm = &trial.arm;
        let arguments = [
            format!("fields={}", settings.fields),
            format!("classes={}", settings.classes),
            format!("calls={}", arm.calls),
        ];
        let java = of_version(self.jdks, &arm.jdk)?.java();
        let launch = staged::java(&java, options, "bench.Reflection", &arguments, programs.directory());
        let mut program = Staged::start(&format!("JDK {}", arm.jdk), &launch).map_err(failed)?;
        program.reach("loaded", STAGE_LIMIT, || {}).map_err(failed)?;
        let pid = program.jvm().map_err(failed)?;
        account_of::rest(pid).map_err(failed)?;
        let loaded = account_of::look(pid)?;
        program.go_on().map_err(failed)?;
        let stage = program.reach("called", STAGE_LIMIT, || {}).map_err(failed)?;
        let at_rest = account_of::rest(pid).map_err(failed)?;
        let called = account_of::look(pid)?;
        let call_ms = stage.figures.get("call_ms").copied();
        trial.figures = Figures { loaded: Some(loaded), called: Some(called), call_ms, at_rest };
        Ok(())
    }
}
