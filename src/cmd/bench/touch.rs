//! `marusa bench touch`: the first touch of memory on every size of pages that this host can give.

mod jvm;
mod own;

use super::jdk::{Jdk, JdkArgs};
use super::machine;
use super::rounds::{self, Bench, Run, SavedArgs};
use crate::act::first_touch::Pages;
use crate::act::signals;
use crate::base::{Bytes, Gap, Known, Refused, Why, refuse};
use crate::cmd::{Failure, amount};
use crate::experiment::arm_pages::{self, ArmError};
use crate::experiment::bench::touch::{Arm, By, Settings, Trial};
use crate::experiment::bench::trials::Arranged;
use crate::os::host_memory::HostMemory;
use crate::os::process::Process;
use crate::os::thp;
use crate::pages::{Change, Step};
use crate::show::bench::rounds::Nothing;
use crate::show::bench::touch::ZeroFault;
use itertools::iproduct;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    jdk: JdkArgs,
    /// Memory that is touched, in whole GiB where 1 GiB pages are to be among them
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes, default_value = "1G")]
    bytes: Bytes,
    /// Who touches: own, jvm
    #[arg(long, value_name = "WHO", value_delimiter = ',', default_value = "own,jvm", value_parser = by)]
    by: Vec<By>,
    /// Which pages, as 4k, thp-64k, thp-2m, hugetlb-2m, hugetlb-1g; all that this host has if not given
    #[arg(long, value_name = "PAGES", value_delimiter = ',')]
    pages: Vec<String>,
    /// Threads that touch at once, with commas
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1,2",
        value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: Vec<u32>,
    /// Every arm runs once a round, in an order by chance
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    #[command(flatten)]
    saved: SavedArgs,
    /// Machine-readable, schema marusa/bench-touch/3
    #[arg(long)]
    json: bool,
}

/// Memory left to other processes.
const RESERVE: Bytes = 1 << 30;
const UNIT: Bytes = 2 << 20;

fn by(text: &str) -> Result<By, Refused> {
    match text {
        "own" => Ok(By::Own),
        "jvm" => Ok(By::Jvm),
        _ => refuse!("it is own or jvm"),
    }
}

pub fn run(args: &Args) -> anyhow::Result<u8> {
    let host = host().map_err(|gap| Failure::target(gap.to_string()))?;
    let available = host.available_bytes();
    if args.bytes < UNIT || !args.bytes.is_multiple_of(UNIT) {
        refuse!("--bytes must be a multiple of 2 MiB");
    }
    if args.bytes.saturating_mul(5) / 4 + RESERVE > available {
        let text = format!("{} MiB do not fit: {} MiB are available", args.bytes >> 20, available >> 20);
        return Err(Failure::usage(text));
    }
    let jdk = args.by.contains(&By::Jvm).then(|| args.jdk.one()).transpose()?;
    let pages = pages(&args.pages, &host, args.bytes)?;
    let arms = arms(args, &pages, jdk.as_ref().map(|jdk| jdk.feature));
    let settings = Settings {
        machine: machine::here(),
        jdk: jdk.as_ref().map(|jdk| jdk.version.clone()),
        bytes: args.bytes,
        rounds: args.rounds as usize,
        seed: args.saved.turns.seed(),
    };
    let mut zero_fault = ZeroFault::default();
    if !args.saved.turns.dry_run && args.by.contains(&By::Own) {
        match own::zero_fault_ns(args.bytes) {
            Ok(ns) => zero_fault.ns = Some(ns),
            Err(gap) => zero_fault.why_not = Some(gap),
        }
        // Memory that this guest never had is slower to get than what it had before: a first pass is thrown away.
        let _ =
            own::touched(&mut Trial::of(0, Arm { by: By::Own, pages: Pages::Small, threads: 1 }), args.bytes);
    }
    rounds::run(Live { jdk }, settings, &arms, &zero_fault, &args.saved, args.json)
}

/// Who touches: this program, or JVMs of a JDK.
struct Live {
    jdk: Option<Jdk>,
}

impl Bench for Live {
    type Of = Settings;

    fn arranged(&mut self, settings: &Settings, arm: &Arm) -> Result<Arranged<Nothing>, ArmError> {
        match &self.jdk {
            Some(jdk) if arm.by == By::Jvm => jvm::arranged(jdk, arm, settings.bytes),
            _ => {
                let steps = own_steps(arm.pages, settings.bytes)?;
                Ok(Arranged { options: Vec::new(), more: Nothing {}, steps })
            }
        }
    }

    fn trial(&mut self, mut run: Run<Settings>) -> anyhow::Result<bool> {
        let touched = match &self.jdk {
            Some(jdk) if run.trial.arm.by == By::Jvm => jvm::touched(jdk, &mut run),
            _ => own::touched(run.trial, run.settings.bytes),
        };
        touched.unwrap_or_else(|gap| run.trial.failed(gap));
        Ok(!signals::pending())
    }
}

fn host() -> Known<HostMemory> {
    let me = Process::own().map_err(|error| Gap::new("/proc/self", Why::Denied).hint(error.to_string()))?;
    HostMemory::read(&me)
}

/// Those of the host, or those of them that were named.
fn pages(named: &[String], host: &HostMemory, bytes: Bytes) -> anyhow::Result<Vec<Pages>> {
    let transparent = host.pages.thp.as_ref();
    let mut sizes: Vec<Bytes> = transparent
        .iter()
        .flat_map(|thp| thp.sizes.iter().filter(|size| size.enabled.is_some()))
        .map(|size| size.bytes)
        .collect();
    // Before Linux 6.8 no size has a setting of its own; and some have one for shared memory only.
    sizes.extend(transparent.map(|thp| thp.pmd_bytes));
    sizes.sort_unstable();
    sizes.dedup();
    let of_pool = host.pages.pools.iter().map(|pool| Pages::HugeTlb(pool.page_bytes));
    let mut all: Vec<Pages> =
        [Pages::Small].into_iter().chain(sizes.into_iter().map(Pages::Transparent)).chain(of_pool).collect();
    all.sort();
    if named.is_empty() {
        all.retain(|pages| bytes.is_multiple_of(pages.bytes().max(UNIT)));
        return Ok(all);
    }
    let find = |name: &String| {
        let found = all.iter().find(|pages| pages.name() == *name);
        let names: Vec<String> = all.iter().map(|pages| pages.name()).collect();
        let found = found.copied().ok_or_else(|| {
            Failure::usage(format!("this host has no pages {name}; it has {}", names.join(", ")))
        })?;
        match bytes.is_multiple_of(found.bytes()) {
            true => Ok(found),
            false => Err(Failure::usage(format!("--bytes must be a multiple of the {name} pages"))),
        }
    };
    named.iter().map(find).collect()
}

fn arms(args: &Args, pages: &[Pages], feature: Option<u32>) -> Vec<Arm> {
    let all = iproduct!(&args.by, pages, &args.threads);
    // A JVM asks for no transparent pages of other sizes; JDK 8 touches its heap by one thread, whatever the flag says.
    let by_jvm = |arm: &Arm| jvm::mode(arm.pages).is_some() && (arm.threads == 1 || feature != Some(8));
    let mut arms: Vec<Arm> = all
        .map(|(&by, &pages, &threads)| Arm { by, pages, threads: threads as usize })
        .filter(|arm| arm.by != By::Jvm || by_jvm(arm))
        .collect();
    arms.sort();
    arms.dedup();
    arms
}

/// What the host must have for memory of our own on these pages.
fn own_steps(pages: Pages, bytes: Bytes) -> Result<Vec<Step>, ArmError> {
    match pages {
        Pages::Small => Ok(Vec::new()),
        Pages::HugeTlb(page_bytes) => arm_pages::pool_steps(page_bytes, bytes / page_bytes),
        Pages::Transparent(page_bytes) => {
            let host = host().map_err(ArmError::Read)?;
            let given = host.pages.thp.as_ref().map(|thp| thp.private(page_bytes));
            if given.is_none_or(|policy| policy.mode != "never") {
                return Ok(Vec::new());
            }
            let file = format!("{}/hugepages-{}kB/enabled", thp::DIRECTORY, page_bytes >> 10);
            Ok(vec![Step {
                what: format!("transparent {} KiB pages on request (madvise)", page_bytes >> 10),
                why: "no memory gets pages of this size".to_string(),
                risk: Some(
                    "other programs that ask for huge pages get this size too where larger ones do not fit"
                        .to_string(),
                ),
                change: Change::Choose { file, word: "madvise".to_string() },
            }])
        }
    }
}
