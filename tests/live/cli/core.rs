//! Core files: the account of a dead JVM is that of the living one; a damaged, foreign or incomplete core is an error with
//! its exit status, or an account with a gap.

use super::*;
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How much of the resident bytes of an area may differ: between the account and the core the JVM does a little.
const RESIDENT_TOLERANCE: u64 = 256 << 10;
/// Without them HotSpot has the kernel write unchanged files, too.
const NO_FILES: &[&str] =
    &["-XX:+UnlockDiagnosticVMOptions", "-XX:-DumpPrivateMappingsInCore", "-XX:-DumpSharedMappingsInCore"];
/// Where files are mapped: their pages are brought in when they are written, or left out.
const OF_FILES: &[&str] = &["code", "mapped_file"];

/// Whether the kernel writes a core into the directory of the process. A setting of the host that no test may change.
fn kernel_writes_cores() -> bool {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let is_plain = !pattern.starts_with('|') && !pattern.contains('/') && !pattern.contains('%');
    if !is_plain {
        println!("skipped: core_pattern is {}: no core is written into the test's directory", pattern.trim());
    }
    is_plain
}

/// Lets a command leave a core of any size in `directory`.
fn with_core(command: &mut Command, directory: &Path) {
    command.current_dir(directory);
    let lift = || {
        let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: setrlimit reads one struct, and may be called between fork and exec.
        match unsafe { libc::setrlimit(libc::RLIMIT_CORE, &unlimited) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure only calls setrlimit.
    unsafe { command.pre_exec(lift) };
}

fn start(java: &Path, options: &[&str], directory: &Path) -> Jvm {
    let mut command = Command::new(java);
    command.args(options).arg("-Xmx100m").arg("-cp").arg(root().join("java/build-out"));
    command.arg("marusa.Load").args(LOAD);
    with_core(&mut command, directory);
    Jvm::of(command)
}

/// The account when the compilers have come to rest: two in a row that know the same of their work and of malloc.
fn settled(pid: i32) -> Value {
    let mut last = map_json(pid);
    for _ in 0..40 {
        std::thread::sleep(Duration::from_millis(250));
        let now = map_json(pid);
        if is_at_rest(&last, &now) {
            return now;
        }
        last = now;
    }
    last
}

fn is_at_rest(before: &Value, after: &Value) -> bool {
    let work = |map: &Value| area(map, "jit_work")["in_use_bytes"].clone();
    work(before) == work(after) && before["malloc"]["in_use_bytes"] == after["malloc"]["in_use_bytes"]
}

/// The account of the living JVM, and the core that it leaves.
fn dead(java: &Path, options: &[&str], directory: &Path) -> (Value, PathBuf) {
    let jvm = start(java, options, directory);
    let live = settled(jvm.pid);
    signal(jvm.pid, libc::SIGABRT);
    let ended = || {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", jvm.pid)).unwrap_or_default();
        state.contains(") Z ") || state.is_empty()
    };
    let started = Instant::now();
    while !ended() {
        assert!(started.elapsed() < Duration::from_secs(120), "no end");
        std::thread::sleep(Duration::from_millis(20));
    }
    let core = std::fs::read_dir(directory).expect("the directory").flatten().map(|entry| entry.path());
    let is_core =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("core"));
    (live, core.into_iter().find(is_core).expect("a core"))
}

fn from(core: &Path) -> Output {
    marusa(&["map", "--from", core.to_str().expect("UTF-8"), "--json"])
}

fn account(core: &Path) -> Value {
    let output = from(core);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "nothing to complain about");
    let map: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    check_laws(&map);
    map
}

fn has_gap(map: &Value, word: &str) -> bool {
    map["gaps"].as_array().is_some_and(|gaps| {
        gaps.iter().any(|gap| gap["what"].as_str().is_some_and(|what| what.contains(word)))
    })
}

/// The JVM lives on between the reading of it and its end: a timer may allocate a block or two.
const MOVED_BYTES_MAX: u64 = 64 << 10;

fn is_near(ours: &Value, theirs: &Value) -> bool {
    match (ours.as_u64(), theirs.as_u64()) {
        (Some(ours), Some(theirs)) => ours.abs_diff(theirs) <= MOVED_BYTES_MAX,
        _ => ours == theirs,
    }
}

/// A compiler that wakes up between the sample and the end takes or gives back arenas, and a collector may be moving the names of
/// threads, where other objects are by then: then another JVM is asked.
const JVMS_MAX: usize = 6;

/// On a busy machine they rest only when they get no processor.
const CORES_MAX: usize = 8;

fn have_compilers_rested(live: &Value, dead: &Value) -> bool {
    let is_alike = |key: &str| is_near(&area(live, "jit_work")[key], &area(dead, "jit_work")[key]);
    let has_other_name = |(name, whole): &(&str, &str)| !is_name_of(name, whole);
    is_alike("reserved_bytes")
        && is_alike("in_use_bytes")
        && compilers(live) == compilers(dead)
        && !names(live, dead).iter().any(has_other_name)
}

/// The names of each thread, alive and in the core.
fn names<'a>(live: &'a Value, dead: &'a Value) -> Vec<(&'a str, &'a str)> {
    let threads = |map: &'a Value| map["threads"].as_array().map(Vec::as_slice).unwrap_or_default();
    let name = |thread: &'a Value| thread["name"].as_str().unwrap_or_default();
    let of = |ours: &'a Value| {
        let theirs = threads(dead).iter().find(|theirs| theirs["tid"] == ours["tid"])?;
        Some((name(ours), name(theirs)))
    };
    threads(live).iter().filter_map(of).collect()
}

/// The heap has all of a name of which the kernel keeps 15 bytes; to the kernel a thread that nobody named is the program.
fn is_name_of(name: &str, whole: &str) -> bool {
    whole.is_empty() || whole.starts_with(name) || name == "java" && whole == "main"
}

fn compilers(map: &Value) -> usize {
    let threads = map["threads"].as_array().map(Vec::as_slice).unwrap_or_default();
    threads.iter().filter(|thread| thread["kind"] == "compiler").count()
}

fn owned_bytes(map: &Value) -> Value {
    let owners = map["malloc"]["owners"].as_array().map(Vec::as_slice).unwrap_or_default();
    owners.iter().filter_map(|owner| owner["bytes"].as_u64()).sum::<u64>().into()
}

/// What both know of every area; `resident` says how the resident bytes may differ.
fn assert_alike(live: &Value, dead: &Value, resident: &dyn Fn(u64, u64) -> bool) {
    for ours in live["areas"].as_array().expect("areas") {
        let name = ours["area"].as_str().expect("a name");
        let theirs = area(dead, name);
        for key in ["reserved_bytes", "committed_bytes", "in_use_bytes"] {
            assert!(is_near(&ours[key], &theirs[key]), "{name} {key}: {} alive, {}", ours[key], theirs[key]);
        }
        let (ours, theirs) = (number(&ours["resident_bytes"]), number(&theirs["resident_bytes"]));
        assert!(
            OF_FILES.contains(&name) || resident(ours, theirs),
            "{name}: {ours} alive, {theirs} in the core"
        );
    }
    for key in ["version", "gc", "library", "build_id", "flags", "heap", "code_heaps"] {
        assert_eq!(live["jvm"][key], dead["jvm"][key], "jvm.{key}");
    }
    for key in ["pid", "command", "user"] {
        assert_eq!(live["process"][key], dead["process"][key], "process.{key}");
    }
    assert_eq!(live["malloc"]["allocator"], dead["malloc"]["allocator"]);
    for key in ["mmapped_chunks", "mmapped_bytes", "in_use_bytes", "free_bytes", "overhead_bytes"] {
        let (ours, theirs) = (&live["malloc"][key], &dead["malloc"][key]);
        assert!(is_near(ours, theirs), "malloc.{key}: {ours} alive, {theirs} in the core");
    }
    let (ours, theirs) = (owned_bytes(live), owned_bytes(dead));
    assert!(is_near(&ours, &theirs) && ours != 0, "{ours} bytes have an owner alive, {theirs} in the core");
    assert_same_threads(live, dead);
    assert!(dead["totals"]["kernel_resident_bytes"].is_null() && has_gap(dead, "RSS"));
    assert!(has_gap(dead, "which pages were in memory"));
}

/// The kernel keeps 15 bytes of a name; the heap has all of it, and a core only that.
fn assert_same_threads(live: &Value, dead: &Value) {
    let (live, dead) =
        (live["threads"].as_array().expect("threads"), dead["threads"].as_array().expect("threads"));
    assert_eq!(live.len(), dead.len());
    for ours in live {
        let theirs = dead.iter().find(|theirs| theirs["tid"] == ours["tid"]).expect("the same thread");
        assert_eq!(ours["kind"], theirs["kind"], "{ours}");
        let (name, whole) =
            (ours["name"].as_str().unwrap_or_default(), theirs["name"].as_str().unwrap_or_default());
        assert!(is_name_of(name, whole), "{name}: {whole}");
    }
}

/// Whether most Java threads have names: a collector may be moving them in the heap at the moment of death.
fn has_names(map: &Value) -> bool {
    let is_java = |thread: &&Value| ["java", "compiler"].iter().any(|kind| thread["kind"] == *kind);
    let java: Vec<&Value> = map["threads"].as_array().expect("threads").iter().filter(is_java).collect();
    let named = java.iter().filter(|thread| thread["name"].as_str().is_some_and(|name| !name.is_empty()));
    named.count() * 2 > java.len()
}

#[test]
fn the_core_of_the_kernel_gives_the_account_of_the_living_jvm() {
    if !kernel_writes_cores() {
        return;
    }
    for (jdk, gc, more) in [
        ("17", "serial", NO_FILES),
        ("21", "parallel", &[]),
        ("25", "g1", NO_FILES),
        ("25", "z-generational", &[]),
    ] {
        let Some(java) = java(jdk) else { continue };
        let row = row(jdk, gc);
        let options: Vec<&str> = row.options.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let directory = directory(&format!("core-{jdk}-{gc}"));
        let (mut live, mut core) = dead(&java, &options, &directory);
        let mut map = account(&core);
        for _ in 1..JVMS_MAX {
            if have_compilers_rested(&live, &map) && has_names(&map) {
                break;
            }
            std::fs::remove_file(&core).expect("removed");
            (live, core) = dead(&java, &options, &directory);
            map = account(&core);
        }
        assert!(has_names(&map), "{jdk} {gc}: {:#}", map["threads"]);
        // The kernel brings in what was never touched of shared memory, ZGC's heap: its zeros count as absent.
        let is_shared = gc.starts_with('z');
        assert_alike(&live, &map, &|ours, theirs| {
            ours.abs_diff(theirs) <= RESIDENT_TOLERANCE || (is_shared && theirs < ours)
        });
        assert!(more.is_empty() || has_gap(&map, "the core leaves out"), "{jdk} {gc}");
        std::fs::remove_dir_all(directory).expect("removed");
    }
}

#[test]
fn the_core_of_gdb_gives_the_account_less_its_zeros() {
    let Some(java) = java("17") else { return };
    let directory = directory("gcore");
    let jvm = start(&java, &["-XX:+UseG1GC"], &directory);
    let mut live = settled(jvm.pid);
    for _ in 0..CORES_MAX {
        let made =
            Command::new("gcore").arg("-o").arg(directory.join("core")).arg(jvm.pid.to_string()).output();
        if !made.is_ok_and(|made| made.status.success()) {
            return skip("no gcore (gdb), or it may not trace");
        }
        // Compilers may have worked between the sample and the core; then another core is made.
        if is_at_rest(&live, &map_json(jvm.pid)) {
            break;
        }
        live = settled(jvm.pid);
    }
    let map = account(&directory.join(format!("core.{}", jvm.pid)));
    // gdb has no [vvar], calls the polling page readable or not, and writes zeros for what was never touched.
    for name in ["java_heap", "gc", "class_metadata", "jit_code", "stack", "malloc_freed"] {
        let (ours, theirs) = (area(&live, name), area(&map, name));
        for key in ["reserved_bytes", "committed_bytes", "in_use_bytes"] {
            assert_eq!(ours[key], theirs[key], "{name} {key}");
        }
        let (ours, theirs) = (number(&ours["resident_bytes"]), number(&theirs["resident_bytes"]));
        assert!(theirs <= ours + RESIDENT_TOLERANCE, "{name}: {ours} alive, {theirs} in the core");
    }
    assert_eq!(live["jvm"]["heap"], map["jvm"]["heap"]);
    assert!(has_gap(&map, "which pages were in memory"));
    std::fs::remove_dir_all(directory).expect("removed");
}

#[test]
fn a_core_that_is_cut_short_or_damaged_is_an_account_with_a_gap_or_an_error() {
    let Some(java) = java("17").filter(|_| kernel_writes_cores()) else { return };
    let directory = directory("core-cut");
    let (_, core) = dead(&java, &["-XX:+UseSerialGC"], &directory);
    let length = std::fs::metadata(&core).expect("its length").len();
    let file = File::options().write(true).open(&core).expect("opened");
    for (part, can_be_read) in [(0.9, true), (0.5, true), (0.1, true), (0.0002, false), (0.0, false)] {
        file.set_len((length as f64 * part) as u64).expect("cut");
        let output = from(&core);
        let error = text(&output.stderr);
        match output.status.code() {
            Some(0) => {
                let map: Value = serde_json::from_slice(&output.stdout).expect("JSON");
                check_laws(&map);
                assert!(has_gap(&map, "cut off"), "{part}");
            }
            _ => assert_fails(&output, 3, &["core"]),
        }
        assert!(output.status.success() || !can_be_read, "{part}: {error}");
    }
    std::fs::remove_dir_all(directory).expect("removed");
}

#[test]
fn what_is_no_core_of_a_jvm_of_this_machine_exits_with_3() {
    let directory = directory("core-foreign");
    let file = directory.join("core");
    assert_fails(&from(Path::new("/bin/true")), 3, &["not a core dump"]);
    for (start, words) in [
        (&b"\x28\xb5\x2f\xfd rest"[..], &["packed", "zstd -d"][..]),
        (b"\x04\x22\x4d\x18 rest", &["packed", "lz4 -d"]),
        (b"\x7fELF", &["damaged core"]),
    ] {
        std::fs::write(&file, start).expect("written");
        assert_fails(&from(&file), 3, words);
    }
    std::fs::remove_file(&file).expect("removed");
    if kernel_writes_cores() {
        let mut sleeper = Command::new("sleep");
        with_core(sleeper.arg("60"), &directory);
        let mut sleeper = sleeper.spawn().expect("sleep");
        std::thread::sleep(Duration::from_millis(100));
        signal(sleeper.id() as i32, libc::SIGABRT);
        sleeper.wait().expect("waited for");
        let core =
            std::fs::read_dir(&directory).expect("the directory").flatten().next().expect("a core").path();
        assert_fails(&from(&core), 3, &["core of no JVM", "sleep …"]);
        // Motorola 68000.
        File::options().write(true).open(&core).expect("opened").write_all_at(&[4, 0], 18).expect("written");
        assert_fails(&from(&core), 3, &["another machine"]);
    }
    std::fs::remove_dir_all(directory).expect("removed");
}

#[test]
fn a_libjvm_that_is_gone_or_another_is_said_by_its_build_id() {
    let Some((home, java17)) = jdk_copy("core-jdk").filter(|_| kernel_writes_cores()) else { return };
    let directory = directory("core-libjvm");
    let options: Vec<&str> = ["-XX:+UseSerialGC"].iter().chain(NO_FILES).copied().collect();
    let (live, core) = dead(&java17, &options, &directory);
    let library = home.join("lib/server/libjvm.so");
    if Command::new("strip").arg(&library).status().is_ok_and(|status| status.success()) {
        assert_eq!(
            account(&core)["jvm"]["heap"],
            live["jvm"]["heap"],
            "a stripped library is the same build"
        );
    }
    if let Some(java21) = java("21") {
        let other = java21.parent().and_then(Path::parent).expect("a home").join("lib/server/libjvm.so");
        std::fs::remove_file(&library).expect("removed");
        std::fs::copy(other, &library).expect("copied");
        // Temurin's 17 has none.
        let id = live["jvm"]["build_id"].as_str().unwrap_or("no build id");
        assert_fails(&from(&core), 3, &["libjvm.so of another build", id]);
    }
    std::fs::remove_file(&library).expect("removed");
    assert_fails(&from(&core), 3, &["libjvm.so", "cannot be read", "put the same file there"]);
    std::fs::remove_dir_all(home).expect("removed");
    std::fs::remove_dir_all(directory).expect("removed");
}
