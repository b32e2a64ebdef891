//! The part of `marusa map` that is about page sizes: reasons, claims and requirements.

use super::Failure;
use crate::act::attach::Attached;
use crate::base::{Gap, Why};
use crate::jvm::hotspot::report::{large_pages, system_map};
use crate::map::bloat::Bloat;
use crate::map::page_claims::{self, Claim, Said};
use crate::map::require::{self, Answer, Requirement};
use crate::map::why::{self, Finding};
use crate::map::{MemoryMap, model};
use crate::os::output;
use crate::os::process::Process;
use crate::os::zeros::Zeros;
use crate::show::text;
use crate::snapshot::Snapshot;
use std::io::{self, Write};

/// What the user asked for.
#[derive(clap::Args, Debug)]
pub struct PageArgs {
    /// Exit with 1 unless this much of NAME (area or part) is on such pages, and some of it is in memory: heap=2M,
    /// 'heap>=95%@thp', code-cache=hugetlb-2M. PAGES: 4K, 16K, 64K, 2M, 1G (that size or larger), thp, hugetlb, hugetlb-2M,
    /// hugetlb-1G
    #[arg(long, value_name = "NAME=PAGES")]
    pub require: Vec<Requirement>,
    /// With --by page-size: also ask the JVM itself; attaches, so the JVM gets one more thread
    #[arg(long, conflicts_with = "from")]
    pub ask: bool,
    /// With --by page-size: read the large pages and the stacks, and show how much of them is zeros and what a split would return;
    /// 0.2 s for a gigabyte, beyond that a sample
    #[arg(long, conflicts_with = "from")]
    pub zeros: bool,
}

/// All that is known of the pages.
pub struct PageReport {
    /// `None`: not asked for, or not to be read, which is in the gaps.
    pub bloat: Option<Bloat>,
    pub findings: Vec<Finding>,
    pub claims: Vec<Claim>,
    pub answers: Vec<Answer>,
}

/// What was read besides the snapshot.
#[derive(Default)]
pub struct Read {
    pub said: Said,
    pub zeros: Option<Zeros>,
}

/// What the JVM says: in its log, and over the attach protocol where the user wants it asked.
pub fn said(process: &Process, attached: Option<&Attached>, gaps: &mut Vec<Gap>) -> Said {
    let logged = output::start(process).map(|text| large_pages::logged(&text)).unwrap_or_default();
    let Some(attached) = attached else { return Said { logged, ..Said::default() } };
    let mut answer = |line: &str| {
        let answer = attached.command(line);
        answer.map_err(|error| gaps.push(Gap::new(line, Why::NotInThisRuntime).hint(error.to_string()))).ok()
    };
    let support = answer("VM.info").and_then(|text| large_pages::support(&text));
    let system_map = answer("System.map").and_then(|text| system_map::parse(&text).ok());
    Said { support, system_map, logged }
}

pub fn report(
    args: &PageArgs,
    snapshot: &Snapshot,
    map: &MemoryMap,
    read: &Read,
) -> anyhow::Result<PageReport> {
    let findings = why::findings(snapshot, map);
    if let (Err(gap), false) = (&snapshot.os.pages, args.require.is_empty()) {
        let message = format!("the pages cannot be read, so nothing can be required of them: {gap}");
        return Err(Failure::unread(gap.why, message));
    }
    let check = |requirement: &Requirement| {
        require::check(requirement, snapshot, map, &findings).ok_or_else(|| {
            let near = require::near(&requirement.name, map);
            let near: Vec<String> = near.iter().map(|name| format!("'{name}'")).collect();
            let meant = if near.is_empty() { String::new() } else { format!("did you mean {}? ", near.join(" or ")) };
            Failure::usage(format!(
                "--require {}: this JVM has no '{}'; {meant}Areas are heap, code-cache, metaspace, stacks, gc, libraries, all, \
                 and those of `map`; parts are those of `map --by part`",
                requirement.text, requirement.name
            ))
        })
    };
    let answers = args.require.iter().map(check).collect::<anyhow::Result<Vec<Answer>>>()?;
    let bloat = read.zeros.as_ref().map(|zeros| Bloat::of(&snapshot.taken.kernel, map, zeros));
    Ok(PageReport { bloat, claims: page_claims::claims(snapshot, map, &read.said), findings, answers })
}

impl PageReport {
    pub fn is_met(&self) -> bool {
        self.answers.iter().all(|answer| answer.met)
    }

    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(bloat) = &self.bloat {
            text::zeros_in_large_pages(out, bloat)?;
        }
        text::page_claims(out, &self.claims)?;
        text::why_not_larger(out, &self.findings)
    }

    pub fn model(&self, snapshot: &Snapshot) -> model::PageReport {
        model::PageReport::of(snapshot, &self.findings, &self.claims, &self.answers, self.bloat.as_ref())
    }
}
