//! Trials on a quiet machine: before a trial others' work is waited out, and a trial that others disturbed is made again. A
//! machine that stays busy is measured too, with what others took next to each trial.

use crate::act::signals;
use crate::base::printable::escaped;
use crate::os::busy::{self, Busy, Others};
use std::time::{Duration, Instant};

/// How long others are watched at a time.
const MOMENT: Duration = Duration::from_secs(1);
/// How often a disturbed trial is made again.
const REPEATS_MAX: usize = 2;
/// Of the processes that keep the machine busy, this many are named.
const NAMED_MAX: usize = 3;

#[derive(clap::Args, Clone, Copy, Debug)]
#[group(skip)]
pub struct QuietArgs {
    /// Time to wait, in all, until other programs use little CPU; disturbed trials are then made again. 0s: measure at once
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = waited)]
    quiet_wait: Duration,
}

fn waited(text: &str) -> Result<Duration, String> {
    if matches!(text.trim(), "0" | "0s") { Ok(Duration::ZERO) } else { super::amount::duration(text) }
}

pub struct Quiet {
    left: Duration,
    /// The last that was seen of others; `None`: nothing yet.
    last: Option<Others>,
}

impl QuietArgs {
    pub fn begin(&self) -> Quiet {
        Quiet { left: self.quiet_wait, last: None }
    }
}

impl Quiet {
    /// One that is not disturbed, or else the last try; `make` gives none where a signal cut it short.
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
                    crate::say!("marusa: the trial is made again: {}", taken(&others));
                }
                _ => return Ok(Some((made, others))),
            }
        }
        Ok(None)
    }

    /// Nothing is waited for where the trial before was quiet.
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
        let mut used: Vec<(f64, String)> = Vec::new();
        for (pid, time) in busy::by_process() {
            let then = before.1.get(&pid).filter(|then| then.start_ticks == time.start_ticks);
            let cpus = (time.cpu_ms() - then.map_or(0.0, |then| then.cpu_ms())) / 1e3 / seconds;
            used.push((cpus, format!("{} ({pid})", escaped(&time.name))));
        }
        used.sort_by(|one, other| other.0.total_cmp(&one.0));
        let named = used.into_iter().take(NAMED_MAX).filter(|(cpus, _)| *cpus >= 0.01);
        let named: Vec<String> = named.map(|(cpus, name)| format!("{name} {cpus:.2}")).collect();
        let taken = self.last.map_or("others work".to_string(), |others| taken(&others));
        crate::say!(
            "marusa: the machine does not get quiet: {taken}: {}; it is measured as it is, see --quiet-wait",
            named.join(", ")
        );
    }
}

/// "others take 0.83 of 2 CPUs, 0.10 are stolen".
fn taken(others: &Others) -> String {
    let stolen = match others.stolen_cpus {
        stolen if stolen >= 0.01 => format!(", {stolen:.2} are stolen"),
        _ => String::new(),
    };
    format!("others take {:.2} of {} CPUs{stolen}", others.cpus, others.of_cpus)
}
