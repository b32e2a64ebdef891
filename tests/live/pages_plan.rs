//! `marusa pages plan` as a user runs it: real JVMs, real JDKs, bad input; and what it emits, given to the programs that read
//! it. It changes nothing on the host.

use crate::common::{Jvm, java, marusa, row, skip, text};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};
use yaml_rust2::YamlLoader;

fn plan(arguments: &[&str]) -> Output {
    let mut all = vec!["pages", "plan"];
    all.extend(arguments);
    marusa(&all)
}

fn json(arguments: &[&str]) -> Value {
    let mut all = arguments.to_vec();
    all.push("--json");
    let output = plan(&all);
    let answer = serde_json::from_slice(&output.stdout);
    answer.unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

/// A directory of this test's own, removed when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }
    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("below the directory")).expect("a directory");
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One of the two is needed, and a heap only for a JVM that does not run.
#[test]
fn without_arguments_a_target_or_a_jdk_is_asked_for() {
    let asked = |arguments: &[&str]| {
        let output = plan(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        text(&output.stderr).to_string()
    };
    let none = asked(&[]);
    let missing: String = none.lines().take_while(|line| !line.starts_with("Usage")).collect();
    assert!(missing.contains("TARGET|--jdk") && !missing.contains("--heap"), "{none}");
    assert!(asked(&["--jdk", "hotspot-21"]).contains("give --heap SIZE"));
    assert!(asked(&["1", "--jdk", "hotspot-21"]).contains("cannot be used with"));
}

#[test]
fn a_running_jvm_and_its_jdk_give_the_same_plan() {
    for (jdk, gc) in [("11", "g1"), ("17", "parallel"), ("21", "g1"), ("25", "shenandoah")] {
        let (Some(java), row) = (java(jdk), row(jdk, gc)) else { return };
        let load = ["quiet=1", "threads=2"];
        let Some(jvm) =
            Jvm::under_load(&row, &["-Xmx256m", "-Xms256m", "-XX:ReservedCodeCacheSize=64m"], &load)
        else {
            return;
        };
        let home = java.ancestors().nth(2).expect("a home").display().to_string();
        let asked = ["--jdk", &home, "--gc", gc, "--heap", "256m", "--code-cache", "64m"];
        let both = [vec!["--mode", "hugetlb-2m"], vec!["--mode", "thp"]];
        for mode in both {
            let pid = jvm.pid.to_string();
            let other = plan(&[&pid, "--heap", "1g"]);
            assert!(other.status.code() == Some(2) && text(&other.stderr).contains("--heap"), "{other:?}");
            let of_pid = json(&[vec![pid.as_str()], mode.clone()].concat());
            let of_jdk = json(&[asked.to_vec(), mode].concat());
            assert_eq!(of_pid["needs"], of_jdk["needs"], "jdk {jdk} {gc}");
            assert_eq!(of_pid["jvm_options"][0], of_jdk["jvm_options"][0], "jdk {jdk} {gc}");
            assert_eq!(of_pid["pools"][0]["pages"], of_jdk["pools"][0]["pages"], "jdk {jdk} {gc}");
            for key in ["vm", "feature", "version", "gc", "cpus", "heap_max_bytes", "heap_initial_bytes"] {
                assert_eq!(of_pid["subject"][key], of_jdk["subject"][key], "{key} of jdk {jdk} {gc}");
            }
            assert_eq!(of_pid["schema"], "marusa/pages-plan/2");
        }
    }
}

#[test]
fn the_same_by_name_where_the_defaults_count() {
    for (jdk, gc) in
        [("8", "parallel"), ("11", "zgc"), ("17", "g1"), ("21", "zgc-generational"), ("25", "serial")]
    {
        let Some(java) = java(jdk) else { return };
        let home = java.ancestors().nth(2).expect("a home").display().to_string();
        let rest = ["--gc", gc, "--heap", "512m", "--cpus", "2", "--mode", "hugetlb-2m"];
        let name = format!("hotspot-{jdk}");
        let named = json(&[vec!["--jdk", &name], rest.to_vec()].concat());
        let asked = json(&[vec!["--jdk", &home], rest.to_vec()].concat());
        let pages = |plan: &Value| plan["pools"][0]["pages"].as_u64().expect("pages");
        // A release of 25 that is not known is taken for one from 25.0.3 on, whose code cache has a page more.
        let more = pages(&named).checked_sub(pages(&asked));
        let more_max = if jdk == "25" { 1 } else { 0 };
        assert!(more.is_some_and(|more| more <= more_max), "jdk {jdk} {gc}: {more:?}");
    }
}

#[test]
fn bad_input_is_said_clearly() {
    let me = std::process::id().to_string();
    let cases: [(&[&str], i32, &str); 9] = [
        (&["--jdk", "hotspot-7", "--heap", "1g"], 2, "'hotspot-7' is not a JDK"),
        (&["--jdk", "/etc", "--heap", "1g"], 2, "/etc is not a JDK: it has no bin/java"),
        (&["--jdk", "hotspot-17", "--gc", "cms", "--heap", "1g"], 2, "JDK 17 has no cms collector"),
        (&["--jdk", "hotspot-17", "--heap", "900t"], 2, "does not fit into this host's memory"),
        (&["--jdk", "hotspot-21", "--gc", "zgc", "--heap", "1g", "--mode", "hugetlb-1g"], 2, "2M"),
        (&["--jdk", "hotspot-25", "--heap", "1g", "--shm", "--mode", "hugetlb-2m"], 2, "has no UseSHM"),
        (&["--jdk", "hotspot-25", "--heap", "1g", "--unit", "../x"], 2, "not the name of a service"),
        (&[&me], 3, "is not a JVM"),
        (&[], 2, "TARGET"),
    ];
    for (arguments, status, words) in cases {
        let output = plan(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    let Some(java) = java("21") else { return };
    let java = java.display().to_string();
    let output = plan(&["--jdk", &java, "--heap", "1g", "--jvm-option", "-XX:+NoSuchThing"]);
    let said = text(&output.stderr);
    assert!(
        output.status.code() == Some(2) && said.contains("Unrecognized VM option 'NoSuchThing'"),
        "{said}"
    );
}

#[test]
fn a_plan_that_can_not_be_had_now_ends_with_1_and_says_what_would_help() {
    let memory = std::fs::read_to_string("/proc/meminfo").expect("/proc");
    let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")).expect("MemTotal");
    let total: u64 = total.trim().trim_end_matches(" kB").parse().expect("a number");
    let heap = format!("{}k", (total / 100 * 94) / 2048 * 2048);
    let output = plan(&["--jdk", "hotspot-17", "--gc", "serial", "--heap", &heap, "--mode", "hugetlb-2m"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("now? NO, ") && said.contains("none: not available now"), "{said}");
}

#[test]
fn the_kept_plan_is_one_that_apply_takes() {
    let directory = Directory::new("kept");
    let file = directory.0.join("plan.json").display().to_string();
    let output = plan(&["--jdk", "hotspot-21", "--gc", "zgc", "--heap", "64m", "--mode", "thp", "-o", &file]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("marusa pages verify PID "));
    let state = directory.0.join("state").display().to_string();
    let output = marusa(&["pages", "apply", &file, "--dry-run", "--state", &state]);
    let said = text(&output.stderr);
    assert!(!said.contains("is not a plan") && !said.contains("another host"), "{said}");
    let text_of = std::fs::read_to_string(&file).expect("the plan");
    let options = r#""jvm_options": ["#;
    for (old, new, why) in [
        (options, r#""jvm_options": ["-javaagent:/tmp/x.jar", "#, "-javaagent"),
        (options, r#""jvm_options": ["-XX:OnError=rm", "#, "OnError"),
        (r#""persist":"#, r#""persist": [], "persist":"#, "duplicate"),
    ] {
        assert!(text_of.contains(old), "{text_of}");
        std::fs::write(&file, text_of.replacen(old, new, 1)).expect("ours");
        let output = marusa(&["pages", "apply", &file, "--dry-run", "--state", &state]);
        let said = text(&output.stderr);
        assert!(said.contains("is not a plan") && said.contains(why), "{said}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
    }
}

/// What `--emit KIND` prints.
fn emitted(kind: &str, arguments: &[&str]) -> String {
    let output = plan(&[arguments, &["--emit", kind]].concat());
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    text(&output.stdout)
}

const PLANS: [&[&str]; 4] = [
    &["--jdk", "hotspot-17", "--gc", "g1", "--heap", "256m", "--mode", "hugetlb-2m"],
    &["--jdk", "hotspot-21", "--gc", "parallel", "--heap", "1g", "--mode", "hugetlb-1g"],
    &["--jdk", "hotspot-25", "--gc", "zgc", "--heap", "256m", "--mode", "thp"],
    &["--jdk", "openj9-21", "--heap", "256m", "--mode", "hugetlb-2m", "--group", "1001"],
];

#[test]
fn kubernetes_gets_a_pod_with_whole_pages_and_requests_that_are_limits() {
    for arguments in PLANS {
        let pods = YamlLoader::load_from_str(&emitted("kubernetes", arguments)).expect("YAML");
        let container = &pods[0]["spec"]["containers"][0];
        let resources = &container["resources"];
        assert_eq!(pods[0]["kind"].as_str(), Some("Pod"));
        assert_eq!(resources["requests"], resources["limits"]);
        assert!(resources["limits"]["memory"].as_str().is_some_and(|memory| memory.ends_with("Mi")));
        let wants = |name: &str| resources["limits"][name].as_str().is_some();
        assert_eq!(wants("hugepages-1Gi"), arguments.contains(&"hugetlb-1g"));
        assert_eq!(wants("hugepages-2Mi"), !arguments.contains(&"thp"));
        let options = container["env"][0]["value"].as_str().expect("options");
        assert!(options.contains("Pages") || options.contains("Xlp"), "{options}");
    }
}

/// Runs a program of the host on what was emitted; skipped where there is none.
fn takes(program: &str, arguments: &[&str]) {
    match Command::new(program).args(arguments).output() {
        Err(error) => skip(&format!("{program}: {error}")),
        Ok(output) => {
            let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
            assert!(output.status.success(), "{program} {arguments:?}: {said}");
        }
    }
}

#[test]
fn sysctl_systemd_and_tmpfiles_take_what_is_theirs() {
    let directory = Directory::new("emitted");
    for (at, arguments) in PLANS.iter().enumerate() {
        let file = directory.write(&format!("{at}-sysctl.conf"), &emitted("sysctl", arguments));
        takes("sysctl", &["--dry-run", "-p", &file]);
        let unit = "[Service]\nType=oneshot\nExecStart=/bin/true\n";
        let unit = directory.write(&format!("marusa-{at}.service"), unit);
        let drop_in = emitted("systemd", arguments);
        directory.write(&format!("marusa-{at}.service.d/marusa.conf"), &drop_in);
        assert!(drop_in.contains("\n[Service]\nEnvironment=\"JAVA_TOOL_OPTIONS=-X"), "{drop_in}");
        takes("systemd-analyze", &["verify", "--man=no", &unit]);
        let file = directory.write(&format!("{at}-tmpfiles.conf"), &emitted("tmpfiles", arguments));
        // Below a root of its own, where none of the files to be written to is there.
        let root = directory.write("root/etc/marker", "");
        let root = root.trim_end_matches("/etc/marker");
        takes("systemd-tmpfiles", &["--create", &format!("--root={root}"), &file]);
    }
}

#[test]
fn the_jvm_takes_its_options_as_a_file() {
    let Some(java) = java("21") else { return };
    let directory = Directory::new("options");
    let arguments = ["--jdk", "hotspot-21", "--gc", "g1", "--heap", "64m", "--mode", "thp"];
    let file = directory.write("options", &emitted("jvm", &arguments));
    takes(&java.display().to_string(), &[&format!("@{file}"), "-version"]);
    let all = emitted("all", &arguments);
    for kind in ["sysctl", "tmpfiles", "limits", "systemd", "cmdline", "docker", "kubernetes", "jvm"] {
        assert!(all.contains(&format!("# === {kind} ===\n")), "{kind}");
    }
}
