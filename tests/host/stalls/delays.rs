//! The kernel's own accounting of who waited (taskstats), which stands in where nothing may be traced: real figures, the same
//! as the trace has them.

use super::group_reclaim::{Ended, Sparse};
use super::*;
use crate::common::host::Host;
use crate::common::small_group::Group;

const SWITCH: &str = "/proc/sys/kernel/task_delayacct";
/// Both watch the same two seconds except for the moment at which they start.
const DIFFERENCE_MAX: f64 = 0.25;

#[test]
fn what_the_accounting_says_is_what_the_trace_says() {
    if !may_trace() {
        return;
    }
    let Some(group) = Group::with_bytes(32 << 20) else { return skip("no cgroup can be made") };
    let mut host = Host::lock();
    if let Err(why) = host.set(SWITCH.to_string(), "1") {
        return skip(&format!("no delay accounting here: {why}"));
    }
    // Only tasks that were started since are accounted.
    let file = Sparse::of(1 << 40);
    let mut command = group.command("dd");
    command.arg(format!("if={}", file.0.display())).args(["of=/dev/null", "bs=1M"]).stderr(Stdio::null());
    let reader = Ended(command.spawn().expect("dd"));
    std::thread::sleep(Duration::from_millis(300));
    let (traced, accounted) = (begin(&["2s", "1", "--json"]), begin(&["2s", "1", "--no-trace", "--json"]));
    let ((_, traced), (output, accounted)) = (end(traced), end(accounted));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let pid = Value::from(reader.0.id());
    let of =
        |list: &Value| list.as_array().and_then(|rows| rows.iter().find(|row| row["pid"] == pid).cloned());
    let Some(row) = of(&traced[0]["rows"]) else { panic!("dd is not in the trace: {traced:#?}") };
    let Some(delays) = of(&accounted[0]["delays"]) else { panic!("dd is not accounted: {accounted:#?}") };
    let (by_trace, by_account) = (ms(&row, "cgroup_reclaim"), delays["reclaim_ms"].as_f64().expect("ms"));
    println!("dd in 2 s: {by_trace:.1} ms by the trace, {by_account:.1} ms by taskstats: {delays}");
    assert!(by_trace > 1.0 && number(&delays["reclaim_count"]) > 0);
    assert!((by_trace / by_account - 1.0).abs() < DIFFERENCE_MAX, "{row} {delays}");
    assert_eq!((&delays["name"], &delays["is_jvm"]), (&"dd".into(), &false.into()));
    let printed = text(&marusa(&["stalls", "300ms", "1", "--no-trace"]).stdout);
    assert!(
        printed.contains("by the kernel's own accounting (taskstats)") && printed.contains("dd"),
        "{printed}"
    );
}

#[test]
fn without_the_switch_it_is_said_and_not_zero() {
    let Ok(switch) = std::fs::read_to_string(SWITCH) else {
        return skip("a kernel without delay accounting");
    };
    let _host = Host::lock();
    if switch.trim() == "1" {
        return skip("delay accounting is on here");
    }
    let (_, tables) = end(begin(&["200ms", "1", "--no-trace", "--json"]));
    assert!(tables[0]["delays"].is_null() && has_gap(&tables[0], "task_delayacct"), "{:#?}", tables[0]);
}
