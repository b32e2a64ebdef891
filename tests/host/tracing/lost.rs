//! A buffer that is too small: what it lost is counted, and reported with its place.

use super::{of, own_tid, touch, tracing_of_all};
use marusa::act::tracing::Wanted;

const TABLES: usize = 5_000;

/// Keeps this thread on the CPU that it is on.
fn stay() {
    // SAFETY: an all-zero set is one to write to, and outlives the calls.
    unsafe {
        let cpu = libc::sched_getcpu() as usize;
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

#[test]
fn what_a_small_buffer_lost_is_counted() {
    let whole = std::thread::spawn(|| {
        let small = Wanted { cpu_buffer_bytes: Some(8192), ..Wanted::default() };
        let Some(mut tracing) = tracing_of_all(&small) else { return };
        stay();
        tracing.read().expect("events of before");
        // One page table each, and no page: the zero page is mapped.
        touch(TABLES * (2 << 20), 2 << 20, libc::MADV_NOHUGEPAGE, false);
        let batch = tracing.read().expect("events");
        let kept = of(&batch, own_tid());
        println!("{} kept, {} lost, holes {:?}", kept.len(), batch.lost, batch.holes);
        let missing = (TABLES - kept.len()) as u64;
        assert!(batch.lost >= missing, "never silently short");
        assert!(batch.lost < missing + 5_000, "except for events of other processes");
        // SAFETY: a system call without arguments.
        let cpu = unsafe { libc::sched_getcpu() } as u32;
        let hole = batch.holes.iter().find(|hole| hole.cpu == cpu).expect("a hole on this CPU");
        // The page that was being read when the buffer overflowed is kept, with what was in it.
        let before = kept.iter().filter(|event| event.at_ns < hole.before_ns).count();
        assert!(before < 200 && before < kept.len(), "{before} of {} before the hole", kept.len());
        assert!(hole.lost.is_none_or(|lost| lost <= batch.lost));
        let next = tracing.read().expect("events");
        assert!(next.lost < 1000, "it is counted once: {}", next.lost);
    });
    whole.join().expect("the test");
}

#[test]
fn a_large_buffer_loses_none() {
    let Some(mut tracing) = tracing_of_all(&Wanted::default()) else { return };
    assert!(tracing.buffer_bytes() <= marusa::base::limits::TRACE_BUFFER_BYTES + (1 << 20));
    tracing.read().expect("events of before");
    touch(TABLES * (2 << 20), 2 << 20, libc::MADV_NOHUGEPAGE, false);
    let began = std::time::Instant::now();
    let batch = tracing.read().expect("events");
    println!("{} events, {} bytes, read in {:?}", batch.events.len(), batch.bytes, began.elapsed());
    assert_eq!((batch.lost, batch.undecoded, batch.holes.len()), (0, 0, 0));
    assert!(of(&batch, own_tid()).len() >= TABLES);
    assert!(batch.events.iter().all(|event| event.at_ns <= batch.until_ns));
}
