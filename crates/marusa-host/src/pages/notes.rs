//! What a plan costs, and what may go wrong with it, in sentences.

use super::collectors;
use super::feasible::{mib, size_name};
use super::need::shortfall;
use super::request::Request;
use super::types::{Feasible, How, Mode, Need, Plan, Vm};
use crate::base::Bytes;

pub fn costs(plan: &Plan, request: &Request) -> Vec<String> {
    let mut costs = Vec::new();
    let mut say = |text: &str| costs.push(text.to_string());
    let subject = &plan.subject;
    let growing = subject.heap_initial_bytes < subject.heap_max_bytes;
    match plan.mode {
        Mode::Thp => {
            say("memory that is hardly used grows to whole 2M pages: watch RSS where the heap is sparse");
            let defrag = request.host.pages.thp.as_ref().and_then(|thp| thp.defrag.clone());
            say(match defrag.as_deref() {
                Some("never") => {
                    "defrag is never: a page that is not free at the first touch comes later, if at all"
                }
                _ => "the first touch of a page may wait for compaction",
            });
        }
        _ => {
            let bytes: Bytes = plan.pools.iter().map(|pool| pool.pages.saturating_mul(pool.page_bytes)).sum();
            let pool = plan.pools.iter().any(|pool| pool.how == How::Pool);
            say(&match pool {
                true => format!("{} belong to the pool from now on, also while the JVM is down", mib(bytes)),
                false => format!("{} are the JVM's as long as it runs, used or not", mib(bytes)),
            });
            say("they cannot be swapped, reclaimed or used by other programs");
            if growing && subject.vm == Vm::HotSpot && !is_z(plan) {
                say(&format!(
                    "the heap starts with less than -Xmx, but all of -Xmx ({}) is taken at the start and never given back",
                    mib(subject.heap_max_bytes)
                ));
            }
        }
    }
    say("metaspace, thread stacks and malloc come on top, on 4K pages");
    costs
}

pub fn risks(plan: &Plan, request: &Request) -> Vec<String> {
    let mut risks = Vec::new();
    let mut say = |text: &str| risks.push(text.to_string());
    request.host.locked.iter().for_each(|text| say(text));
    if plan.outlook.feasible == Feasible::Perhaps {
        say("apply may find fewer pages than planned; then it takes back what it got, and says so");
    }
    match plan.mode {
        Mode::Thp => thp(plan, request, &mut say),
        _ => hugetlb(plan, request, &mut say),
    }
    memory_limit(plan, request, &mut say);
    risks
}

fn hugetlb(plan: &Plan, request: &Request, say: &mut dyn FnMut(&str)) {
    one_page_less(plan).iter().for_each(|text| say(text));
    if plan.subject.vm == Vm::HotSpot && plan.subject.feature == 11 && is_z(plan) {
        say("ZGC of 11 waits 5 seconds for missing pages and then makes the heap smaller");
    }
    if plan.pools.iter().any(|pool| pool.how == How::Overcommit) {
        say("overcommit promises nothing: memory may be in pieces when the JVM starts; verify each start");
        say("HotSpot after JDK 25 wants nr_hugepages > 0 (filter_pre_allocated_hugepages): then take --pool");
    }
    let surplus = |bytes| request.host.pages.pool(bytes).is_some_and(|pool| pool.surplus > 0);
    if plan.pools.iter().any(|pool| pool.how == How::Pool && surplus(pool.page_bytes)) {
        say(
            "others hold pages beyond the pool now (surplus): the pool grows by as many more, since it counts them in first",
        );
    }
    if request.host.nodes.len() > 1 {
        say(&format!(
            "{} memory nodes: the kernel spreads the pool over all; a JVM bound to one uses that node's pages only",
            request.host.nodes.len()
        ));
    }
    for (file, line) in request.host.settings.iter().filter(|(file, _)| !file.contains("marusa")) {
        say(&format!(
            "{file} sets \"{line}\" at boot: --persist makes a file that is read after it, with the sum"
        ));
    }
    if request.running.is_none() && !request.host.pages.limits.is_empty() {
        say("limits of cgroups were looked at for marusa's own group: the JVM's may differ");
    }
}

/// What falls back when a page is missing, by the order in which the JVM reserves.
fn one_page_less(plan: &Plan) -> Option<String> {
    let pages = |bytes: Bytes| -> u64 {
        let of_size = plan.needs.iter().filter(|need| need.page_bytes == bytes);
        of_size.map(|need| need.pages).fold(0, u64::saturating_add)
    };
    let (small, large) = (pages(2 << 20), pages(1 << 30));
    let short = shortfall(&plan.needs, small.saturating_sub(1), large);
    let first = short.first().filter(|_| small > 0)?;
    let Need { part, bytes, page_bytes, .. } = first.need;
    Some(match first.gets_page_bytes {
        None => format!("one page of 2M less and the VM does not start ({part} lacks it)"),
        Some(gets) if gets == *page_bytes => format!("one page of 2M less and the {part} becomes smaller"),
        Some(gets) => format!(
            "one page of 2M less and all {} of {part} fall to {}: a reservation gets all its pages or none",
            mib(*bytes),
            size_name(gets)
        ),
    })
}

fn thp(plan: &Plan, request: &Request, say: &mut dyn FnMut(&str)) {
    if plan.outlook.feasible == Feasible::Perhaps {
        say("pages that are not available stay small, silently: verify shows how much is large");
    }
    let thp = request.host.pages.thp.as_ref();
    if thp.is_some_and(|thp| thp.enabled == "always") && plan.subject.feature <= 11 {
        say("mode always also gives stacks of threads 2M pages, which this JDK does not prevent");
    }
    if is_z(plan) {
        say("ZGC up to 21 says \"Enabled (Transparent)\" even where shmem_enabled forbids it: trust verify");
    }
}

/// Whether the heap of ZGC is meant, which has rules of its own.
fn is_z(plan: &Plan) -> bool {
    plan.subject.vm == Vm::HotSpot && collectors::is_z(plan.subject.gc)
}

fn memory_limit(plan: &Plan, request: &Request, say: &mut dyn FnMut(&str)) {
    let counted = plan.mode == Mode::Thp || request.host.group_counts_hugetlb;
    let heap = plan.subject.heap_max_bytes;
    if let (true, Some(left)) = (counted && request.running.is_none(), request.host.group_left_bytes)
        && left < heap
    {
        say(&format!("the cgroup leaves {} of memory, less than the heap of {}", mib(left), mib(heap)));
    }
}
