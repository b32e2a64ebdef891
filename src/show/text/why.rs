//! The section "why not larger" below `map --by page-size`: reasons, the most bytes first, each with the parts that it
//! holds back and with what would change it.

use crate::map::page_claims::{Claim, Verdict};
use crate::map::require::Answer;
use crate::map::why::{Finding, Reason};
use crate::show::table::Table;
use crate::show::units::{counted, fitted, human, indented, led, percent, shorten};
use crate::show::width::width;
use std::io::{self, Write};

const CLAIM_INDENT: usize = 12 + 1 + 24 + 1;
const CLAIM_COLUMNS_MIN: usize = 24;
const NARROW_INDENT: usize = 2;
/// Parts that are named below a reason.
const PARTS_SHOWN_MAX: usize = 4;
/// Reasons for less than this share of the bytes on small pages are summed in one line.
const REASON_SHOWN_PERCENT: u64 = 1;

/// Findings of one reason; below it by what would change it, which is not the same for every area.
struct Group<'a> {
    reason: &'a Reason,
    bytes: u64,
    remedies: Vec<(String, Vec<&'a Finding>)>,
}

pub fn why_not_larger(out: &mut dyn Write, findings: &[Finding]) -> io::Result<()> {
    let (absent, small): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.reason == Reason::NeverTouched);
    let total: u64 = sum(&small);
    let mut table = Table::new(["WHY NOT LARGER", ">RESIDENT", ">%"]).shortened(0, 20);
    let mut rest = 0;
    for group in groups(&small) {
        if group.bytes.saturating_mul(100) < total.saturating_mul(REASON_SHOWN_PERCENT) {
            rest += group.bytes;
            continue;
        }
        table.row([group.reason.text(), human(group.bytes), percent(group.bytes, total)]);
        details(&mut table, &group);
    }
    if rest > 0 {
        table.row(["smaller reasons".to_string(), human(rest), percent(rest, total)]);
    }
    table.row(["on small pages in all", &human(total), ""]);
    for group in groups(&absent) {
        table.row([group.reason.text(), human(group.bytes), String::new()]);
        details(&mut table, &group);
    }
    table.write_below(out)
}

fn sum(findings: &[&Finding]) -> u64 {
    findings.iter().map(|finding| finding.bytes).sum()
}

fn details(table: &mut Table, group: &Group) {
    for (remedy, findings) in &group.remedies {
        let is_crumb = |bytes: u64| bytes.saturating_mul(1000) < group.bytes;
        if is_crumb(sum(findings)) {
            continue;
        }
        let named = findings.iter().filter(|finding| !is_crumb(finding.bytes)).take(PARTS_SHOWN_MAX);
        let mut parts: Vec<String> = named.map(|f| format!("{} {}", f.part, human(f.bytes))).collect();
        if findings.len() > parts.len() {
            parts.push(format!("{} more", findings.len() - parts.len()));
        }
        let mut text = parts.join(", ");
        let partly: u64 = findings.iter().map(|finding| finding.partly_touched_bytes).sum();
        if partly > 0 {
            text.push_str(&format!("; {} of it in 2 MiB that are not all in memory", human(partly)));
        }
        table.note("    ", &text);
        table.note("    -> ", remedy);
    }
}

fn groups<'a>(findings: &[&'a Finding]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group> = Vec::new();
    for finding in findings {
        let index = groups.iter().position(|group| *group.reason == finding.reason).unwrap_or_else(|| {
            groups.push(Group { reason: &finding.reason, bytes: 0, remedies: Vec::new() });
            groups.len() - 1
        });
        let group = &mut groups[index];
        group.bytes += finding.bytes;
        let remedy = finding.remedy();
        match group.remedies.iter_mut().find(|(known, _)| *known == remedy) {
            Some((_, findings)) => findings.push(finding),
            None => group.remedies.push((remedy, vec![finding])),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.bytes));
    for group in &mut groups {
        group.remedies.sort_by_key(|(_, findings)| std::cmp::Reverse(sum(findings)));
    }
    groups
}

/// What the JVM claims and what is; of the claims of its log, the ones that hold are only counted.
pub fn page_claims(out: &mut dyn Write, claims: &[Claim]) -> io::Result<()> {
    if claims.is_empty() {
        return Ok(());
    }
    // Without room for three columns a claim comes below what it is about.
    let is_narrow = width() < CLAIM_INDENT + CLAIM_COLUMNS_MIN;
    let indent = if is_narrow { NARROW_INDENT } else { CLAIM_INDENT };
    let title = if is_narrow { "" } else { "WHAT THE JVM CLAIMS" };
    writeln!(out, "\n{}", format!("{:<12} {:<24} {title}", "IT IS", "ABOUT").trim_end())?;
    let is_shown = |claim: &&Claim| {
        claim.source != "-Xlog:pagesize" || matches!(claim.verdict, Verdict::False | Verdict::Partly)
    };
    for claim in claims.iter().filter(is_shown) {
        let says = format!("{}: {}", claim.source, claim.says);
        let about = format!("{:<12} {} ", claim.verdict.word(), fitted(&claim.about, 24));
        match is_narrow {
            true => {
                writeln!(out, "{}", shorten(about.trim_end(), width()))?;
                indented(out, &says, indent)?;
            }
            false => led(out, &about, &says)?,
        }
        let is = format!("what is: {}, of {}", claim.is.text(), human(claim.is.resident_bytes));
        indented(out, &is, indent + 3)?;
    }
    match claims.iter().filter(|claim| !is_shown(claim)).count() {
        0 => Ok(()),
        more => {
            let more = counted(more, "more line");
            indented(out, &format!("and {more} of its log, true or about memory that is not in use"), 0)
        }
    }
}

/// One line for each --require; they are for scripts, so they may be longer than the tables.
pub fn requirements(out: &mut dyn Write, answers: &[Answer]) -> io::Result<()> {
    answers.iter().try_for_each(|answer| writeln!(out, "{}", answer.text(human)))
}
