//! Taking a snapshot: status -> maps -> pages -> runtime -> malloc -> maps again. Pages come before any byte is read, so
//! that no absent page is ever touched; what the second reading of the maps shows as moved is marked torn.

use super::late::{Settling, all_of, all_pages, by_a_thread, page_sizes};
use super::types::{Link, LoaderDetail, Snapshot, Source, Taken, Want};
use super::{held, images, launched, links, moved};
use crate::alloc::{self, AllocView, Heap, thread_arena};
use crate::base::blocks::NoWitness;
use crate::base::{Bytes, Gap, Known, Range, Why, joined, rfc3339};
use crate::jvm::JvmView;
use crate::jvm::hotspot::buffers;
use crate::jvm::hotspot::launch::Launch;
use crate::jvm::hotspot::{self, Hotspot, histogram, loaders};
use crate::jvm::server;
use crate::os::budget;
use crate::os::elf::Image;
use crate::os::facts::process_facts;
use crate::os::host::{self, Host};
use crate::os::live::Live;
use crate::os::maps;
use crate::os::memory::{Memory, NoMemory};
use crate::os::page_kind::PageSizes;
use crate::os::pagemap::{self, Method, PageRun};
use crate::os::priority::Eager;
use crate::os::process::Process;
use crate::os::sharing;
use crate::os::smaps::{self, Smap};
use crate::os::symbols::LiveSymbols;
use crate::os::target::{NoSymbols, OsView, Symbols, Target};
use std::time::{Instant, SystemTime};

/// How often a target that changes is read at most.
const TAKES_MAX: usize = 3;

/// One pass over a live process. Fails only when not even its mappings can be read.
///
/// A busy target changes while it is read: a list may be caught half linked, an arena may be newer than the reading of the
/// pages. Reading it again mostly cures that, so a torn snapshot is taken again, `TAKES_MAX` times at most; the one with
/// the fewest tears is kept. All of it shares one budget (`os::budget`); what was not read when that ended is a gap.
pub fn take(process: &Process, want: Want) -> Known<Snapshot> {
    budget::within(budget::limits(), || take_best(process, want))
}

fn take_best(process: &Process, want: Want) -> Known<Snapshot> {
    let mut best = take_once(process, want)?;
    for _ in 1..TAKES_MAX {
        if tears(&best) == 0 || budget::ended().is_some() || !process.is_same() {
            break;
        }
        // A process that ends leaves what was read before.
        let Ok(again) = take_once(process, want) else { break };
        if tears(&again) <= tears(&best) {
            best = again;
        }
    }
    Ok(best)
}

/// One sample, whatever moved while reading: for who looks again and again, and must not be much of a load himself.
pub fn take_once(process: &Process, want: Want) -> Known<Snapshot> {
    budget::within(budget::limits(), || {
        let _eager = Eager::start();
        let taking = Taking::start(process, !want.objects_by_page_size())?;
        with_memory(process, taking, |taking, memory, symbols| {
            Taking { want, ..taking }.finish(process, memory, symbols)
        })
    })
}

/// How often a reader met what a change may have broken.
fn tears(snapshot: &Snapshot) -> usize {
    let moved = snapshot.taken.changed_while_reading_bytes.is_some_and(|bytes| bytes > 0);
    let torn =
        |gaps: &[Gap]| gaps.iter().filter(|gap| matches!(gap.why, Why::Torn | Why::BadData(_))).count();
    let in_jvm = snapshot.jvm.as_ref().map_or(0, |jvm| torn(&jvm.gaps()));
    let in_alloc = match &snapshot.alloc {
        Ok(alloc) => torn(&alloc.gaps),
        Err(_) => usize::from(moved),
    };
    in_jvm + in_alloc
}

/// As `take`, for a caller that wants to watch what is read: `run` gets the memory and the symbols.
pub fn with_target<T>(
    process: &Process,
    run: impl FnOnce(Taking, &dyn Memory, &dyn Symbols) -> Known<T>,
) -> Known<T> {
    budget::within(budget::limits(), || {
        let _eager = Eager::start();
        with_memory(process, Taking::start(process, false)?, run)
    })
}

fn with_memory<T>(
    process: &Process,
    taking: Taking,
    run: impl FnOnce(Taking, &dyn Memory, &dyn Symbols) -> Known<T>,
) -> Known<T> {
    let view = taking.os.clone();
    let symbols = LiveSymbols::new(process, &view.mappings);
    match Live::open(process, &view) {
        Ok(memory) => run(taking, &memory, &symbols),
        Err(gap) => {
            let mut taking = taking;
            taking.os.gaps.push(gap.clone());
            run(taking, &NoMemory(gap.why), &symbols)
        }
    }
}

/// The kernel's view is taken; the runtime's and malloc's are to come.
pub struct Taking {
    pub os: OsView,
    pub taken: Taken,
    /// What `finish` reads besides; nothing unless it is set.
    pub want: Want,
    started: Instant,
    resident_before: Option<u64>,
    maps_text: Vec<u8>,
}

impl Taking {
    /// `may_be_late`: the pages of large mappings may be looked at while the rest is read.
    fn start(process: &Process, may_be_late: bool) -> Known<Taking> {
        let started = Instant::now();
        let at = rfc3339(SystemTime::now());
        let before = process.status()?;
        let maps_text = process.maps_text()?;
        let mappings = maps::parse(&maps_text).0;
        let mut late = None;
        let pages = match may_be_late {
            true => pagemap::read_early(process, &mappings, &before).map(|(pages, left)| {
                late = left.map(by_a_thread);
                pages
            }),
            false => pagemap::read(process, &mappings, &before, None),
        };
        let status = process.status()?;
        let (facts, mut gaps) = process_facts(process, &status);
        // Kernels without PAGEMAP_SCAN are those whose counters lag by megabytes; most are.
        let lags = pages.as_ref().is_ok_and(|pages| pages.method != Method::PagemapScan);
        let rollup = if lags { smaps::rollup(process).ok() } else { None };
        let exact = rollup.map(|sums| sums.resident_bytes.saturating_add(status.hugetlb_bytes.unwrap_or(0)));
        let pages = pages.map(|mut pages| {
            gaps.append(&mut pages.gaps);
            pages.runs
        });
        let mut tasks = process.tasks().unwrap_or_else(|gap| {
            gaps.push(gap);
            Vec::new()
        });
        if status.namespace_pids.len() > 1 {
            process.read_inner_tids(&mut tasks);
        }
        let taken = Taken {
            at,
            kernel_resident_bytes: exact.or(status.resident_with_hugetlb_bytes()),
            kernel: host::kernel_release(),
            host: Some(Host::here()),
            ..Taken::default()
        };
        let resident_before = before.resident_with_hugetlb_bytes();
        let (page_sizes, smaps) = (None, None);
        let os = OsView { process: facts, status, mappings, pages, late, tasks, gaps, page_sizes, smaps };
        Ok(Taking { os, taken, want: Want::default(), started, resident_before, maps_text })
    }

    /// Reads the runtime and malloc, and looks at the maps once more.
    pub fn finish(self, process: &Process, memory: &dyn Memory, symbols: &dyn Symbols) -> Known<Snapshot> {
        let (started, resident_before) = (self.started, self.resident_before);
        let mut os = self.os;
        let mut taken = self.taken;
        if self.want.objects_by_page_size() {
            os.page_sizes = Some(page_sizes(process, &os));
        }
        let (views, counted) = read_while_counting(process, &os, self.want, memory, symbols);
        if os.late.take().is_some() {
            taken.kernel_resident_bytes = counted.kernel_resident_bytes;
        }
        os.pages = counted.pages;
        os.gaps.extend(counted.gaps);
        os.page_sizes = counted.page_sizes;
        os.smaps = counted.smaps;
        let mut snapshot = views.into_snapshot(os, taken);
        let facts = &mut snapshot.os.process;
        facts.server =
            launched::main(facts).and_then(|main| server::name_of(process, &main, &facts.arguments));
        match budget::ended() {
            // Whoever ends does not want a part of an account.
            Some(gap) if gap.why == Why::Interrupted => return Err(gap),
            Some(gap) => snapshot.os.gaps.push(gap),
            None => {}
        }
        let after = process.status().ok().and_then(|status| status.resident_with_hugetlb_bytes());
        snapshot.taken.changed_while_reading_bytes =
            resident_before.zip(after).map(|(before, after)| before.abs_diff(after));
        match process.maps_text() {
            Err(gap) if gap.why.is_given_up() => {}
            Ok(now) if process.is_same() => {
                if now != self.maps_text {
                    let grown = snapshot.taken.changed_while_reading_bytes.unwrap_or(0);
                    let gap = moved::gap(&snapshot.os, &maps::parse(&now).0, grown);
                    snapshot.os.gaps.extend(gap);
                }
            }
            _ => snapshot.os.gaps.push(
                Gap::new("the process ended while it was read", Why::Gone)
                    .hint("the account is of the moment before; what was not read by then is missing"),
            ),
        }
        snapshot.taken.took_ms = started.elapsed().as_secs_f64() * 1e3;
        Ok(snapshot)
    }
}

/// The kernel's view, completed next to the other readers.
struct Counted {
    pages: Known<Vec<PageRun>>,
    /// Where pages were late: VmRSS and HugetlbPages right after all of them were looked at.
    kernel_resident_bytes: Option<Bytes>,
    page_sizes: Option<Known<PageSizes>>,
    smaps: Option<Known<Vec<Smap>>>,
    gaps: Vec<Gap>,
}

/// The runtime's and malloc's views, and in the meantime how often each page is mapped and on which folio it lies: thousands of
/// small reads of the kernel that need nothing of the views.
fn read_while_counting(
    process: &Process,
    os: &OsView,
    want: Want,
    memory: &dyn Memory,
    symbols: &dyn Symbols,
) -> (Views, Counted) {
    let count = || {
        let (mut gaps, mut kernel_resident_bytes) = (Vec::new(), None);
        if let Some(late) = &os.late {
            let settling = Settling(late);
            settling.0.settle(all_pages(process, os, late, &mut gaps));
            let status = process.status().ok();
            kernel_resident_bytes = status.and_then(|status| status.resident_with_hugetlb_bytes());
        }
        let mut runs = all_of(os).clone()?;
        gaps.extend(sharing::fill(process, &os.mappings, &mut runs));
        Ok((runs, kernel_resident_bytes, gaps))
    };
    std::thread::scope(|scope| {
        let counting = scope.spawn(budget::inherit(count));
        let sizing = want.page_sizes && os.page_sizes.is_none();
        let sizing = sizing.then(|| scope.spawn(budget::inherit(|| page_sizes(process, os))));
        let smaps = want.smaps.then(|| scope.spawn(budget::inherit(|| smaps::read(process))));
        let views = Views::read(os, memory, symbols, want);
        let (pages, kernel_resident_bytes, gaps) = match counting.join() {
            Ok(Ok((runs, resident, gaps))) => (Ok(runs), resident, gaps),
            Ok(Err(gap)) => (Err(gap), None, Vec::new()),
            Err(_) => (all_of(os).clone(), None, vec![Gap::new("how often pages are mapped", Why::Torn)]),
        };
        let torn = |what: &str| Gap::new(what, Why::Torn);
        let page_sizes = sizing.map(|sizing| sizing.join().unwrap_or_else(|_| Err(torn("sizes of folios"))));
        let page_sizes = page_sizes.or_else(|| os.page_sizes.clone());
        let smaps = smaps.map(|smaps| smaps.join().unwrap_or_else(|_| Err(torn("smaps"))));
        (views, Counted { pages, kernel_resident_bytes, page_sizes, smaps, gaps })
    })
}

/// What was read next to the kernel's view.
struct Views {
    images: Vec<Image>,
    jvm: Known<JvmView>,
    alloc: Known<AllocView>,
    links: Vec<Link>,
    launch: Option<Launch>,
}

/// The runtime's and malloc's view of what the kernel's view shows. Live, frozen and core alike.
pub fn interpret(
    os: OsView,
    taken: Taken,
    memory: &dyn Memory,
    symbols: &dyn Symbols,
    want: Want,
) -> Snapshot {
    Views::read(&os, memory, symbols, want).into_snapshot(os, taken)
}

impl Views {
    fn into_snapshot(self, mut os: OsView, taken: Taken) -> Snapshot {
        let Views { images, jvm, alloc, links, launch } = self;
        // A frozen file has none of these texts.
        if let Some(launch) = launch.filter(|_| taken.source != Source::Frozen) {
            os.process.set_launch(&launch.options, &launch.java_command);
        }
        os.process.server =
            launched::main(&os.process).and_then(|main| server::name(&main, &os.process.arguments));
        Snapshot { taken, os, images, jvm, alloc, links }
    }

    fn read(os: &OsView, memory: &dyn Memory, symbols: &dyn Symbols, want: Want) -> Views {
        let target = Target { view: os, memory, symbols };
        let images = images::read(&target);
        let opened = hotspot::open(&target);
        let mut jvm = opened.as_ref().map(|opened| hotspot::read(&target, opened)).map_err(Gap::clone);
        let launch = opened.as_ref().ok().and_then(|it| launched::read(&os.process, &it.vm(&target)));
        if let (LoaderDetail::Brief, Ok(opened), Ok(jvm)) = (want.loaders, &opened, &mut jvm) {
            jvm.loaders = Some(loaders::brief(&opened.vm(&target)));
        }
        let mut owned: Vec<Range> =
            jvm.iter().flat_map(|jvm| jvm.extents.iter().map(|extent| extent.range)).collect();
        if let (Some(wanted), Ok(jvm), Ok(opened)) = (want.heap, &mut jvm, &opened) {
            jvm.histogram = Some(histogram::read(&opened.vm(&target), jvm, wanted));
        }
        if want.is_shallow {
            let unread = Gap::new("malloc's blocks", Why::NotMeasured).hint("a full reading took too long");
            return Views { images, jvm, alloc: Err(unread), links: Vec::new(), launch };
        }
        // Malloc's readers go through all pages, not only through those of an address.
        let completed = os.completed();
        let os = completed.as_ref().unwrap_or(os);
        let target = Target { view: os, memory, symbols };
        let vm = opened.as_ref().ok().map(|opened| opened.vm(&target));
        let mut runtime = vm.as_ref().zip(jvm.as_mut().ok());
        let heap = heap(&target, &mut runtime, &joined(owned.clone()));
        if let (true, Err(_), Some((vm, view))) = (want.buffers, &heap, &mut runtime) {
            buffers::note(vm, view, None);
        }
        owned.extend(heap.iter().flat_map(|heap| heap.held()));
        owned.extend(images.iter().flat_map(Image::ranges));
        let other = memory.another();
        let (alloc, links) = std::thread::scope(|scope| {
            let linking = other.map(|memory| {
                let (images, owned) = (&images, &owned);
                scope.spawn(budget::inherit(move || {
                    let target = Target { view: os, memory: memory.as_ref(), symbols: &NoSymbols };
                    links::read(&target, images, owned)
                }))
            });
            if let (LoaderDetail::All, Err(_), Some((vm, view))) = (want.loaders, &heap, &mut runtime) {
                view.loaders = Some(loaders::read(vm, view, None));
            }
            let mut alloc = heap.map(|heap| labelled(heap, &mut runtime, &images, want));
            if let (Ok(alloc), Some((_, view))) = (&mut alloc, &runtime) {
                let stacks =
                    view.threads.iter().filter_map(|thread| Some((thread.tid, *thread.stack.as_ref().ok()?)));
                thread_arena::note(memory, stacks, &mut alloc.arenas);
            }
            let links = linking.and_then(|linking| linking.join().ok());
            (alloc, links.unwrap_or_else(|| links::read(&target, &images, &owned)))
        });
        Views { images, jvm, alloc, links, launch }
    }
}

/// The VM and its view, which gets what is learnt of its blocks.
type Runtime<'a> = Option<(&'a Hotspot<'a>, &'a mut JvmView)>;

/// Walks malloc's heap; what the runtime knows of its blocks is asked for.
fn heap(target: &Target, runtime: &mut Runtime, owned: &[Range]) -> Known<Heap> {
    let witness = match runtime {
        Some((vm, view)) => hotspot::owners::witness(vm, view),
        None => Box::new(NoWitness),
    };
    alloc::read(target, owned, witness.as_ref())
}

fn labelled(mut heap: Heap, runtime: &mut Runtime, images: &[Image], want: Want) -> AllocView {
    if let Some((vm, view)) = runtime {
        hotspot::owners::label(vm, view, &mut heap);
        if want.holders {
            view.holders = Some(held::read(vm, view, &heap, images));
        }
        if want.loaders == LoaderDetail::All {
            view.loaders = Some(loaders::read(vm, view, Some(&heap)));
        }
        if want.buffers {
            buffers::note(vm, view, Some(&heap));
        }
    }
    heap.finish()
}
