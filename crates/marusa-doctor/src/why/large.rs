//! What is unusually large, by the doctor's rules: their thresholds, sentences and remedies. A rule that is about what grows
//! completes that answer.

use super::native;
use super::{Answer, Seen, Sure};
use crate::doctor::{Finding, Level, Remedy};
use crate::jvm::UNREACHED;
use crate::map::Area;

/// A rule that may be an answer, from which level on, and the area whose bytes it is about.
const RULES: [(&str, Level, Option<Area>); 18] = [
    ("malloc-freed-held", Level::Warn, Some(Area::MallocFreed)),
    ("malloc-arenas", Level::Warn, Some(Area::MallocFreed)),
    ("native-memory-not-closed", Level::Warn, Some(Area::MallocUnknown)),
    ("native-memory-unreached", Level::Info, Some(Area::MallocUnknown)),
    ("nio-cache-large", Level::Info, Some(Area::DirectBuffers)),
    ("direct-buffers-near-limit", Level::Warn, Some(Area::DirectBuffers)),
    ("explicit-gc-disabled", Level::Warn, Some(Area::DirectBuffers)),
    ("class-loaders-many", Level::Warn, Some(Area::ClassMetadata)),
    ("metaspace-fragmentation", Level::Warn, Some(Area::ClassMetadata)),
    ("metaspace-near-limit", Level::Warn, Some(Area::ClassMetadata)),
    ("code-cache-near-full", Level::Warn, Some(Area::JitCode)),
    ("thread-pool-large", Level::Info, Some(Area::Stack)),
    ("thread-stacks", Level::Warn, Some(Area::Stack)),
    ("mapped-files-many", Level::Warn, Some(Area::MappedFile)),
    ("container-limit", Level::Warn, None),
    ("limit-filled", Level::Info, None),
    ("threads-near-limit", Level::Warn, None),
    ("max-map-count-near", Level::Warn, None),
];

/// The findings that are not about what grows; the others are added to `grow`.
pub fn answers(seen: &Seen, grow: &mut [Answer]) -> Vec<Answer> {
    let mut answers: Vec<Answer> = Vec::new();
    for finding in seen.findings {
        let Some((.., area)) =
            RULES.iter().find(|(id, least, _)| *id == finding.id && finding.level >= *least)
        else {
            continue;
        };
        let is_of_area =
            |answer: &Answer| answer.area == *area && (area.is_some() || finding.id == "limit-filled");
        let is_about = |answer: &&mut Answer| is_of_area(answer) && is_same(answer, finding);
        match grow.iter_mut().find(is_about).or_else(|| answers.iter_mut().find(|one| is_twin(one, finding)))
        {
            Some(answer) => {
                answer.finding = answer.finding.or(Some(finding.id));
                answer.level = answer.level.max(finding.level);
            }
            None => answers.push(of(finding, *area, seen)),
        }
    }
    answers
}

/// Holders and buffers are several in one area; of others there is one.
fn is_same(answer: &Answer, finding: &Finding) -> bool {
    let who = answer.who.as_deref().unwrap_or_default();
    match finding.id {
        "native-memory-not-closed" => finding.title.contains(who),
        "native-memory-unreached" => answer.what.contains("nothing points to"),
        "nio-cache-large" => who.contains("BufferCache"),
        "limit-filled" => ["tmpfs", "page cache"]
            .iter()
            .any(|word| answer.what.starts_with(word) && finding.title.contains(word)),
        _ => true,
    }
}

/// Freed memory in many arenas is freed memory.
fn is_twin(answer: &Answer, finding: &Finding) -> bool {
    let freed = ["malloc-freed-held", "malloc-arenas"];
    answer.finding.is_some_and(|id| freed.contains(&id)) && freed.contains(&finding.id)
}

fn of(finding: &Finding, area: Option<Area>, seen: &Seen) -> Answer {
    let last = seen.last();
    let mut answer = match finding.id {
        "malloc-freed-held" | "malloc-arenas" => native::freed_in(seen),
        _ => None,
    }
    .unwrap_or_else(|| Answer::new(finding.title.clone(), who(finding, seen).as_deref()));
    answer.finding = Some(finding.id);
    answer.level = finding.level;
    answer.area = area;
    let of_area = || Some(last?.resident_of(&[area?]) as u64);
    answer.bytes = finding.cost.bytes.or_else(of_area);
    answer.sure = if finding.id == "native-memory-unreached" { Sure::Likely } else { Sure::Certain };
    answer.how =
        finding.evidence.iter().map(|evidence| evidence.source.as_str()).fold(String::new(), add_once);
    let is_run = |remedy: &&Remedy| !matches!(remedy, Remedy::Advice(_));
    let command = finding.remedies.iter().find(is_run).map(|remedy| remedy.text().to_string());
    let is_setting = |remedy: &&Remedy| !matches!(remedy, Remedy::Command(_) | Remedy::Advice(_));
    let is_other =
        |remedy: &&Remedy| answer.next.as_ref().or(command.as_ref()).is_none_or(|next| next != remedy.text());
    let others = || finding.remedies.iter().filter(is_other);
    let fix = others().find(is_setting).or_else(|| others().find(|remedy| !is_run(remedy)));
    answer.fix = fix.map(|remedy| remedy.text().to_string());
    answer.next = answer.next.or(command).or_else(|| Some(format!("marusa doctor --explain {}", finding.id)));
    answer
}

fn add_once(mut all: String, source: &str) -> String {
    if !all.split("; ").any(|one| one == source) {
        all = if all.is_empty() { source.to_string() } else { format!("{all}; {source}") };
    }
    all
}

/// The subject of a finding, where the account has it.
fn who(finding: &Finding, seen: &Seen) -> Option<String> {
    let account = &seen.last()?.account;
    match finding.id {
        "native-memory-not-closed" => {
            let holders = account.holders.iter().flatten();
            holders.map(|held| held.holder.clone()).find(|holder| finding.title.contains(holder.as_str()))
        }
        "native-memory-unreached" => Some(UNREACHED.to_string()),
        "nio-cache-large" => {
            let rows = account.buffers.iter().flatten();
            let caches = rows.filter(|row| row.kind == crate::jvm::BufferKind::NioCache);
            caches.max_by_key(|row| row.bytes).map(|row| row.holder.clone())
        }
        _ => None,
    }
}
