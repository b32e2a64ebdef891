//! Memory of `Unsafe.allocateMemory` and `java.lang.foreign`: never among the direct buffers, and never the JVM's work, whether
//! Native Memory Tracking is on or off.

use crate::common::*;
use serde_json::Value;

const SIZE: f64 = 32.0 * 1024.0;
const BUFFERS: f64 = 1_000.0;
const BLOCKS: f64 = 3_000.0;
const SEGMENTS: f64 = 1_000.0;
/// Other direct buffers and Unsafe memory of the JDK's own libraries.
const OFF_MAX: f64 = 0.02;
/// All that a JVM with so small a program needs for its own work.
const WORK_BYTES_MAX: u64 = 40 << 20;

/// A JVM with buffers and blocks, and on JDK 22 and later segments; and the bytes that are not direct buffers.
fn start(jdk: &str, more: &[&str]) -> Option<(Jvm, f64)> {
    let has_segments = jdk.parse::<u32>().is_ok_and(|major| major >= 22);
    let segments = if has_segments { SEGMENTS } else { 0.0 };
    let options: Vec<&str> =
        ["-Xmx64m", "-XX:MaxDirectMemorySize=400m"].into_iter().chain(more.iter().copied()).collect();
    let segments_option = format!("segments={segments}");
    let program = ["marusa.OffHeap", "buffers=1000", "blocks=3000", &segments_option, "size=32k"];
    let jvm = Jvm::start(&java(jdk)?, &options, &program);
    Some((jvm, (BLOCKS + segments) * SIZE))
}

fn part(map: &Value, of: &str, name: &str) -> f64 {
    let parts = area(map, of)["parts"].as_array().cloned().unwrap_or_default();
    let part = parts.iter().find(|part| part["part"] == name);
    part.and_then(|part| part["in_use_bytes"].as_u64()).unwrap_or(0) as f64
}

fn is_near(bytes: f64, wanted: f64) -> bool {
    (bytes - wanted).abs() <= wanted * OFF_MAX
}

#[test]
fn it_is_no_direct_buffer_with_tracking_on() {
    for (jdk, gc) in
        [("11", "G1"), ("17", "G1"), ("21", "G1"), ("25", "G1"), ("25", "Z"), ("26", "G1"), ("28", "Z")]
    {
        let options = ["-XX:NativeMemoryTracking=summary", &format!("-XX:+Use{gc}GC")];
        let Some((jvm, unsafe_bytes)) = start(jdk, &options) else { continue };
        let map = map_json(jvm.pid);
        let (buffers, others) = (
            part(&map, "direct_buffers", "direct buffers"),
            part(&map, "malloc_unknown", "Unsafe and FFM memory"),
        );
        println!("jdk {jdk}: {buffers} in direct buffers, {others} of Unsafe and FFM");
        let parts = &area(&map, "direct_buffers")["parts"];
        assert!(is_near(buffers, BUFFERS * SIZE), "jdk {jdk}: {buffers} of direct buffers: {parts:#}");
        let unknown = &area(&map, "malloc_unknown")["parts"];
        assert!(is_near(others, unsafe_bytes), "jdk {jdk}: {others} of Unsafe: {unknown:#}");
    }
}

#[test]
fn jdk_8_tracks_it_as_internal_and_it_is_not_shown_as_the_vms_work() {
    let Some((jvm, unsafe_bytes)) = start("8", &["-XX:NativeMemoryTracking=summary"]) else { return };
    let map = map_json(jvm.pid);
    let buffers = part(&map, "direct_buffers", "direct buffers");
    let others = part(&map, "malloc_unknown", "internal work and Unsafe memory");
    assert!(is_near(buffers, BUFFERS * SIZE), "{buffers}: {:#}", area(&map, "direct_buffers"));
    assert!(others >= unsafe_bytes, "{others}: {:#}", area(&map, "malloc_unknown"));
    assert!(number(&area(&map, "jvm_work")["in_use_bytes"]) < WORK_BYTES_MAX, "{:#}", area(&map, "jvm_work"));
}

#[test]
fn without_tracking_its_owner_is_unknown_and_not_the_vm() {
    for (jdk, gc) in [("8", "G1"), ("11", "G1"), ("17", "G1"), ("21", "G1"), ("25", "G1"), ("25", "Z")] {
        let Some((jvm, unsafe_bytes)) = start(jdk, &[&format!("-XX:+Use{gc}GC")]) else { continue };
        let map = map_json(jvm.pid);
        let buffers = part(&map, "direct_buffers", "direct buffers");
        let unknown = part(&map, "malloc_unknown", "malloc, owner unknown");
        let work = number(&area(&map, "jvm_work")["in_use_bytes"]);
        println!("jdk {jdk}: {buffers} in direct buffers, {unknown} of unknown owners, {work} of the VM");
        assert!(is_near(buffers, BUFFERS * SIZE), "jdk {jdk}: {buffers}: {:#}", map["malloc"]["owners"]);
        assert!(unknown >= unsafe_bytes, "jdk {jdk}: {unknown}: {:#}", map["malloc"]["owners"]);
        assert!(work < WORK_BYTES_MAX, "jdk {jdk}: {work} of the VM: {:#}", area(&map, "jvm_work"));
    }
}

/// Tracking gives memory other parts, and never another area.
#[test]
fn its_area_does_not_depend_on_tracking() {
    const NEAR_BYTES: f64 = (4 << 20) as f64;
    for (jdk, gc) in [("11", "-XX:+UseG1GC"), ("25", "-XX:+UseG1GC"), ("25", "-XX:+UseZGC")] {
        let of = |tracking: &str| {
            let (jvm, _) = start(jdk, &[gc, &format!("-XX:NativeMemoryTracking={tracking}")])?;
            let map = map_json(jvm.pid);
            let in_use = |name: &str| area(&map, name)["in_use_bytes"].as_u64().unwrap_or(0) as f64;
            Some(["direct_buffers", "malloc_unknown"].map(in_use))
        };
        let (Some(off), Some(summary), Some(detail)) = (of("off"), of("summary"), of("detail")) else {
            continue;
        };
        println!("jdk {jdk} {gc}: {off:?}, {summary:?}, {detail:?}");
        for with in [summary, detail] {
            let is_near = off.iter().zip(with).all(|(off, with)| (off - with).abs() < NEAR_BYTES);
            assert!(is_near, "jdk {jdk} {gc}: {off:?} and {with:?}");
        }
    }
}
