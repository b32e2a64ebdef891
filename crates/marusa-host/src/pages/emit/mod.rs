//! A plan in the words of other tools: files of /etc, the kernel's command line, containers, Kubernetes, options of the JVM.
//! Each is a text that can be put where its first line says.

mod container;

use super::feasible::size_name;
use super::persist;
use super::types::{Change, How, Mode, Plan, Vm};
use crate::act::door::content;
use clap::ValueEnum;

/// The words of `--emit`.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    Sysctl,
    Tmpfiles,
    Limits,
    Systemd,
    Cmdline,
    Docker,
    Kubernetes,
    Jvm,
    All,
}

impl Emit {
    pub fn text(self, plan: &Plan) -> String {
        let file = |directory: &str| created(plan, directory);
        match self {
            Emit::Sysctl => file("/etc/sysctl.d").unwrap_or_else(|| nothing("sysctl", plan)),
            Emit::Tmpfiles => file("/etc/tmpfiles.d").unwrap_or_else(|| nothing("systemd-tmpfiles", plan)),
            Emit::Limits => file("/etc/security/limits.d").unwrap_or_else(|| no_limits(plan)),
            Emit::Systemd => systemd(plan),
            Emit::Cmdline => cmdline(plan),
            Emit::Docker => container::docker(plan),
            Emit::Kubernetes => container::kubernetes(plan),
            Emit::Jvm => jvm(plan),
            Emit::All => all(plan),
        }
    }
}

/// Each behind a line that names it.
fn all(plan: &Plan) -> String {
    let each = Emit::value_variants().iter().filter(|one| **one != Emit::All);
    let named = each.filter_map(|one| {
        Some(format!("# === {} ===\n{}", one.to_possible_value()?.get_name(), one.text(plan)))
    });
    named.collect::<Vec<_>>().join("\n")
}

/// The file that the plan makes in this directory.
fn created(plan: &Plan, directory: &str) -> Option<String> {
    plan.persist.iter().find_map(|step| match &step.change {
        Change::Create { file, content } if file.starts_with(directory) => {
            Some(format!("# {file}\n{}", content::text(content)))
        }
        _ => None,
    })
}

fn nothing(who: &str, plan: &Plan) -> String {
    let why = match (plan.mode, plan.pools.iter().any(|pool| pool.how == How::Boot)) {
        (_, true) => "the pages come from the kernel's command line: --emit cmdline",
        (Mode::Thp, _) => "transparent huge pages need no pool, and the rest is set already",
        _ => "the pages are there already, or another size is meant: see tmpfiles",
    };
    format!("# nothing for {who}: {why}\n")
}

fn no_limits(plan: &Plan) -> String {
    let why = match plan.subject.vm {
        Vm::HotSpot => "MAP_HUGETLB of HotSpot counts against no limit of locked memory",
        Vm::OpenJ9 => "vm.hugetlb_shm_group lets the JVM's group have the pages",
    };
    format!("# nothing for limits.d: {why}\n")
}

fn systemd(plan: &Plan) -> String {
    format!(
        "# /etc/systemd/system/NAME.service.d/marusa-{}.conf; then: systemctl daemon-reload\n{}",
        plan.outlook.name,
        persist::unit_text(plan)
    )
}

fn cmdline(plan: &Plan) -> String {
    if !plan.boot.is_empty() {
        let head = "# add to the kernel's command line (GRUB_CMDLINE_LINUX in /etc/default/grub), then start the host anew\n";
        return format!("{head}{}\n", plan.boot.join(" "));
    }
    match plan.mode {
        Mode::Thp => {
            let is_off = plan.steps.iter().any(|step| {
                matches!(&step.change, Change::Choose { file, .. } if file.ends_with("hugepage/enabled"))
            });
            if is_off {
                "transparent_hugepage=madvise\n".to_string()
            } else {
                "# nothing for the kernel\n".to_string()
            }
        }
        _ => {
            // A pool by the kernel's words instead of sysctl's: sure, even where memory is in pieces later.
            let words = plan.pools.iter().filter(|pool| pool.how == How::Pool);
            let words: Vec<String> = words
                .map(|pool| format!("hugepagesz={} hugepages={}", size_name(pool.page_bytes), pool.pages))
                .collect();
            let head =
                "# not needed now; instead of sysctl's file, where the pool must be sure at every start\n";
            format!("{head}{}\n", words.join(" "))
        }
    }
}

fn jvm(plan: &Plan) -> String {
    let vm = match plan.subject.vm {
        Vm::HotSpot => "HotSpot",
        Vm::OpenJ9 => "OpenJ9",
    };
    let mut text = format!("# {vm} {}: one a line, as for java @FILE (9 and later)\n", plan.subject.feature);
    for option in &plan.jvm_options {
        if plan.outlook.recommended.contains(option) {
            text.push_str("# not given, a recommendation:\n");
        }
        text.push_str(option);
        text.push('\n');
    }
    if plan.subject.vm == Vm::HotSpot {
        text.push_str(
            "# optional: touches all of the heap at the start, so that no page is waited for later\n",
        );
        text.push_str("#-XX:+AlwaysPreTouch\n");
    }
    text
}

#[cfg(test)]
#[path = "../emit_tests.rs"]
mod tests;
