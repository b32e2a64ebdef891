//! Why the kernel refuses a reading of a process (kernel/ptrace.c, `__ptrace_may_access`; fs/proc/base.c, `has_pid_permissions`),
//! from what every user may read: "run as root" does not help root.

use super::process::Process;
use super::rights::{self, Capability, Own};
use super::users;

/// What stands in the way, and what would help.
pub fn refused(process: &Process) -> String {
    why(&rights::own(), &Own::parse(&process.text("status").unwrap_or_default()))
}

fn why(own: &Own, target: &Own) -> String {
    const SYS_PTRACE: u64 = Capability::SYS_PTRACE.bits();
    let name = |uid: Option<u32>| uid.map_or("another user".to_string(), users::name);
    match own.uid {
        _ if own.effective & SYS_PTRACE != 0 && own.is_nested => {
            "marusa's rights end at its user namespace, and this process is of another: run marusa outside, on the host".into()
        }
        _ if own.effective & SYS_PTRACE != 0 => {
            "marusa has CAP_SYS_PTRACE, so it is a security module (SELinux, AppArmor, Landlock) or another user namespace that \
             keeps this process apart: run marusa outside of the sandbox that it is in"
                .into()
        }
        Some(0) => "marusa runs as root, but without CAP_SYS_PTRACE, as in most containers: start its container with \
                    --cap-add=SYS_PTRACE, or run it on the host"
            .into(),
        _ if own.uid != target.uid || own.uid.is_none() => format!(
            "marusa runs as {}, the process as {}: run marusa as root or as the process' own user, or give it CAP_SYS_PTRACE",
            name(own.uid),
            name(target.uid)
        ),
        _ if target.permitted & !own.permitted != 0 => {
            "the process has capabilities that marusa has not: run marusa as root, or give it CAP_SYS_PTRACE".into()
        }
        _ => "the process hides itself even from its own user (PR_SET_DUMPABLE), or a security module does: run marusa as root, \
              or give it CAP_SYS_PTRACE"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(uid: u32, effective: u64) -> Own {
        Own { uid: Some(uid), effective, permitted: effective, ..Own::default() }
    }

    #[test]
    fn the_rights_of_a_status() {
        let text = "Name:\tjava\nUid:\t1000\t1001\t1000\t1000\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000080000\n";
        let parsed = Own::parse(text);
        assert_eq!((parsed.uid, parsed.effective), (Some(1001), Capability::SYS_PTRACE.bits()));
        assert_eq!(Own::parse(""), Own::default());
    }

    #[test]
    fn each_refusal_has_its_own_reason() {
        let all = u64::MAX >> 23;
        let of = |own: Own, target: Own, is_nested| why(&Own { is_nested, ..own }, &target);
        assert!(of(rights(0, all), rights(0, all), false).contains("Landlock"));
        assert!(of(rights(0, all), rights(0, all), true).contains("user namespace"));
        assert!(of(rights(0, 0), rights(0, all), false).contains("--cap-add=SYS_PTRACE"));
        assert!(
            of(rights(70007, 0), rights(70008, 0), false).contains("runs as 70007, the process as 70008")
        );
        assert!(of(rights(70007, 0), rights(70007, 1), false).contains("capabilities that marusa has not"));
        assert!(of(rights(70007, 0), rights(70007, 0), false).contains("PR_SET_DUMPABLE"));
    }
}
