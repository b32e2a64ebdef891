//! What grows in number: threads of one name, class loaders of one class, mappings of one kind of file. A count has no noise, and
//! its name says where to search.

use super::grown::{self, Grown};
use super::{Answer, Look, Seen, Sure};
use crate::map::Area;
use crate::map::rows::Named;
use std::collections::BTreeSet;

/// Fewer more than this, or than this share of the first count, is the load of the day.
const GROWN_MIN: u64 = 10;
const GROWN_SHARE: f64 = 0.1;
/// The JDK's own loaders of accessors for reflection: one for each method that is called often, so they come while it warms up.
const OF_REFLECTION: &str = "DelegatingClassLoader";

pub fn answers(seen: &Seen) -> Vec<Answer> {
    let mut answers = threads(seen);
    answers.extend(loaders(seen));
    answers.extend(files(seen));
    answers
}

/// The count of `of` at each sample, where it grows.
fn count(seen: &Seen, of: impl Fn(&Look) -> f64) -> Option<Grown> {
    let points: Vec<(f64, f64)> = seen.regular().map(|look| (look.seconds, of(look))).collect();
    let least = GROWN_MIN.max((points.first()?.1 * GROWN_SHARE) as u64);
    grown::of(&points, least)
}

/// The growth in bytes from the first sample to the last, with what is known of that in number.
fn in_bytes(seen: &Seen, counted: &Grown, of: impl Fn(&Look) -> f64) -> Grown {
    let ends = seen.regular().next().zip(seen.regular().last());
    let (seconds, by) =
        ends.map_or((1.0, 0.0), |(first, last)| (last.seconds - first.seconds, of(last) - of(first)));
    Grown { by: by as i64, per_hour: (by / seconds.max(1e-3) * 3600.0) as i64, ..*counted }
}

fn threads(seen: &Seen) -> Vec<Answer> {
    let Some(last) = seen.last() else { return Vec::new() };
    let answer = |name: &String| {
        let threads = |look: &Look| look.sums.threads.get(name).copied().unwrap_or_default();
        let counted = count(seen, |look| threads(look).threads as f64)?;
        let bytes = in_bytes(seen, &counted, |look| threads(look).resident as f64);
        let now = threads(last).threads;
        let mut answer = Answer::new(
            format!(
                "threads that do not end: {:+} named \"{}\"",
                counted.by,
                crate::base::printable::escaped(name)
            ),
            Some(name),
        );
        answer.bytes = Some(threads(last).resident);
        answer.how = format!(
            "{} in the VM's list, {}; bytes of their stacks",
            crate::base::counted(now, "thread"),
            counted.words()
        );
        answer.next = Some(format!("jcmd {} Thread.print", seen.pid()));
        answer.fixed_by("bound the pool, or end the threads that are no longer needed");
        answer.area = Some(Area::Stack);
        Some(answer.growing(&bytes, seen))
    };
    last.sums.threads.keys().filter_map(answer).collect()
}

fn loaders(seen: &Seen) -> Vec<Answer> {
    let Some(last) = seen.last() else { return Vec::new() };
    let names = last.sums.named.keys().filter(|(kind, _)| *kind == Named::Loader);
    let answer = |name: &String| {
        let key = (Named::Loader, name.clone());
        let group = |look: &Look| look.sums.named.get(&key).copied().unwrap_or_default();
        let counted = count(seen, |look| group(look).loaders.unwrap_or(0) as f64)?;
        let bytes = in_bytes(seen, &counted, |look| group(look).committed as f64);
        let now = group(last).loaders?;
        let is_collected = was_collected(seen);
        let what =
            if is_collected { "class loaders that are not let go" } else { "more and more class loaders" };
        let mut answer = Answer::new(format!("{what}: {:+}", counted.by), Some(name));
        answer.bytes = Some(group(last).committed);
        answer.how = format!(
            "{} in the VM's list, {}; bytes of their metaspace chunks",
            crate::base::counted(now, "loader"),
            counted.words()
        );
        if !is_collected {
            answer.how += "; no old collection in that time, so they may be garbage";
            answer.sure = Sure::Likely;
        }
        answer.next = Some(format!("marusa map {} --by loader", seen.pid()));
        answer.fixed_by("find what keeps them in a heap dump: a cache, a registry, a thread-local, a context class loader");
        answer.area = Some(Area::ClassMetadata);
        Some(answer.growing(&bytes, seen))
    };
    names.filter(|(_, name)| !name.contains(OF_REFLECTION)).filter_map(|(_, name)| answer(name)).collect()
}

/// Whether the collector could unload classes while the JVM was watched.
fn was_collected(seen: &Seen) -> bool {
    let count = |look: Option<&Look>| look.and_then(|look| look.old_collections);
    count(seen.last()).zip(count(seen.looks.first())).is_some_and(|(last, first)| last > first)
}

/// More mappings of one kind of file, or more bytes of them in memory.
fn files(seen: &Seen) -> Vec<Answer> {
    let Some(last) = seen.last() else { return Vec::new() };
    let names: BTreeSet<&String> = last.files.keys().collect();
    let answer = |name: &String| {
        let group = |look: &Look, of: fn(&super::Group) -> f64| look.files.get(name).map_or(0.0, of);
        let resident = |look: &Look| group(look, |group| group.resident as f64);
        let counted = count(seen, |look| group(look, |group| group.mappings.len() as f64));
        let points: Vec<(f64, f64)> = seen.regular().map(|look| (look.seconds, resident(look))).collect();
        let grown = grown::of(&points, seen.least());
        let bytes = counted.map(|counted| in_bytes(seen, &counted, resident)).or(grown)?;
        let now = last.files.get(name)?;
        let more = counted.map_or(String::new(), |counted| format!(": {:+} mappings", counted.by));
        let mut answer = Answer::new(format!("mapped files that stay{more}"), Some(name));
        answer.bytes = Some(now.resident);
        let holder = holder_of(last, name).map_or(String::new(), |holder| format!(", held by {holder}"));
        answer.how = format!(
            "{} of it in /proc/{}/maps{holder}; {}",
            crate::base::counted(now.mappings.len(), "mapping"),
            seen.pid(),
            bytes.words()
        );
        answer.next = Some(format!("marusa map {} --by mapping", seen.pid()));
        answer.fixed_by(
            "drop the MappedByteBuffers or close their Arena: a mapping stays until its buffer is collected",
        );
        answer.area = Some(Area::MappedFile);
        if counted.is_none() {
            // Pages of one mapping are read in once, by a program that needs them.
            answer.sure = Sure::Likely;
        }
        Some(answer.growing(&bytes, seen))
    };
    names.into_iter().filter_map(answer).collect()
}

/// The field that holds most of the buffers of a kind of file.
fn holder_of(look: &Look, name: &str) -> Option<String> {
    let of_file = |file: &String| crate::map::sums::group_of(file) == name;
    let rows = look.account.buffers.iter().flatten().filter(|row| row.file.as_ref().is_some_and(of_file));
    rows.max_by_key(|row| row.bytes).map(|row| row.holder.clone())
}
