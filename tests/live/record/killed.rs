//! The recorder is killed at random moments: every file opens, and nothing is lost that was older than the last samples.

use super::*;

const EVERY: Duration = Duration::from_millis(50);
/// `MARUSA_KILLS=500` for the figure in docs/record.md.
const KILLS: usize = 12;

/// Moments, and what was resident at each.
fn looks(path: &str) -> (Vec<(u64, u64)>, String) {
    let output = marusa(&["export", path, "--csv", "-"]);
    if text(&output.stderr).contains("no JVM is in it") {
        // It was killed before it looked.
        return (Vec::new(), String::new());
    }
    let (lines, said) = exported(path);
    let looks = of(&lines, "process").into_iter();
    (looks.map(|line| (number(&line["steady_ms"]), number(&line["kernel_resident_bytes"]))).collect(), said)
}

#[test]
fn every_file_of_a_killed_recorder_opens_and_lacks_at_most_its_last_second() {
    let Some(jvm) = grow(&[], &["churn=10m/s"]) else { return };
    let directory = Directory::new("killed");
    let pid = jvm.pid.to_string();
    let kills = std::env::var("MARUSA_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let (mut torn, mut not_seen) = (0, Vec::new());
    for kill in 0..kills {
        let (path, copy) = (directory.file(&format!("{kill}.marusa")), directory.file("copy"));
        let keep: &[&str] = if kill % 3 == 0 { &["--keep", "512K"] } else { &[] };
        let every = format!("{}ms", EVERY.as_millis());
        let arguments = [&[pid.as_str(), "-o", &path, "--every", &every, "--cpu", "50"][..], keep].concat();
        let mut recorder = Recorder::start(&arguments);
        wait_for_bytes(&path, 64);
        let (started, length) = (Instant::now(), Duration::from_millis(fastrand::u64(0..1500)));
        std::thread::sleep(length);
        let before = std::fs::read(&path).expect("ours");
        recorder.0.kill().expect("SIGKILL");
        let lived = started.elapsed().as_millis() as u64;
        recorder.0.wait().expect("killed");
        // What was in the file before is in it after, and is read.
        std::fs::write(&copy, before).expect("ours");
        let ((before, _), (after, said)) = (looks(&copy), looks(&path));
        assert!(after.starts_with(&before), "kill {kill}: {} samples of {}", after.len(), before.len());
        torn += usize::from(said.contains("left out"));
        // Its clock starts a little before its file has bytes. Printed, not asserted: a recorder that had no processor for a
        // second took no sample, and lost nothing.
        not_seen.push(lived.saturating_sub(after.last().map_or(0, |(steady_ms, _)| *steady_ms)));
        let again = marusa(&["leak", &path, "--json"]);
        assert!(again.status.success() || after.is_empty(), "{}", text(&again.stderr));
        std::fs::remove_file(&path).expect("ours");
    }
    not_seen.sort_unstable();
    let (middle, most) = (not_seen[kills / 2], not_seen[kills - 1]);
    println!(
        "{kills} kills, {torn} files with a torn end; not looked at before the kill: {middle} ms, at most {most} ms"
    );
}

#[test]
fn a_recorder_goes_on_with_the_file_of_one_that_was_killed() {
    let Some(jvm) = grow(&[], &[]) else { return };
    let directory = Directory::new("append");
    let path = directory.file("a.marusa");
    let pid = jvm.pid.to_string();
    let mut first = Recorder::start(&[&pid, "-o", &path, "--every", "100ms"]);
    wait_for_bytes(&path, 1000);
    std::thread::sleep(Duration::from_millis(500));
    first.0.kill().expect("SIGKILL");
    first.0.wait().expect("killed");
    // What a kill within a write would leave.
    let mut bytes = std::fs::read(&path).expect("ours");
    bytes.extend([4, 100, 1, 2, 3]);
    std::fs::write(&path, &bytes).expect("ours");
    let before = of(&exported(&path).0, "process").len();
    let refused = marusa(&["record", &pid, "-o", &path]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    let output = Recorder::start(&[&pid, "-o", &path, "--append", "--every", "100ms", "--for", "1s"]).wait();
    assert!(text(&output.stderr).contains("cut off"), "{}", text(&output.stderr));
    let (lines, said) = exported(&path);
    let process = of(&lines, "process");
    assert!(process.len() > before + 5 && said.is_empty(), "{} after {before}: {said}", process.len());
    assert!(process.is_sorted_by_key(|line| number(&line["steady_ms"])));
}
