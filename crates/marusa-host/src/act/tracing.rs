//! Tracing of the kernel's memory events in an instance of tracefs of our own: made, read, and taken away again whatever
//! happens to us. Nothing that is shared on the host is written: neither the top-level buffer, nor its events, nor its switch.
//!
//! It costs the host, while it lives: memory for the buffers (`TRACE_BUFFER_BYTES` in all, fixed at the start), one process that
//! waits (`guardian`), and at each traced event the writing of some 50 bytes. Allocations of single pages are turned away by a
//! filter in the kernel, which costs each fault of 4 KiB some 0.1 us of the 1.7 us that it takes (`Wanted::no_allocations`).
//!
//! No file of the instance is held open between two readings, so that its directory can be removed at any time.

mod guardian;
mod instance;
mod probe;

use crate::base::limits::{
    TRACE_BUFFER_BYTES, TRACE_CPU_BUFFER_BYTES_MAX, TRACE_CPU_BUFFER_BYTES_MIN, TRACE_PAGES_READ_MAX,
    TRACE_THREADS_MAX,
};
use crate::base::{Bytes, Gap, Known, Why};
use crate::os::host;
use crate::os::trace::decode::{Decoder, Record, Source};
use crate::os::trace::format::{Format, PageForm};
use crate::os::trace::names::{self, Threads};
use crate::os::trace::tracefs::{self, FIRST_PID_NAMESPACE, WHAT};
use crate::os::trace::{Batch, Hole, ring};
use instance::Instance;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// How often it is tried to find out what the end of a huge page's fault is: at the start, and at later readings.
const TRIALS_MAX: u32 = 10;

/// What may be chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Bytes of each CPU's buffer; as much as `base::limits` allows where it is `None`. The kernel gives at least two pages.
    pub cpu_buffer_bytes: Option<Bytes>,
    /// Without `PageAlloc` and `PageTable`, for hosts with very many faults: the filter that turns single pages away costs each
    /// fault of 4 KiB some 0.1 us of 1.7 us. Then collapses have no begin, and huge faults no time.
    pub no_allocations: bool,
}

/// A running trace. Dropped, it ends and is gone.
#[derive(Debug)]
pub struct Tracing {
    instance: Instance,
    decoder: Decoder,
    form: PageForm,
    cpus: Vec<u32>,
    threads: Threads,
    /// Whether a thread's number in an event is its number in our /proc.
    sees_all_pids: bool,
    /// What the clock of our time namespace is ahead of the kernel's.
    clock_ahead_ns: i64,
    /// Records of a time after the last batch.
    later: Vec<Record>,
    /// What the next batch has already, next to events: of trials that read before it.
    early: Batch,
    lost: BTreeMap<u32, u64>,
    gaps: Vec<Gap>,
    fault_times: Known<()>,
    trials_left: u32,
    buffer_bytes: Bytes,
}

impl Tracing {
    /// Makes the instance and begins to trace.
    pub fn start(wanted: &Wanted) -> Known<Tracing> {
        let tracefs = tracefs::directory()?;
        instance::sweep(&tracefs);
        let instance = Instance::make(&tracefs)?;
        let failed = |error: io::Error| tracefs::refused(&instance.directory, &error);
        let (decoder, mut gaps) = Decoder::new(&formats(&instance))?;
        let form = PageForm::parse(&instance.text("events/header_page").map_err(failed)?);
        let form = form.ok_or_else(|| unknown_form("events/header_page"))?;
        let cpus = tracefs::cpus(&instance.directory).map_err(failed)?;
        set_clock(&instance)?;
        let buffer_bytes = set_size(&instance, wanted, online_cpus()).map_err(failed)?;
        gaps.extend(enable(&instance, &decoder, wanted));
        instance.write("tracing_on", "1").map_err(failed)?;
        let sees_all_pids = tracefs::pid_namespace("self") == Some(FIRST_PID_NAMESPACE);
        if !sees_all_pids {
            gaps.push(Gap::new("threads of traced events", Why::Denied).hint(
                "the kernel numbers them as the host does, and this is a pid namespace of a container: run marusa on the host, or \
                 in a container with --pid=host",
            ));
        }
        let mut tracing = Tracing {
            instance,
            decoder,
            form,
            cpus,
            threads: if sees_all_pids { threads_now() } else { Threads::default() },
            sees_all_pids,
            clock_ahead_ns: tracefs::clock_ahead_ns(
                &host::text("/proc/self/timens_offsets").unwrap_or_default(),
            ),
            later: Vec::new(),
            early: Batch::default(),
            lost: BTreeMap::new(),
            gaps,
            fault_times: Err(Gap::new(probe::WHAT, Why::NotMeasured).hint("allocations are not traced")),
            trials_left: 0,
            buffer_bytes,
        };
        if !wanted.no_allocations {
            tracing.trials_left = TRIALS_MAX;
            tracing.try_fault_times();
        }
        Ok(tracing)
    }

    /// What this kernel does not tell, or does not tell us.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Whether from `PageAlloc` of order 9 to the next `PageTable` of the same thread is the zeroing of a huge page: so since Linux
    /// 6.13. Before, the page table is taken first, and nothing tells when a fault ends. It is found out by a trial at the start,
    /// and at later readings while there was no free huge page for one: so ask after the last reading.
    pub fn fault_times(&self) -> &Known<()> {
        &self.fault_times
    }

    /// Memory of the kernel's that the buffers of all CPUs take.
    pub fn buffer_bytes(&self) -> Bytes {
        self.buffer_bytes
    }

    /// The directory of the instance.
    pub fn directory(&self) -> &Path {
        &self.instance.directory
    }

    /// What happened since the last reading, or since the start.
    pub fn read(&mut self) -> Known<Batch> {
        self.try_fault_times();
        let mut batch = Batch { until_ns: self.now_ns(), ..std::mem::take(&mut self.early) };
        let mut records = std::mem::take(&mut self.later);
        let fresh = self.drain(&mut batch);
        records.extend(fresh.map_err(|error| tracefs::refused(&self.instance.directory, &error))?);
        records.sort_by_key(Record::at_ns);
        let split = records.partition_point(|record| record.at_ns() <= batch.until_ns);
        self.later = records.split_off(split);
        if batch.lost > 0 {
            self.threads.forget();
        }
        for record in records {
            match record {
                Record::Event(event) => batch.events.push(event),
                Record::Life { life, .. } => self.threads.lived(life),
            }
        }
        let sees_all_pids = self.sees_all_pids;
        let living = |tid: i32| {
            let status =
                host::read_start(format!("/proc/{tid}/status"), 4096).ok().filter(|_| sees_all_pids)?;
            names::living(&String::from_utf8_lossy(&status))
        };
        (batch.names, batch.tgids) = self.threads.of(&batch.events, living);
        Ok(batch)
    }

    fn try_fault_times(&mut self) {
        if self.trials_left > 0 && self.fault_times.as_ref().is_err_and(|gap| gap.why == Why::NotMeasured) {
            self.trials_left -= 1;
            self.fault_times = probe::fault_times(self);
        }
    }

    /// Empties the buffers of all CPUs; counts what was lost, and where.
    fn drain(&mut self, batch: &mut Batch) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        let mut page = vec![0; self.form.bytes];
        for cpu in self.cpus.clone() {
            self.drain_cpu(cpu, &mut page, batch, &mut records)?;
            let stats = self.instance.text(&format!("per_cpu/cpu{cpu}/stats"))?;
            let lost = tracefs::lost(&stats);
            let before = self.lost.insert(cpu, lost).unwrap_or(0);
            batch.lost = batch.lost.saturating_add(lost.saturating_sub(before));
        }
        Ok(records)
    }

    fn drain_cpu(
        &self,
        cpu: u32,
        page: &mut [u8],
        batch: &mut Batch,
        into: &mut Vec<Record>,
    ) -> io::Result<()> {
        let path = self.instance.directory.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let mut pipe = std::fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        for _ in 0..TRACE_PAGES_READ_MAX {
            let length = match pipe.read(page) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            batch.bytes = batch.bytes.saturating_add(length as u64);
            let found = ring::events(&page[..length], &self.form, |at_ns, bytes| {
                match self.decoder.decode(at_ns, cpu, bytes) {
                    Ok(record) => into.extend(record),
                    Err(_) => batch.undecoded += 1,
                }
            });
            let Some(found) = found else { break };
            if found.has_hole {
                batch.holes.push(Hole { cpu, before_ns: found.from_ns, lost: found.lost });
            }
            batch.undecoded += u64::from(found.is_broken);
            // What came while we read is for the next time: a busy CPU must not keep us here.
            if found.from_ns > batch.until_ns {
                break;
            }
        }
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        let now = clock_ns() as i64;
        now.saturating_sub(self.clock_ahead_ns).max(0) as u64
    }
}

fn clock_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

fn unknown_form(what: &str) -> Gap {
    Gap::new(WHAT, Why::NotInThisKernel).hint(format!("{what} is not of the known form"))
}

/// The formats of the tracepoints that are here.
fn formats(instance: &Instance) -> BTreeMap<Source, Format> {
    let format = |source: Source| {
        let text = instance.text(&format!("events/{}/format", source.directory())).ok()?;
        Some((source, Format::parse(&text)?))
    };
    Source::all().filter_map(format).collect()
}

/// The clock that others can be compared with, and that never stops.
fn set_clock(instance: &Instance) -> Known<()> {
    let set = || {
        instance.write("trace_clock", "mono")?;
        instance.text("trace_clock")
    };
    match set() {
        Ok(text) if text.contains("[mono]") => Ok(()),
        Ok(_) => Err(unknown_form("trace_clock")),
        Err(error) => Err(tracefs::refused(&instance.directory, &error)),
    }
}

/// The ones that have a buffer now: the kernel makes one for each of the others when it comes.
fn online_cpus() -> u64 {
    crate::os::machine::sysconf(libc::_SC_NPROCESSORS_ONLN).unwrap_or(1)
}

/// The same for each CPU, so that all of them together stay below `TRACE_BUFFER_BYTES` up to 512 CPUs.
fn set_size(instance: &Instance, wanted: &Wanted, cpus: u64) -> io::Result<Bytes> {
    let share = (TRACE_BUFFER_BYTES / cpus.max(1)).min(TRACE_CPU_BUFFER_BYTES_MAX);
    let bytes =
        wanted.cpu_buffer_bytes.map_or(share.max(TRACE_CPU_BUFFER_BYTES_MIN), |bytes| bytes.min(share));
    // The oldest events go first, whatever the top level was set to.
    instance.write("options/overwrite", "1")?;
    instance.write("buffer_size_kb", &(bytes / 1024).max(1).to_string())?;
    let total = instance.text("buffer_total_size_kb")?;
    let kilobytes = total.split_ascii_whitespace().next().and_then(|word| word.parse::<u64>().ok());
    Ok(kilobytes.map_or(bytes.saturating_mul(cpus), |kilobytes| kilobytes.saturating_mul(1024)))
}

/// Turns on what can be read; allocations never without their filter.
fn enable(instance: &Instance, decoder: &Decoder, wanted: &Wanted) -> Vec<Gap> {
    let one = |source: Source| {
        let directory = format!("events/{}", source.directory());
        let format = Format::parse(&instance.text(&format!("{directory}/format"))?).unwrap_or_default();
        if let Some(filter) = source.filter(&format) {
            instance.write(&format!("{directory}/filter"), &filter)?;
        }
        instance.write(&format!("{directory}/enable"), "1")
    };
    let gap = |source: Source, error: io::Error| {
        let gap = tracefs::refused(&instance.directory.join("events").join(source.directory()), &error);
        Gap { what: format!("tracepoint {}", source.name()), ..gap }
    };
    let sources = decoder.sources().filter(|source| !wanted.no_allocations || *source != Source::PageAlloc);
    sources.filter_map(|source| one(source).err().map(|error| gap(source, error))).collect()
}

/// All threads of the host, by their directories alone.
fn threads_now() -> Threads {
    let mut threads = Threads::default();
    let mut left = TRACE_THREADS_MAX;
    for pid in host::pids().unwrap_or_default() {
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten().take(left)
        {
            if let Some(tid) = task.file_name().to_str().and_then(|name| name.parse().ok()) {
                threads.remember(tid, pid);
                left = left.saturating_sub(1);
            }
        }
    }
    threads
}
