//! JVMs that start and die at twenty a second next to one that stays: what is said of that one, and of the service itself, stays
//! true, and nothing of the dead ones is left.

use super::survival::{FILES_OF_OTHERS, grow, own, until};
use super::*;
use crate::common::scrape::{Labels, check_with_promtool, samples};
use std::collections::BTreeMap;
use std::sync::mpsc;

const LIVES_AT_ONCE: usize = 120;
const LIVES: usize = 2 * LIVES_AT_ONCE;
const RATE: &str = "20";
/// Of one core.
const CPU_PERCENT: u32 = 80;
/// CPU seconds that it had saved, or owes at the end.
const CPU_SAVED: f64 = 1.0;

/// Processes of tests/native/mayflies.c, which are not collected before this is dropped.
struct Mayflies {
    child: Child,
    /// The program's last words.
    ended: mpsc::Receiver<String>,
}

impl Mayflies {
    fn start(program: &Path, java: &Path) -> Mayflies {
        let library = java.parent().expect("bin").join("../lib/server/libjvm.so");
        let mut command = Command::new(program);
        command.arg(library).args([&LIVES_AT_ONCE.to_string(), RATE]).arg(java);
        command.args(["-Xshare:auto", "-Xmx8m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-version"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let (tell, ended) = mpsc::channel();
        std::thread::spawn(move || {
            lines.next().into_iter().flatten().try_for_each(|line| tell.send(line)).ok()
        });
        Mayflies { child, ended }
    }
}

impl Drop for Mayflies {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Whether it runs: one that ended and that nobody has collected does not.
fn lives(pid: i64) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    status.is_ok_and(|status| !status.contains("State:\tZ") && !status.contains("State:\tX"))
}

/// The scrapes of a service, one after the other, with one JVM that all of them must have.
struct Scrapes<'a> {
    service: &'a Service,
    id: String,
    name: String,
    counters: BTreeMap<(String, Labels), f64>,
}

impl Scrapes<'_> {
    /// Takes one more. A JVM may get the name of one that is gone, and counts from its own start.
    fn next(&mut self) -> BTreeMap<(String, Labels), f64> {
        let samples = samples(&self.service.text("/metrics"));
        let is_it = |labels: &Labels| labels.get("jvm") == Some(&self.name);
        let has_id = |labels: &Labels| labels.get("jvm_id") == Some(&self.id);
        assert!(samples.keys().any(|(_, labels)| is_it(labels) && has_id(labels)), "the JVM that stays");
        for (key, now) in &samples {
            let (name, labels) = key;
            if name.ends_with("_total") && (!name.starts_with("marusa_jvm_") || is_it(labels)) {
                let before = self.counters.insert(key.clone(), *now).unwrap_or_default();
                assert!(*now >= before, "{key:?} goes from {before} to {now}");
            }
        }
        samples
    }

    fn one(&mut self, name: &str) -> f64 {
        self.next()[&(name.to_string(), Labels::new())]
    }
}

#[test]
fn jvms_that_start_and_die_cost_the_others_nothing() {
    let (Some(java), Some(program)) = (java("17"), native::program("mayflies")) else { return };
    let Some(healthy) = grow(&[]) else { return };
    let mut service = Service::start(&["--cpu", &CPU_PERCENT.to_string()]);
    let row = service.jvm(healthy.pid);
    let text_of = |key: &str| row[key].as_str().expect("a text").to_string();
    let (id, name) = (text_of("jvm_id"), text_of("jvm"));
    let history = format!("/api/v1/history?jvm={id}");
    let moments = || service.json(&history)["moments"].as_array().map_or(0, Vec::len);
    let mut scrapes = Scrapes { service: &service, id, name, counters: BTreeMap::new() };
    let (started, cpu, before) = (Instant::now(), scrapes.one("process_cpu_seconds_total"), own(&service));
    let (moments_before, seen_before) = (moments(), scrapes.one("marusa_jvms_seen_total"));
    let shown = Labels::from([("state".to_string(), "shown".to_string())]);
    let mut dead = 0;
    until("some are seen, and the healthy one still", || {
        let mayflies = Mayflies::start(&program, &java);
        let said = loop {
            scrapes.next();
            match mayflies.ended.recv_timeout(Duration::from_millis(200)) {
                Ok(said) => break said,
                Err(error) => assert_eq!(error, mpsc::RecvTimeoutError::Timeout, "it failed"),
            }
        };
        let (seconds, failed) = said.split_once(' ').expect("two numbers");
        assert_eq!(failed, "0", "children failed");
        dead += LIVES_AT_ONCE;
        println!(
            "{LIVES_AT_ONCE} lives in {seconds} s; {} seen",
            scrapes.one("marusa_jvms_seen_total") - seen_before
        );
        // All still have their pids.
        until("the dead ones are gone", || {
            let document = service.json("/api/v1/jvms");
            let rows = document["jvms"].as_array().expect("rows");
            let pids: Vec<i64> = rows.iter().filter_map(|row| row["pid"].as_i64()).collect();
            let shown = scrapes.next()[&("marusa_jvms".to_string(), shown.clone())];
            let all_live = pids.iter().all(|pid| lives(*pid)) && shown == pids.len() as f64;
            (all_live && pids.contains(&healthy.pid.into())).then_some(())
        });
        let is_seen = scrapes.one("marusa_jvms_seen_total") > seen_before;
        (dead >= LIVES && moments() >= moments_before + 3 && is_seen).then_some(())
    });
    let cpu = scrapes.one("process_cpu_seconds_total") - cpu;
    let elapsed = started.elapsed().as_secs_f64();
    println!("CPU: {cpu:.2} s in {elapsed:.1} s");
    assert!(cpu < elapsed * f64::from(CPU_PERCENT) / 100.0 + CPU_SAVED, "{cpu} s in {elapsed} s");
    assert!(service.json("/api/v1/jvms")["ended"].as_array().is_some_and(|ended| ended.len() <= 50));
    check_with_promtool(&service.text("/metrics"));
    // JVMs of other tests are read, too, and take memory for as long as that.
    until("it has what it had before", || {
        let now = own(&service);
        println!("{before:?} {now:?}");
        (now.0 < before.0 + (48 << 20) && now.1 < before.1 + FILES_OF_OTHERS).then_some(())
    });
    signal(service.child.id() as i32, libc::SIGTERM);
    let status = until("it ends", || service.child.try_wait().expect("ours"));
    assert!(status.success() && !service.said().contains("panicked"), "{status} {}", service.said());
}
