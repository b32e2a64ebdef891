//! Time and memory.

use super::*;

/// A test build has 120 MB itself.
const PEAK_BYTES_MAX: u64 = 350 << 20;

fn row(list: &Value, pid: i32) -> Value {
    let rows = list["jvms"].as_array().expect("jvms");
    rows.iter().find(|row| row["pid"] == pid).cloned().expect("it looks like a JVM")
}

/// Before: 178 s and 495 MB.
#[test]
fn names_that_collide_or_never_end_cost_neither_time_nor_memory() {
    for how in ["names", "long", "endless"] {
        let Some(hostile) = Hostile::start(&[how]) else { return };
        let ran = run(&["list", "--json"]);
        let took = ran.took;
        println!("{how}: {took:?}, {} MiB", ran.peak_bytes >> 20);
        assert!(ran.output.status.success(), "{}", text(&ran.output.stderr));
        assert!(took < SLACK && ran.peak_bytes < PEAK_BYTES_MAX, "{how}: {took:?}, {}", ran.peak_bytes);
        row(&json(&ran.output), hostile.pid);
    }
}

#[test]
fn an_account_that_takes_too_long_is_given_up_and_says_so() {
    let Some(hostile) = Hostile::start(&MANY_RUNS) else { return };
    let pid = hostile.pid.to_string();
    let ran = run(&["map", &pid, "--json", "--deadline", "100ms"]);
    let map = json(&ran.output);
    println!("{:?}, {} MiB", ran.took, ran.peak_bytes >> 20);
    let gaps = map["gaps"].as_array().expect("gaps");
    let is_named = |gap: &Value| {
        gap["why"] == "over the deadline"
            && gap["hint"].as_str().is_some_and(|hint| hint.contains("--deadline"))
    };
    assert!(gaps.iter().any(is_named), "{gaps:?}");
    assert!(ran.took < SLACK, "{:?}", ran.took);
}

#[test]
fn a_process_that_list_gives_up_is_named() {
    let Some(hostile) = Hostile::start(&["names"]) else { return };
    let output = marusa(&["list", "--deadline", "1ms"]);
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains(&format!("pid {} ", hostile.pid)), "{said}");
    assert!(said.contains("over the deadline"), "{said}");
    let listed = json(&marusa(&["list", "--json", "--deadline", "1ms"]));
    let gaps = listed["gaps"].as_array().expect("gaps");
    let is_it = |gap: &Value| gap["pid"] == hostile.pid && gap["why"] == "over the deadline";
    assert!(gaps.iter().any(is_it), "{listed:#}");
}

/// A healthy neighbour gets its accounts, the others are named and waited for.
#[test]
fn a_recorder_of_all_keeps_its_rate_beside_processes_that_take_too_long() {
    let Some(java) = java("17") else { return };
    let jvm = Jvm::start(&java, &["-Xmx64m", "-XX:+UseSerialGC"], &["marusa.Grow"]);
    let names: [&[&str]; 4] = [&MANY_RUNS, &["names"], &["long"], &["endless"]];
    let many: &[&str] = &["mappings", "60000"];
    let all = names.into_iter().chain([many; 6]);
    let hostile: Vec<Hostile> = all.filter_map(Hostile::start).collect();
    let file = std::env::temp_dir().join(format!("marusa-budget-{}.marusa", std::process::id()));
    let path = file.display().to_string();
    let _ = std::fs::remove_file(&file);
    // A test build takes many times longer for a sample and for an account, and samples are paid first.
    let times = ["--every", "200ms", "--for", "20s", "--cpu", "40"];
    let words = [&["record", "--all", "-o", &path, "--json"][..], &times].concat();
    let ran = run(&words);
    let said = text(&ran.output.stderr);
    println!("{:?}, {} MiB\n{said}", ran.took, ran.peak_bytes >> 20);
    let recorded = json(&ran.output);
    assert!(ran.took < Duration::from_secs(20) + SLACK, "{:?}", ran.took);
    let slow = hostile.first().map_or(0, |hostile| hostile.pid);
    assert!(said.contains(&format!("pid {slow}: no account: ")), "{said}");
    assert!(
        recorded["accounts_given_up"].as_u64().is_some_and(|count| (1..20).contains(&count)),
        "{recorded}"
    );
    let rows = marusa(&["export", &path, "--json-lines", "-", "--jvm", &jvm.pid.to_string()]);
    let bytes = std::fs::read(&file).expect("the recording");
    std::fs::remove_file(&file).expect("ours");
    let rows = text(&rows.stdout);
    let accounts = rows.lines().filter(|line| line.contains("\"java_heap\"")).count();
    assert!(accounts > 0, "the healthy one has an account: {}", rows.lines().next().unwrap_or_default());
    let recording = marusa::record::reader::read(&[&bytes]).expect("a recording");
    let of_it = recording.jvms.iter().find(|history| history.facts.pid == jvm.pid).expect("it was recorded");
    let looks: Vec<f64> = (0..of_it.len()).map(|at| of_it.seconds(at)).collect();
    let late = looks.windows(2).filter(|two| two[1] - two[0] >= 1.5).count();
    // Without a thread for accounts, each sample waits for the readings of the others, 2 s and more: there would be ten.
    assert!(
        late <= 1 && looks.len() >= 50 && looks.last().is_some_and(|last| *last > 15.0),
        "{} samples of 100: {looks:?}",
        looks.len()
    );
}
