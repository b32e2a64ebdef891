//! `/proc/PID/status`: the kernel's own sums for the process, against which ours must balance.
//!
//! Fields: Documentation/filesystems/proc.rst, table 1-2. The RSS figures are per-CPU counters since Linux 6.2, and a read of
//! `status` may lag by up to the batch of each CPU. Before, each thread kept up to 64 pages back (mm/memory.c,
//! `SPLIT_RSS_COUNTING`), which is megabytes with the threads of a JVM: there smaps_rollup is asked for the sum.

use serde::{Deserialize, Serialize};

/// Bytes where the kernel prints kB. `None`: the line is not there (a kernel thread, an old kernel).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub state: Option<char>,
    pub threads: Option<u64>,
    pub vm_size_bytes: Option<u64>,
    pub resident_bytes: Option<u64>,
    pub resident_anon_bytes: Option<u64>,
    pub resident_file_bytes: Option<u64>,
    pub resident_shmem_bytes: Option<u64>,
    pub hugetlb_bytes: Option<u64>,
    pub swapped_bytes: Option<u64>,
    pub page_table_bytes: Option<u64>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    /// `NSpid`: the pid in each namespace, outermost first.
    pub namespace_pids: Vec<i32>,
    pub thp_enabled: Option<bool>,
    /// `SigCgt`: signals that have a handler, bit 0 is signal 1.
    pub signals_caught: Option<u64>,
    /// `ShdPnd`: signals to the process that no thread took yet, bit 0 is signal 1.
    pub signals_pending: Option<u64>,
    pub voluntary_switches: Option<u64>,
}

impl Status {
    /// VmRSS does not count hugetlb pages; the account does.
    pub fn resident_with_hugetlb_bytes(&self) -> Option<u64> {
        Some(self.resident_bytes? + self.hugetlb_bytes.unwrap_or(0))
    }

    /// Whether it was killed, or has given its memory back. A SIGKILL stays in `ShdPnd` until nothing is left of the
    /// process: each thread takes its own copy (kernel/signal.c, get_signal and __exit_signal, Linux 6.18).
    pub fn is_ending(&self) -> bool {
        const KILL: u64 = 1 << (libc::SIGKILL - 1);
        self.resident_bytes.is_none() || self.signals_pending.is_some_and(|set| set & KILL != 0)
    }
}

/// Parses the whole file; unknown lines are left alone.
pub fn parse(text: &str) -> Status {
    let mut status = Status::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        let first = value.split_ascii_whitespace().next().unwrap_or("");
        let number = || first.parse::<u64>().ok();
        let kilobytes = || number().and_then(|kb| kb.checked_mul(1024));
        match key {
            "State" => status.state = first.chars().next(),
            "Threads" => status.threads = number(),
            "VmSize" => status.vm_size_bytes = kilobytes(),
            "VmRSS" => status.resident_bytes = kilobytes(),
            "RssAnon" => status.resident_anon_bytes = kilobytes(),
            "RssFile" => status.resident_file_bytes = kilobytes(),
            "RssShmem" => status.resident_shmem_bytes = kilobytes(),
            "HugetlbPages" => status.hugetlb_bytes = kilobytes(),
            "VmSwap" => status.swapped_bytes = kilobytes(),
            "VmPTE" => status.page_table_bytes = kilobytes(),
            "Uid" => status.uid = value.split_ascii_whitespace().nth(1).and_then(|id| id.parse().ok()),
            "Gid" => status.gid = value.split_ascii_whitespace().nth(1).and_then(|id| id.parse().ok()),
            "NSpid" => status.namespace_pids = value.split_ascii_whitespace().flat_map(str::parse).collect(),
            "THP_enabled" => status.thp_enabled = number().map(|flag| flag == 1),
            "SigCgt" => status.signals_caught = u64::from_str_radix(first, 16).ok(),
            "ShdPnd" => status.signals_pending = u64::from_str_radix(first, 16).ok(),
            "voluntary_ctxt_switches" => status.voluntary_switches = number(),
            _ => {}
        }
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_jvm_in_a_container() {
        let text = "Name:\tjava\nState:\tS (sleeping)\nUid:\t1000\t1001\t1000\t1000\nNSpid:\t4711\t7\nVmSize:\t 3405824 kB\n\
                    VmRSS:\t   90032 kB\nRssAnon:\t   63036 kB\nHugetlbPages:\t       0 kB\nVmPTE:\t     512 kB\n\
                    SigCgt:\t2000000181005ccf\nTHP_enabled:\t1\nvoluntary_ctxt_switches:\t17\n";
        let status = parse(text);
        assert_eq!(status.state, Some('S'));
        assert_eq!(status.uid, Some(1001));
        assert_eq!(status.namespace_pids, [4711, 7]);
        assert_eq!(status.resident_bytes, Some(90032 * 1024));
        assert_eq!(status.swapped_bytes, None, "absent is not zero");
        assert_eq!(status.signals_caught.map(|set| set & 4), Some(4));
        assert!(!status.is_ending());
        assert!(parse(&text.replace("SigCgt", "ShdPnd:\t0000000000000100\nSigCgt")).is_ending());
    }

    #[test]
    fn a_killed_process_is_ending_until_it_is_collected() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let path = format!("/proc/{}/status", child.id());
        let read = || parse(&std::fs::read_to_string(&path).expect("its status"));
        assert!(!read().is_ending());
        child.kill().expect("a signal");
        assert!(read().is_ending());
        child.wait().expect("its end");
    }
}
