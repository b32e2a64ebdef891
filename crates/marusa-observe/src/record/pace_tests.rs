//! The budget of a recorder over an hour: how often each JVM is read, and that none takes the time of another.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const ASKED: Asked = Asked { account_every: Duration::from_secs(10), near: 0 };

fn state() -> State {
    State {
        since: Some(3 * SECOND),
        cost: Some(Duration::from_millis(25)),
        resident_then: 1 << 32,
        resident_now: 1 << 32,
        ..State::default()
    }
}

#[test]
fn one_that_was_given_up_waits_and_takes_nothing_from_the_others() {
    let mut shares = Shares::new(0.01);
    let suspect = State { suspect: Some(20 * SECOND), is_near: true, ..state() };
    assert_eq!(suspect.is_due(ASKED, &shares), None, "3 s ago");
    let old = State { since: Some(30 * SECOND), ..suspect };
    assert_eq!(old.is_due(ASKED, &shares), Some(Payer::Suspects));
    assert!(old.urgency(ASKED) < state().urgency(ASKED));
    let before = shares.pool;
    shares.spend(Payer::Suspects, &mut Purse::default(), SECOND);
    assert_eq!(
        (old.is_due(ASKED, &shares), shares.pool),
        (None, before),
        "others like it have used what there was"
    );
    assert_eq!(State { since: None, ..old }.is_due(ASKED, &shares), None, "of a user with such JVMs");
}

struct One {
    state: State,
    cost: Duration,
    moves: bool,
    used: f64,
    accounts: usize,
    oldest: Duration,
}

fn one(moves: bool, cost_ms: u64) -> One {
    let state = State { since: None, cost: None, ..state() };
    One { state, cost: Duration::from_millis(cost_ms), moves, used: 0.0, accounts: 0, oldest: Duration::ZERO }
}

/// An hour of samples every second; one account at a time, the most urgent first.
fn hour(share: f64, jvms: &mut [One]) {
    let mut shares = Shares::new(share);
    let asked = Asked { near: jvms.iter().filter(|jvm| jvm.state.is_near).count(), ..ASKED };
    for second in 1..3600 {
        let overhead = Duration::from_micros(200) * jvms.len() as u32;
        shares.earn(SECOND, overhead, jvms.iter_mut().map(|jvm| (&mut jvm.state.own, jvm.state.cost)));
        for jvm in jvms.iter_mut() {
            jvm.state.age += SECOND;
            jvm.state.since = jvm.state.since.map(|since| since + SECOND);
            jvm.state.resident_now = if jvm.moves { 1 << 33 } else { 1 << 32 };
        }
        for _ in 0..8 {
            let due = jvms.iter_mut().filter(|jvm| jvm.state.is_due(asked, &shares).is_some());
            let most =
                due.max_by(|one, other| one.state.urgency(asked).total_cmp(&other.state.urgency(asked)));
            let Some(jvm) = most else { break };
            let payer = jvm.state.is_due(asked, &shares).expect("due");
            shares.spend(payer, &mut jvm.state.own, jvm.cost);
            jvm.used += jvm.cost.as_secs_f64();
            jvm.accounts += 1;
            jvm.oldest = jvm.oldest.max(jvm.state.since.unwrap_or_default());
            (jvm.state.since, jvm.state.cost) = (Some(Duration::ZERO), Some(jvm.cost));
        }
        let seconds = f64::from(second);
        let used: f64 = jvms.iter().map(|jvm| jvm.used).sum();
        let most = seconds * (share + NEAR_BUDGET) + 4.0 + jvms.len() as f64 * 0.5;
        assert!(used <= most, "{used} s of CPU in {seconds} s");
    }
}

#[test]
fn a_still_jvm_has_an_account_each_ten_seconds_and_a_moving_one_what_the_budget_gives() {
    let of = |moves, cost_ms| {
        let mut jvms = [one(moves, cost_ms)];
        hour(0.01, &mut jvms);
        (jvms[0].used, jvms[0].accounts)
    };
    let (used, accounts) = of(false, 25);
    assert!((350..=370).contains(&accounts) && used < 12.0, "{accounts} {used}");
    let (used, accounts) = of(true, 25);
    assert!(accounts > 1000 && used <= 36.3, "{accounts} {used}");
    let (used, accounts) = of(true, 400);
    assert!(accounts > 50 && used < 38.0, "a costly one is rare: {accounts} {used}");
}

#[test]
fn a_jvm_near_its_limit_and_a_costly_one_take_nothing_from_the_others() {
    let mut jvms: Vec<One> = (0..24).map(|at| one(at % 2 == 0, 40)).collect();
    for at in [0, 1, 2] {
        jvms[at].state.is_near = true;
    }
    jvms[3].cost = Duration::from_secs(3);
    hour(0.10, &mut jvms);
    for (at, jvm) in jvms.iter().enumerate().filter(|(at, _)| *at != 3) {
        assert!(jvm.oldest <= Duration::from_secs(30), "{at}: {:?}, {} accounts", jvm.oldest, jvm.accounts);
    }
    assert!(jvms[3].accounts >= 3, "it has its part: {}", jvms[3].accounts);
    assert!(jvms[0].accounts > 1000, "and those near their limits more: {}", jvms[0].accounts);
    let near: f64 = jvms[..3].iter().map(|jvm| jvm.used).sum();
    assert!(near < 3600.0 * (NEAR_BUDGET + 0.10 * 3.0 / 24.0) + 4.0, "a bounded extra: {near}");
}

#[test]
fn debts_of_jvms_that_are_gone_are_paid_before_new_ones_are_read() {
    let mut shares = Shares::new(0.10);
    let mut accounts = 0;
    for _ in 0..600 {
        // A new JVM each second, gone after its first account, which takes half a second.
        let mut own = Purse::default();
        shares.earn(SECOND, Duration::ZERO, std::iter::once((&mut own, None)));
        let new = State { since: None, own, ..state() };
        if let Some(payer) = new.is_due(ASKED, &shares) {
            shares.spend(payer, &mut own, Duration::from_millis(500));
            accounts += 1;
        }
        shares.inherit(own);
    }
    assert!((60..=130).contains(&accounts), "a tenth of a core: {accounts}");
}

#[test]
fn the_first_account_and_one_near_the_limit_come_at_once() {
    let mut poor = Shares::new(0.01);
    poor.pool.spend(10 * SECOND);
    assert_eq!(State { since: Some(60 * SECOND), ..state() }.is_due(ASKED, &poor), None);
    let mut rich = Shares::new(0.01);
    assert_eq!(State { since: None, ..state() }.is_due(ASKED, &rich), Some(Payer::Own));
    let near = State { is_near: true, since: Some(Duration::from_millis(300)), ..state() };
    assert_eq!(near.is_due(ASKED, &poor), Some(Payer::Near));
    assert_eq!(near.is_due(Asked { near: 2, ..ASKED }, &poor), None, "two share it");
    assert_eq!(State { since: Some(Duration::from_millis(100)), ..near }.is_due(ASKED, &poor), None);
    rich.near.spend(SECOND);
    assert_eq!(near.is_due(ASKED, &rich), None, "no more than its share");
    let old = State { since: Some(61 * SECOND), ..state() };
    assert!(old.is_late(SECOND) && old.is_late(10 * SECOND) && !old.is_late(30 * SECOND));
    assert!(!State { since: None, age: SECOND, ..old }.is_late(SECOND), "it is new");
}

#[test]
fn a_limit_is_near_by_what_is_left_by_speed_and_by_being_hit() {
    let limit = |left_bytes, hits| Limit { limit_bytes: 1 << 30, left_bytes, hits };
    assert!(is_near(None, limit(50 << 20, 0)));
    assert!(!is_near(None, limit(500 << 20, 3)));
    assert!(is_near(Some((limit(600 << 20, 0), SECOND)), limit(500 << 20, 0)), "five seconds from it");
    assert!(!is_near(Some((limit(501 << 20, 0), SECOND)), limit(500 << 20, 0)));
    assert!(is_near(Some((limit(200 << 20, 3), SECOND)), limit(200 << 20, 4)));
    assert!(!is_near(Some((limit(500 << 20, 3), SECOND)), limit(500 << 20, 4)), "caches are dropped");
    assert_eq!(interval(SECOND, true), Duration::from_millis(100));
    assert_eq!(interval(Duration::from_millis(50), true), Duration::from_millis(50));
    assert_eq!(interval(SECOND, false), SECOND);
}
