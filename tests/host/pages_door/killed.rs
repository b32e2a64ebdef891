//! kill -9 at random moments of apply and of undo; afterwards undo puts back exactly what was there.

use super::host::{differences, look, mounts};
use super::plans::{Bench, everything};
use crate::common::text;
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

/// Kills that hit a running command, in each of the parts, between which other tests get the host.
const KILLS: usize = 50;

/// xorshift64*: no two runs of the test kill at the same moments.
fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed | 1;
    move |below| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below.max(1)
    }
}

/// Whether the kill came before the end.
fn kill_after(mut command: Command, delay: Duration) -> bool {
    use std::os::unix::process::ExitStatusExt;
    let mut child: Child = command.spawn().expect("marusa runs");
    let end = Instant::now() + delay;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        std::thread::sleep(left);
    }
    child.kill().expect("killed");
    child.wait_with_output().expect("it ended").status.signal() == Some(9)
}

fn duration(bench: &Bench, arguments: &[&str]) -> Duration {
    let start = Instant::now();
    let output = bench.run(arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    start.elapsed()
}

fn kills(part: u64) {
    let Some(_host) = super::host() else { return };
    let seed =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock").as_nanos() as u64 ^ part;
    println!("seed {seed}");
    let mut random = random(seed);
    let bench = Bench::new(&format!("killed-{part}"));
    let before = look();
    let apply = ["apply", bench.plan(), "--yes", "--persist"];
    bench.write(&everything(&bench, &mut random));
    let applying = duration(&bench, &apply);
    assert!(!differences(&before, &look()).is_empty() && mounts().len() == 1, "apply changes something");
    let undoing = duration(&bench, &["undo", "--all"]);
    assert_eq!(differences(&before, &look()), [""; 0]);
    let (mut hit, mut interrupted) = (0, 0);
    while hit < KILLS {
        bench.write(&everything(&bench, &mut random));
        let mut moment = |whole: Duration| Duration::from_micros(random(whole.as_micros() as u64 * 11 / 10));
        hit += usize::from(kill_after(bench.command(&apply), moment(applying)));
        interrupted += usize::from(!differences(&before, &look()).is_empty());
        for _ in 0..2 {
            hit += usize::from(kill_after(bench.command(&["undo", "--all"]), moment(undoing)));
        }
        let undone = bench.run(&["undo", "--all"]);
        assert_eq!(undone.status.code(), Some(0), "{}{}", text(&undone.stdout), text(&undone.stderr));
        let left = differences(&before, &look());
        assert!(
            left.is_empty(),
            "{left:#?}\n{}",
            text(&std::fs::read(bench.journals().last().expect("one")).expect("it"))
        );
        assert_eq!(mounts(), [""; 0]);
    }
    println!("{hit} kills hit, {interrupted} left changes behind; apply {applying:?}, undo {undoing:?}");
    assert!(interrupted > 0, "the kills come too early");
}

#[test]
fn kills_1() {
    kills(1);
}

#[test]
fn kills_2() {
    kills(2);
}

#[test]
fn kills_3() {
    kills(3);
}

#[test]
fn kills_4() {
    kills(4);
}

/// How often a signal is sent; more than the least until one came in the middle.
const ROUNDS_MIN: usize = 12;
const ROUNDS_MAX: usize = 60;

#[test]
fn a_signal_to_end_leaves_all_or_nothing() {
    let Some(_host) = super::host() else { return };
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock").as_nanos() as u64;
    let mut random = random(seed);
    let bench = Bench::new("signals");
    let before = look();
    let apply = ["apply", bench.plan(), "--yes", "--persist"];
    bench.write(&everything(&bench, &mut random));
    let applying = duration(&bench, &apply).as_micros() as u64;
    assert_eq!(bench.run(&["undo"]).status.code(), Some(0));
    let mut taken_back = 0;
    for round in 0..ROUNDS_MAX {
        if round >= ROUNDS_MIN && taken_back > 0 {
            break;
        }
        bench.write(&everything(&bench, &mut random));
        let child = bench.command(&apply).spawn().expect("marusa runs");
        std::thread::sleep(Duration::from_micros(random(applying * 11 / 10)));
        crate::common::signal(child.id() as i32, libc::SIGTERM);
        let output = child.wait_with_output().expect("it ended");
        // It ends by the signal, but only when all is made or all is back.
        let said = text(&output.stdout);
        if said.contains("\napplied as ") {
            assert_eq!(bench.run(&["undo"]).status.code(), Some(0));
        }
        taken_back += usize::from(said.contains("not applied: stopped by a signal"));
        assert_eq!(differences(&before, &look()), [""; 0], "{:?}", output.status);
        assert_eq!(mounts(), [""; 0]);
    }
    println!("{taken_back} were undone, seed {seed}");
    assert!(taken_back > 0, "the signals come too early or too late");
}
