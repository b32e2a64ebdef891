//! What a file that a plan makes below /etc may say. The host's programs act on such files as root, so a plan that could
//! write any line of them could do anything: only lines about pages, locked memory and a JVM's options pass.

use super::allowed;
use super::step::Change;

/// Settings that /etc/sysctl.d may carry.
const SYSCTLS: [&str; 8] = [
    "vm.nr_hugepages",
    "vm.nr_overcommit_hugepages",
    "vm.hugetlb_shm_group",
    "vm.hugetlb_optimize_vmemmap",
    "vm.max_map_count",
    "kernel.shmmax",
    "kernel.shmall",
    "kernel.shmmni",
];
/// Variables through which a JVM takes options.
const VARIABLES: [&str; 4] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_OPTS", "CATALINA_OPTS"];

pub fn check(file: &str, text: &str) -> Result<(), String> {
    let line_fits = match () {
        () if file.starts_with("/etc/sysctl.d/") => sysctl,
        () if file.starts_with("/etc/security/limits.d/") => limit,
        () if file.starts_with("/etc/tmpfiles.d/") => tmpfile,
        () => unit,
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        // A line that goes on in the next could hide what it says.
        if line.ends_with('\\')
            || line.chars().any(|letter| letter.is_control() && letter != '\t')
            || !line_fits(line)
        {
            return Err(format!("{file}: a plan may not write the line {line:?} there"));
        }
    }
    Ok(())
}

/// "vm.nr_hugepages = 12"
fn sysctl(line: &str) -> bool {
    line.split_once('=').is_some_and(|(name, value)| SYSCTLS.contains(&name.trim()) && number(value.trim()))
}

/// "tomcat - memlock 1048576"
fn limit(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [who, kind, "memlock", value] = words[..] else { return false };
    let name = |letter: char| letter.is_ascii_alphanumeric() || "_-.@%:*".contains(letter);
    who.chars().all(name) && ["soft", "hard", "-"].contains(&kind) && (number(value) || value == "unlimited")
}

/// "w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise"
fn tmpfile(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["w" | "w!" | "w-" | "w!-", file, "-", "-", "-", "-", value] = words[..] else { return false };
    let change = match value.parse() {
        Ok(value) => Change::Set { file: file.to_string(), value },
        Err(_) => Change::Choose { file: file.to_string(), word: value.to_string() },
    };
    let sum = value.parse().is_ok_and(|by| {
        allowed::check(&Change::Add { file: file.to_string(), by }, "/var/lib/marusa").is_ok()
    });
    sum || allowed::check(&change, "/var/lib/marusa").is_ok()
}

/// "[Service]", "LimitMEMLOCK=infinity", "Environment=JAVA_TOOL_OPTIONS=-XX:+UseLargePages"
fn unit(line: &str) -> bool {
    match line.split_once('=') {
        None => line == "[Service]",
        Some(("LimitMEMLOCK", value)) => {
            value == "infinity" || number(value.trim_end_matches(['K', 'M', 'G']))
        }
        Some(("Environment", value)) => variable(value),
        Some(_) => false,
    }
}

fn variable(text: &str) -> bool {
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let Some((name, options)) = text.split_once('=') else { return false };
    VARIABLES.contains(&name) && options.split_whitespace().all(jvm_option)
}

/// An option that sets a size, a switch or a number; none that runs a program or loads a library.
fn jvm_option(option: &str) -> bool {
    let size = |text: &str| number(text.trim_end_matches(['k', 'm', 'g', 'K', 'M', 'G', 't', 'T']));
    let name = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric());
    if let Some(flag) = option.strip_prefix("-XX:") {
        return match flag.split_once('=') {
            Some(("ShenandoahGCMode", mode)) => name(mode),
            Some((flag, value)) => name(flag) && size(value),
            None => flag.strip_prefix(['+', '-']).is_some_and(name),
        };
    }
    ["-Xmx", "-Xms", "-Xmn", "-Xss"].iter().any(|start| option.strip_prefix(start).is_some_and(size))
        || ["-Xlp", "-Xlp:objectheap:pagesize=", "-Xlp:codecache:pagesize="]
            .iter()
            .any(|start| option.strip_prefix(start).is_some_and(|rest| rest.is_empty() || size(rest)))
}

fn number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 20 && text.bytes().all(|letter| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(file: &str, text: &str) -> bool {
        check(file, text).is_ok()
    }

    #[test]
    fn settings_of_pages_pass_and_those_that_run_programs_do_not() {
        let file = "/etc/sysctl.d/60-marusa.conf";
        assert!(fits(file, "# why\n\nvm.nr_hugepages = 12\nkernel.shmmax=1\n"));
        assert!(!fits(file, "kernel.core_pattern = |/tmp/x\n"));
        assert!(!fits(file, "vm.nr_hugepages = 1\\\n"));
        assert!(!fits(file, "-vm.nr_hugepages = 1\n"));
        assert!(!fits(file, "vm.nr_hugepages = $(x)\n"));
    }

    #[test]
    fn limits_and_boot_time_words() {
        assert!(fits(
            "/etc/security/limits.d/marusa.conf",
            "@java - memlock unlimited\ntomcat soft memlock 1024\n"
        ));
        assert!(!fits("/etc/security/limits.d/marusa.conf", "* hard nproc 0\n"));
        let file = "/etc/tmpfiles.d/marusa.conf";
        assert!(fits(file, "w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise\n"));
        assert!(fits(file, "w! /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages - - - - 4\n"));
        assert!(fits(file, "w /sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none - - - - 0\n"));
        assert!(!fits(file, "w /etc/passwd - - - - x\n"));
        assert!(!fits(file, "f /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise\n"));
    }

    #[test]
    fn a_unit_sets_limits_and_options_and_starts_nothing() {
        let file = "/etc/systemd/system/tomcat.service.d/marusa.conf";
        assert!(fits(
            file,
            "[Service]\nLimitMEMLOCK=infinity\nEnvironment=\"JAVA_TOOL_OPTIONS=-XX:+UseLargePages -Xmx6g\"\n"
        ));
        assert!(fits(file, "[Service]\nEnvironment=JAVA_OPTS=-XX:LargePageSizeInBytes=1g\n"));
        for line in [
            "ExecStartPre=/bin/x",
            "User=root",
            "[Install]",
            "Environment=LD_PRELOAD=/tmp/x.so",
            "Environment=JAVA_OPTS=-XX:OnError=/tmp/x",
            "Environment=JAVA_OPTS=-javaagent:/tmp/x.jar",
            "Environment=JAVA_OPTS=-XX:Flags=/tmp/x",
            "Environment=\"JAVA_OPTS=-Xmx1g\" LD_PRELOAD=/tmp/x",
        ] {
            assert!(!fits(file, line), "{line}");
        }
    }
}
