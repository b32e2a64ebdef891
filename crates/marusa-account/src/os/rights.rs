//! What would help where the kernel refuses something. "Run as root" does not help someone who is root: then a capability is
//! missing, a user namespace or a locked-down kernel is in the way, or a security module, and the hint names it.

mod lacking;

use super::small_file::{chosen, field, text};
pub use lacking::{Lack, lacking};
pub use rustix::thread::CapabilitySet as Capability;

/// "SYS_PTRACE", as `docker run --cap-add` takes it.
fn name(one: &Capability) -> &'static str {
    one.iter_names().next().map_or("", |(name, _)| name)
}

/// What /proc/self/uid_map holds in the first user namespace: every user, as it is.
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

/// The rights of a thread that the kernel checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Own {
    pub uid: Option<u32>,
    pub effective: u64,
    pub permitted: u64,
    pub is_nested: bool,
    /// The word of /sys/kernel/security/lockdown, except for "none".
    pub lockdown: Option<String>,
}

/// `advice`: what helps who is not root. `needed`: the rights that the kernel asks for.
pub fn hint(needed: &[Capability], advice: &str) -> String {
    words(&own(), needed, advice)
}

pub(super) fn own() -> Own {
    let lockdown = text("/sys/kernel/security/lockdown").unwrap_or_default();
    let lockdown = chosen(&lockdown).filter(|word| word != "none");
    let status = text("/proc/thread-self/status").unwrap_or_default();
    Own { is_nested: is_nested(), lockdown, ..Own::parse(&status) }
}

impl Own {
    pub fn parse(status: &str) -> Own {
        let set = |key: &str| field(status, key).and_then(|text| u64::from_str_radix(text, 16).ok());
        let uid = field(status, "Uid:").and_then(|text| text.split_ascii_whitespace().nth(1)?.parse().ok());
        let (effective, permitted) = (set("CapEff:").unwrap_or(0), set("CapPrm:").unwrap_or(0));
        Own { uid, effective, permitted, ..Own::default() }
    }
}

/// Whether this thread has all of these rights.
pub(super) fn has(all: &[Capability]) -> bool {
    let effective = own().effective;
    all.iter().all(|one| effective & one.bits() != 0)
}

/// Whether this process has every right that the kernel asks for: what is refused anyway, a sandbox refuses.
pub fn may_look() -> bool {
    let own = own();
    own.uid == Some(0) && own.effective & Capability::SYS_PTRACE.bits() != 0
}

/// The same for a reading of another process.
pub fn to_look() -> String {
    hint(&[Capability::SYS_PTRACE], "run as root or as the JVM's user, or with CAP_SYS_PTRACE")
}

/// Whether this process is in a user namespace of its own, where its rights end.
pub fn is_nested() -> bool {
    let map = text("/proc/self/uid_map").unwrap_or_default();
    !map.is_empty() && map.split_ascii_whitespace().take(3).ne(ALL_USERS)
}

fn words(own: &Own, needed: &[Capability], advice: &str) -> String {
    if own.uid != Some(0) {
        return advice.to_string();
    }
    let lacks = |one: &&Capability| own.effective & one.bits() == 0;
    let missing: Vec<&str> = needed.iter().filter(lacks).map(name).collect();
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(|name| format!("CAP_{name}")).collect();
        let adds: Vec<String> = missing.iter().map(|name| format!("--cap-add={name}")).collect();
        return format!(
            "marusa runs as root, but without {}, as in most containers: start its container with {}, or run it on the host",
            names.join(" and "),
            adds.join(" ")
        );
    }
    if own.is_nested {
        return "marusa is root in its own user namespace only, and its rights end there: run it outside, on the host"
            .to_string();
    }
    let module = "a security module (SELinux, AppArmor, Landlock) or a filter of system calls (seccomp)";
    match &own.lockdown {
        Some(word) => format!(
            "marusa runs as root with the rights that this takes, so it is the kernel's lockdown \
             (/sys/kernel/security/lockdown is {word}), {module} that forbids it"
        ),
        None => format!(
            "marusa runs as root with the rights that this takes, so it is {module} that forbids it: run marusa outside of the \
             sandbox that it is in"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_never_advised_to_run_as_root() {
        let needed = [Capability::SYS_PTRACE, Capability::SYS_ADMIN];
        let advice = "run as root, or with CAP_SYS_PTRACE and CAP_SYS_ADMIN";
        let user = Own { uid: Some(1000), ..Own::default() };
        assert_eq!(words(&user, &needed, advice), advice);
        assert_eq!(words(&Own::default(), &needed, advice), advice, "who it is is unknown");
        let root = |effective, is_nested, lockdown: Option<&str>| {
            let lockdown = lockdown.map(str::to_string);
            let own = Own { uid: Some(0), effective, permitted: effective, is_nested, lockdown };
            let text = words(&own, &needed, advice);
            assert!(!text.contains("run as root") && !text.contains("run marusa as root"), "{text}");
            text
        };
        assert!(root(0, false, None).contains("--cap-add=SYS_PTRACE --cap-add=SYS_ADMIN"));
        let some = root(1 << 19, true, None);
        assert!(some.contains("without CAP_SYS_ADMIN,") && !some.contains("SYS_PTRACE"), "{some}");
        assert!(root(u64::MAX, true, None).contains("user namespace"));
        assert!(root(u64::MAX, false, Some("integrity")).contains("lockdown is integrity"));
        assert!(root(u64::MAX, false, None).contains("SELinux"));
    }
}
