//! What would help where the kernel refuses something. "Run as root" does not help someone who is root: then a capability is
//! missing, a user namespace or a locked-down kernel is in the way, or a security module, and the hint names it.

mod lacking;

use super::host;
pub use lacking::{Lack, lacking};

/// A right of capabilities(7), by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    DacOverride = 1,
    DacReadSearch = 2,
    Setgid = 6,
    Setuid = 7,
    NetAdmin = 12,
    SysPtrace = 19,
    SysAdmin = 21,
    SysNice = 23,
    Perfmon = 38,
}

impl Capability {
    /// "SYS_PTRACE", as `docker run --cap-add` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Capability::DacOverride => "DAC_OVERRIDE",
            Capability::DacReadSearch => "DAC_READ_SEARCH",
            Capability::Setgid => "SETGID",
            Capability::Setuid => "SETUID",
            Capability::NetAdmin => "NET_ADMIN",
            Capability::SysPtrace => "SYS_PTRACE",
            Capability::SysAdmin => "SYS_ADMIN",
            Capability::SysNice => "SYS_NICE",
            Capability::Perfmon => "PERFMON",
        }
    }
}

/// What /proc/self/uid_map holds in the first user namespace: every user, as it is.
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

/// The rights of this thread that the kernel checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Own {
    uid: Option<u32>,
    effective: u64,
    is_nested: bool,
    /// The word of /sys/kernel/security/lockdown, except for "none".
    lockdown: Option<String>,
}

/// `advice`: what helps who is not root. `needed`: the rights that the kernel asks for.
pub fn hint(needed: &[Capability], advice: &str) -> String {
    words(&own(), needed, advice)
}

fn own() -> Own {
    let status = host::text("/proc/thread-self/status").unwrap_or_default();
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let lockdown = host::text("/sys/kernel/security/lockdown").unwrap_or_default();
    let word = lockdown.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    Own {
        uid: value("Uid").and_then(|text| text.split_ascii_whitespace().nth(1)?.parse().ok()),
        effective: value("CapEff").and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0),
        is_nested: is_nested(),
        lockdown: word.filter(|word| *word != "none").map(str::to_string),
    }
}

/// Whether this thread has all of these rights.
pub(super) fn has(all: &[Capability]) -> bool {
    let effective = own().effective;
    all.iter().all(|one| effective & (1 << *one as u64) != 0)
}

/// Whether this process has every right that the kernel asks for: what is refused anyway, a sandbox refuses.
pub fn may_look() -> bool {
    let own = own();
    own.uid == Some(0) && own.effective & (1 << Capability::SysPtrace as u64) != 0
}

/// The same for a reading of another process.
pub fn to_look() -> String {
    hint(&[Capability::SysPtrace], "run as root or as the JVM's user, or with CAP_SYS_PTRACE")
}

/// Whether this process is in a user namespace of its own, where its rights end.
pub fn is_nested() -> bool {
    let map = host::text("/proc/self/uid_map").unwrap_or_default();
    !map.is_empty() && map.split_ascii_whitespace().take(3).ne(ALL_USERS)
}

fn words(own: &Own, needed: &[Capability], advice: &str) -> String {
    if own.uid != Some(0) {
        return advice.to_string();
    }
    let lacks = |one: &&Capability| own.effective & (1 << **one as u64) == 0;
    let missing: Vec<&str> = needed.iter().filter(lacks).map(|one| one.name()).collect();
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
        let needed = [Capability::SysPtrace, Capability::SysAdmin];
        let advice = "run as root, or with CAP_SYS_PTRACE and CAP_SYS_ADMIN";
        let user = Own { uid: Some(1000), ..Own::default() };
        assert_eq!(words(&user, &needed, advice), advice);
        assert_eq!(words(&Own::default(), &needed, advice), advice, "who it is is unknown");
        let root = |effective, is_nested, lockdown: Option<&str>| {
            let own = Own { uid: Some(0), effective, is_nested, lockdown: lockdown.map(str::to_string) };
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
