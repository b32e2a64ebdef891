//! A program that is mapped as a native image of GraalVM is (tests/native/native_image.c): it is listed, and each command gives
//! what the kernel tells of it, and says why it tells no more.

use crate::common::*;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start() -> Option<(Program, String)> {
    let program = native::compiled("native_image", "native_image", &["-static"], &[])?;
    let child =
        Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut program = Program(child);
    let mut line = String::new();
    let output = program.0.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("a line");
    assert_eq!(line, "READY\n");
    let pid = program.0.id().to_string();
    Some((program, pid))
}

#[test]
fn it_is_listed_and_has_the_account_of_the_kernel() {
    let Some((program, pid)) = start() else { return };
    let list: Value = serde_json::from_slice(&marusa(&["list", "--json"]).stdout).expect("JSON");
    let mut jvms = list["jvms"].as_array().expect("an array").iter();
    let listed = jvms.find(|jvm| jvm["pid"] == program.0.id()).unwrap_or_else(|| panic!("not in {list}"));
    assert_eq!((&listed["vm"], &listed["main"]), (&"native-image".into(), &"native_image".into()));

    let map = marusa(&["map", &pid, "--json"]);
    assert!(map.status.success(), "{}", text(&map.stderr));
    let map: Value = serde_json::from_slice(&map.stdout).expect("JSON");
    check_laws(&map);
    let totals = &map["totals"];
    assert_eq!(totals["resident_bytes"], totals["kernel_resident_bytes"]);
    assert!(number(&area(&map, "code")["resident_bytes"]) > 512 << 10, "the image and its heap: {map:#}");
    let gaps = map["gaps"].as_array().expect("gaps");
    let of_runtime = gaps.iter().find(|gap| gap["what"] == "libjvm.so").expect("a gap");
    assert!(of_runtime["hint"].as_str().is_some_and(|hint| hint.contains("native image")), "{of_runtime}");
}

#[test]
fn commands_say_what_they_can_not_know_and_do_not_fail() {
    let Some((_program, pid)) = start() else { return };
    for command in
        [&["doctor", &pid][..], &["container", &pid], &["heap", &pid], &["map", &pid, "--by", "holder"]]
    {
        let output = marusa(command);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code <= 1), "{command:?}: {said}");
        assert!(!said.contains("panicked"), "{command:?}: {said}");
    }
    let trim = marusa(&["trim", &pid]);
    let said = text(&trim.stdout) + &text(&trim.stderr);
    assert!(!trim.status.success() && said.contains("not trimmed"), "{said}");
}
