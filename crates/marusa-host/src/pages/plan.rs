//! The plan put together: from the JVM, its needs and what the host can give to the steps there, their price, and the way back.
//! Pure over what was read.

use super::feasible::{self, Answer, Ask, size_name};
use super::request::Request;
use super::types::{Change, Feasible, How, Mode, Need, Outlook, Plan, PoolNeed, SCHEMA, Step, Subject, Vm};
use super::{gc_threads, need, notes, openj9, options, persist};
use crate::base::{Bytes, Known, Refused};
use crate::os::hugetlb;
use crate::os::machine::base_page;
use std::collections::BTreeMap;

/// A heap smaller than this gains little from a pool: `auto` takes transparent pages then.
const AUTO_POOL_HEAP_MIN: Bytes = 1 << 30;

pub fn make(request: &Request) -> Result<Plan, Refused> {
    let (mode, mode_why) = match request.mode {
        Some(mode) => (mode, None),
        None => automatic(request),
    };
    let subject = &request.subject;
    let default_huge = request.host.meminfo.default_huge_bytes;
    let mut jvm_options = options::of_pages(subject, mode, default_huge, request.shm)?;
    let needs = needs(subject, mode).map_err(|gap| Refused(gap.to_string()))?;
    let answer = match mode {
        Mode::Thp => thp_answer(request, &needs)?,
        _ => feasible::answer(request.host, &ask(request, mode, &needs))?,
    };
    let steps = steps(request, mode, &answer);
    jvm_options.extend(request.launch.iter().cloned());
    let mut gaps = request.gaps.clone();
    gaps.extend(request.host.blocks.as_ref().err().cloned());
    let name = request.name.clone().unwrap_or_else(|| default_name(subject));
    let mut plan = Plan {
        schema: SCHEMA.to_string(),
        made_at: request.made_at.clone(),
        made_by: request.made_by.clone(),
        host: request.host_id.clone(),
        subject: subject.clone(),
        mode,
        needs,
        pools: answer.pools,
        steps,
        persist: Vec::new(),
        boot: answer.boot,
        jvm_options,
        gc_threads: gc_threads::gc_threads(subject).filter(|threads| threads.advice.is_some()),
        costs: Vec::new(),
        risks: Vec::new(),
        gaps,
        outlook: Outlook {
            name,
            feasible: answer.feasible,
            feasible_why: answer.why,
            mode_why,
            instances: request.instances,
            recommended: request.recommended.clone(),
            memory: answer.memory,
            sizes: answer.sizes,
            ..Outlook::default()
        },
    };
    persist::complete(&mut plan, request)?;
    plan.costs = notes::costs(&plan, request);
    plan.risks = notes::risks(&plan, request);
    Ok(plan)
}

fn needs(subject: &Subject, mode: Mode) -> Known<Vec<Need>> {
    match subject.vm {
        Vm::HotSpot => need::need(subject, mode),
        Vm::OpenJ9 => Ok(openj9::needs(subject, mode)),
    }
}

/// Pages by size, of all instances, largest first: those of 1G are the hardest to get.
fn by_size(needs: &[Need], instances: u64) -> Vec<(Bytes, u64)> {
    let mut sizes: BTreeMap<Bytes, u64> = BTreeMap::new();
    for need in needs.iter().filter(|need| need.page_bytes > base_page()) {
        let pages = sizes.entry(need.page_bytes).or_default();
        *pages = pages.saturating_add(need.pages.saturating_mul(instances));
    }
    sizes.into_iter().rev().collect()
}

fn ask(request: &Request, mode: Mode, needs: &[Need]) -> Ask {
    let subject = &request.subject;
    let running = request.running.clone().unwrap_or_default();
    Ask {
        pages: by_size(needs, request.instances),
        preference: request.preference,
        feature: if subject.vm == Vm::HotSpot { subject.feature } else { 0 },
        held: running.held,
        released_bytes: running.released_bytes,
        default_only: mode != Mode::Thp && (subject.vm == Vm::OpenJ9 || subject.feature < 17),
    }
}

/// The rule of `--mode auto`, with what decided.
fn automatic(request: &Request) -> (Mode, Option<String>) {
    let subject = &request.subject;
    let rule = "rule: hugetlb-2m where the heap has 1 GiB and more, -Xms is -Xmx, and a pool is certainly available now; else thp";
    let why = |what: &str| Some(format!("{what} ({rule})"));
    let has_thp = request.host.pages.thp.is_some();
    let needs = needs(subject, Mode::hugetlb()).unwrap_or_default();
    let pool = feasible::answer(request.host, &ask(request, Mode::hugetlb(), &needs));
    match &pool {
        Err(_) if has_thp => (Mode::Thp, why("this host has no pools")),
        _ if !has_thp => (Mode::hugetlb(), why("this kernel has no transparent huge pages")),
        _ if subject.heap_max_bytes < AUTO_POOL_HEAP_MIN => (Mode::Thp, why("the heap is small")),
        _ if subject.heap_initial_bytes != subject.heap_max_bytes => {
            (Mode::Thp, why("the heap may grow and shrink, which hugetlb does not allow"))
        }
        Ok(answer) if answer.feasible == Feasible::Yes => {
            (Mode::hugetlb(), why("large, of fixed size, and the pool is available"))
        }
        _ => (Mode::Thp, why("a pool is not certain to be available now")),
    }
}

/// Transparent pages need no pool: where one is missing, that one stays small. So the answer is about free blocks.
fn thp_answer(request: &Request, needs: &[Need]) -> Result<Answer, Refused> {
    let host = request.host;
    let Some(thp) = &host.pages.thp else {
        return Err(Refused(
            "this kernel has no transparent huge pages (/sys/kernel/mm/transparent_hugepage is not there); --mode hugetlb-2m \
             needs none"
                .to_string(),
        ));
    };
    let pages: u64 = by_size(needs, request.instances).iter().map(|(_, pages)| *pages).sum();
    let nothing = Ask::default();
    let mut answer = feasible::answer(host, &nothing)?;
    let size = feasible::size_outlook(host, &nothing, thp.pmd_bytes, host.available_bytes());
    let (once, most) = (size.at_once_pages, size.at_most_pages);
    let disabled = request.running.as_ref().is_some_and(|running| running.thp_enabled == Some(false));
    (answer.feasible, answer.why) = match () {
        () if disabled => (
            Feasible::No,
            "transparent huge pages are disabled for the running process (prctl PR_SET_THP_DISABLE, as systemd's MemoryTHP= \
             or a parent does): what starts it must leave that out"
                .to_string(),
        ),
        () if pages <= once => (Feasible::Yes, format!("{once} free blocks of 2M now, {pages} wanted")),
        () if pages <= most => (
            Feasible::Perhaps,
            format!("{once} free blocks of 2M now, up to {most} with compaction; the rest stays small until khugepaged finds more"),
        ),
        () => (
            Feasible::Perhaps,
            format!("memory for {most} pages of 2M at most, {pages} wanted if the whole heap is used; the rest stays small"),
        ),
    };
    answer.sizes.push(size);
    Ok(answer)
}

fn steps(request: &Request, mode: Mode, answer: &Answer) -> Vec<Step> {
    if answer.feasible == Feasible::No {
        return Vec::new();
    }
    let mut steps = match (&request.host.pages.thp, mode) {
        (Some(thp), Mode::Thp) => options::thp_steps(&request.subject, thp),
        _ => answer.pools.iter().filter(|pool| pool.add_pages > 0).filter_map(pool_step).collect(),
    };
    if options::uses_shm(&request.subject, mode, request.shm) {
        steps.extend(persist::shm_steps(request, &answer.pools));
    }
    steps
}

fn pool_step(pool: &PoolNeed) -> Option<Step> {
    let name = size_name(pool.page_bytes);
    let directory = format!("{}/hugepages-{}kB", hugetlb::DIRECTORY, pool.page_bytes >> 10);
    let (file, what, risk) = match pool.how {
        How::Pool => (
            "nr_hugepages",
            format!("{} more {name} huge pages in the pool", pool.add_pages),
            format!(
                "{} MiB are unavailable to other processes until undo",
                (pool.add_pages * (pool.page_bytes >> 20))
            ),
        ),
        How::Overcommit => (
            "nr_overcommit_hugepages",
            format!("{} more {name} huge pages may be taken beyond the pool", pool.add_pages),
            "any program may take them; when the JVM starts they may not be there".to_string(),
        ),
        How::Free | How::Boot => return None,
    };
    Some(Step {
        what,
        why: pool.why.clone(),
        risk: Some(risk),
        change: Change::Add { file: format!("{directory}/{file}"), by: pool.add_pages },
    })
}

/// "hotspot-17-g1-6g"
fn default_name(subject: &Subject) -> String {
    let (vm, policy) = match subject.vm {
        Vm::HotSpot => ("hotspot", subject.gc.name().to_string()),
        Vm::OpenJ9 => ("openj9", subject.flags.get("Xgcpolicy").cloned().unwrap_or_default()),
    };
    let heap = super::subject::size(subject.heap_max_bytes);
    clean_name(&format!("{vm}-{}-{policy}-{heap}", subject.feature))
}

/// Letters, digits and dashes: it becomes the name of files.
pub fn clean_name(text: &str) -> String {
    let clean = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    text.chars().take(64).map(clean).collect()
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
