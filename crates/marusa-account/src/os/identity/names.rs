//! What names look like. The target and whoever started it choose many of them, and they become labels of metrics and parts of
//! lines: a name in an unknown form is not a name.

/// RFC 1123, as Kubernetes has it (apimachinery `util/validation`): `IsDNS1123Label`.
pub(super) fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_part(text)
}

/// `IsDNS1123Subdomain`: the name of a pod.
pub(super) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

fn is_part(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_of(text: &str, bytes_max: usize, others: &[u8]) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
    (1..=bytes_max).contains(&text.len()) && text.bytes().all(is_inner)
}

/// A UUID, or the hash that a pod from a file has.
pub(super) fn is_uid(text: &str) -> bool {
    is_of(text, 64, b"-")
}

/// Whether it may be a container's name: docker allows `[a-zA-Z0-9][a-zA-Z0-9_.-]+` (moby `daemon/names`), as do podman and LXC.
pub(super) fn is_name(text: &str) -> bool {
    is_of(text, 253, b"_.-")
}

/// systemd.unit(5); a template's instance may have escapes, `\x2d`.
pub(super) fn is_unit(text: &str) -> bool {
    is_of(text, 255, b":-_.\\@")
}

/// A registry, a path, a tag and a digest.
pub(super) fn is_image(text: &str) -> bool {
    is_of(text, 512, b"_.-/:@+")
}

/// The letters of generated names, without vowels and what looks like one (apimachinery `util/rand`).
const GENERATED: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// A generated end, and the longest name with one (apiserver `storage/names`).
const GENERATED_LETTERS: usize = 5;
const GENERATED_NAME_MAX: usize = 63;
/// The hash of a pod's template, 32 bits in decimal, in such letters.
const HASH_LETTERS: std::ops::RangeInclusive<usize> = 6..=10;
/// A CronJob's name ends with the minute of its time since 1970.
const MINUTE_DIGITS: usize = 8;

/// The name of what made a pod: of a Deployment without the hash of its template and the generated end, of a DaemonSet or a Job
/// without that end, of a CronJob without its minute, of a StatefulSet without the ordinal. Other pods keep their names.
pub(super) fn workload(pod: &str) -> &str {
    owner(pod).0
}

/// The kind of that, where the name shows it. The pods of a DaemonSet and of a Job are named alike.
pub fn kind(pod: &str) -> Option<&'static str> {
    owner(pod).1
}

fn owner(pod: &str) -> (&str, Option<&'static str>) {
    let is_generated = |text: &str| text.bytes().all(|byte| GENERATED.contains(&byte));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((owner, end)) = pod.rsplit_once('-') else { return (pod, None) };
    if end.len() != GENERATED_LETTERS || !is_generated(end) {
        // The start of a name that is too long was cut to make room for the end.
        let cut =
            (pod.len() == GENERATED_NAME_MAX).then(|| pod.split_at_checked(pod.len() - GENERATED_LETTERS));
        return match cut.flatten() {
            Some((start, end)) if is_generated(end) => {
                let hash = start.rsplit_once('-').filter(|(_, hash)| hash.len() <= 10 && is_generated(hash));
                hash.map_or((start, None), |(owner, _)| (owner, Some("Deployment")))
            }
            _ if is_number(end) => (owner, Some("StatefulSet")),
            _ => (pod, None),
        };
    }
    match owner.rsplit_once('-') {
        Some((owner, hash)) if HASH_LETTERS.contains(&hash.len()) && is_generated(hash) => {
            (owner, Some("Deployment"))
        }
        Some((owner, minute)) if minute.len() == MINUTE_DIGITS && is_number(minute) => {
            (owner, Some("CronJob"))
        }
        _ => (owner, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_by_the_names_of_their_pods() {
        for (pod, owner, kind_of) in [
            ("orders-7d4f8b9c6d-x2x4z", "orders", "Deployment"),
            ("my-app-v2-5c689d88bb-zqvwh", "my-app-v2", "Deployment"),
            ("node-exporter-k8xzt", "node-exporter", ""),
            ("kafka-0", "kafka", "StatefulSet"),
            ("kafka-broker-12", "kafka-broker", "StatefulSet"),
            ("backup-28412345-bcdfg", "backup", "CronJob"),
            ("migrate-xk2lp", "migrate", ""),
            ("postgres", "postgres", ""),
            ("web-server", "web-server", ""),
            ("etcd-control-plane", "etcd-control-plane", ""),
            ("a-b", "a-b", ""),
            ("", "", ""),
        ] {
            assert_eq!((workload(pod), kind(pod).unwrap_or("")), (owner, kind_of), "{pod}");
        }
        let long = format!("{}-7d4f8b9c6dx2x4z", "a".repeat(47));
        assert_eq!((long.len(), workload(&long)), (63, "a".repeat(47).as_str()));
    }

    #[test]
    fn hostile_names_are_none() {
        let long = "a".repeat(300);
        for bad in ["", "a b", "a\n", "a\u{1b}[0m", "../x", "-a", "a_b", "A", "é", "a..b", ".", long.as_str()]
        {
            assert!(!is_label(bad) && !is_subdomain(bad), "{bad:?}");
        }
        assert!(is_label("orders") && !is_label("a.b") && is_subdomain("web.example-1"));
        for bad in ["", "a b", "a\nb", "a\u{1b}", "a\"", "a/b", "é", &long] {
            assert!(!is_name(bad) && !is_uid(bad), "{bad:?}");
        }
        assert!(is_unit("getty@tty1.service") && is_unit("a\\x2db.scope") && !is_unit("a b.service"));
        assert!(is_image("registry.example:5000/a/b@sha256:00") && !is_image("a b") && !is_image("a\"b"));
    }
}
