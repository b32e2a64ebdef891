//! The ledger of a running cgroup: its figures, then its processes and their files.

use super::rows::{Member, Seen};
use super::{Ledger, Limit, Part, Row, Socket};
use crate::base::limits::GROUP_TOP;
use crate::base::{Bytes, Gap, Known, Why};
use crate::map::{Account, join};
use crate::os::group::Group;
use crate::os::group_files::GroupFiles;
use crate::os::group_stat::GroupStat;
use crate::os::process::Process;
use crate::os::socket_queues::{self, SocketQueue};
use crate::os::{budget, host, loaded, smaps};
use crate::snapshot::{self, Want as SnapshotWant};
use std::cmp::Reverse;
use std::collections::HashSet;

/// What else is read.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    /// The areas of each JVM: an account of each.
    pub areas: bool,
    /// Rows of each item; the rest of them is one row.
    pub top: usize,
}

impl Default for Want {
    fn default() -> Want {
        Want { areas: false, top: GROUP_TOP }
    }
}

/// Within the budget of the caller. The only failure is that the figures of the cgroup cannot be read.
pub fn read(group: &Group, want: Want) -> Known<Ledger> {
    let (pids, left_out) = group.pids();
    let (looked, mut gaps) = look(pids, want);
    gaps.extend(left_out);
    let stat = group.stat()?;
    let mut ledger = looked.ledger(&stat, Vec::new(), &mut gaps, want.top);
    ledger.cgroup = Some(group.directory());
    match group.limit() {
        Ok(limit) => ledger.limit = limit.as_ref().map(Limit::from),
        Err(gap) => gaps.push(gap),
    }
    Ok(ledger.with_gaps(&gaps))
}

/// Processes, and the files that they have.
pub(super) struct Looked {
    processes: Vec<Process>,
    seen: Seen,
    files: GroupFiles,
}

pub(super) fn look(pids: Vec<i32>, want: Want) -> (Looked, Vec<Gap>) {
    let mut gaps = Vec::new();
    let seen = Seen { kernel_stack_bytes: stack_bytes(), ..Seen::default() };
    let mut looked = Looked { processes: Vec::new(), seen, files: GroupFiles::new() };
    let mut unread = Unread::default();
    for pid in pids {
        if let Err(why) = budget::check_now() {
            gaps.push(Gap::new("processes: some are left out", why));
            break;
        }
        // One that has ended has no memory any more.
        let Ok(process) = Process::open(pid) else { continue };
        let Ok(status) = process.status() else { continue };
        unread.note(looked.files.add(&process));
        if status.resident_bytes.is_some() && status.resident_anon_bytes.is_none() {
            let hint = "RssAnon of /proc/PID/status came with Linux 4.5: the sum is in anonymous_other";
            let gap = Gap::new("anonymous memory of each process", Why::NotInThisKernel).hint(hint);
            gaps.extend((!gaps.contains(&gap)).then_some(gap));
        }
        looked.seen.members.push(Member {
            pid,
            command: command(&process),
            anon_bytes: status.resident_anon_bytes.unwrap_or(0),
            page_table_bytes: status.page_table_bytes.unwrap_or(0),
            threads: status.threads.unwrap_or(0),
            areas: Vec::new(),
        });
        looked.processes.push(process);
    }
    if want.areas {
        areas(&looked.processes, &mut looked.seen.members, &mut gaps);
    }
    gaps.extend(looked.files.gaps());
    gaps.extend(unread.gap());
    (looked, gaps)
}

impl Looked {
    pub fn ledger(mut self, stat: &GroupStat, others: Vec<Row>, gaps: &mut Vec<Gap>, top: usize) -> Ledger {
        proportional(&self.processes, &mut self.seen.members, stat.anon_bytes);
        self.seen.mounts = self.files.tmpfs_mounts(&self.processes);
        self.seen.files = self.files.files();
        self.seen.others = others;
        let mut ledger = Ledger::of(stat, &self.seen, top);
        ledger.sockets = self.sockets(top);
        if stat.moved_bytes > stat.usage_bytes / 100 {
            let moved = Gap::new("the sum of the cgroup", Why::Torn);
            gaps.push(moved.hint(format!("it moved by {} bytes while the rows were read", stat.moved_bytes)));
        }
        if ledger.remainder_bytes() < 0 {
            let negative = Gap::new("remainder", Why::Torn);
            gaps.push(negative.hint("the counters moved: the rows sum to more than was used"));
        }
        ledger
    }
}

impl Looked {
    /// The sockets of the processes that were seen, by network namespace.
    fn sockets(&self, top: usize) -> Vec<Socket> {
        let mut namespaces = HashSet::new();
        let is_new = |process: &&Process| process.link("ns/net").is_ok_and(|link| namespaces.insert(link));
        let processes: Vec<&Process> = self.processes.iter().filter(is_new).collect();
        let socket = |queue: SocketQueue| {
            let pid = *self.files.sockets.get(&queue.inode)?;
            let command = self.seen.members.iter().find(|member| member.pid == pid)?.command.clone();
            let SocketQueue { peer, to_send_bytes, received_bytes, .. } = queue;
            Some(Socket { pid, command, peer, to_send_bytes, received_bytes })
        };
        let queues = processes.into_iter().flat_map(socket_queues::read);
        let mut sockets: Vec<Socket> = queues.filter_map(socket).collect();
        sockets.sort_by_key(|socket| Reverse(socket.to_send_bytes.saturating_add(socket.received_bytes)));
        sockets.truncate(top);
        sockets
    }
}

/// Processes whose files could not be listed.
#[derive(Default)]
struct Unread {
    processes: u64,
    first: Option<Gap>,
}

impl Unread {
    fn note(&mut self, read: Known<()>) {
        if let Err(gap) = read
            && gap.why != Why::Gone
        {
            self.processes += 1;
            self.first.get_or_insert(gap);
        }
    }

    fn gap(self) -> Option<Gap> {
        let first = self.first?;
        let gap =
            Gap::new(format!("files of {}", crate::base::counted(self.processes, "process")), first.why);
        Some(gap.hint(first.hint.unwrap_or(first.what)))
    }
}

/// The server, the main class or the program, as short as a row needs it.
pub fn command(process: &Process) -> String {
    let arguments = process.arguments().unwrap_or_default();
    let main = crate::jvm::command_line::parse(&arguments).main;
    let name = process.text("comm").unwrap_or_default().trim_end().to_string();
    match main.filter(|_| crate::jvm::command_line::is_launcher(&arguments)) {
        Some(main) => {
            let server = crate::jvm::server::name_of(process, &main, &arguments);
            format!("{name} {}", server.unwrap_or(main))
        }
        None => name,
    }
}

/// Pages that forked processes share are in the figure of each. Where that shows, the kernel is asked for proportional sizes.
fn proportional(processes: &[Process], members: &mut [Member], charged: Bytes) {
    let sum: Bytes = members.iter().fold(0, |sum, member| sum.saturating_add(member.anon_bytes));
    if members.len() < 2 || sum <= charged.saturating_add(charged / 50) {
        return;
    }
    for (process, member) in processes.iter().zip(members) {
        if budget::check().is_err() {
            return;
        }
        let shared = smaps::rollup(process).ok().and_then(|rollup| rollup.proportional_anonymous_bytes);
        member.anon_bytes = shared.map_or(member.anon_bytes, |bytes| bytes.min(member.anon_bytes));
    }
}

/// The kernel stack of one thread, from the host's sum for all threads, as a power of two (THREAD_SIZE).
fn stack_bytes() -> Option<Bytes> {
    let kilobytes = |text: &str| text.split_ascii_whitespace().next()?.parse::<Bytes>().ok();
    let meminfo = host::text("/proc/meminfo").ok()?;
    let all = meminfo.lines().find_map(|line| kilobytes(line.strip_prefix("KernelStack:")?))?;
    let load = host::text("/proc/loadavg").ok()?;
    let threads: Bytes = load.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()?;
    // A few are kept for the next threads (kernel/fork.c, `cached_stacks`), and some have just ended.
    let each = (all << 10).checked_div(threads)?;
    Some(if each < 3 << 13 { 16 << 10 } else { each.next_power_of_two().min(64 << 10) })
}

/// An account of each JVM: the anonymous memory of its areas.
fn areas(processes: &[Process], members: &mut [Member], gaps: &mut Vec<Gap>) {
    for (process, member) in processes.iter().zip(members) {
        let Ok(mappings) = process.mappings() else { continue };
        if loaded::any_vm(&mappings).is_none() {
            continue;
        }
        let want = SnapshotWant { is_shallow: false, ..SnapshotWant::default() };
        match budget::within(budget::limits(), || snapshot::take_once(process, want)) {
            Ok(snapshot) => member.areas = parts(&Account::of(&snapshot, &join(&snapshot))),
            Err(gap) => gaps.push(Gap::new(format!("areas of pid {}", process.pid), gap.why)),
        }
    }
}

fn parts(account: &Account) -> Vec<Part> {
    let part = |area: &crate::map::model::AreaAccount| {
        let bytes = area.amounts.anonymous_bytes.filter(|bytes| *bytes > 0)?;
        Some(Part { name: area.area.title().to_string(), bytes })
    };
    let mut parts: Vec<Part> = account.areas.iter().filter_map(part).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    parts
}
