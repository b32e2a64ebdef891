//! `marusa compare`: which of several ways to run the user's own program is better, and by how much. Runs of the arms take turns in
//! blocks of random order, each arm gets its pages and they are verified in each run, and each claim has an interval.

mod gc;
mod load;
mod metric;
mod one;
mod ready;
mod runner;
mod store;
mod translation;

use super::{Failure, amount, answer, check_output};
use crate::act::door::identity;
use crate::act::signals::{self, Blocked};
use crate::base::{Refused, redact, refuse, rfc3339};
use crate::cmd::pages::door::state_directory;
use crate::cmd::progress;
use crate::cmd::quiet::QuietArgs;
use crate::experiment::arm_pages::{PageMode, Pool};
use crate::experiment::arms::Arm;
use crate::experiment::compare_result::WarmUp;
use crate::experiment::http_load::Load;
use crate::experiment::metrics::Spec;
use crate::experiment::order;
use crate::experiment::resume::{self, Head, HostFacts};
use crate::experiment::trial_record::Trial;
use crate::os::terminal::stdout;
use crate::os::{cpus, file_mode, host, output_file};
use crate::show::compare::{self as show, json::CompareDocument};
use ready::Ready;
use runner::{Early, Outcome, Rules, Runner};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use store::Store;

/// The default number of blocks.
const BLOCKS: usize = 10;
const BLOCKS_UNTIL_MARGIN: usize = 100;
const BLOCKS_MAX: usize = 10_000;
/// Variables of the environment that change a JVM's behaviour.
const VARIABLES: [&str; 5] =
    ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "JAVA_HOME", "LD_PRELOAD"];

#[derive(clap::Args, Debug)]
pub struct CompareArgs {
    /// An arm: its name, its options, and in front of those VARIABLE=value for its environment. The others are compared with the
    /// first. The options take the place of {} in the command; else, if that is java, before the program, so that they win; else
    /// into JAVA_TOOL_OPTIONS
    #[arg(long, value_name = "NAME='OPTIONS'", value_parser = Arm::parse, required = true)]
    arm: Vec<Arm>,
    /// The huge pages of arms that ask for them: as many as their JVM needs (auto), a number (hugetlb-2m:512), or leave
    /// the host as it is (none)
    #[arg(long, value_name = "SIZE:COUNT|auto|none", default_value = "auto", value_parser = Pages::parse)]
    pages: Pages,
    /// A figure of your own, as 'rate[op/s]=throughput: ([0-9.]+)' in what it prints, jmh:FILE.json, or
    /// 'NAME[lower]=prometheus:URL:SERIES'; the first decides
    #[arg(long, value_name = "METRIC")]
    metric: Vec<Spec>,
    /// The program is a server: ask it by this generator, as 'wrk -t1 -c8 -d30s http://localhost:8080/', and end it then
    #[arg(long, value_name = "COMMAND")]
    load: Option<Load>,
    /// Number of blocks, with one run of each arm [default: 10; with --until-margin: at most 100]
    #[arg(long, value_name = "COUNT", value_parser = blocks)]
    runs: Option<usize>,
    /// Continue until each difference is known to within this
    #[arg(long, value_name = "PERCENT", value_parser = amount::percent)]
    until_margin: Option<f64>,
    /// Smallest difference worth detecting; the runs needed are reported
    #[arg(long, value_name = "PERCENT", value_parser = amount::percent, default_value = "2")]
    worth: f64,
    /// Time limit of a run: a longer one is ended, and does not count
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = "1h")]
    time_limit: Duration,
    /// No block begins after this time
    #[arg(long, value_name = "TIME", value_parser = amount::duration)]
    total_time: Option<Duration>,
    /// Leading blocks that do not count; auto: while an arm is far from its later level
    #[arg(long, value_name = "BLOCKS|auto", default_value = "auto", value_parser = warm_up)]
    warm_up: WarmUp,
    /// Save each run and its output there; otherwise they are discarded at the end
    #[arg(long, value_name = "DIRECTORY")]
    save: Option<PathBuf>,
    /// Continue from the directory of --save
    #[arg(long, requires = "save")]
    resume: bool,
    /// Also write one offline page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    quiet: QuietArgs,
    /// Show what would be run and changed, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Seed that repeats the order of the arms
    #[arg(long)]
    seed: Option<u64>,
    /// Directory of the journal of host changes [default: $MARUSA_STATE, or /var/lib/marusa]
    #[arg(long, value_name = "DIRECTORY")]
    state: Option<PathBuf>,
    /// Machine-readable, schema marusa/compare/2
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// `--pages`
#[derive(Clone, Debug)]
struct Pages {
    text: String,
    size: Option<PageMode>,
    pool: Pool,
}

impl Pages {
    fn parse(text: &str) -> Result<Pages, Refused> {
        let text = text.to_string();
        let (size, count) = match text.split_once(':') {
            Some((size, count)) => (Some(size.parse::<PageMode>()?), count),
            None => (None, text.as_str()),
        };
        let is_pool = size.is_none_or(|size| matches!(size, PageMode::HugeTlb2M | PageMode::HugeTlb1G));
        let pool = match (count, size) {
            ("auto", _) => Pool::Auto,
            ("none", None) => Pool::Leave,
            (count, Some(_)) => match count.parse() {
                Ok(pages) if (1..=1 << 24).contains(&pages) => Pool::Pages(pages),
                _ => refuse!("'{count}' is not a number of pages, and not auto"),
            },
            _ => refuse!("auto, none, hugetlb-2m:COUNT or hugetlb-1g:COUNT"),
        };
        if !is_pool {
            refuse!("only hugetlb-2m and hugetlb-1g have pools");
        }
        Ok(Pages { text, size, pool })
    }
}

fn blocks(text: &str) -> Result<usize, Refused> {
    let count = text.parse().ok().filter(|count| (2..=BLOCKS_MAX).contains(count));
    count.ok_or_else(|| Refused(format!("from 2 to {BLOCKS_MAX}")))
}

fn warm_up(text: &str) -> Result<WarmUp, Refused> {
    match text {
        "auto" => Ok(WarmUp::Found),
        _ => text.parse().map(WarmUp::Blocks).map_err(|_| "a number of blocks, or auto".into()),
    }
}

pub fn run(args: &CompareArgs) -> anyhow::Result<u8> {
    args.html.iter().try_for_each(|path| check_output(path))?;
    // From here on a signal to end waits until the host is as it was.
    let _blocked = Blocked::start();
    let state = state_directory(args.state.as_deref())?;
    let ready = ready::all(&args.arm, &args.command, args.pages.size, args.pages.pool, &state)?;
    let (mut store, head, trials) = match (args.dry_run, args.resume) {
        (true, _) => (None, head(args, &ready, args.seed.unwrap_or(0))?, Vec::new()),
        (_, true) => resumed(args, &ready)?,
        (_, false) => {
            let head = head(args, &ready, args.seed.unwrap_or_else(|| fastrand::u64(..)))?;
            (Some(Store::create(args.save.as_deref(), &head)?), head, Vec::new())
        }
    };
    let rules = rules(args, head.seed);
    let mut design = design(args, &head, &ready, &rules);
    design.resumed = trials.len();
    let Some(mut store) = store.take() else {
        answer(args.json, || CompareDocument::dry_run(&design), |out| show::dry_run(out, &design))?;
        return Ok(0);
    };
    if !args.json {
        show::head(&mut stdout().lock(), &design)?;
    }
    let setup = one::Setup {
        command: &args.command,
        pool: args.pages.pool,
        state,
        limit: args.time_limit,
        metrics: &args.metric,
        load: args.load.as_ref(),
    };
    let features = vec![None; ready.len()];
    let bar = progress::bar("compare", rules.blocks_max * ready.len(), "runs");
    let runner = Runner {
        setup: &setup,
        arms: &ready,
        rules,
        store: &mut store,
        trials,
        features,
        quiet: args.quiet.begin(),
        bar,
    };
    let outcome = runner.run();
    match outcome {
        Ok(outcome) => finish(args, design, outcome, store),
        Err(error) => Err(store.abandoned(error)),
    }
}

fn rules(args: &CompareArgs, seed: u64) -> Rules {
    let default = if args.until_margin.is_some() { BLOCKS_UNTIL_MARGIN } else { BLOCKS };
    Rules {
        blocks_max: args.runs.unwrap_or(default),
        margin_percent: args.until_margin,
        total: args.total_time,
        warm_up: args.warm_up,
        worth_percent: args.worth,
        seed,
    }
}

fn head(args: &CompareArgs, ready: &[Ready], seed: u64) -> anyhow::Result<Head> {
    let identity = identity::here();
    let directory =
        std::env::current_dir().map(|directory| directory.display().to_string()).unwrap_or_default();
    let own = crate::cmd::target::own()?;
    let value = |name: &str| Some((name.to_string(), std::env::var(name).ok()?));
    Ok(Head {
        schema: resume::SCHEMA.to_string(),
        made_at: rfc3339(SystemTime::now()),
        made_by: format!("marusa {}", env!("CARGO_PKG_VERSION")),
        arms: args.arm.clone(),
        command: args.command.clone(),
        directory,
        jvms: ready.iter().map(Ready::jvm).collect(),
        host: HostFacts {
            machine: identity.machine,
            kernel: identity.kernel,
            memory_bytes: identity.memory_bytes,
            cpus: cpus::of(&own, true).map_or(0, |cpus| cpus.count()),
            thp: host::thp_mode().unwrap_or_default(),
        },
        pages: args.pages.text.clone(),
        metrics: args
            .metric
            .iter()
            .map(|metric| format!("{metric:?}"))
            .chain(args.load.iter().map(|load| load.arguments.join(" ")))
            .collect(),
        environment: VARIABLES.iter().filter_map(|name| value(name)).collect(),
        seed,
        marks: None,
    })
}

type Begun = (Option<Store>, Head, Vec<Trial>);

fn resumed(args: &CompareArgs, ready: &[Ready]) -> anyhow::Result<Begun> {
    let directory = args.save.clone().unwrap_or_default();
    let (store, was, trials) = Store::resume(&directory)?;
    let now = head(args, ready, args.seed.unwrap_or(was.seed))?;
    let differs = was.differs(&now);
    if !differs.is_empty() {
        refuse!(
            "--resume: this is not the comparison in {}: {}; begin a new one in another directory",
            directory.display(),
            differs.join("; ")
        );
    }
    Ok((Some(store), was, trials))
}

fn design(args: &CompareArgs, head: &Head, ready: &[Ready], rules: &Rules) -> show::Design {
    let arm = |ready: &Ready| show::ArmDesign {
        name: ready.arm.name.clone(),
        text: ready.arm.shown().text(),
        command: redact::command_words(&ready.command),
        placed: ready.placed,
        jvm: ready.jvm(),
        mode: ready.mode,
        steps: ready.steps.clone(),
    };
    let first = |block: usize| {
        let order = order::block(rules.seed, block, ready.len());
        order.into_iter().map(|index| ready[index].arm.name.clone()).collect()
    };
    show::Design {
        head: head.shown(),
        arms: ready.iter().map(arm).collect(),
        blocks_max: rules.blocks_max,
        until_margin_percent: rules.margin_percent,
        worth_percent: rules.worth_percent,
        time_limit_seconds: args.time_limit.as_secs_f64(),
        first_blocks: (1..=3.min(rules.blocks_max)).map(first).collect(),
        resumed: 0,
    }
}

fn finish(args: &CompareArgs, design: show::Design, outcome: Outcome, store: Store) -> anyhow::Result<u8> {
    let goes_on = outcome.early.as_ref().is_some_and(Early::goes_on) && !outcome.trials.is_empty();
    let is_kept = !store.is_temporary || goes_on;
    let result = show::Result {
        design,
        comparison: outcome.comparison,
        trials: outcome.trials,
        early: outcome.early.as_ref().map(|early| words(early, &store)),
        given_up: outcome.given_up,
        saved: is_kept.then(|| store.directory.display().to_string()),
    };
    answer(args.json, || CompareDocument::of(&result), |out| show::result(out, &result))?;
    if let Some(path) = &args.html {
        let page = show::html::page(&result);
        let written = output_file::write(path, file_mode::wanted(), page.as_bytes());
        written.map_err(|error| {
            let (path, directory) = (path.display(), store.directory.display());
            Failure::usage(format!("--html {path}: {error}; the runs are kept in {directory}"))
        })?;
    }
    if !is_kept {
        store.remove();
    }
    if outcome.early == Some(Early::Signal) {
        // It may have come between two runs, where no run was there to end.
        signals::take_pending();
    }
    Ok(u8::from(outcome.early.is_some_and(|early| early != Early::Total)))
}

fn words(early: &Early, store: &Store) -> String {
    let again = match store.is_temporary {
        true => format!("the same command with --save {} --resume continues", store.directory.display()),
        false => "the same command with --resume continues".to_string(),
    };
    match early {
        Early::Signal => format!(
            "ended early, as asked; the host is as it was, and the runs that were done are kept: {again}"
        ),
        Early::Total => format!("--total-time is over: {again}"),
        Early::GivenUp(why) if store.is_temporary => {
            format!("given up: {why}; --save DIRECTORY keeps what the runs print")
        }
        Early::GivenUp(why) => format!("given up: {why}"),
        Early::NotSaved(why) => {
            format!(
                "the last run could not be saved ({why}) and does not count; those before it are kept: make room, then {again}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_as_people_write_them() {
        let parse = |text: &str| Pages::parse(text).map(|pages| (pages.size, pages.pool));
        assert_eq!(parse("auto"), Ok((None, Pool::Auto)));
        assert_eq!(parse("none"), Ok((None, Pool::Leave)));
        assert_eq!(parse("hugetlb-2m:auto"), Ok((Some(PageMode::HugeTlb2M), Pool::Auto)));
        assert_eq!(parse("hugetlb-1g:4"), Ok((Some(PageMode::HugeTlb1G), Pool::Pages(4))));
        for bad in ["", "4", "thp:4", "hugetlb-2m:0", "hugetlb-2m:-1", "hugetlb-2m:none", "x:auto"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!((warm_up("auto"), warm_up("2")), (Ok(WarmUp::Found), Ok(WarmUp::Blocks(2))));
        assert!(blocks("1").is_err() && amount::percent("0").is_err() && amount::percent("2 %").is_ok());
    }
}
