//! The part of `marusa map` that is about page sizes: reasons, claims and requirements.

use super::Failure;
use crate::act::attach::{self, Attached};
use crate::base::{Gap, Why};
use crate::jvm::hotspot::report::{large_pages, system_map};
use crate::map::MemoryMap;
use crate::map::page_claims::{self, Claim, Said};
use crate::map::require::{self, Answer, Requirement};
use crate::map::why::{self, Finding};
use crate::os::output;
use crate::os::process::Process;
use crate::show::{json, text};
use crate::snapshot::{Snapshot, page_settings};
use serde_json::Value;
use std::io::{self, Write};

/// What the user asked for.
#[derive(clap::Args, Debug)]
pub struct PageArgs {
    /// Exit with 1 unless so much of NAME (area or part) is on such pages: heap=2M, 'heap>=95%@thp', code-cache=hugetlb-2M
    #[arg(long, value_name = "NAME=PAGES")]
    pub require: Vec<Requirement>,
    /// With --by page-size: ask the JVM itself too; attaches, so the JVM gets one thread more
    #[arg(long, conflicts_with = "from")]
    pub ask: bool,
}

/// All that is known of the pages.
pub struct PageReport {
    pub findings: Vec<Finding>,
    pub claims: Vec<Claim>,
    pub answers: Vec<Answer>,
}

/// Reads the settings into the snapshot.
pub fn read(process: &Process, snapshot: &mut Snapshot) {
    snapshot.taken.page_settings = Some(page_settings::read(process, snapshot));
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

/// Starts the JVM's listener, when it was asked for.
pub fn attach(process: &Process) -> anyhow::Result<Attached> {
    attach::open(process).map_err(|error| super::audit::refused(&error))
}

pub fn report(
    args: &PageArgs,
    snapshot: &Snapshot,
    map: &MemoryMap,
    said: &Said,
) -> anyhow::Result<PageReport> {
    let findings = why::findings(snapshot, map);
    if let (Err(gap), false) = (&snapshot.os.pages, args.require.is_empty()) {
        let message = format!("the pages can not be read, so nothing can be required of them: {gap}");
        return Err(if gap.why == Why::Denied { Failure::rights(message) } else { Failure::target(message) });
    }
    let check = |requirement: &Requirement| {
        require::check(requirement, snapshot, map, &findings).ok_or_else(|| {
            let names = "areas are heap, code-cache, metaspace, stacks, gc, libraries, all, and those of `map`; parts are \
                         those of `map --by part`";
            Failure::usage(format!("--require {}: this JVM has no '{}'; {names}", requirement.text, requirement.name))
        })
    };
    let answers = args.require.iter().map(check).collect::<anyhow::Result<Vec<Answer>>>()?;
    Ok(PageReport { claims: page_claims::claims(snapshot, map, said), findings, answers })
}

impl PageReport {
    pub fn is_met(&self) -> bool {
        self.answers.iter().all(|answer| answer.met)
    }

    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        text::page_claims(out, &self.claims)?;
        text::why_not_larger(out, &self.findings)
    }

    pub fn requirements(&self, out: &mut dyn Write) -> io::Result<()> {
        text::requirements(out, &self.answers)
    }

    pub fn json(&self, snapshot: &Snapshot, value: &mut Value) {
        value["page_findings"] = json::pages::findings(&self.findings).into();
        value["page_claims"] = json::pages::claims(&self.claims).into();
        value["host_pages"] = json::pages::host(snapshot);
        if !self.answers.is_empty() {
            value["requirements"] = json::pages::requirements(&self.answers).into();
        }
    }
}
