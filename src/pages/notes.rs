//! What a plan costs, and what may go wrong with it, in sentences.

use super::feasible::size_name;
use super::need::shortfall;
use super::plan::{Request, is_z};
use super::types::{Feasible, How, Mode, Plan, Vm};
use crate::base::Bytes;

pub fn costs(plan: &Plan, request: &Request) -> Vec<String> {
    let mut costs = Vec::new();
    let subject = &plan.subject;
    let growing = subject.heap_initial_bytes < subject.heap_max_bytes;
    match plan.mode {
        Mode::Thp => {
            costs.push(
                "memory that is hardly used grows to whole 2M pages: watch RSS where the heap is sparse"
                    .to_string(),
            );
            let defrag = request.host.pages.thp.as_ref().and_then(|thp| thp.defrag.clone());
            costs.push(match defrag.as_deref() {
                Some("never") => {
                    "defrag is never: a page that is not free at the first touch comes later, if at all"
                        .to_string()
                }
                _ => "the first touch of a page may wait for compaction".to_string(),
            });
        }
        _ => {
            let bytes: Bytes = plan.pools.iter().map(|pool| pool.pages.saturating_mul(pool.page_bytes)).sum();
            let pool = plan.pools.iter().any(|pool| pool.how == How::Pool);
            costs.push(match pool {
                true => format!("{} belong to the pool from now on, also while the JVM is down", mib(bytes)),
                false => format!("{} are the JVM's as long as it runs, used or not", mib(bytes)),
            });
            costs.push("they cannot be swapped, reclaimed or used by other programs".to_string());
            if growing && subject.vm == Vm::HotSpot && !is_z(plan) {
                costs.push(format!(
                    "the heap starts with less than -Xmx, but all of -Xmx ({}) is taken at the start and never given back",
                    mib(subject.heap_max_bytes)
                ));
            }
        }
    }
    costs.push("metaspace, thread stacks and malloc come on top, on 4K pages".to_string());
    costs
}

pub fn risks(plan: &Plan, request: &Request) -> Vec<String> {
    let mut risks = Vec::new();
    risks.extend(request.host.locked.clone());
    if plan.outlook.feasible == Feasible::Perhaps {
        risks.push(
            "apply may find fewer pages than planned; then it takes back what it got, and says so"
                .to_string(),
        );
    }
    match plan.mode {
        Mode::Thp => thp(plan, request, &mut risks),
        _ => hugetlb(plan, request, &mut risks),
    }
    memory_limit(plan, request, &mut risks);
    risks
}

fn hugetlb(plan: &Plan, request: &Request, risks: &mut Vec<String>) {
    risks.extend(one_page_less(plan));
    if plan.subject.vm == Vm::HotSpot && plan.subject.feature == 11 && is_z(plan) {
        risks.push("ZGC of 11 waits 5 seconds for missing pages and then makes the heap smaller".to_string());
    }
    if plan.pools.iter().any(|pool| pool.how == How::Overcommit) {
        risks.push(
            "overcommit promises nothing: memory may be in pieces when the JVM starts; verify each start"
                .to_string(),
        );
        risks.push(
            "HotSpot after JDK 25 wants nr_hugepages > 0 (filter_pre_allocated_hugepages): then take --pool"
                .to_string(),
        );
    }
    let surplus = |bytes| request.host.pages.pool(bytes).is_some_and(|pool| pool.surplus > 0);
    if plan.pools.iter().any(|pool| pool.how == How::Pool && surplus(pool.page_bytes)) {
        risks.push(
            "others hold pages beyond the pool now (surplus): the pool grows by as many more, since it counts them in first"
                .to_string(),
        );
    }
    if request.host.nodes.len() > 1 {
        risks.push(format!(
            "{} memory nodes: the kernel spreads the pool over all; a JVM bound to one uses that node's pages only",
            request.host.nodes.len()
        ));
    }
    for (file, line) in request.host.settings.iter().filter(|(file, _)| !file.contains("marusa")) {
        risks.push(format!(
            "{file} sets \"{line}\" at boot: --persist makes a file that is read after it, with the sum"
        ));
    }
    if request.running.is_none() && !request.host.pages.limits.is_empty() {
        risks.push(
            "limits of cgroups were looked at for marusa's own group: the JVM's may differ".to_string(),
        );
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
    Some(match first.gets_page_bytes {
        None => format!("one page of 2M less and the VM does not start ({} lacks it)", first.part),
        Some(bytes) if bytes == first.page_bytes => {
            format!("one page of 2M less and the {} becomes smaller", first.part)
        }
        Some(bytes) => format!(
            "one page of 2M less and all {} of {} fall to {}: a reservation gets all its pages or none",
            mib(first.bytes),
            first.part,
            size_name(bytes)
        ),
    })
}

fn thp(plan: &Plan, request: &Request, risks: &mut Vec<String>) {
    if plan.outlook.feasible == Feasible::Perhaps {
        risks.push(
            "pages that are not available stay small, silently: verify shows how much is large".to_string(),
        );
    }
    let thp = request.host.pages.thp.as_ref();
    if thp.is_some_and(|thp| thp.enabled == "always") && plan.subject.feature <= 11 {
        risks.push(
            "mode always also gives stacks of threads 2M pages, which this JDK does not prevent".to_string(),
        );
    }
    if is_z(plan) {
        risks.push(
            "ZGC up to 21 says \"Enabled (Transparent)\" even where shmem_enabled forbids it: trust verify"
                .to_string(),
        );
    }
}

fn memory_limit(plan: &Plan, request: &Request, risks: &mut Vec<String>) {
    let counted = plan.mode == Mode::Thp || request.host.group_counts_hugetlb;
    let heap = plan.subject.heap_max_bytes;
    if let (true, Some(left)) = (counted && request.running.is_none(), request.host.group_left_bytes)
        && left < heap
    {
        risks.push(format!("the cgroup leaves {} of memory, less than the heap of {}", mib(left), mib(heap)));
    }
}

fn mib(bytes: Bytes) -> String {
    format!("{} MiB", bytes >> 20)
}
