//! The memory of the cgroup that is not a process': page cache, which the kernel takes back before it kills, and tmpfs, which it
//! cannot take back without swap. By the rows of memory.stat, where the cgroup has a limit.

use super::grown;
use super::{Answer, Look, Seen};
use crate::base::{Bytes, human};
use crate::doctor::Level;
use crate::map::model::Jvm;
use crate::os::group_memory::GroupMemory;

/// Page cache is named from this share of a limit on that is nearly used; before that it costs nothing.
const CACHE_PERCENT: Bytes = 25;
const USED_PERCENT: Bytes = 80;
/// Tmpfs counts like the heap: some mebibytes of it are what every container has.
const TMPFS_PERCENT: Bytes = 10;
const WORTH_BYTES: Bytes = 64 << 20;

pub fn answers(seen: &Seen) -> Vec<Answer> {
    let Some(group) = seen.last().and_then(|look| look.group.as_ref()) else { return Vec::new() };
    [tmpfs(seen, group), page_cache(seen, group)].into_iter().flatten().collect()
}

/// Page cache without tmpfs: "file" of version 2, "cache" of version 1, both of which count tmpfs.
fn cache_of(group: &GroupMemory) -> Option<Bytes> {
    let all = group.rows.get("file").or_else(|| group.rows.get("cache"))?;
    Some(all.saturating_sub(tmpfs_of(group)?))
}

fn tmpfs_of(group: &GroupMemory) -> Option<Bytes> {
    group.rows.get("shmem").copied()
}

fn series(seen: &Seen, of: fn(&GroupMemory) -> Option<Bytes>) -> Vec<(f64, f64)> {
    let point = |look: &Look| Some((look.seconds, of(look.group.as_ref()?)? as f64));
    seen.regular().filter_map(point).collect()
}

fn is_from(bytes: Bytes, percent: Bytes, whole: Bytes) -> bool {
    bytes.saturating_mul(100) >= whole.saturating_mul(percent)
}

fn tmpfs(seen: &Seen, group: &GroupMemory) -> Option<Answer> {
    let bytes = tmpfs_of(group)?;
    // The heap of ZGC is shared memory too, and has its own bounds.
    let is_zgcs = |jvm: &Jvm| jvm.gc.as_deref().is_some_and(|gc| gc.starts_with("zgc"));
    if seen.last()?.account.jvm.as_ref().is_some_and(is_zgcs) {
        return None;
    }
    let grown = grown::of(&series(seen, tmpfs_of), seen.least());
    let is_large = bytes >= WORTH_BYTES && is_from(bytes, TMPFS_PERCENT, group.limit_bytes);
    if grown.is_none() && !is_large {
        return None;
    }
    let mut answer = of_group(seen, "tmpfs or shared memory that fills the cgroup", group, bytes, "shmem");
    answer.fixed_by(
        "delete what is written to tmpfs (/dev/shm, /tmp, emptyDir in memory), or give it a size= limit",
    );
    Some(match grown {
        Some(grown) => answer.growing(&grown, seen),
        None => answer,
    })
}

fn page_cache(seen: &Seen, group: &GroupMemory) -> Option<Answer> {
    let bytes = cache_of(group)?;
    let grown = grown::of(&series(seen, cache_of), seen.least().max(8 << 20));
    let is_large = bytes >= WORTH_BYTES
        && is_from(bytes, CACHE_PERCENT, group.limit_bytes)
        && is_from(group.current_bytes, USED_PERCENT, group.limit_bytes);
    if grown.is_none() && !is_large {
        return None;
    }
    let mut answer = of_group(seen, "page cache of files fills the cgroup", group, bytes, "file");
    answer
        .fixed_by("the kernel drops it before it kills: the limit is not short of memory for the sake of it");
    if let Some(grown) = grown {
        answer = answer.growing(&grown, seen);
    }
    // It is undone when a process needs it.
    answer.level = Level::Info;
    Some(answer)
}

fn of_group(seen: &Seen, what: &str, group: &GroupMemory, bytes: Bytes, row: &str) -> Answer {
    let mut answer = Answer::new(what, Some(&group.path));
    answer.bytes = Some(bytes);
    answer.how = format!(
        "row {row} of {}/memory.stat; {} of {} are used",
        group.path,
        human(group.current_bytes),
        human(group.limit_bytes)
    );
    answer.next = Some(format!("marusa container {}", seen.pid()));
    answer
}
