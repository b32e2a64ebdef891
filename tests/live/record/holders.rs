//! Who holds malloc's blocks, over time.

use super::*;

const HOLDER: &str = "java.util.zip.Inflater";

/// Inflaters that are never ended, recorded for some seconds, with accounts between the ones that have holders.
#[test]
fn the_field_that_holds_what_grows_is_recorded() {
    let Some(java) = java("17") else { return };
    let program = ["marusa.Leak", "kind=inflater", "rate=1m/s"];
    let jvm = Jvm::start(&java, &["-Xmx256m", "-XX:+UseSerialGC"], &program);
    let directory = Directory::new("holders");
    let (path, pid) = (directory.file("a.marusa"), jvm.pid.to_string());
    let often = ["--every", "250ms", "--account-every", "500ms", "--cpu", "200"];
    let recorder =
        Recorder::start(&[&[pid.as_str(), "-o", &path, "--holders-every", "2s"][..], &often].concat());
    let is_meant = |line: &&&Value| line["name"].as_str().is_some_and(|name| name.starts_with(HOLDER));
    let until = Instant::now() + Duration::from_secs(100);
    let recorded = || match std::path::Path::new(&path).exists() {
        true => of(&exported(&path).0, "holder").iter().filter(is_meant).count(),
        false => 0,
    };
    // How many accounts there are after a time depends on the load of the machine.
    while recorded() < 6 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(500));
    }
    let output = recorder.stop();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (lines, _) = exported(&path);
    let of_holders = of(&lines, "holder");
    let held: Vec<&&Value> = of_holders.iter().filter(is_meant).collect();
    assert!(held.len() >= 3, "{} accounts with holders", held.len());
    assert!(held.len() < accounts(&of(&lines, "process")).len(), "others are without");
    let (first, last) = (held[0], held[held.len() - 1]);
    for key in ["in_use_bytes", "blocks"] {
        assert!(number(&last[key]) > number(&first[key]) * 2, "{key}: {first} {last}");
    }
    assert!(
        number(&last["blocks"]) * 4096 < number(&last["in_use_bytes"]),
        "an Inflater has 40 KiB in 4 blocks"
    );
    assert!(leaks_are_held_by(&path, HOLDER), "{}", text(&marusa(&["leak", &path]).stdout));
    let json = directory.file("a.json");
    std::fs::write(&json, of_whole_heap(&["map", &pid, "--by", "holder", "--json"]).stdout).expect("ours");
    let resident = || number(&map_json(jvm.pid)["totals"]["resident_bytes"]);
    let (before, until) = (resident(), Instant::now() + Duration::from_secs(60));
    while resident() < before + (8 << 20) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(200));
    }
    for arguments in [&[path.as_str()][..], &[&path, &pid], &[&json, &pid]] {
        let diff = of_whole_heap(&[&["diff", "--by", "holder"][..], arguments].concat());
        assert!(diff.status.success() && text(&diff.stdout).contains(HOLDER), "{}", text(&diff.stdout));
        let diff = of_whole_heap(&[&["diff", "--by", "holder", "--json"][..], arguments].concat());
        let diff: Value = serde_json::from_slice(&diff.stdout).expect("JSON");
        let most = &diff["holders"][0];
        assert!(most["holder"].as_str().is_some_and(|name| name.starts_with(HOLDER)), "{most}");
        assert!(
            number(&most["in_use_grown_bytes"]) > 1 << 20 && number(&most["blocks_grown"]) > 20,
            "{most}"
        );
    }
    assert!(held.iter().all(|line| number(&line["account_age_ms"]) < 10_000), "{held:?}");
    let at_once = |line: &&Value| of_holders.iter().filter(|it| it["steady_ms"] == line["steady_ms"]).count();
    assert!(held.iter().all(|line| (2..=100).contains(&at_once(line))), "the largest");
}

/// Run again while collections move the objects that hold the blocks.
fn of_whole_heap(arguments: &[&str]) -> Output {
    let tries = std::iter::repeat_with(|| marusa(arguments)).take(20);
    let mut whole = tries.filter(|output| !text(&output.stdout).contains("unknown: the Java"));
    whole.next().expect("objects stop moving once in 20 readings")
}

/// `leak`, its JSON and `doctor` name the holder first.
fn leaks_are_held_by(path: &str, holder: &str) -> bool {
    let leak = text(&marusa(&["leak", path]).stdout).replace('\n', " ");
    let json: Value = serde_json::from_slice(&marusa(&["leak", path, "--json"]).stdout).expect("JSON");
    let rows = json["jvms"][0]["rows"].as_array().expect("rows");
    let area = &json["jvms"][0]["headline"]["named"][0]["area"];
    let row = rows.iter().find(|row| row["area"] == *area && row["kind"] == "area").expect("the named area");
    let first = row["held_by"][0]["holder"].as_str().unwrap_or_default();
    let found = text(&marusa(&["doctor", path, "--json"]).stdout);
    leak.contains(&format!("Held by {holder}"))
        && first.starts_with(holder)
        && found.contains(&format!("held by {holder}"))
}
