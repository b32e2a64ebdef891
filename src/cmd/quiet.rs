//! Trials on a quiet machine: a trial waits until other programs are nearly idle, and is repeated if they disturbed it. A machine
//! that stays busy is measured as it is, and each trial records what the others used.

use crate::act::signals;
use crate::base::printable::escaped;
use crate::os::busy::{self, Busy, Others};
use std::time::{Duration, Instant};

/// Length of one observation of other programs.
const MOMENT: Duration = Duration::from_secs(1);
/// Repeats of a disturbed trial.
const REPEATS_MAX: usize = 2;
/// Of the processes that keep the machine busy, this many are named.
const NAMED_MAX: usize = 3;

#[derive(clap::Args, Clone, Copy, Debug)]
#[group(skip)]
pub struct QuietArgs {
    /// Longest total wait for other programs to become idle; trials that they disturb are repeated. 0s measures at once
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = super::amount::duration_or_none)]
    quiet_wait: Duration,
}

pub struct Quiet {
    left: Duration,
    /// The last observation of other programs; `None`: none yet.
    last: Option<Others>,
}

impl QuietArgs {
    /// Measures at once.
    pub fn none() -> QuietArgs {
        QuietArgs { quiet_wait: Duration::ZERO }
    }

    pub fn begin(&self) -> Quiet {
        Quiet { left: self.quiet_wait, last: None }
    }
}

impl Quiet {
    /// An undisturbed trial, or else the last attempt. `make` returns `None` if a signal cut the trial short.
    pub fn trial<T>(
        &mut self,
        mut make: impl FnMut() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Option<(T, Option<Others>)>> {
        for repeats in 0.. {
            self.wait();
            let before = Busy::now();
            let Some(made) = make()? else { return Ok(None) };
            let others = before.and_then(|before| Ok(Busy::now()?.since(&before))).ok().flatten();
            self.last = others.or(self.last);
            match others.filter(|others| others.disturb()) {
                Some(others) if repeats < REPEATS_MAX && !self.left.is_zero() && !signals::pending() => {
                    crate::say!("marusa: repeating the trial: {}", used(&others));
                }
                _ => return Ok(Some((made, others))),
            }
        }
        Ok(None)
    }

    /// Returns at once if the trial before was quiet.
    fn wait(&mut self) {
        let started = Instant::now();
        while !self.last.is_some_and(|others| others.is_quiet()) && !signals::pending() {
            if started.elapsed() >= self.left {
                if !self.left.is_zero() {
                    self.give_up();
                }
                return;
            }
            let Ok(before) = Busy::now() else { return };
            std::thread::sleep(MOMENT);
            self.last = Busy::now().ok().and_then(|now| now.since(&before)).or(self.last);
        }
        self.left = self.left.saturating_sub(started.elapsed());
    }

    fn give_up(&mut self) {
        self.left = Duration::ZERO;
        let before = (Instant::now(), busy::by_process());
        std::thread::sleep(MOMENT);
        let seconds = before.0.elapsed().as_secs_f64();
        let mut busiest: Vec<(f64, String)> = Vec::new();
        for (pid, time) in busy::by_process() {
            let then = before.1.get(&pid).filter(|then| then.start_ticks == time.start_ticks);
            let cpus = (time.cpu_ms() - then.map_or(0.0, |then| then.cpu_ms())) / 1e3 / seconds;
            busiest.push((cpus, format!("{} ({pid})", escaped(&time.name))));
        }
        busiest.sort_by(|one, other| other.0.total_cmp(&one.0));
        let named = busiest.into_iter().take(NAMED_MAX).filter(|(cpus, _)| *cpus >= 0.01);
        let named: Vec<String> = named.map(|(cpus, name)| format!("{name} {cpus:.2}")).collect();
        let last = self.last.map_or("other programs are running".to_string(), |others| used(&others));
        crate::say!(
            "marusa: the machine is not quiet: {last} ({}); measuring anyway, see --quiet-wait",
            named.join(", ")
        );
    }
}

/// "other programs use 0.83 of 2 CPUs, 0.10 are stolen".
fn used(others: &Others) -> String {
    let stolen = match others.stolen_cpus {
        stolen if stolen >= 0.01 => format!(", {stolen:.2} are stolen"),
        _ => String::new(),
    };
    format!("other programs use {:.2} of {} CPUs{stolen}", others.cpus, others.of_cpus)
}
