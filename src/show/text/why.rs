//! The section "why not larger" below `map --by page-size`: reasons, the most bytes first, each with the parts that it
//! holds back and with what would change it.

use super::WIDTH;
use crate::map::page_claims::{Claim, Verdict};
use crate::map::require::Answer;
use crate::map::why::{Finding, Reason};
use crate::show::units::{human, percent, shorten, wrapped};
use std::io::{self, Write};

/// Parts that are named below a reason.
const PARTS_SHOWN_MAX: usize = 4;
/// Reasons for less than this share of the bytes on small pages are summed in one line.
const REASON_SHOWN_PERCENT: u64 = 1;

/// One reason and one remedy: what a reader takes in as one.
struct Group<'a> {
    reason: &'a Reason,
    remedy: String,
    bytes: u64,
    partly: u64,
    parts: Vec<&'a Finding>,
}

pub fn why_not_larger(out: &mut dyn Write, findings: &[Finding]) -> io::Result<()> {
    let (absent, small): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.reason == Reason::NeverTouched);
    let total: u64 = small.iter().map(|finding| finding.bytes).sum();
    writeln!(out, "\n{:<62} {:>10} {:>6}", "WHY NOT LARGER", "RESIDENT", "%")?;
    let mut rest = 0;
    for group in groups(&small) {
        if group.bytes.saturating_mul(100) < total.saturating_mul(REASON_SHOWN_PERCENT) {
            rest += group.bytes;
            continue;
        }
        let (bytes, share) = (human(group.bytes), percent(group.bytes, total));
        writeln!(out, "{:<62} {bytes:>10} {share:>6}", group.reason.text())?;
        details(out, &group)?;
    }
    if rest > 0 {
        writeln!(out, "{:<62} {:>10} {:>6}", "smaller reasons", human(rest), percent(rest, total))?;
    }
    writeln!(out, "{:<62} {:>10}", "on small pages in all", human(total))?;
    for group in groups(&absent) {
        writeln!(out, "{:<62} {:>10}", group.reason.text(), human(group.bytes))?;
        details(out, &group)?;
    }
    Ok(())
}

fn details(out: &mut dyn Write, group: &Group) -> io::Result<()> {
    let mut parts: Vec<String> =
        group.parts.iter().take(PARTS_SHOWN_MAX).map(|f| format!("{} {}", f.part, human(f.bytes))).collect();
    if group.parts.len() > PARTS_SHOWN_MAX {
        parts.push(format!("{} more", group.parts.len() - PARTS_SHOWN_MAX));
    }
    let mut text = parts.join(", ");
    if group.partly > 0 {
        text.push_str(&format!(
            "; {} of it in huge pages' places that are partly empty",
            human(group.partly)
        ));
    }
    for line in wrapped(&text, WIDTH - 4) {
        writeln!(out, "    {line}")?;
    }
    for (index, line) in wrapped(&group.remedy, WIDTH - 7).iter().enumerate() {
        writeln!(out, "    {} {line}", if index == 0 { "->" } else { "  " })?;
    }
    Ok(())
}

fn groups<'a>(findings: &[&'a Finding]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group> = Vec::new();
    for finding in findings {
        let remedy = finding.remedy();
        let group = match groups.iter_mut().position(|g| *g.reason == finding.reason && g.remedy == remedy) {
            Some(index) => &mut groups[index],
            None => {
                groups.push(Group {
                    reason: &finding.reason,
                    remedy,
                    bytes: 0,
                    partly: 0,
                    parts: Vec::new(),
                });
                let last = groups.len() - 1;
                &mut groups[last]
            }
        };
        group.bytes += finding.bytes;
        group.partly += finding.partly_touched_bytes;
        group.parts.push(finding);
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.bytes));
    groups
}

/// What the JVM claims and what is; of the claims of its log, those that hold are only counted.
pub fn page_claims(out: &mut dyn Write, claims: &[Claim]) -> io::Result<()> {
    if claims.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{:<12} {:<24} WHAT THE JVM CLAIMS", "IT IS", "ABOUT")?;
    let is_shown = |claim: &&Claim| {
        claim.source != "-Xlog:pagesize" || matches!(claim.verdict, Verdict::False | Verdict::Partly)
    };
    for claim in claims.iter().filter(is_shown) {
        let says = shorten(&format!("{}: {}", claim.source, claim.says), WIDTH - 38);
        writeln!(out, "{:<12} {:<24} {says}", claim.verdict.word(), shorten(&claim.about, 24))?;
        let is = format!("what is: {}, of {}", claim.is.text(), human(claim.is.resident_bytes));
        for line in wrapped(&is, WIDTH - 42) {
            writeln!(out, "{:<41} {line}", "")?;
        }
    }
    match claims.iter().filter(|claim| !is_shown(claim)).count() {
        0 => Ok(()),
        more => writeln!(out, "and {more} lines of its log that are true or of memory that is not in use"),
    }
}

/// One line for each --require; they are for scripts, so they may be longer than the tables.
pub fn requirements(out: &mut dyn Write, answers: &[Answer]) -> io::Result<()> {
    answers.iter().try_for_each(|answer| writeln!(out, "{}", answer.text(human)))
}
