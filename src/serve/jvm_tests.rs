use super::*;
use crate::map::Area;

fn facts(main: &str) -> JvmFacts {
    JvmFacts { pid: 7, main: Some(main.to_string()), ..JvmFacts::default() }
}

fn jvm() -> JvmNow {
    JvmNow::new(facts("Main"), Who::default(), "Main".to_string(), STALE)
}

fn account(at: Instant) -> AccountNow {
    let areas = vec![AreaNow { area: Area::Gc, resident_bytes: 7, committed_bytes: None }];
    let summary = Summary { areas, classes: Some(5), ..Summary::default() };
    AccountNow { at, summary, document: None, findings: Vec::new() }
}

fn before(seconds: u64) -> Instant {
    Instant::now().checked_sub(Duration::from_secs(seconds)).expect("after the clock's start")
}

#[test]
fn names_are_short_and_without_letters_that_act() {
    for (main, name) in [
        ("org.example.Main", "Main"),
        ("/srv/app/orders-1.2.jar", "orders-1.2.jar"),
        ("a\u{1b}[31mb\n", "a[31mb"),
        ("a\u{202e}gpj\u{200b}.jar", "agpj.jar"),
        ("", "java"),
        ("\n", "java"),
        ("\u{2066}", "java"),
    ] {
        assert_eq!(label(&facts(main)), name);
    }
    assert_eq!(label(&facts(&"x".repeat(10_000))).len(), LABEL_LETTERS_MAX);
    assert_eq!(label(&JvmFacts::default()), "java");
}

#[test]
fn what_could_not_be_read_the_last_time_is_not_known() {
    let mut jvm = jvm();
    let (used, threads) = (Key::process(Measure::HeapUsed), Key::process(Measure::Tasks));
    jvm.looked(&vec![(used.clone(), Some(5)), (threads.clone(), Some(20))], u64::MAX);
    assert_eq!((jvm.figure(Measure::HeapUsed), jvm.figure(Measure::Tasks)), (Some(5), Some(20)));
    jvm.looked(&vec![(used.clone(), None), (threads, Some(21))], u64::MAX);
    assert_eq!((jvm.figure(Measure::HeapUsed), jvm.figure(Measure::Tasks)), (None, Some(21)));
    // A sample that has not even the name of a figure, and one that came to nothing.
    jvm.looked(&vec![(used, Some(5))], u64::MAX);
    assert_eq!((jvm.figure(Measure::HeapUsed), jvm.figure(Measure::Tasks)), (Some(5), None));
    jvm.looked(&Figures::new(), u64::MAX);
    assert_eq!((jvm.figure(Measure::HeapUsed), jvm.figure(Measure::Tasks)), (None, None));
    assert_eq!(jvm.history.rows().count(), 4, "the history says that nothing was known");
}

#[test]
fn a_sample_that_nothing_followed_says_nothing() {
    let mut jvm = jvm();
    jvm.looked(&vec![(Key::process(Measure::HeapUsed), Some(5))], u64::MAX);
    jvm.sampled_at = before(STALE.as_secs() - 100);
    assert_eq!(jvm.figure(Measure::HeapUsed), Some(5));
    jvm.sampled_at = before(STALE.as_secs());
    assert_eq!(jvm.figure(Measure::HeapUsed), None);
}

#[test]
fn an_account_that_could_not_be_renewed_is_given_for_a_while() {
    let mut jvm = jvm();
    let has = |jvm: &JvmNow| (jvm.areas().count(), jvm.classes(), jvm.account_age_seconds().is_some());
    assert_eq!(has(&jvm), (0, None, false));
    jvm.read(account(before(3600)));
    assert_eq!(has(&jvm), (1, Some(5), true), "the next one is not due yet");
    jvm.unread = Some("it takes too long".to_string());
    assert_eq!(has(&jvm), (0, None, false));
    jvm.read(account(before(10)));
    assert_eq!((has(&jvm), &jvm.unread), ((1, Some(5), true), &None));
    jvm.unread = Some("it takes too long".to_string());
    assert_eq!(has(&jvm), (1, Some(5), true));
}

#[test]
fn the_history_has_areas_where_an_account_was_read() {
    let mut jvm = jvm();
    let look = |jvm: &mut JvmNow| jvm.looked(&Figures::new(), u64::MAX);
    look(&mut jvm);
    jvm.read(account(Instant::now()));
    look(&mut jvm);
    look(&mut jvm);
    let clock = super::super::history::Clock::now();
    let areas: Vec<_> = jvm.history.rows().map(|row| row.shown(clock).areas.is_some()).collect();
    assert_eq!(areas, [false, true, false]);
}
