//! Threads of one name that grow in number over a recording, and have not stopped growing: a pool without a bound, or threads that
//! no code ends.

use super::{Evidence, Finding, Level, Remedy};
use crate::base::printable::escaped;
use crate::record::history::History;
use crate::record::key::{Key, Measure, Subject as Of};

/// More threads than that: pools of servers grow to some tens with the load, and few to hundreds.
const INFO_GROWN: u64 = 100;
const WARN_GROWN: u64 = 500;
/// Fewer accounts show no course.
const ACCOUNTS_MIN: usize = 8;
/// Divisor of the growth: the least in the last quarter of the accounts. A pool that has reached its size does not grow.
const LAST_QUARTER_SHARE: u64 = 10;

/// The name that grew most.
pub fn find(history: &History) -> Option<Finding> {
    let accounts = history.accounts();
    if accounts.len() < ACCOUNTS_MIN {
        return None;
    }
    let keys = history.keys().iter().filter(|key| key.measure == Measure::Threads);
    let pools = keys.filter_map(|key| match &key.subject {
        Of::Threads(name) => Some((grown(history, key, &accounts)?, name, key)),
        _ => None,
    });
    let (Grown { first, last }, name, key) = pools.max_by_key(|(grown, ..)| grown.last - grown.first)?;
    let stacks = history.value(&Key::of(&key.subject, Measure::Resident), *accounts.last()?);
    let stacks =
        stacks.map(|bytes| Evidence::bytes("their stacks, in memory, at the end", bytes, "the recording"));
    let name = escaped(name);
    let counts = [("at the first account", first), ("at the last", last)];
    let counts =
        counts.map(|(what, count)| Evidence::count(format!("threads {what}"), count, "the recording"));
    let level = if last - first >= WARN_GROWN { Level::Warn } else { Level::Info };
    let title = format!("threads named \"{name}\" grew from {first} to {last}, and still grow");
    let evidence = counts.into_iter().chain(stacks);
    let remedies = [Remedy::advice("bound the pool, or end the threads that are no longer needed")];
    Some(Finding::on_jvm(history.facts.pid, level, title, evidence, remedies).of_rule("thread-pool-large"))
}

struct Grown {
    first: u64,
    last: u64,
}

/// `None`: too little, or it does not grow any more.
fn grown(history: &History, key: &Key, accounts: &[usize]) -> Option<Grown> {
    let at = |place: usize| history.value(key, accounts[place]).unwrap_or(0);
    let (first, later, last) = (at(0), at(accounts.len() * 3 / 4), at(accounts.len() - 1));
    let grown = last.saturating_sub(first);
    let is_growing = last.saturating_sub(later).saturating_mul(LAST_QUARTER_SHARE) >= grown;
    (grown >= INFO_GROWN && last >= first.saturating_mul(2) && is_growing).then_some(Grown { first, last })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::writer::{JvmFacts, Scope, Session, Writer};
    use crate::record::{Moment, reader};

    fn found(counts: &[u64]) -> Option<Finding> {
        let mut writer = Writer::new(&Session::default());
        let jvm = writer.jvm(JvmFacts { pid: 7, ..JvmFacts::default() });
        for (second, count) in counts.iter().enumerate() {
            let at = Moment { steady_ms: second as u64 * 1000, wall_ms: second as i64 * 1000 };
            let threads = |name: &str| Key::of(&Of::Threads(name.to_string()), Measure::Threads);
            let figures = [
                (Key::process(Measure::AccountAt), Some(at.steady_ms)),
                (threads("pool-#\u{1b}[2J"), Some(*count)),
                (threads("http-#"), Some(200)),
            ];
            writer.sample(jvm, at, Scope::Account, &figures);
        }
        find(&reader::read(&[&writer.take()]).expect("a recording").jvms.remove(0))
    }

    #[test]
    fn threads_that_grow_to_the_end_are_named() {
        let line = |last: u64| -> Vec<u64> { (0..=10).map(|at| 20 + (last - 20) * at / 10).collect() };
        assert_eq!(found(&line(119)), None);
        let finding = found(&line(120)).expect("100 more");
        assert_eq!((finding.id, finding.level), ("thread-pool-large", Level::Info));
        assert_eq!(finding.title, "threads named \"pool-#\\u001b[2J\" grew from 20 to 120, and still grow");
        assert_eq!(found(&line(519)).map(|finding| finding.level), Some(Level::Info));
        assert_eq!(found(&line(520)).map(|finding| finding.level), Some(Level::Warn));
        assert_eq!(found(&line(520)[..7]), None, "too few accounts");
    }

    #[test]
    fn a_pool_that_has_its_size_is_not() {
        assert_eq!(found(&[20, 100, 200, 300, 300, 300, 300, 300, 300, 300]), None);
        assert_eq!(
            found(&[150, 160, 180, 200, 210, 220, 230, 240, 260, 299]),
            None,
            "less than twice as many"
        );
        assert_eq!(found(&[20, 300, 600, 900, 900, 600, 300, 90, 50, 30]), None, "they end again");
    }
}
