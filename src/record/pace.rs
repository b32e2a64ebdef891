//! How often a JVM is looked at, and how closely. A look at the kernel's sums and the runtime's counters costs a tenth of a
//! millisecond and is taken each time; an account costs tens of milliseconds and is taken when memory moved or the last one
//! is old, within a budget of CPU time of which each JVM has its own part. Near its limit a JVM is looked at more often, and its
//! account comes on top of the budget, within a second one: it may be the last. Pure: times come from outside.

use crate::base::Bytes;
use std::time::Duration;

/// An account is due when this share of what was resident moved, and at least so much.
const MOVED_SHARE: u64 = 100;
const MOVED_BYTES: Bytes = 8 << 20;
/// What one JVM, or the pool, saves up at most: two accounts of a large JVM.
const SAVED_SECONDS_MAX: f64 = 0.2;
/// What an account is taken to cost before one was read.
const COST_FIRST: Duration = Duration::from_millis(25);
/// A limit is near when less than this share of it is left, or when it is reached at this speed within so many seconds.
const NEAR_SHARE: u64 = 10;
/// One that was hit since is near when less than this share is left: a group full of cached pages of files hits its limit all
/// the time.
const HIT_SHARE: u64 = 4;
const NEAR_SECONDS: f64 = 20.0;
/// Near it, looks come so many times as often, but no more often than this.
const FASTER: u32 = 10;
const FASTEST: Duration = Duration::from_millis(100);
/// Accounts of all JVMs near their limits take up to this share of a core on top of the budget.
pub const NEAR_BUDGET: f64 = 0.10;
/// What JVMs whose reading was given up may use together, and the search for new JVMs, as a part of the budget.
const SUSPECTS_SHARE: f64 = 0.1;
/// An account older than this, or than three times what was asked for, is late: the recording says so.
const LATE: Duration = Duration::from_secs(60);

/// CPU time in seconds that was earned and not used yet; a debt where it is negative.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Purse(f64);

impl Purse {
    /// What does not fit is given back.
    fn earn(&mut self, seconds: f64, most: f64) -> f64 {
        let now = self.0 + seconds;
        self.0 = now.min(most.max(self.0));
        now - self.0
    }

    pub fn spend(&mut self, used: Duration) {
        self.0 -= used.as_secs_f64();
    }

    fn is_paid(self) -> bool {
        self.0 > 0.0
    }
}

/// Which CPU time an account is read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payer {
    /// Its JVM's own, and what other JVMs do not need.
    Own,
    /// The extra share of JVMs near their limits.
    Near,
    /// The small share of what took too long before.
    Suspects,
}

/// The budget of a recorder. Each JVM earns the same part of it, which no other JVM can use; what a JVM does not need goes to a pool
/// for those that need more than their part.
#[derive(Clone, Debug)]
pub struct Shares {
    /// Of one core.
    share: f64,
    pool: Purse,
    near: Purse,
    suspects: Purse,
}

impl Shares {
    pub fn new(share: f64) -> Shares {
        let full = Purse(SAVED_SECONDS_MAX);
        Shares { share, pool: full, near: full, suspects: full }
    }

    /// Time passed, in which `overhead` was used for what is no account. `jvms`: the purses, and what the last account cost.
    pub fn earn<'a>(
        &mut self,
        passed: Duration,
        overhead: Duration,
        jvms: impl ExactSizeIterator<Item = (&'a mut Purse, Option<Duration>)>,
    ) {
        let seconds = passed.as_secs_f64();
        self.near.earn(seconds * NEAR_BUDGET, SAVED_SECONDS_MAX);
        self.suspects.earn(seconds * self.share * SUSPECTS_SHARE, SAVED_SECONDS_MAX);
        self.pool.spend(overhead);
        let mut income = seconds * self.share * (1.0 - SUSPECTS_SHARE);
        // Debts of JVMs that are gone, and the overhead, come first.
        let debt = (-self.pool.0).clamp(0.0, income);
        self.pool.0 += debt;
        income -= debt;
        let each = income / jvms.len().max(1) as f64;
        let mut left = if jvms.len() == 0 { income } else { 0.0 };
        for (purse, cost) in jvms {
            let most = cost.map_or(0.0, |cost| cost.as_secs_f64() * 1.1).max(SAVED_SECONDS_MAX);
            left += purse.earn(each, most);
        }
        self.pool.earn(left, SAVED_SECONDS_MAX.max(self.share));
    }

    pub fn spend(&mut self, payer: Payer, own: &mut Purse, used: Duration) {
        match payer {
            Payer::Near => self.near.spend(used),
            Payer::Suspects => self.suspects.spend(used),
            Payer::Own => {
                // Own time first, then the pool's; what is still missing is the JVM's debt.
                let used = used.as_secs_f64();
                let of_pool = (used - own.0.max(0.0)).clamp(0.0, self.pool.0.max(0.0));
                self.pool.0 -= of_pool;
                own.0 -= used - of_pool;
            }
        }
    }

    /// A JVM is gone: its debt stays.
    pub fn inherit(&mut self, own: Purse) {
        self.pool.0 += own.0.min(0.0);
    }

    /// Whether what is suspect, and the search for new JVMs, may use CPU time now.
    pub fn allows_suspects(&self) -> bool {
        self.suspects.is_paid()
    }

    pub fn spend_on_search(&mut self, used: Duration) {
        self.suspects.spend(used);
    }

    fn allows(&self, own: Purse, cost: Duration) -> bool {
        own.0 + self.pool.0.max(0.0) >= cost.as_secs_f64()
    }
}

/// What is known of one JVM when it is to be decided.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    /// Since its last account; `None`: it has none.
    pub since: Option<Duration>,
    /// Since it was found.
    pub age: Duration,
    /// CPU time that the last account took.
    pub cost: Option<Duration>,
    /// Resident at the last account, and now.
    pub resident_then: Bytes,
    pub resident_now: Bytes,
    pub is_near: bool,
    /// Its last reading was given up, or nothing is known of it and those of its user were: how long the next one waits
    /// (`trust`).
    pub suspect: Option<Duration>,
    pub own: Purse,
}

/// What holds for all JVMs.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub account_every: Duration,
    /// How many JVMs are near their limits.
    pub near: usize,
}

impl State {
    fn moved(&self) -> bool {
        let moved = self.resident_then.abs_diff(self.resident_now);
        moved >= MOVED_BYTES.max(self.resident_then / MOVED_SHARE)
    }

    fn cost(&self) -> Duration {
        self.cost.unwrap_or(COST_FIRST)
    }

    /// How much an account is wanted, at least 1 where it is due; higher comes first. It is the age of the account in
    /// intervals, so that one that is wanted often does not keep others from their turn.
    pub fn urgency(&self, asked: Asked) -> f64 {
        let intervals = |age: Duration, every: f64| age.as_secs_f64() / every.max(1e-3);
        if self.suspect.is_some() {
            return 0.0;
        }
        let every = asked.account_every.as_secs_f64();
        let Some(since) = self.since else { return 3.0 + intervals(self.age, every) };
        if self.is_near {
            return intervals(since, every.min(self.near_interval(asked)));
        }
        intervals(since, every) + if self.moved() { 2.0 } else { 0.0 }
    }

    /// Seconds from one account to the next near the limit.
    fn near_interval(&self, asked: Asked) -> f64 {
        self.cost().as_secs_f64() * asked.near.max(1) as f64 / NEAR_BUDGET
    }

    /// Whether the account is much older than it may be: the budget does not do, or it cannot be read.
    pub fn is_late(&self, account_every: Duration) -> bool {
        self.since.unwrap_or(self.age) > LATE.max(3 * account_every)
    }

    /// Whether the account is read now, and on whose time.
    pub fn is_due(&self, asked: Asked, shares: &Shares) -> Option<Payer> {
        if let Some(wait) = self.suspect {
            let is_time = self.since.is_none_or(|since| since >= wait);
            return (shares.suspects.is_paid() && is_time).then_some(Payer::Suspects);
        }
        let Some(since) = self.since else {
            // Whatever the first one costs, it is paid back later.
            return shares.allows(self.own, Duration::from_nanos(1)).then_some(Payer::Own);
        };
        if self.is_near && shares.near.is_paid() && since.as_secs_f64() >= self.near_interval(asked) {
            return Some(Payer::Near);
        }
        // Half the interval is for rounds that come a moment early.
        let is_due = State { is_near: false, ..*self }.urgency(asked) >= 0.999;
        (is_due && shares.allows(self.own, self.cost())).then_some(Payer::Own)
    }
}

/// Where a cgroup stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub limit_bytes: Bytes,
    pub left_bytes: Bytes,
    /// "max" of memory.events: how often the group was at its limit.
    pub hits: u64,
}

/// Whether a JVM may be killed soon.
pub fn is_near(before: Option<(Limit, Duration)>, now: Limit) -> bool {
    if now.left_bytes < now.limit_bytes / NEAR_SHARE {
        return true;
    }
    let Some((before, passed)) = before else { return false };
    let taken = before.left_bytes.saturating_sub(now.left_bytes) as f64;
    let speed = taken / passed.as_secs_f64().max(1e-3);
    let is_hit = now.hits > before.hits && now.left_bytes < now.limit_bytes / HIT_SHARE;
    is_hit || speed > 0.0 && (now.left_bytes as f64) < speed * NEAR_SECONDS && taken > 1e6
}

/// The time from one look to the next.
pub fn interval(every: Duration, is_near: bool) -> Duration {
    if is_near { (every / FASTER).max(FASTEST).min(every) } else { every }
}

#[cfg(test)]
mod tests {
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
        One {
            state,
            cost: Duration::from_millis(cost_ms),
            moves,
            used: 0.0,
            accounts: 0,
            oldest: Duration::ZERO,
        }
    }

    /// An hour of looks each second; one account at a time, the most urgent first.
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
        assert!(accounts > 50 && used < 38.0, "a costly one comes seldom: {accounts} {used}");
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
            assert!(
                jvm.oldest <= Duration::from_secs(30),
                "{at}: {:?}, {} accounts",
                jvm.oldest,
                jvm.accounts
            );
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
}
