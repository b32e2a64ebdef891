//! Files that are cut off while they are read: the library of a JVM, and a core.

use super::*;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

/// A copy of a JDK whose libjvm.so is a file of its own; the rest are links to the same files.
struct OwnJdk(tempfile::TempDir);

impl OwnJdk {
    fn of(java: &Path) -> OwnJdk {
        let home = java.ancestors().nth(2).expect("a JDK");
        let directory = tempfile::tempdir_in(home.parent().expect("of the JDKs")).expect("a directory");
        let copy = directory.path().join("jdk");
        let status = Command::new("cp").arg("-al").arg(home).arg(&copy).status().expect("cp");
        assert!(status.success());
        let library = copy.join("lib/server/libjvm.so");
        let bytes = fs::read(&library).expect("a library");
        fs::remove_file(&library).expect("a link");
        fs::write(&library, bytes).expect("a copy");
        OwnJdk(directory)
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join("jdk").join(below)
    }
}

/// Cuts off the last page of a file and restores it, again and again, while `run` runs.
fn while_cut(path: &Path, run: impl FnOnce()) {
    let whole = fs::read(path).expect("readable");
    let from = (whole.len() as u64 - 1) & !4095;
    let file = File::options().write(true).open(path).expect("writable");
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let cutting = scope.spawn(|| {
            while !end.load(Ordering::Relaxed) {
                file.set_len(from).expect("cut");
                std::thread::sleep(Duration::from_millis(1));
                file.write_all_at(&whole[from as usize..], from).expect("written");
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        end.store(true, Ordering::Relaxed);
        cutting.join().expect("no panic");
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    assert_eq!(fs::metadata(path).expect("there").len(), whole.len() as u64);
}

#[test]
fn a_library_that_is_cut_off_while_it_is_read_ends_no_command() {
    let Some(java) = java("17") else { return };
    let jdk = OwnJdk::of(&java);
    let options = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:NativeMemoryTracking=summary"];
    let jvm = Jvm::start(&jdk.path("bin/java"), &options, &["marusa.Load", "heap=5m", "quiet=1"]);
    let library = jdk.path("lib/server/libjvm.so");
    let maps = fs::read_to_string(format!("/proc/{}/maps", jvm.pid)).expect("maps");
    assert!(maps.contains(library.to_str().expect("UTF-8")), "it runs the copy");
    let pid = jvm.pid.to_string();
    let recording = jdk.0.path().join("all.marusa");
    let path = recording.to_str().expect("UTF-8");
    // Its last page holds the section headers, which no process has mapped.
    while_cut(&library, || {
        for _ in 0..12 {
            let map = run(&["map", &pid, "--json"]);
            assert!(map.status.success(), "{}", map.errors);
            check_laws(&serde_json::from_str(&map.out).expect("JSON"));
        }
        let doctor = run(&["doctor", &pid, "--json"]);
        assert!(serde_json::from_str::<Value>(&doctor.out).is_ok(), "{}", doctor.errors);
        run(&["trim", &pid, "--dry-run"]);
        let record = run(&[
            "record",
            &pid,
            "--every",
            "100ms",
            "--account-every",
            "100ms",
            "--cpu",
            "100",
            "--for",
            "3s",
            "-o",
            path,
        ]);
        assert!(record.status.success(), "{}", record.errors);
    });
}

#[test]
fn marusa_never_lists_itself() {
    let Some(java) = java("17") else { return };
    let options = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:NativeMemoryTracking=summary"];
    let jvm = Jvm::start(&java, &options, &["marusa.Load", "heap=5m", "quiet=1"]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("one.marusa");
    let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
    command.args([
        "record",
        &jvm.pid.to_string(),
        "--every",
        "10ms",
        "--account-every",
        "10ms",
        "--cpu",
        "100",
    ]);
    let time = if is_long() { "15s" } else { "3s" };
    command.args(["--for", time, "-o"]).arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
    let mut recorder = command.spawn().expect("marusa runs");
    let own = recorder.id();
    let mut seen = 0;
    while recorder.try_wait().expect("our child").is_none() {
        let maps = fs::read_to_string(format!("/proc/{own}/maps")).unwrap_or_default();
        assert!(!maps.contains("libjvm.so"), "it would be taken for a JVM:\n{maps}");
        seen += usize::from(!maps.is_empty());
        if seen % 1_000 == 1 {
            let list: Value = serde_json::from_str(&run(&["list", "--json"]).out).expect("JSON");
            let pids: Vec<u64> =
                list["jvms"].as_array().expect("JVMs").iter().map(|jvm| number(&jvm["pid"])).collect();
            assert!(pids.contains(&(jvm.pid as u64)) && !pids.contains(&u64::from(own)), "{list}");
        }
    }
    assert!(seen > 0, "its mappings were looked at");
}

/// A core of a process that holds nothing but memory: gdb's and the kernel's are made by others.
fn core(path: &Path, bytes: usize) {
    let machine: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let mut core = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    core.extend([4, 0].into_iter().chain(machine.to_le_bytes()).chain([1, 0, 0, 0]));
    [0_u64, 64, 0].iter().for_each(|word| core.extend(word.to_le_bytes()));
    [0_u16, 0, 64, 56, 1, 0, 0, 0].iter().for_each(|half| core.extend(half.to_le_bytes()));
    [1_u32, 6].iter().for_each(|half| core.extend(half.to_le_bytes()));
    let length = bytes as u64;
    [4096, 0x7000_0000, 0, length, length, 4096_u64].iter().for_each(|word| core.extend(word.to_le_bytes()));
    core.resize(4096, 0);
    core.resize(4096 + bytes, 0);
    fs::write(path, core).expect("written");
}

#[test]
fn a_core_that_is_cut_off_while_it_is_read_ends_no_command() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("core");
    core(&path, 64 << 20);
    while_cut(&path, || {
        for _ in 0..32 {
            let ended = run(&["map", "--from", path.to_str().expect("UTF-8")]);
            assert!(ended.status.code().is_some_and(|code| code == 0 || code == 3), "{}", ended.errors);
        }
    });
}
