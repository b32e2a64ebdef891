//! Where nothing may be done: each gets a clear error and its exit status, and the host stays as it was.

use super::host::{self, OVERCOMMIT, POOL, SHMEM, differences, look};
use super::plans::{
    Bench, SYSCTL, UNIT, add, choose, create, everything, exists, expect, plan, pool_at_boot, pool_text, step,
};
use crate::common::{is_root, skip, text};
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

const MAP_COUNT: &str = "/proc/sys/vm/max_map_count";

/// Runs in a namespace of its own where `prepare` was run first.
fn prepared(bench: &Bench, prepare: &str) -> Output {
    let script = format!("{prepare} && exec \"$0\" pages apply \"$1\" --yes --state \"$2\"");
    let mut command = Command::new("unshare");
    command.args([
        "-m",
        "--propagation",
        "private",
        "sh",
        "-c",
        &script,
        env!("CARGO_BIN_EXE_marusa"),
        bench.plan(),
    ]);
    command.arg(&bench.state).output().expect("unshare")
}

#[test]
fn hosts_that_do_not_let_us_exit_with_4() {
    let Some(_host) = super::host() else { return };
    let bench = Bench::new("rights");
    let before = look();
    bench.write(&plan(vec![choose(SHMEM, "advise"), add(POOL, 1)], Vec::new()));
    expect(
        &prepared(&bench, "mount -o bind,ro /sys /sys"),
        4,
        &["shmem_enabled is read only here", "on the host"],
    );
    expect(&prepared(&bench, "mount -o bind,ro /proc/sys /proc/sys"), 4, &["nr_hugepages is read only here"]);
    expect(&prepared(&bench, "mount -t tmpfs x /sys/kernel/mm"), 4, &["is not there", "container"]);
    let copy = bench.directory.join("marusa");
    std::fs::copy(env!("CARGO_BIN_EXE_marusa"), &copy).expect("copied");
    let mut nobody = Command::new(&copy);
    nobody.args(["pages", "apply", bench.plan(), "--yes", "--state"]).arg(&bench.state).uid(65534).gid(65534);
    expect(&nobody.output().expect("runs"), 4, &["as root of the host"]);
    assert!(!bench.state.exists(), "nothing was made");
    let dry = bench.run(&["apply", bench.plan(), "--dry-run", "--json"]);
    assert_eq!(dry.status.code(), Some(0), "{}", text(&dry.stderr));
    assert!(!bench.state.exists(), "a dry run makes nothing either");
    assert_eq!(differences(&before, &look()), [""; 0]);
}

#[test]
fn plans_that_do_not_fit_exit_with_2() {
    let bench = Bench::new("plans");
    let good = plan(vec![add(OVERCOMMIT, 1)], Vec::new());
    let changed = |path: &str, value: Value| {
        let mut plan = good.clone();
        *plan.pointer_mut(path).expect("a key of a plan") = value;
        plan
    };
    // What lay behind a carriage return in a comment was a line of its own to systemd, and none to the filter of text.
    let text = "# x\r[Service]\rExecStartPre=/bin/sh -c id\r\n";
    let unit_file = format!("{UNIT}/marusa.conf");
    let old_text = step(json!({"kind": "create", "file": unit_file, "text": text, "mode": 0o644}));
    let hidden =
        json!({"of": "unit", "memlock_bytes": null, "java_options": ["-Xmx1g\rExecStartPre=/bin/sh -c id"]});
    let pattern =
        json!({"of": "sysctl", "settings": [{"file": "/proc/sys/kernel/core_pattern", "value": "|/x"}]});
    let maps_at_boot = json!({"of": "sysctl", "settings": [{"file": MAP_COUNT, "value": 1}]});
    let cases = [
        (changed("/schema", json!("marusa/pages-plan/1")), "make it again"),
        (changed("/schema", json!("x")), "is not a plan"),
        (changed("/host/machine", json!("0123")), "another host"),
        (changed("/host/kernel", json!("5.4.0")), "kernel \"5.4.0\" there"),
        (changed("/host/memory_bytes", json!(1 << 20)), "1 MiB of memory there"),
        (changed("/steps", json!([step(json!({"kind": "run", "command": "x"}))])), "is not a plan"),
        (changed("/steps", json!([add("/etc/passwd", 1)])), "none of the places"),
        (
            changed("/steps", json!([add("/proc/sys/vm/../vm/nr_hugepages", 1)])),
            "is not a plain absolute path",
        ),
        (
            changed("/steps", json!([create("/etc/cron.d/marusa.conf", pool_at_boot(5))])),
            "none of the places",
        ),
        (changed("/steps", json!([old_text])), "is not a plan"),
        (changed("/steps", json!([create(SYSCTL, pattern)])), "not a setting that a plan may change"),
        (changed("/steps", json!([create(&unit_file, hidden)])), "range that a plan may set"),
        (
            changed("/steps", json!([step(json!({"kind": "set", "file": MAP_COUNT, "value": 1}))])),
            "outside of 65530",
        ),
        (changed("/steps", json!([create(SYSCTL, maps_at_boot)])), "outside of 65530"),
        (changed("/steps", json!([choose(SHMEM, "madvise")])), "none of its words"),
        (changed("/boot", json!(["init=/bin/sh"])), "init=/bin/sh"),
        (
            changed(
                "/steps",
                json!([step(json!({"kind": "mount_tmpfs", "at": "/etc", "options": "size=1m"}))]),
            ),
            "none of the",
        ),
    ];
    for (plan, words) in cases {
        bench.write(&plan);
        expect(&bench.apply(), 2, &[words]);
    }
    for bytes in [&b""[..], b"{", b"[]", b"\xff\xfe", b"{\"schema\": \"marusa/pages-plan/2\"}"] {
        std::fs::write(&bench.plan, bytes).expect("written");
        expect(&bench.apply(), 2, &["is not a plan"]);
    }
    expect(&bench.run(&["apply", "/nonexistent", "--yes"]), 2, &["/nonexistent"]);
    expect(&bench.run(&["undo", "2020-01-01-1"]), 2, &["nor a run ID"]);
    expect(&bench.run(&["undo", "--all", "x"]), 2, &[]);
    assert!(!bench.state.exists());
}

#[test]
fn without_a_terminal_and_without_yes_nothing_is_done() {
    if !is_root() {
        return skip("only root changes the host");
    }
    let bench = Bench::new("yes");
    bench.write(&plan(vec![add(OVERCOMMIT, 1)], Vec::new()));
    expect(&bench.run(&["apply", bench.plan()]), 2, &["--yes", "--dry-run"]);
    assert!(!bench.state.exists());
    assert_eq!(bench.json(&["undo", "--list", "--json"])["applied"], json!([]));
}

#[test]
fn a_damaged_journal_exits_with_3_and_undoes_nothing_by_itself() {
    let Some(_host) = super::host() else { return };
    let bench = Bench::new("damaged");
    bench.write(&everything(&bench, &mut |_| 0));
    let before = look();
    expect(&bench.apply(), 0, &[]);
    let applied = look();
    let journal = bench.journals().remove(0);
    let good = std::fs::read(&journal).expect("a journal");
    for at in [0, good.len() / 2, good.len() - 2] {
        let mut bad = good.clone();
        bad[at] ^= 0x20;
        std::fs::write(&journal, bad).expect("written");
        expect(&bench.run(&["undo", "--all"]), 3, &["is damaged", "nothing was undone"]);
        assert_eq!(differences(&applied, &look()), [""; 0], "byte {at}");
        assert_eq!(bench.json(&["undo", "--list", "--json"])["applied"][0]["state"], "damaged");
    }
    // The last line only says that the run came to its end: what can be read is all that was done.
    expect(&bench.run(&["undo", "--all", "--damaged"]), 0, &[]);
    assert_eq!(differences(&before, &look()), [""; 0]);
}

#[test]
fn a_foreign_file_is_not_overwritten_and_the_same_file_is_not_ours() {
    let Some(_host) = super::host() else { return };
    let bench = Bench::new("foreign");
    bench.write(&plan(vec![add(OVERCOMMIT, 1)], vec![create(SYSCTL, pool_at_boot(5))]));
    std::fs::write(SYSCTL, "vm.nr_hugepages = 6\n").expect("written");
    let before = look();
    expect(&bench.apply(), 1, &["is not overwritten"]);
    assert_eq!(differences(&before, &look()), [""; 0]);
    std::fs::write(SYSCTL, pool_text(5)).expect("written");
    let receipt = bench.json(&["apply", bench.plan(), "--yes", "--persist", "--json"]);
    assert_eq!(
        (receipt["schema"].as_str(), receipt["state"].as_str()),
        (Some("marusa/pages-apply/2"), Some("applied"))
    );
    assert_eq!(receipt["steps"][1]["already"], true);
    assert_eq!(host::number(OVERCOMMIT), 2);
    assert_eq!(bench.json(&["undo", bench.plan(), "--json"])["complete"], true);
    assert!(exists(SYSCTL), "it was there before");
    assert_eq!(host::number(OVERCOMMIT), 1);
}

/// Before anything is asked or done, and in the JSON.
#[test]
fn a_dry_run_shows_the_whole_text_of_each_file() {
    if !is_root() {
        return skip("only root may look at every place");
    }
    let bench = Bench::new("text");
    bench.write(&plan(Vec::new(), vec![create(SYSCTL, pool_at_boot(1 << 4))]));
    let dry = ["apply", bench.plan(), "--dry-run", "--persist"];
    let shown = text(&bench.run(&dry).stdout);
    for line in pool_text(1 << 4).lines() {
        assert!(shown.contains(&format!("| {line}\n")), "{shown}");
    }
    let json = bench.json(&[&dry[..], &["--json"]].concat());
    assert_eq!(json["steps"][0]["text"], pool_text(1 << 4));
}

/// `undo` writes what a journal says was there before: it may say only what a plan may set.
#[test]
fn a_journal_that_was_written_by_hand_changes_nothing() {
    let Some(_host) = super::host() else { return };
    let (before, count) = (look(), host::number(MAP_COUNT));
    let seen = |value: u64| format!(r#""before":{{"is":"number","text":"{value}\n","value":{value}}}"#);
    for (from, to) in [
        (seen(count), seen(1)),
        (
            r#""file":"/proc/sys/vm/max_map_count""#.to_string(),
            r#""file":"/proc/sys/vm/panic_on_oom""#.to_string(),
        ),
        (r#""kind":"set""#.to_string(), r#""kind":"set","text":"x""#.to_string()),
    ] {
        let bench = Bench::new("forged");
        bench.write(&plan(
            vec![step(json!({"kind": "set", "file": MAP_COUNT, "value": count + 1}))],
            Vec::new(),
        ));
        expect(&bench.apply(), 0, &[]);
        let applied = look();
        let journal = bench.journals().remove(0);
        let good = std::fs::read(&journal).expect("a journal");
        let lines = text(&good).lines().map(|line| forged(&line.replace(&from, &to))).collect::<String>();
        assert_ne!(lines.as_bytes(), good, "{from} is in a journal");
        std::fs::write(&journal, lines).expect("written");
        let undone = bench.run(&["undo", "--all"]);
        assert!([Some(2), Some(3)].contains(&undone.status.code()), "{}", text(&undone.stderr));
        assert_eq!(differences(&applied, &look()), [""; 0], "{to}");
        std::fs::write(&journal, good).expect("written");
        expect(&bench.run(&["undo", "--all"]), 0, &[]);
        assert_eq!(differences(&before, &look()), [""; 0]);
    }
}

/// A line of a journal with the checksum and the length that its record has.
fn forged(line: &str) -> String {
    let record = line.split_once("\"record\":").expect("a record").1.strip_suffix('}').expect("its end");
    let mut crc = flate2::Crc::new();
    crc.update(record.as_bytes());
    format!("{{\"crc32\":\"{:08x}\",\"length\":{:>6},\"record\":{record}}}\n", crc.sum(), record.len())
}

#[test]
fn the_text_fits_100_columns() {
    let Some(_host) = super::host() else { return };
    let bench = Bench::new("columns");
    bench.write(&everything(&bench, &mut |below| below - 1));
    let dry = bench.run(&["apply", bench.plan(), "--dry-run", "--persist"]);
    let applied = bench.run(&["apply", bench.plan(), "--yes", "--persist"]);
    let list = bench.run(&["undo", "--list"]);
    let undone = bench.run(&["undo"]);
    for output in [dry, applied, list, undone] {
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let directory = bench.directory.display().to_string();
        for line in text(&output.stdout).lines().filter(|line| !line.contains(&directory)) {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
