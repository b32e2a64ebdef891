use super::*;
use std::io::{BufRead, BufReader};

const LIMIT: Duration = Duration::from_secs(30);

/// Starts it, looks at it every so often, and ends it.
fn run(wanted: &Start, every: Duration, mut look: impl FnMut(&mut Running)) -> Result<Ended, TrialError> {
    let mut running = start(wanted)?;
    while running.until(Instant::now() + every) == Turn::Time {
        look(&mut running);
    }
    Ok(running.end())
}

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("marusa-trial-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }
    fn shell(&self, script: &str, limit: Duration) -> Start {
        let command = ["/bin/sh", "-c", script].map(String::from).to_vec();
        Start::new(command, self.0.join("out"), self.0.join("err"), limit)
    }
    fn run(&self, script: &str, limit: Duration) -> Ended {
        run(&self.shell(script, limit), Duration::from_millis(20), |_| ()).expect("it ran")
    }
    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).expect("its output")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn lives(pid: i32) -> bool {
    crate::os::process::Process::open(pid).is_ok()
}

#[test]
fn what_a_program_took_and_how_it_ended() {
    let directory = Directory::new("took");
    let ended =
        directory.run("echo out; echo err >&2; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", LIMIT);
    assert!(ended.is_good() && ended.left.is_empty(), "{ended:?}");
    assert_eq!((directory.text("out").as_str(), directory.text("err").as_str()), ("out\n", "err\n"));
    assert!(
        ended.usage.user_seconds > 0.0
            && ended.usage.minor_faults > 50
            && ended.usage.peak_resident_bytes > 1 << 20
    );
    assert!(ended.wall_seconds > 0.0);
    let ended = directory.run("exit 3", LIMIT);
    assert_eq!((ended.stop, ended.how, ended.is_good()), (Stop::ByItself, How::Exit(3), false));
    assert_eq!(directory.run("kill -9 $$", LIMIT).how, How::Signal(9));
}

#[test]
fn the_cpu_time_of_its_children_counts() {
    let directory = Directory::new("children");
    let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let alone = directory.run("true", LIMIT);
    let with = directory.run(&format!("sh -c '{spin}'; true"), LIMIT);
    assert!(with.usage.user_seconds > alone.usage.user_seconds + 0.01, "{with:?}");
    assert!(with.forked >= 1, "{with:?}");
}

#[test]
fn a_program_that_outlives_its_limit_is_ended_with_all_that_it_started() {
    let directory = Directory::new("limit");
    let ended =
        directory.run("trap '' TERM; sleep 600 & echo $!; wait; sleep 600", Duration::from_millis(300));
    assert_eq!(ended.stop, Stop::Limit, "{ended:?}");
    assert!(ended.wall_seconds < 30.0);
    let child: i32 = directory.text("out").trim().parse().expect("a pid");
    assert!(!lives(child));
}

#[test]
fn a_daemon_that_outlives_the_program_is_found_ended_and_reported() {
    let directory = Directory::new("daemon");
    let ended = directory.run("setsid sh -c 'echo $$; exec sleep 600' & sleep 0.2", LIMIT);
    assert!(ended.is_good(), "{ended:?}");
    let daemon: i32 = directory.text("out").trim().parse().expect("a pid");
    assert_eq!(ended.left.iter().map(|left| left.pid).collect::<Vec<_>>(), [daemon], "{ended:?}");
    assert!(!lives(daemon) && !ended.left[0].lives);
    // One that is gone before the first sample, and forked twice.
    let ended = directory.run("(setsid sh -c 'echo $$; exec sleep 600' &) ; exit 0", LIMIT);
    let daemon: i32 = directory.text("out").trim().parse().expect("a pid");
    assert!(ended.left.iter().any(|left| left.pid == daemon) && !lives(daemon), "{ended:?}");
}

#[test]
fn the_end_of_a_script_waits_for_what_it_started() {
    let script = "setsid sh -c 'echo $$; exec sleep 600' & wait";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).stdout(std::process::Stdio::piped()).process_group(0);
    let mut child = command.spawn().expect("sh");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a pid");
    end(&mut child);
    assert!(!lives(line.trim().parse().expect("a pid")));
}

#[test]
fn a_pipe_that_ends_on_its_own_is_not_reported() {
    let directory = Directory::new("pipe");
    let ended = directory.run("sh -c 'sleep 0.05' & exit 0", LIMIT);
    assert!(ended.left.is_empty(), "{ended:?}");
}

#[test]
fn what_can_not_be_started_says_why() {
    let directory = Directory::new("missing");
    let start_of = |command: &str| Start { command: vec![command.into()], ..directory.shell("", LIMIT) };
    let error = start(&start_of("/no/such/java")).err().expect("refused");
    assert!(matches!(error, TrialError::Missing { .. }) && error.to_string().contains("JDK"), "{error}");
    assert!(matches!(start(&start_of("/etc/passwd")), Err(TrialError::NotStarted { .. })));
    let nowhere = Start { output: "/no/such/directory/out".into(), ..start_of("true") };
    assert!(matches!(start(&nowhere), Err(TrialError::File { .. })));
}

#[test]
fn ended_when_the_experiment_has_what_it_wants() {
    let directory = Directory::new("asked");
    let mut running =
        start(&directory.shell("trap 'echo bye; exit 0' TERM; sleep 600 & wait", LIMIT)).expect("runs");
    assert_eq!(running.until(Instant::now() + Duration::from_millis(200)), Turn::Time);
    assert!(running.pids().len() >= 2);
    let ended = running.end();
    assert_eq!((ended.stop, ended.how), (Stop::Asked, How::Exit(0)), "{ended:?}");
    assert_eq!(directory.text("out"), "bye\n");
}
