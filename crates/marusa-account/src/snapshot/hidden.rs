//! Processes whose memory cannot be looked at: which ones, why, and what would help.

use crate::os::rights;
use std::collections::BTreeSet;

/// Pids that a message names; the rest is a number.
const NAMED_MAX: usize = 5;

/// By pid. Any of them may be a JVM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hidden(pub BTreeSet<i32>);

impl Hidden {
    /// The kernel's refusal and the remedy, which is the same for all of them.
    pub fn reason(&self) -> Option<String> {
        (!self.0.is_empty()).then(rights::to_look)
    }

    /// One sentence. The init of a sandbox that refuses even root is only in it when `is_verbose`: nobody can do anything about it.
    pub fn sentence(&self, is_verbose: bool) -> Option<String> {
        let names_init = is_verbose || !rights::may_look();
        let worth_naming: Vec<i32> = self.0.iter().copied().filter(|pid| *pid != 1 || names_init).collect();
        Some(format!("{}: {}", subject(&worth_naming)?, self.reason()?))
    }
}

fn subject(pids: &[i32]) -> Option<String> {
    let word = |pids: &[i32]| pids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
    match pids {
        [] => None,
        [pid] => Some(format!("pid {pid} cannot be looked at and may be a JVM")),
        few if few.len() <= NAMED_MAX => {
            let (last, rest) = few.split_last()?;
            Some(format!("pids {} and {last} cannot be looked at and may be JVMs", word(rest)))
        }
        many => {
            let (named, more) = (word(&many[..NAMED_MAX]), many.len() - NAMED_MAX);
            Some(format!("pids {named} and {more} more cannot be looked at and may be JVMs"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_named_and_of_many_the_first() {
        let of = |count: i32| subject(&(2..2 + count).collect::<Vec<_>>()).unwrap_or_default();
        assert_eq!(of(0), "");
        assert_eq!(of(1), "pid 2 cannot be looked at and may be a JVM");
        assert_eq!(of(2), "pids 2 and 3 cannot be looked at and may be JVMs");
        assert_eq!(of(5), "pids 2, 3, 4, 5 and 6 cannot be looked at and may be JVMs");
        assert_eq!(of(305), "pids 2, 3, 4, 5, 6 and 300 more cannot be looked at and may be JVMs");
    }

    #[test]
    fn pid_1_is_named_where_a_right_would_help_or_on_request() {
        let sandbox = Hidden(BTreeSet::from([1]));
        assert_eq!(sandbox.sentence(false).is_some(), !rights::may_look());
        assert!(sandbox.sentence(true).is_some_and(|text| text.starts_with("pid 1 cannot be looked at")));
        let both = Hidden(BTreeSet::from([7, 1])).sentence(true).unwrap_or_default();
        assert!(both.starts_with("pids 1 and 7 cannot"), "{both}");
        assert_eq!(Hidden::default().sentence(true), None);
    }
}
