//! `marusa list` over real JVMs, and a JVM named by a part of its main class.

use crate::common::*;
use marusa::snapshot::resolve::{ResolveError, resolve};
use serde_json::Value;

fn entry(pid: i32) -> Value {
    let output = marusa(&["list", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(list["schema"], "marusa/list/2");
    let jvms = list["jvms"].as_array().expect("an array");
    jvms.iter().find(|jvm| jvm["pid"] == pid).unwrap_or_else(|| panic!("no {pid} in {list}")).clone()
}

#[test]
fn every_jdk_is_listed_with_its_collector_and_heap() {
    let rows = [
        ("8", "cms", "cms"),
        ("11", "parallel", "parallel"),
        ("17", "z", "zgc"),
        ("21", "z-generational", "zgc generational"),
        ("25", "shenandoah", "shenandoah"),
    ];
    for (jdk, gc, name) in rows {
        let Some(jvm) = Jvm::under_load(&row(jdk, gc), &["-Xmx100m"], &["heap=20m", "quiet=1"]) else {
            continue;
        };
        let listed = entry(jvm.pid);
        assert_eq!(listed["vm"], "hotspot");
        assert_eq!(listed["gc"], name);
        assert!((100 << 20..=128 << 20).contains(&number(&listed["max_heap_bytes"])), "{listed}");
        assert!(number(&listed["resident_bytes"]) > 20 << 20, "{listed}");
        assert_eq!(listed["main"], "marusa.Load");
        assert!(listed["version"].as_str().is_some_and(|version| version.contains('.')), "{listed}");
        let words = text(&marusa(&["list"]).stdout);
        assert!(!words.contains('…'), "nothing is shortened where no terminal reads it: {words}");
    }
}

#[test]
fn a_part_of_the_main_class_names_a_jvm_and_two_are_an_error() {
    let Some(java) = java("17") else { return };
    let options = |name: &str| vec!["-Xmx50m".to_string(), "-cp".to_string(), classes(), name.to_string()];
    let start = || {
        let mut command = std::process::Command::new(&java);
        command.args(options("marusa.Load")).args(["heap=5m", "quiet=1"]);
        Jvm::of(command)
    };
    let (first, second) = (start(), start());
    // Other tests run the same class: only that both of ours are offered can be asked.
    let Err(ResolveError::Several { matches, .. }) = resolve("marusa.Lo") else { panic!("two at least") };
    for jvm in [&first, &second] {
        assert!(matches.iter().any(|choice| choice.pid == jvm.pid && choice.main == "marusa.Load"));
        assert_eq!(resolve(&jvm.pid.to_string()).ok(), Some(jvm.pid));
    }
    let two = marusa(&["map", "marusa.Lo"]);
    assert_eq!(two.status.code(), Some(2), "{}", text(&two.stderr));
    assert!(text(&two.stderr).contains(&format!("{}  marusa.Load", first.pid)), "{}", text(&two.stderr));
    let none = marusa(&["map", "no.such.Main"]);
    assert_eq!(none.status.code(), Some(3), "{}", text(&none.stderr));
}

fn classes() -> String {
    root().join("java/build-out").to_string_lossy().into_owned()
}

#[test]
fn a_known_server_has_its_name_and_can_be_named_by_it() {
    // What tells it is in the options of the JVM.
    let options = ["-Xmx60m", "-Dkc.home.dir=/opt/keycloak"];
    let Some(jvm) = Jvm::under_load(&row("17", "g1"), &options, &["heap=5m", "quiet=1"]) else { return };
    let listed = entry(jvm.pid);
    assert_eq!((listed["server"].as_str(), listed["main"].as_str()), (Some("Keycloak"), Some("marusa.Load")));
    assert_eq!(resolve("keycloak").ok(), Some(jvm.pid), "no other test starts one");
    let words = text(&marusa(&["list"]).stdout);
    assert!(words.contains("Keycloak (marusa.Load)"), "the main class is still there: {words}");
    let look = marusa(&["top", "Keycloak", "--json", "--count", "1"]);
    let look: Value = serde_json::from_slice(&look.stdout).expect("one line of JSON");
    assert_eq!((look["name"].as_str(), &look["pid"]), (Some("Keycloak"), &jvm.pid.into()));
    assert!(number(&look["memory_limit"]["limit_bytes"]) > 0, "{}", look["memory_limit"]);
}

/// A jar as Spring Boot's plugins build it: the manifest, the launcher's classes, the program.
fn spring_boot_jar(path: &std::path::Path) {
    let directory = path.parent().expect("a directory");
    let launcher = directory.join("org/springframework/boot/loader/launch");
    std::fs::create_dir_all(&launcher).expect("a directory");
    std::fs::write(launcher.join("JarLauncher.class"), "no class is loaded from here").expect("written");
    let mut jar = std::process::Command::new("jar");
    jar.arg("cfe").arg(path).arg("marusa.Load").arg("-C").arg(directory).arg("org");
    let made = jar.args(["-C", &classes(), "marusa"]).output().expect("jar runs");
    assert!(made.status.success(), "{}", text(&made.stderr));
}

#[test]
fn spring_boot_is_known_by_its_jar_alone() {
    let Some(java) = java("17") else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("orders.jar");
    spring_boot_jar(&path);
    let mut command = std::process::Command::new(&java);
    let jvm = Jvm::of({
        command.args(["-Xmx50m", "-jar"]).arg(&path).args(["heap=5m", "quiet=1"]);
        command
    });
    assert_eq!(entry(jvm.pid)["server"], "Spring Boot orders.jar");
    let map = text(&marusa(&["map", &jvm.pid.to_string()]).stdout);
    assert!(map.starts_with(&format!("pid {}  Spring Boot orders.jar  ", jvm.pid)), "{map}");
}
