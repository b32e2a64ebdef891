//! The code cache: one reservation, made before the heap's, and the maps of its heaps next to it.

use super::flags;
use super::sizing::{Sizing, down, up};
use crate::base::Bytes;
use crate::map::Area;
use crate::os::machine::{base_page, hugetlb_sizes};
use crate::pages::types::{Need, Subject};

/// NonNMethodCodeHeapSize without the compilers' buffers (cpu/x86/c2_globals_x86.hpp).
const NON_NMETHOD: Bytes = 5 << 20;
/// Compiler::code_buffer_size(): 512K for code and a tenth of that for constants (c1/c1_Compiler.cpp).
const C1_BUFFER: Bytes = (64 << 10) * 8 + (64 << 10) * 8 / 10;
/// CodeCacheSegmentSize with tiered compilation.
const SEGMENT_BYTES: Bytes = 128;
const RULE: &str = "ReservedCodeCacheSize (code/codeCache.cpp)";
const RULE_GROWS: &str = "ReservedCodeCacheSize, each code heap rounded up (25.0.3 code/codeCache.cpp)";

/// The sizes that the flags of the code cache come to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CodeSizes {
    pub reserved: Bytes,
    /// `None` where the code cache is one heap.
    pub segments: Option<Segments>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Segments {
    pub non_nmethod: Bytes,
    pub profiled: Bytes,
    pub non_profiled: Bytes,
}

impl Segments {
    fn sum(self) -> Bytes {
        self.non_nmethod.saturating_add(self.profiled).saturating_add(self.non_profiled)
    }
}

/// The flags of the sizes, where they were set.
#[derive(Clone, Copy, Default)]
pub(super) struct Given {
    reserved: Option<Bytes>,
    non_nmethod: Option<Bytes>,
    profiled: Option<Bytes>,
    non_profiled: Option<Bytes>,
}

impl Given {
    pub(super) fn of(subject: &Subject) -> Given {
        let flag = |name| flags::flag_bytes(&subject.flags, name);
        let given = Given {
            reserved: flag("ReservedCodeCacheSize"),
            non_nmethod: flag("NonNMethodCodeHeapSize"),
            profiled: flag("ProfiledCodeHeapSize"),
            non_profiled: flag("NonProfiledCodeHeapSize"),
        };
        // A JVM that was asked tells all four, as it made them for the pages that it had. Where that is what it would make of
        // its defaults, they were not set, and with other pages they become others.
        let said = given.reserved.map(|reserved| (reserved, given.segments()));
        let is_default = |page| {
            let default = sized(subject, Given::default(), page);
            said == Some((default.reserved, default.segments))
        };
        if all_segments_round_up(subject)
            && (is_default(base_page()) || hugetlb_sizes().iter().any(|size| is_default(*size)))
        {
            return Given::default();
        }
        given
    }

    /// All three.
    fn segments(self) -> Option<Segments> {
        Some(Segments {
            non_nmethod: self.non_nmethod?,
            profiled: self.profiled?,
            non_profiled: self.non_profiled?,
        })
    }

    fn any_segment(self) -> bool {
        self.non_nmethod.or(self.profiled).or(self.non_profiled).is_some()
    }
}

/// The code cache, then the segment maps where they are large enough for a large page.
pub fn needs(jvm: &Sizing) -> Vec<Need> {
    let subject = jvm.subject;
    let given = Given::of(subject);
    let page = page(jvm, reserved_before(subject, given));
    let sizes = sized(subject, given, page);
    let grows = all_segments_round_up(subject)
        && given.reserved.is_none()
        && sizes.segments.is_some()
        && page > base_page();
    let rule = if grows { RULE_GROWS } else { RULE };
    let mut cache = jvm.whole(Area::JitCode, "code cache", sizes.reserved, page, rule);
    if grows && subject.version.is_none() {
        cache.pages_at_least = up(reserved_before(subject, given), page) / page;
    }
    let mut needs = vec![cache];
    needs.extend(segment_maps(jvm, sizes));
    needs
}

/// The page of the reservation. Eight pages must fit, so that it can grow, where InitialCodeCacheSize is smaller. In 11 and 17
/// the size must be a multiple of the page, or all lies on 4K; in 8 and from 21 it is rounded up (codeCache.cpp page_size,
/// reserve_heap_memory).
fn page(jvm: &Sizing, reserved: Bytes) -> Bytes {
    let initial = jvm.bytes("InitialCodeCacheSize").unwrap_or(2_555_904);
    let min_pages = if initial < reserved || jvm.feature() >= 21 { 8 } else { 1 };
    if jvm.feature() >= 21 || jvm.feature() == 8 {
        jvm.page_unaligned(reserved, min_pages)
    } else {
        jvm.page_aligned(reserved, min_pages)
    }
}

/// Whether the VM is content with a fifth of the code cache. From 17 that is so where it stops at C1 or interprets only; in 11
/// only where it interprets, in 8 neither (compiler/compilerDefinitions.cpp; 8: runtime/arguments.cpp set_tiered_flags).
fn is_small(subject: &Subject) -> bool {
    let is_off = |name| flags::is_on(&subject.flags, name) == Some(false);
    let level = flags::flag_bytes(&subject.flags, "TieredStopAtLevel").unwrap_or(4);
    // -Xint.
    let interpreted = is_off("UseCompiler") && !is_off("UseInterpreter");
    is_off("TieredCompilation")
        || (subject.feature >= 17 && level < 4)
        || (subject.feature >= 11 && interpreted)
}

/// ReservedCodeCacheSize before the code heaps are rounded: 48M, five times that with tiered compilation.
fn reserved_before(subject: &Subject, given: Given) -> Bytes {
    let default = if is_small(subject) { 48 << 20 } else { 240 << 20 };
    up(given.reserved.unwrap_or(default).max(base_page()), base_page())
}

/// codeCache.cpp initialize_heaps, for pages of this size.
pub(super) fn sized(subject: &Subject, given: Given, page: Bytes) -> CodeSizes {
    let before = reserved_before(subject, given);
    // compilerDefinitions.cpp: SegmentedCodeCache is on with tiered compilation and at least 240M.
    let by_size = !is_small(subject) && before >= 240 << 20;
    let segmented =
        flags::is_on(&subject.flags, "SegmentedCodeCache").unwrap_or(by_size || given.any_segment());
    if subject.feature < 9 || !segmented {
        return CodeSizes { reserved: before, segments: None };
    }
    if all_segments_round_up(subject) {
        let segments = rounded_up(subject, given, up(before, page), page);
        return match given.reserved {
            None => CodeSizes { reserved: segments.sum(), segments: Some(segments) },
            Some(_) => {
                CodeSizes { reserved: before, segments: Some(shrunk(segments, up(before, page), page)) }
            }
        };
    }
    let segments = unrounded(subject, given, before);
    let is_rounded = page > base_page() || subject.feature >= 25;
    let segments = if is_rounded { on_pages(subject, before, segments, page) } else { segments };
    CodeSizes { reserved: before, segments: Some(segments) }
}

/// The non-nmethods have 5M and the compilers' buffers, the others half of the rest each.
fn unrounded(subject: &Subject, given: Given, reserved: Bytes) -> Segments {
    let (c1, c2) = compilers(subject);
    let c2_buffer: Bytes = if subject.feature <= 11 { 5568 } else { 6592 };
    let buffers = u64::from(c1) * C1_BUFFER + u64::from(c2) * c2_buffer;
    let non_nmethod = given.non_nmethod.unwrap_or(NON_NMETHOD + buffers);
    let rest = reserved.saturating_sub(non_nmethod);
    let (profiled, non_profiled) = match (given.profiled, given.non_profiled) {
        (Some(profiled), Some(non_profiled)) => (profiled, non_profiled),
        (Some(profiled), None) => (profiled, rest.saturating_sub(profiled)),
        (None, Some(non_profiled)) => (rest.saturating_sub(non_profiled), non_profiled),
        (None, None) => (rest / 2, rest - rest / 2),
    };
    Segments { non_nmethod, profiled, non_profiled }
}

/// The code heaps of 25.0.3: all rounded up.
fn rounded_up(subject: &Subject, given: Given, reserved: Bytes, page: Bytes) -> Segments {
    let raw = unrounded(subject, given, reserved);
    let non_profiled = if given.any_segment() { raw.non_profiled } else { raw.profiled };
    Segments {
        non_nmethod: up(raw.non_nmethod, page),
        profiled: up(raw.profiled, page),
        non_profiled: up(non_profiled, page),
    }
}

/// A size that was given is a hard cap: the non-profiled code heap and then the profiled one give up a page.
fn shrunk(mut segments: Segments, reserved: Bytes, page: Bytes) -> Segments {
    for first in [true, false] {
        if segments.sum() > reserved {
            let heap = if first { &mut segments.non_profiled } else { &mut segments.profiled };
            *heap = heap.saturating_sub(page);
        }
    }
    segments
}

/// The code heaps within a reservation of fixed size: 11 to 21 round the non-nmethods up and the profiled ones down (25.0.2
/// both down), the non-profiled ones have what remains.
fn on_pages(subject: &Subject, reserved: Bytes, segments: Segments, page: Bytes) -> Segments {
    let reserved = up(reserved, page);
    let round = if subject.feature >= 25 { down } else { up };
    let non_nmethod = round(segments.non_nmethod, page);
    let profiled = down(segments.profiled, page);
    let non_profiled = reserved.saturating_sub(non_nmethod).saturating_sub(profiled);
    Segments { non_nmethod, profiled, non_profiled }
}

/// CICompilerCount: log2 n * log2 log2 n * 3 / 2, at least 2 (src/hotspot/share/compiler/compilationPolicy.cpp,
/// `CompilationPolicy::initialize`; JDK 8: advancedThresholdPolicy.cpp gives the same numbers). A small code cache lowers it.
pub fn compiler_threads(cpus: u32) -> u32 {
    let log = cpus.max(1).ilog2();
    (log * log.max(1).ilog2() * 3 / 2).max(2)
}

/// Threads of C1 and C2, a third of them C1.
fn compilers(subject: &Subject) -> (u32, u32) {
    let by_cpus = compiler_threads(subject.cpus);
    let said =
        flags::flag_bytes(&subject.flags, "CICompilerCount").and_then(|count| u32::try_from(count).ok());
    let count = said.filter(|count| (2..=4096).contains(count)).unwrap_or(by_cpus);
    let c1 = (count / 3).max(1);
    (c1, (count - c1).max(1))
}

/// Whether `initialize_heaps` rounds every code heap up to the page. Seen in 25.0.3, not in 25.0.2; a 25 of unknown update is
/// taken for a new one.
fn all_segments_round_up(subject: &Subject) -> bool {
    if subject.feature != 25 {
        return subject.feature > 25;
    }
    let Some(version) = &subject.version else { return true };
    let digits =
        |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>().ok();
    let mut parts = version.split('.').map(digits);
    let (interim, update) = (parts.nth(1).flatten().unwrap_or(0), parts.next().flatten().unwrap_or(0));
    (interim, update) >= (0, 3)
}

/// A byte for each segment of each code heap (memory/heap.cpp CodeHeap::reserve): 128 bytes of code, on 8 64.
/// On aarch64 64 too, since a release after 21 and not after 25 (cpu/aarch64/globals_aarch64.hpp).
fn segment_maps(jvm: &Sizing, sizes: CodeSizes) -> Vec<Need> {
    let segment = jvm.bytes("CodeCacheSegmentSize").filter(|bytes| *bytes > 0);
    let is_small = jvm.feature() == 8 || cfg!(target_arch = "aarch64") && jvm.feature() >= 25;
    let segment = segment.unwrap_or(if is_small { 64 } else { SEGMENT_BYTES });
    let heaps = match sizes.segments {
        // In the order in which the VM makes them.
        Some(s) if jvm.feature() >= 25 => {
            vec![
                ("profiled nmethods", s.profiled),
                ("non-nmethods", s.non_nmethod),
                ("non-profiled nmethods", s.non_profiled),
            ]
        }
        Some(s) => {
            vec![
                ("non-nmethods", s.non_nmethod),
                ("profiled nmethods", s.profiled),
                ("non-profiled nmethods", s.non_profiled),
            ]
        }
        None => vec![("code cache", sizes.reserved)],
    };
    let map = |(name, bytes): (&str, Bytes)| {
        let rule = format!("'{name}': a byte for each segment (memory/heap.cpp)");
        let need = jvm.mixed(Area::JitWork, "code heap segment map", bytes / segment, &rule);
        (need.page_bytes > base_page()).then_some(need)
    };
    heaps.into_iter().filter_map(map).collect()
}
