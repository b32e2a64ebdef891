//! What makes a plan stay when the host starts again: files for sysctl, systemd-tmpfiles, limits and the service. They hold
//! sums, not differences, since at boot there is nothing yet to add to.

use super::feasible::size_name;
use super::request::Request;
use super::types::{Change, How, Mode, Plan, PoolNeed, Step};
use super::{openj9, options};
use crate::act::door::content::{self, Content, MEMLOCK_BYTES_MIN, Memlock, Put, Value};
use crate::act::door::settings;
use crate::base::{Bytes, Refused};
use crate::os::machine::base_page;
use crate::os::thp::DIRECTORY;

/// Fills in the persistent steps, and what shared memory needs besides.
pub fn complete(plan: &mut Plan, request: &Request) -> Result<(), Refused> {
    if plan.subject.vm == super::types::Vm::OpenJ9 {
        plan.gaps.push(openj9::gap());
    }
    if options::uses_shm(&plan.subject, plan.mode, request.shm) {
        plan.outlook.shm = puts_of_steps(&plan.steps);
        if request.group.is_none() && request.host.shm.huge_group.unwrap_or(0) == 0 {
            let bytes = pool_bytes(&plan.pools).max(MEMLOCK_BYTES_MIN);
            plan.outlook.memlock = vec![Memlock { who: "@java".to_string(), kib: bytes.div_ceil(1024) }];
        }
    }
    let mut persist = Vec::new();
    let name = plan.outlook.name.clone();
    let mut create = |directory: &str, content: Content, what: &str, why: &str| {
        if content.is_empty() {
            return;
        }
        persist.push(Step {
            what: what.to_string(),
            why: why.to_string(),
            risk: None,
            change: Change::Create { file: format!("{directory}/marusa-{name}.conf"), content },
        });
    };
    create(
        content::SYSCTLS,
        Content::Sysctl { settings: sysctl(plan, request) },
        "the pool and limits at boot",
        "sysctl knows the default size",
    );
    create(
        content::TMPFILES,
        Content::Tmpfiles { settings: tmpfiles(plan, request) },
        "settings of /sys at boot",
        "sysctl does not reach /sys",
    );
    create(
        content::LIMITS,
        Content::Limits { memlock: plan.outlook.memlock.clone() },
        "locked memory for the group java",
        "large pages of shared memory count as locked where no group is set",
    );
    if let Some(unit) = &request.unit {
        let directory = format!("{}/{unit}.d", content::UNITS);
        persist.extend(unit_steps(plan, &directory)?);
    }
    plan.persist = persist;
    Ok(())
}

/// "tomcat.service" of "tomcat"; `None` where it is not a name of one service.
pub fn unit_name(text: &str) -> Option<String> {
    let name = text.strip_suffix(".service").unwrap_or(text);
    content::unit_name(name).then(|| format!("{name}.service"))
}

fn unit_steps(plan: &Plan, directory: &str) -> Result<Vec<Step>, Refused> {
    let step = |what: &str, change| Step {
        what: what.to_string(),
        why: "the service starts the JVM with the options of the plan".to_string(),
        risk: Some("it takes the place of a JAVA_TOOL_OPTIONS that the service sets itself".to_string()),
        change,
    };
    let content =
        Content::Unit { memlock_bytes: memlock_bytes(plan), java_options: plan.jvm_options.clone() };
    let file = format!("{directory}/marusa-{}.conf", plan.outlook.name);
    content::check(&file, &content).map_err(|why| {
        Refused(format!(
            "cannot add the options to the service: {why}; leave --unit out and put them there yourself"
        ))
    })?;
    Ok(vec![
        step("a directory for additions to the service", Change::Directory { path: directory.to_string() }),
        step("options of the service", Change::Create { file, content }),
    ])
}

fn memlock_bytes(plan: &Plan) -> Option<Bytes> {
    (!plan.outlook.memlock.is_empty()).then(|| pool_bytes(&plan.pools).max(MEMLOCK_BYTES_MIN))
}

/// The addition to a service: options, and locked memory where it is needed.
pub fn unit_text(plan: &Plan) -> String {
    content::unit_lines(memlock_bytes(plan), &plan.jvm_options).join("\n") + "\n"
}

fn pool_bytes(pools: &[PoolNeed]) -> Bytes {
    pools.iter().map(|pool| pool.pages.saturating_mul(pool.page_bytes)).fold(0, u64::saturating_add)
}

/// For sysctl: pools of the default size, as sums, and what shared memory needs.
fn sysctl(plan: &Plan, request: &Request) -> Vec<Put> {
    let default = request.host.meminfo.default_huge_bytes;
    let of_default = plan.pools.iter().filter(|pool| Some(pool.page_bytes) == default);
    let pools = of_default.filter_map(|need| {
        let (file, sum) = sum(need, request)?;
        Some(Put { file: format!("/proc/sys/vm/{file}"), value: Value::Number(sum) })
    });
    pools.chain(plan.outlook.shm.iter().cloned()).collect()
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

/// For systemd-tmpfiles: pools of other sizes, and the words of transparent huge pages.
fn tmpfiles(plan: &Plan, request: &Request) -> Vec<Put> {
    let default = request.host.meminfo.default_huge_bytes;
    let other = plan.pools.iter().filter(|pool| Some(pool.page_bytes) != default);
    let pools = other.filter_map(|need| {
        let (file, sum) = sum(need, request)?;
        let directory = format!("/sys/kernel/mm/hugepages/hugepages-{}kB", need.page_bytes >> 10);
        Some(Put { file: format!("{directory}/{file}"), value: Value::Number(sum) })
    });
    let words = plan.steps.iter().filter(|_| plan.mode == Mode::Thp).filter_map(|step| match &step.change {
        Change::Choose { file, word } if file.starts_with(DIRECTORY) => {
            Some(Put { file: file.clone(), value: Value::Word(word.clone()) })
        }
        _ => None,
    });
    pools.chain(words).collect()
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
        let bytes = settings::raised_to("/proc/sys/kernel/shmmax", bytes);
        steps.push(set(what, "the heap is one segment", "kernel/shmmax", bytes));
    }
    if shm.all_bytes.is_some_and(|all| all < bytes) {
        let what = "room for all shared memory".to_string();
        let pages = settings::raised_to("/proc/sys/kernel/shmall", bytes.div_ceil(base_page()));
        steps.push(set(what, "the limit is less than the heap", "kernel/shmall", pages));
    }
    steps
}

fn puts_of_steps(steps: &[Step]) -> Vec<Put> {
    let put = |step: &Step| match &step.change {
        Change::Set { file, value } => Some(Put { file: file.clone(), value: Value::Number(*value) }),
        _ => None,
    };
    steps.iter().filter_map(put).collect()
}
