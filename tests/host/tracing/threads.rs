//! Whose a thread was that is gone when the events are read.

use super::{own_tid, touch, tracing_of_all};
use marusa::act::tracing::Wanted;

#[test]
fn threads_that_lived_for_milliseconds_have_a_process_and_a_name() {
    let Some(mut tracing) = tracing_of_all(&Wanted::default()) else { return };
    let old = std::thread::Builder::new().name("old-worker".into());
    // Born before it is traced, and gone before it is read.
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let old =
        old.spawn(move || (wait.recv(), own_tid(), touch(8 << 20, 2 << 20, libc::MADV_NOHUGEPAGE, false)).1);
    let old = old.expect("a thread");
    let Some(mut second) = tracing_of_all(&Wanted::default()) else { return };
    go.send(()).expect("it waits");
    let old = old.join().expect("it ended");
    let mut tids = Vec::new();
    for number in 0..20 {
        let thread = std::thread::Builder::new().name(format!("short-{number}"));
        let run = || {
            touch(8 << 20, 2 << 20, libc::MADV_NOHUGEPAGE, false);
            own_tid()
        };
        tids.push((thread.spawn(run).expect("a thread").join().expect("it ended"), number));
    }
    let child = std::process::Command::new("sleep").arg("0").spawn().expect("sleep");
    let child_pid = child.id() as i32;
    child.wait_with_output().expect("it ended");
    let own = std::process::id() as i32;
    for tracing in [&mut tracing, &mut second] {
        let batch = tracing.read().expect("events");
        for (tid, number) in &tids {
            assert_eq!(batch.tgids.get(tid), Some(&own), "thread {tid}");
            assert_eq!(batch.names.get(tid), Some(&format!("short-{number}")));
        }
        assert_eq!((batch.tgids.get(&old), batch.names[&old].as_str()), (Some(&own), "old-worker"));
        assert_eq!(batch.tgids.get(&child_pid), Some(&child_pid), "an exec takes page tables");
        assert_eq!(batch.names[&child_pid], "sleep");
        let unknown = batch.events.iter().filter(|event| !batch.tgids.contains_key(&event.tid));
        let unknown: std::collections::BTreeSet<i32> = unknown.map(|event| event.tid).collect();
        assert!(unknown.iter().all(|tid| *tid == 0), "{unknown:?}: only the idle task is nobody's");
    }
}
