//! Native memory that grows: blocks of malloc in use, by the buffers and the holders that grow with them, and freed memory that
//! malloc keeps.

use super::grown::Grown;
use super::{Answer, Details, Look, Seen, Sure};
use crate::base::printable::escaped;
use crate::base::{Bytes, counted};
use crate::doctor::rules::{native_memory_not_closed, nio_cache_large, unattributed_large};
use crate::jvm::{BufferKind, BufferRow, Held, HeldBy, NO_HOLDER, UNREACHED, VM_HOLDER};
use crate::map::Area;
use crate::map::rows::Named;
use crate::map::sums::Sum;
use std::collections::BTreeMap;

/// Whose bytes are blocks of malloc in use, or mappings that a library made.
const IN_USE: [Area; 5] =
    [Area::DirectBuffers, Area::MallocUnknown, Area::NativeLibrary, Area::JvmWork, Area::Unattributed];
/// The areas among these with blocks that the VM does not own.
const OF_THE_PROGRAM: [Area; 3] = [Area::MallocUnknown, Area::NativeLibrary, Area::Unattributed];
/// From here on holders and buffers are read though nothing grows: the doctor's rules name no less.
const HOLDERS_BYTES: Bytes = 32 << 20;
/// And of a large process, this part of it: reading takes a second for 2 GB of heap.
const HOLDERS_PART: Bytes = 20;
const BUFFERS_BYTES: Bytes = 64 << 20;
/// Buffers are looked for in the whole heap, some times: of a larger one only where direct buffers are known to grow.
const BUFFERS_HEAP_BYTES_MAX: Bytes = 1 << 30;
/// What grows by less between the first samples is not worth a reading of the heap.
const EARLY_BYTES: Bytes = 256 << 10;
/// A holder that grows by less than this share of all growth is not an answer.
const NAMED_SHARE: f64 = 0.25;
/// Freed memory, and the VM's own, come and go by some mebibytes with each compilation and class that is loaded.
const FREED_LEAST: Bytes = 8 << 20;
const VM_LEAST: Bytes = 16 << 20;
/// A box that the JDK makes when a `long` is passed as an object: it is not kept for the sake of the address.
const BOXED: &str = "java.lang.Long.value";
/// Fields by which the JDK itself knows a buffer: its holder is among the buffers.
const OF_BUFFERS: [&str; 3] = ["java.nio.", "sun.nio.ch.", "io.netty.buffer."];

pub fn details(looks: &[Look], is_final: bool) -> Details {
    let regular: Vec<&Look> = looks.iter().filter(|look| !look.is_extra).collect();
    let Some(last) = regular.last() else { return Details::default() };
    let seen = Seen { looks, jvm: None, findings: &[], classes: &[] };
    let grows = |areas: &[Area]| match is_final {
        true => seen.grown(areas, 0).is_some(),
        false => last.resident_of(areas) - regular[0].resident_of(areas) >= EARLY_BYTES as f64,
    };
    let is_large = |areas: &[Area], bytes: Bytes| is_final && last.resident_of(areas) >= bytes as f64;
    let resident = last.account.kernel_or_resident_bytes();
    let is_growing = grows(&IN_USE);
    let direct = [Area::DirectBuffers];
    let heap = last.account.resident_bytes_of(Area::JavaHeap);
    // Without Native Memory Tracking, large ones are of an unknown owner until they are looked for.
    let may_be_buffers = is_growing || is_large(&[Area::DirectBuffers, Area::MallocUnknown], BUFFERS_BYTES);
    Details {
        holders: is_growing || is_large(&OF_THE_PROGRAM, HOLDERS_BYTES.max(resident / HOLDERS_PART)),
        buffers: grows(&direct)
            || is_large(&direct, BUFFERS_BYTES)
            || may_be_buffers && heap <= BUFFERS_HEAP_BYTES_MAX,
    }
}

pub fn answers(seen: &Seen, counted: &[Answer]) -> Vec<Answer> {
    let mut answers = Vec::new();
    if let Some(grown) = seen.grown(&IN_USE, 0) {
        let (named, explained) = owners(seen, &grown);
        answers.extend(named);
        // Loaders and threads make the VM allocate: that is one cause.
        let rest = grown.by as f64 - explained;
        let is_explained = rest < grown.by as f64 * 0.5 || !counted.is_empty();
        answers.extend(if is_explained { None } else { unnamed(seen, rest) });
    }
    answers.extend(freed(seen));
    answers
}

/// Buffers and holders that grow with it, and the bytes that they explain of its growth.
fn owners(seen: &Seen, grown: &Grown) -> (Vec<Answer>, f64) {
    let (first, last) = seen.detailed();
    let Some(last) = last else { return (Vec::new(), 0.0) };
    let hours = first.map(|first| (last.seconds - first.seconds) / 3600.0);
    // The growth in the time between the two details.
    let by = hours.map_or(grown.by as f64, |hours| grown.per_hour as f64 * hours);
    let of_row = |now: Bytes, before: Option<Bytes>| match first {
        Some(_) => now as f64 - before.unwrap_or(0) as f64,
        // Only the size is known: at most it grew by all of the growth.
        None => (now as f64).min(by),
    };
    let as_grown = |more: f64| Grown {
        by: more as i64,
        per_hour: hours.map_or(grown.per_hour, |hours| (more / hours.max(1e-9)) as i64),
        sure: if first.is_some() { grown.sure } else { Sure::Possible },
        ..*grown
    };
    let is_named = |more: f64| more > 0.0 && more >= by * NAMED_SHARE && more >= EARLY_BYTES as f64;
    let (mut answers, mut explained, mut of_buffers) = (Vec::new(), 0.0, 0.0);
    let before = first.map(|first| buffers(first)).unwrap_or_default();
    let now = buffers(last);
    let more =
        |(key, row): (&BufferKey, &&BufferRow)| of_row(row.bytes, before.get(key).map(|row| row.bytes));
    let named: Vec<(f64, &BufferRow)> =
        now.iter().map(|pair| (more(pair), *pair.1)).filter(|(more, _)| is_named(*more)).collect();
    let has_owner = named.iter().any(|(_, row)| !is_passing(row));
    for (more, row) in named {
        of_buffers += more;
        if !(has_owner && is_passing(row)) {
            answers.push(buffer(row, seen).growing(&as_grown(more), seen));
        }
    }
    explained += of_buffers;
    for ((_, holder), sum) in last.sums.named.iter().filter(|((kind, _), _)| *kind == Named::Holder) {
        let is_buffers = of_buffers > 0.0 && OF_BUFFERS.iter().any(|start| holder.starts_with(start));
        if is_buffers {
            continue;
        }
        let before = first.and_then(|first| first.sums.named.get(&(Named::Holder, holder.clone()))?.in_use);
        let more = of_row(sum.in_use.unwrap_or(0), before);
        let rows = last.account.holders.iter().flatten().filter(|held| held.holder == *holder);
        let held = rows.max_by_key(|held| held.bytes);
        let held = held.filter(|held| !is_vms(held) && held.how != HeldBy::Unknown);
        if let (true, Some(held)) = (is_named(more), held) {
            explained += more;
            answers.push(holder_of(held, seen).growing(&as_grown(more), seen));
        }
    }
    if first.is_none() {
        // The largest is the best guess; the others would only be large.
        answers.sort_by_key(|answer| std::cmp::Reverse(answer.bytes));
        answers.truncate(1);
    }
    (answers, explained * if first.is_some() { grown.by as f64 / by.max(1.0) } else { 1.0 })
}

/// A field may have an address that was freed and is the VM's now: what the blocks are says so.
fn is_vms(held: &Held) -> bool {
    let is_libjvm = |path: &str| path.ends_with("/libjvm.so");
    held.holder == VM_HOLDER || is_libjvm(&held.holder) || held.library.as_deref().is_some_and(is_libjvm)
}

type BufferKey = (BufferKind, String);

/// Held by a stack or garbage at the moment, or by an array that its list has left behind.
fn is_passing(row: &BufferRow) -> bool {
    row.holder == NO_HOLDER || row.holder.ends_with("[]")
}

/// Without mapped files, which are in another area.
fn buffers(look: &Look) -> BTreeMap<BufferKey, &BufferRow> {
    let rows = look.account.buffers.iter().flatten().filter(|row| row.kind != BufferKind::Mapped);
    rows.map(|row| ((row.kind, row.holder.clone()), row)).collect()
}

fn buffer(row: &BufferRow, seen: &Seen) -> Answer {
    let what = match row.kind {
        BufferKind::NioCache => {
            "temporary direct buffers that the JDK keeps for each thread (NIO cache)".to_string()
        }
        kind => [kind.words(), "buffers that are kept"].join(" "),
    };
    let mut answer = Answer::new(what, Some(&row.holder));
    answer.bytes = Some(row.bytes);
    answer.how =
        format!("{}, found in the Java heap with the field that leads to them", counted(row.count, "buffer"));
    (answer.next, answer.fix) = match row.kind {
        BufferKind::NioCache => (
            Some(format!("{}=262144", nio_cache_large::PROPERTY)),
            Some("or let these threads read and write direct buffers of their own".to_string()),
        ),
        _ => (Some(format!("marusa map {} --by buffer", seen.pid())), None),
    };
    answer.area = Some(Area::DirectBuffers);
    answer
}

fn holder_of(held: &Held, seen: &Seen) -> Answer {
    let is_buffers = OF_BUFFERS.iter().any(|start| held.holder.starts_with(start));
    let by = if is_buffers { "buffer" } else { "holder" };
    let by_holder = Some(format!("marusa map {} --by {by}", seen.pid()));
    let mut answer = match (held.holder.as_str(), native_memory_not_closed::advice(&held.holder)) {
        (UNREACHED | BOXED, _) => lost(held, seen),
        (holder, Some(advice)) => {
            let class = holder.rsplit_once('.').map_or(holder, |(class, _)| class);
            let class = class.split('$').next().unwrap_or(class);
            let mut answer =
                Answer::new(format!("objects that are not closed: {}", escaped(class)), Some(holder));
            answer.fixed_by(advice);
            answer
        }
        (holder, None) if is_buffers => Answer::new("direct buffers that are kept", Some(holder)),
        (holder, None) if matches!(held.how, HeldBy::Field | HeldBy::Static) => {
            Answer::new("native memory (Unsafe or JNI) whose address a Java field has", Some(holder))
        }
        (holder, None) => Answer::new("native memory of a library", Some(holder)),
    };
    let kind = held.of_what().map_or(String::new(), |kind| format!(" of {}", escaped(kind)));
    if answer.how.is_empty() {
        answer.how = format!("{} of malloc{kind}, by {}", counted(held.blocks, "block"), held.how_in_words());
    }
    answer.bytes = Some(held.bytes);
    answer.next = answer.next.or(by_holder);
    answer.area = Some(Area::MallocUnknown);
    answer
}

/// Blocks whose addresses were dropped: a library's or those of Unsafe, by the thread that allocates.
fn lost(held: &Held, seen: &Seen) -> Answer {
    let libraries = seen.jvm.map(unattributed_large::foreign_libraries).unwrap_or_default();
    let is_boxed = held.holder == BOXED;
    let thread = allocating_thread(seen);
    let (what, owner, sure) = match (&held.kind, libraries.first()) {
        // C++ objects say whose they are.
        (Some(kind), _) if !is_boxed => {
            let library = held.library.as_deref().and_then(|path| path.rsplit('/').next());
            let what = format!("objects of {} that nothing points to: they leaked", escaped(kind));
            (what, escaped(library.unwrap_or("a library")).into_owned(), Sure::Likely)
        }
        (None, Some(first)) if !is_boxed => {
            let more = if libraries.len() > 1 {
                format!(" or {}", counted(libraries.len() - 1, "other"))
            } else {
                String::new()
            };
            let what = "malloc blocks of a JNI library that nothing points to: they leaked".to_string();
            (what, format!("{}{more}", escaped(first)), Sure::Likely)
        }
        _ => (
            "Unsafe memory (Unsafe.allocateMemory) that nothing points to: it leaked".to_string(),
            "the caller of Unsafe.allocateMemory".to_string(),
            Sure::Likely,
        ),
    };
    let who = match &thread {
        Some(thread) => format!("{owner}, in thread {}", escaped(thread)),
        None => owner,
    };
    let mut answer = Answer::new(what, Some(&who));
    answer.sure = sure;
    let boxed = if is_boxed { "only java.lang.Long boxes" } else { "no field, library, thread or block" };
    let loaded = if libraries.is_empty() {
        "; no library is loaded that is not the JDK's or the system's"
    } else {
        ""
    };
    answer.how = format!("{} of malloc to which {boxed} leads{loaded}", counted(held.blocks, "block"));
    answer.fixed_by("free each block, also where an exception is thrown");
    answer
}

/// The threads of the arena that grew most, where it has more than half of the growth of all.
fn allocating_thread(seen: &Seen) -> Option<String> {
    let (first, last) = (seen.regular().next()?, seen.last()?);
    let in_use =
        |look: &Look, at: &u64| look.sums.arenas.get(at).and_then(|arena| arena.in_use).unwrap_or(0) as i64;
    let grown: Vec<(u64, i64)> =
        last.sums.arenas.keys().map(|at| (*at, in_use(last, at) - in_use(first, at))).collect();
    let all: i64 = grown.iter().map(|(_, by)| (*by).max(0)).sum();
    let (at, by) = grown.into_iter().max_by_key(|(_, by)| *by)?;
    let arena = last.account.malloc.as_ref()?.arenas.iter().find(|arena| arena.address.0 == at)?;
    // The main arena is that of the first thread and of all that found no other.
    if by <= 0 || by.saturating_mul(2) < all || arena.threads.len() != 1 {
        return None;
    }
    let thread = last.account.threads.iter().find(|thread| thread.tid == arena.threads[0])?;
    Some(thread.name.clone())
}

/// Growth of which no holder has most: the part of the account that grew.
fn unnamed(seen: &Seen, rest: f64) -> Option<Answer> {
    let (first, last) = (seen.regular().next()?, seen.last()?);
    let more = |area: &Area| last.resident_of(&[*area]) - first.resident_of(&[*area]);
    let area = IN_USE.into_iter().max_by(|one, other| more(one).total_cmp(&more(other)))?;
    if area == Area::JvmWork && rest < VM_LEAST as f64 {
        return None;
    }
    let grown = seen.grown(&[area], 0)?;
    let of =
        |look: &Look, part: &String| look.sums.parts.get(&(area, part.clone())).map_or(0, |sum| sum.resident);
    let parts = last.sums.parts.keys().filter(|(of, _)| *of == area).map(|(_, part)| part);
    let part = parts.max_by_key(|part| of(last, part) as i64 - of(first, part) as i64)?;
    let thread = allocating_thread(seen).map(|thread| format!(", allocated by thread {thread}"));
    let mut answer = Answer::new(
        format!("{}: its owner is not known", area.title()),
        Some(&format!("{part}{}", thread.unwrap_or_default())),
    );
    answer.bytes = Some(last.resident_of(&[area]) as Bytes);
    answer.sure = Sure::Likely;
    answer.how = format!("the account; {}", grown.words());
    let by = if area == Area::Unattributed { "mapping" } else { "holder" };
    answer.next = Some(format!("marusa map {} --by {by}", seen.pid()));
    answer.area = Some(area);
    Some(answer.growing(&grown, seen))
}

/// Freed memory that malloc keeps more and more of.
fn freed(seen: &Seen) -> Option<Answer> {
    let grown = seen.grown(&[Area::MallocFreed], FREED_LEAST)?;
    let last = seen.last()?;
    let mut answer = freed_in(seen)?;
    answer.bytes = Some(last.resident_of(&[Area::MallocFreed]) as Bytes);
    answer.how = format!("malloc's own lists of free chunks; {}", grown.words());
    Some(answer.growing(&grown, seen))
}

/// What is freed, by the arenas that hold it.
pub fn freed_in(seen: &Seen) -> Option<Answer> {
    let last = seen.last()?;
    let freed = |arena: &Sum| arena.freed.unwrap_or(0);
    let mut arenas: Vec<_> = last.sums.arenas.iter().collect();
    arenas.sort_by_key(|(_, arena)| std::cmp::Reverse(freed(arena)));
    let all: Bytes = arenas.iter().map(|(_, arena)| freed(arena)).sum();
    let (mut shown, mut sum) = (0, 0);
    for (_, arena) in arenas.iter().take_while(|(_, arena)| freed(arena) > 0) {
        if sum * 10 >= all * 9 {
            break;
        }
        (shown, sum) = (shown + 1, sum + freed(arena));
    }
    let who = match (arenas.first(), shown) {
        (Some((_, arena)), 1) if arena.number == 0 => "malloc's main arena".to_string(),
        (Some((_, arena)), 1) => format!("malloc's arena {}", arena.number),
        (_, count) => format!("{} of malloc", counted(count, "arena")),
    };
    let mut answer = Answer::new("memory that was freed and that malloc keeps", Some(&who));
    answer.next = Some(format!("marusa trim {}", seen.pid()));
    answer.area = Some(Area::MallocFreed);
    Some(answer)
}
