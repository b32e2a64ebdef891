//! The thread that samples JVMs, round by round, and sends the results.

use crate::base::limits::TOP_SLOW;
use crate::base::{Gap, Why};
use crate::map::{self, Account};
use crate::measure::look::{LimitOf, Look, MemoryLimit};
use crate::os::budget::{self, Pool};
use crate::os::process::Process;
use crate::os::{cpu_time, group_memory, host, meminfo};
use crate::show::tui::News;
use crate::snapshot::discover::{self, Jvm};
use crate::snapshot::{self, Want};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// What the view asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Now, without waiting for the interval.
    Look,
    Pause(bool),
    /// Only this one is shown: the others need not be read.
    Only(Option<i32>),
    /// Now, with the holders of malloc's blocks of this one.
    Holders(i32),
}

/// Who watches many JVMs must not be the one that keeps the host busy: of a core, reading takes a fifth at the most, and the
/// rounds are less frequent instead.
const REST_PER_CPU: u32 = 4;

/// The JVMs to sample, and how often.
pub struct Looking {
    /// `None`: all.
    pub pid: Option<i32>,
    pub every: Duration,
}

impl Looking {
    /// Until the receiver is gone.
    pub fn run(&self, news: &Sender<News>, wishes: &Receiver<Wish>) {
        let since = Instant::now();
        let (mut only, mut is_paused, mut with_holders) = (None, false, None);
        loop {
            let (started, cpu_before) = (Instant::now(), cpu_time::own());
            let is_asked = with_holders.is_some();
            if (!is_paused || is_asked) && self.round(only, with_holders.take(), since, news).is_err() {
                return;
            }
            let rest = cpu_time::own().saturating_sub(cpu_before) * REST_PER_CPU;
            let mut left = self.every.saturating_sub(started.elapsed()).max(rest);
            loop {
                let waited = Instant::now();
                match wishes.recv_timeout(left) {
                    Ok(Wish::Look) => {
                        is_paused = false;
                        break;
                    }
                    Ok(Wish::Pause(pause)) => is_paused = pause,
                    Ok(Wish::Only(pid)) => {
                        only = pid;
                        break;
                    }
                    Ok(Wish::Holders(pid)) => {
                        with_holders = Some(pid);
                        break;
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                left = left.saturating_sub(waited.elapsed());
            }
        }
    }

    /// `Err`: the receiver is gone.
    fn round(
        &self,
        only: Option<i32>,
        with_holders: Option<i32>,
        since: Instant,
        news: &Sender<News>,
    ) -> Result<(), ()> {
        let started = Instant::now();
        let tell = |one: News| news.send(one).map_err(|_| ());
        let jvms = match self.pid {
            Some(pid) => discover::one(pid).into_iter().collect(),
            None => match discover::list_names() {
                Ok(listing) => listing.jvms,
                Err(gap) => {
                    return tell(News::Failed(format!("the JVMs of this host cannot be listed: {gap}")));
                }
            },
        };
        let is_wanted = |pid: &i32| only.is_none_or(|only| only == *pid);
        let wanted = jvms.iter().map(|jvm| jvm.process.pid).filter(is_wanted).collect();
        let host = host_memory();
        tell(News::Begun { pids: wanted, host })?;
        let mut pids = Vec::new();
        let mut pool = Pool::new(TOP_SLOW.0, TOP_SLOW.1);
        for jvm in &jvms {
            pids.push(jvm.process.pid);
            let pid = jvm.process.pid;
            if !is_wanted(&pid) {
                continue;
            }
            let look = match with_holders == Some(pid) {
                // The user waits for this one.
                true => budget::within(budget::limits(), || look(jvm, since, host, true)),
                false => pool.within(budget::limits(), || look(jvm, since, host, false)),
            };
            look.map_or(Ok(()), |look| tell(News::Looked(Box::new(look))))?;
        }
        tell(News::Round { pids, took_ms: started.elapsed().as_secs_f64() * 1e3 })
    }
}

/// `None`: it has ended.
fn look(jvm: &Jvm, since: Instant, host: Option<MemoryLimit>, with_holders: bool) -> Option<Look> {
    let started = Instant::now();
    let facts = &jvm.process;
    let unnamed = || facts.command.split(' ').next().unwrap_or_default().to_string();
    let mut look = Look {
        pid: facts.pid,
        start_ticks: facts.start_ticks,
        name: jvm.name().map_or_else(unnamed, str::to_string),
        runtime: String::new(),
        at: since.elapsed().as_secs_f64(),
        took_ms: 0.0,
        kernel_resident_bytes: jvm.resident_bytes.clone().ok(),
        account: Err(Gap::new("the account", Why::NotRead)),
        memory_limit: host,
        is_jdk_tool: jvm.jdk_tool().is_some(),
        holders: with_holders.then(|| Err(Gap::new("the holders of malloc's blocks", Why::NotRead))),
    };
    let process = match Process::open(facts.pid) {
        Ok(process) => process,
        Err(_) => return discover::one(facts.pid).map(|_| look),
    };
    if let Ok(Some(group)) = group_memory::of(&process) {
        look.memory_limit = Some(MemoryLimit {
            of: LimitOf::Cgroup,
            limit_bytes: group.limit_bytes,
            used_bytes: group.held_bytes(),
        });
    }
    match snapshot::take_once(&process, Want { holders: with_holders, ..Want::default() }) {
        Ok(snapshot) => {
            if let Some(gap) = snapshot.os.gaps.iter().find(|gap| gap.why.is_given_up()) {
                look.account = Err(gap.clone());
                return Some(look);
            }
            let given_up = snapshot.holders_given_up().cloned();
            let map = map::join(&snapshot);
            look.runtime = runtime(&snapshot);
            look.kernel_resident_bytes = map.balance.kernel_resident.or(look.kernel_resident_bytes);
            let mut account = Account::of(&snapshot, &map);
            if with_holders {
                let unknown = || Gap::new("the holders of malloc's blocks", Why::NotInThisRuntime);
                look.holders = Some(account.holders.take().ok_or_else(|| given_up.unwrap_or_else(unknown)));
            }
            look.account = Ok(account);
        }
        Err(gap) if gap.why == Why::Gone => return None,
        Err(gap) => look.account = Err(gap),
    }
    look.took_ms = started.elapsed().as_secs_f64() * 1e3;
    Some(look)
}

/// What programs use of the host's memory.
fn host_memory() -> Option<MemoryLimit> {
    let host = meminfo::parse(&host::text("/proc/meminfo").ok()?)?;
    let used_bytes = host.total_bytes.saturating_sub(host.available_bytes?);
    Some(MemoryLimit { of: LimitOf::Host, limit_bytes: host.total_bytes, used_bytes })
}

fn runtime(snapshot: &snapshot::Snapshot) -> String {
    let Ok(jvm) = &snapshot.jvm else { return String::new() };
    let version = jvm.version.as_deref().unwrap_or("version unknown");
    let gc = jvm.gc.as_ref().map_or("collector unknown", |gc| gc.name());
    format!("{version}, {gc}")
}
