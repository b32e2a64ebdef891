use super::*;
use crate::map::Area;
use crate::record::key::Subject;
use crate::record::writer::{SCHEMA, Scope, Writer};

fn session(recording: &str, segment: u64, started_ms: i64) -> Session {
    Session {
        schema: SCHEMA.to_string(),
        recording: recording.to_string(),
        segment,
        started_ms,
        every_ms: 1000,
        ..Session::default()
    }
}

fn facts(pid: i32) -> JvmFacts {
    JvmFacts { pid, start_ticks: 9, main: Some("Main".to_string()), ..JvmFacts::default() }
}

fn at(steady_ms: u64) -> Moment {
    Moment { steady_ms, wall_ms: 1_000_000 + steady_ms as i64 }
}

fn heap() -> Key {
    Key::of(&Subject::Area(Area::JavaHeap), Measure::Resident)
}

fn part(name: &str) -> Key {
    Key::of(&Subject::Part(Area::JavaHeap, name.to_string()), Measure::Resident)
}

fn account(read_at: u64, heap_bytes: u64, parts: &[(&str, u64)]) -> Vec<(Key, Option<u64>)> {
    let mut figures = vec![(Key::process(Measure::AccountAt), Some(read_at)), (heap(), Some(heap_bytes))];
    figures.extend(parts.iter().map(|(name, bytes)| (part(name), Some(*bytes))));
    figures
}

fn glance(bytes: u64) -> Vec<(Key, Option<u64>)> {
    vec![(Key::process(Measure::KernelResident), Some(bytes))]
}

/// Two accounts and glances between, of one JVM, and the end of it.
fn small() -> Vec<u8> {
    let mut writer = Writer::new(&session("a", 0, 1_000_000));
    let jvm = writer.jvm(facts(7));
    writer.sample(
        jvm,
        at(0),
        Scope::Account,
        &[account(0, 100, &[("eden", 60), ("old", 40)]), glance(500)].concat(),
    );
    writer.sample(jvm, at(1000), Scope::Glance, &glance(510));
    writer.sample(
        jvm,
        at(2000),
        Scope::Account,
        &[account(2000, 120, &[("old", 120)]), glance(490)].concat(),
    );
    writer.sample(jvm, at(3000), Scope::Glance, &glance(490));
    writer.note(at(3000), "something");
    writer.ended(jvm, at(3500), Ending::KilledForMemory);
    writer.close(at(4000));
    assert_eq!(writer.samples(), 4);
    writer.take()
}

/// A sample, and an account that is done in the same millisecond.
#[test]
fn two_samples_of_one_moment_are_one() {
    let mut writer = Writer::new(&session("a", 0, 1_000_000));
    let jvm = writer.jvm(facts(7));
    writer.sample(jvm, at(0), Scope::Glance, &glance(500));
    writer.sample(jvm, at(0), Scope::Account, &account(0, 100, &[("eden", 60)]));
    writer.sample(jvm, at(1000), Scope::Glance, &glance(510));
    assert_eq!(writer.samples(), 2);
    let recording = read(&[&writer.take()]).expect("a recording");
    let jvm = &recording.jvms[0];
    assert_eq!((jvm.len(), jvm.series(&heap())), (2, vec![Some(100), Some(100)]));
}

#[test]
fn what_is_written_is_read() {
    let recording = read(&[&small()]).expect("a recording");
    assert!(recording.is_closed && recording.torn.is_empty());
    let jvm = &recording.jvms[0];
    assert_eq!((jvm.facts.pid, jvm.len()), (7, 4));
    assert_eq!(jvm.series(&heap()), [Some(100), Some(100), Some(120), Some(120)]);
    assert_eq!(jvm.series(&part("eden")), [Some(60), Some(60), None, None], "gone with the second account");
    assert_eq!(
        jvm.series(&Key::process(Measure::KernelResident)),
        [Some(500), Some(510), Some(490), Some(490)]
    );
    assert_eq!(jvm.accounts(), [0, 2]);
    assert_eq!([0, 1, 2, 3].map(|at| jvm.account_age_ms(at)), [Some(0), Some(1000), Some(0), Some(1000)]);
    assert_eq!(jvm.moments[3].wall_ms, 1_003_000);
    assert_eq!(jvm.ending.map(|(at, ending)| (at.steady_ms, ending)), Some((3500, Ending::KilledForMemory)));
    assert_eq!(recording.notes[0].text, "something");
    assert_eq!(
        (jvm.at_or_before(2999), jvm.at_or_before(0), jvm.nearest_wall(1_000_900)),
        (Some(2), Some(0), Some(1))
    );
}

#[test]
fn cut_anywhere_it_opens_and_what_was_whole_is_there() {
    let bytes = small();
    let mut seen = 0;
    for length in frame::MAGIC.len()..bytes.len() {
        let recording = read(&[&bytes[..length]]).expect("the first line is there");
        let samples = recording.jvms.first().map_or(0, History::len);
        assert!(samples >= seen, "a longer file holds no less");
        seen = samples;
        assert!(!recording.is_closed);
        let whole = whole_bytes(&bytes[..length]).expect("the first line is there");
        let dropped: u64 = recording.torn.iter().map(|torn| torn.dropped_bytes).sum();
        assert_eq!(whole as u64 + dropped, length as u64);
    }
    assert_eq!(seen, 4);
    for length in 0..frame::MAGIC.len() {
        assert_eq!(read(&[&bytes[..length]]).err(), Some(FormError::Empty));
    }
}

#[test]
fn a_second_file_goes_on_where_the_first_ended_and_can_be_read_alone() {
    let mut writer = Writer::new(&session("a", 0, 1_000_000));
    let jvm = writer.jvm(facts(7));
    writer.sample(jvm, at(0), Scope::Account, &account(0, 100, &[("eden", 60)]));
    writer.sample(jvm, at(1000), Scope::Account, &account(1000, 80, &[]));
    let first = writer.take();
    writer.next_segment(&session("a", 1, 1_000_000));
    writer.sample(jvm, at(2000), Scope::Account, &account(2000, 90, &[]));
    let second = writer.take();
    let both = read(&[&first, &second]).expect("both");
    assert_eq!((both.jvms.len(), both.sessions.len()), (1, 2));
    assert_eq!(
        both.jvms[0].series(&heap()),
        [Some(100), Some(80), Some(90)],
        "what is repeated is not a sample"
    );
    let alone = read(&[&second]).expect("the second");
    assert_eq!(alone.jvms[0].series(&heap()), [Some(80), Some(90)]);
    assert_eq!(alone.jvms[0].value(&part("eden"), 0), None);
}

#[test]
fn a_recorder_that_goes_on_with_a_file_comes_after_all_that_is_there() {
    let mut bytes = small();
    // Its clock on the wall was set back an hour.
    let mut again = Writer::append(&session("b", 0, 1_000_000 - 3_600_000));
    let jvm = again.jvm(facts(7));
    again.sample(jvm, Moment { steady_ms: 10, wall_ms: 0 }, Scope::Account, &account(10, 300, &[("new", 1)]));
    bytes.extend(again.take());
    let recording = read(&[&bytes]).expect("both");
    let jvm = &recording.jvms[0];
    assert_eq!((recording.jvms.len(), jvm.len()), (1, 5), "it is the same JVM");
    assert_eq!(jvm.moments[4].steady_ms, 3010);
    assert_eq!(
        (jvm.value(&heap(), 4), jvm.value(&part("old"), 4), jvm.account_age_ms(4)),
        (Some(300), None, Some(0))
    );
    assert!(jvm.moments.is_sorted_by_key(|moment| moment.steady_ms));
}

#[test]
fn facts_that_are_learnt_later_and_a_clock_that_is_set() {
    let mut writer = Writer::new(&session("a", 0, 1_000_000));
    let jvm = writer.jvm(facts(7));
    writer.sample(jvm, at(0), Scope::Account, &account(0, 100, &[]));
    writer.learn(jvm, JvmFacts { gc: Some("g1".to_string()), ..facts(7) });
    let set = Moment { steady_ms: 1000, wall_ms: 999_000_000 };
    writer.sample(jvm, set, Scope::Glance, &glance(5));
    let recording = read(&[&writer.take()]).expect("a recording");
    let jvm = &recording.jvms[0];
    assert_eq!((jvm.facts.gc.as_deref(), jvm.len()), (Some("g1"), 2));
    assert_eq!(jvm.value(&heap(), 1), Some(100));
    assert_eq!(jvm.moments[1], set);
    assert!(jvm.moments[1].is_jump_since(jvm.moments[0]));
}

#[test]
fn numbers_that_make_no_sense_end_the_file_there() {
    let good = small();
    for payload in
        [&[9, 0, 0, 1][..], &[0, 2, 0, 1, 0xfe, 0x01, 2], &[0, 1, 0, 0], &[0, 2, 0, 0xff, 0xff, 3], &[]]
    {
        let mut bytes = good[..whole_bytes(&good).expect("a file")].to_vec();
        // Before its end the JVM has number 0.
        let mut writer = Writer::append(&session("c", 0, 0));
        writer.jvm(facts(8));
        bytes.extend(writer.take());
        let whole = bytes.len();
        frame::put(&mut bytes, Kind::Sample, payload);
        let recording = read(&[&bytes]).expect("a recording");
        assert_eq!(recording.torn.len(), 1, "{payload:?}");
        assert_eq!(recording.torn[0].dropped_bytes + whole as u64, bytes.len() as u64, "{payload:?}");
        assert_eq!(recording.jvms[0].len(), 4, "what was before is there");
    }
}

#[test]
fn a_sample_in_which_little_changes_is_short() {
    let mut writer = Writer::new(&session("a", 0, 1_000_000));
    let jvm = writer.jvm(facts(7));
    let names: Vec<String> = (0..400).map(|number| format!("part {number}")).collect();
    let parts = |round: u64| -> Vec<(&str, u64)> {
        names
            .iter()
            .enumerate()
            .map(|(at, name)| (name.as_str(), 4096 * (at as u64 + round * u64::from(at % 20 == 0))))
            .collect()
    };
    writer.sample(jvm, at(0), Scope::Account, &account(0, 1 << 30, &parts(0)));
    let start = writer.take().len();
    for second in 1..=100 {
        writer.sample(
            jvm,
            at(1000 * second),
            Scope::Account,
            &account(1000 * second, 1 << 30, &parts(second)),
        );
    }
    let each = writer.take().len() / 100;
    assert!(each < 120 && start < 6000, "{each} bytes a sample, {start} at the start");
}
