//! What makes a plan stay when the host starts again: files for sysctl, systemd-tmpfiles, limits and the service. They hold
//! sums, not differences, since at boot there is nothing yet to add to.

use super::feasible::size_name;
use super::plan::Request;
use super::types::{Change, How, Mode, Plan, PoolNeed, Step};
use super::{openj9, options};
use crate::base::{Bytes, PAGE};
use crate::os::thp::FOLDER;

/// Fills in the persistent steps, and what shared memory needs besides.
pub fn complete(plan: &mut Plan, request: &Request) {
    if plan.subject.vm == super::types::Vm::OpenJ9 {
        plan.gaps.push(openj9::gap());
    }
    let shm = options::uses_shm(&plan.subject, plan.mode, request.shm);
    if shm {
        plan.outlook.sysctl = sysctl_of_steps(&plan.steps);
        if request.group.is_none() && request.host.shm.huge_group.unwrap_or(0) == 0 {
            plan.outlook.limits = vec![format!("@java - memlock {}", pool_bytes(&plan.pools) >> 10)];
        }
    }
    let mut persist = Vec::new();
    let name = plan.outlook.name.clone();
    let mut create = |folder: &str, lines: Vec<String>, what: &str, why: &str| {
        if lines.is_empty() {
            return;
        }
        let head = format!("# Made by marusa for the plan {name}; `marusa pages undo` removes it.\n");
        persist.push(Step {
            what: what.to_string(),
            why: why.to_string(),
            risk: None,
            change: Change::Create {
                file: format!("{folder}/marusa-{name}.conf"),
                text: head + &lines.join("\n") + "\n",
                mode: 0o644,
            },
        });
    };
    create(
        "/etc/sysctl.d",
        sysctl(plan, request),
        "the pool and limits at boot",
        "sysctl knows the default size",
    );
    create(
        "/etc/tmpfiles.d",
        tmpfiles(plan, request),
        "settings of /sys at boot",
        "sysctl does not reach /sys",
    );
    create(
        "/etc/security/limits.d",
        plan.outlook.limits.clone(),
        "locked memory for the group java",
        "large pages of shared memory count as locked where no group is set",
    );
    if let Some(unit) = &request.unit {
        let folder = format!("/etc/systemd/system/{unit}.d");
        persist.extend(unit_steps(plan, &folder));
    }
    plan.persist = persist;
}

/// "tomcat.service" of "tomcat"; `None` where it is no name of a service.
pub fn unit_name(text: &str) -> Option<String> {
    let name = text.strip_suffix(".service").unwrap_or(text);
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_-.@:\\".contains(letter);
    let good = !name.is_empty() && !name.starts_with('.') && name.chars().all(fits);
    good.then(|| format!("{name}.service"))
}

fn unit_steps(plan: &Plan, folder: &str) -> Vec<Step> {
    let step = |what: &str, change| Step {
        what: what.to_string(),
        why: "the service starts the JVM with the options of the plan".to_string(),
        risk: Some("it takes the place of a JAVA_TOOL_OPTIONS that the service sets itself".to_string()),
        change,
    };
    let text = unit_text(plan);
    let file = format!("{folder}/marusa-{}.conf", plan.outlook.name);
    vec![
        step("a folder for additions to the service", Change::Folder { path: folder.to_string() }),
        step("options of the service", Change::Create { file, text, mode: 0o644 }),
    ]
}

/// The addition to a service: options, and locked memory where it is needed.
pub fn unit_text(plan: &Plan) -> String {
    let mut text = "[Service]\n".to_string();
    if !plan.outlook.limits.is_empty() {
        text.push_str(&format!("LimitMEMLOCK={}\n", pool_bytes(&plan.pools)));
    }
    text.push_str(&format!("Environment=\"JAVA_TOOL_OPTIONS={}\"\n", plan.jvm_options.join(" ")));
    text
}

fn pool_bytes(pools: &[PoolNeed]) -> Bytes {
    pools.iter().map(|pool| pool.pages.saturating_mul(pool.page_bytes)).fold(0, u64::saturating_add)
}

/// Lines of sysctl: pools of the default size, as sums, and what shared memory needs.
pub fn sysctl(plan: &Plan, request: &Request) -> Vec<String> {
    let default = request.host.meminfo.default_huge_bytes;
    let of_default = plan.pools.iter().filter(|pool| Some(pool.page_bytes) == default);
    let mut lines: Vec<String> = of_default
        .filter_map(|need| {
            let (file, sum) = sum(need, request)?;
            Some(format!("vm.{file} = {sum}"))
        })
        .collect();
    lines.extend(plan.outlook.sysctl.iter().cloned());
    lines
}

/// The file of a pool and what it holds with the plan made.
fn sum(need: &PoolNeed, request: &Request) -> Option<(&'static str, u64)> {
    let pool = request.host.pages.pool(need.page_bytes)?;
    match need.how {
        How::Pool if need.add_pages > 0 => {
            Some(("nr_hugepages", pool.pages.saturating_sub(pool.surplus).saturating_add(need.add_pages)))
        }
        How::Overcommit if need.add_pages > 0 => {
            Some(("nr_overcommit_hugepages", pool.overcommit.saturating_add(need.add_pages)))
        }
        _ => None,
    }
}

/// Lines of systemd-tmpfiles: pools of other sizes, and the words of transparent huge pages. "w" writes at every boot.
pub fn tmpfiles(plan: &Plan, request: &Request) -> Vec<String> {
    let default = request.host.meminfo.default_huge_bytes;
    let other = plan.pools.iter().filter(|pool| Some(pool.page_bytes) != default);
    let mut lines: Vec<String> = other
        .filter_map(|need| {
            let (file, sum) = sum(need, request)?;
            let folder = format!("/sys/kernel/mm/hugepages/hugepages-{}kB", need.page_bytes >> 10);
            Some(format!("w {folder}/{file} - - - - {sum}"))
        })
        .collect();
    if plan.mode == Mode::Thp {
        lines.extend(plan.steps.iter().filter_map(|step| match &step.change {
            Change::Choose { file, word } if file.starts_with(FOLDER) => {
                Some(format!("w {file} - - - - {word}"))
            }
            _ => None,
        }));
    }
    lines
}

/// What shared memory of System V needs: the group, and room in its limits (ipc/shm.c, `newseg`; mm/hugetlb: `can_do_hugetlb_shm`).
pub fn shm_steps(request: &Request, pools: &[PoolNeed]) -> Vec<Step> {
    let bytes = pool_bytes(pools);
    let shm = &request.host.shm;
    let set = |what: String, why: &str, file: &str, value: u64| Step {
        what,
        why: why.to_string(),
        risk: None,
        change: Change::Set { file: format!("/proc/sys/{file}"), value },
    };
    let mut steps = Vec::new();
    if let Some(group) = request.group.filter(|group| shm.huge_group != Some(*group)) {
        let what = format!("the group {group} may have huge pages of shared memory");
        steps.push(set(what, "shmget(SHM_HUGETLB) asks for it", "vm/hugetlb_shm_group", group.into()));
    }
    if shm.max_bytes.is_some_and(|max| max < bytes) {
        let what = format!("segments of shared memory up to {} pages of {}", bytes >> 21, size_name(2 << 20));
        steps.push(set(what, "the heap is one segment", "kernel/shmmax", bytes));
    }
    if shm.all_bytes.is_some_and(|all| all < bytes) {
        let what = "room for all shared memory".to_string();
        steps.push(set(what, "the limit is less than the heap", "kernel/shmall", bytes.div_ceil(PAGE)));
    }
    steps
}

fn sysctl_of_steps(steps: &[Step]) -> Vec<String> {
    let line = |step: &Step| match &step.change {
        Change::Set { file, value } => {
            Some(format!("{} = {value}", file.strip_prefix("/proc/sys/")?.replace('/', ".")))
        }
        _ => None,
    };
    steps.iter().filter_map(line).collect()
}

/// Lines of limits.d; empty where a group or nothing at all is needed.
pub fn limits_of(plan: &Plan) -> &[String] {
    &plan.outlook.limits
}
