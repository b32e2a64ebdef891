//! How soon the kernel lets this process run, while it reads a target that keeps all cores busy. A reading takes some tens
//! of milliseconds of CPU. With an equal share among the target's threads that becomes hundreds, in which the target goes
//! on changing; with a larger share the same work is done in one go, and less is torn.

use rustix::process::{getpriority_process, setpriority_process};

/// Nine times the weight of an ordinary thread (kernel/sched/core.c, `sched_prio_to_weight`): two thirds of a core that four
/// others want, and still no more than a share.
const EAGER_NICE: i32 = -10;
const ORDINARY_NICE: i32 = 0;

/// While it lives, this thread and the ones that it starts run at a higher priority, where the process may have that
/// (CAP_SYS_NICE, RLIMIT_NICE). Who was started with another priority than the ordinary one keeps it.
pub struct Eager {
    is_raised: bool,
}

impl Eager {
    pub fn start() -> Eager {
        Eager { is_raised: own() == Some(ORDINARY_NICE) && set(EAGER_NICE) }
    }
}

impl Drop for Eager {
    fn drop(&mut self) {
        if self.is_raised {
            set(ORDINARY_NICE);
        }
    }
}

/// The nice value of this thread.
fn own() -> Option<i32> {
    getpriority_process(None).ok()
}

fn set(nice: i32) -> bool {
    setpriority_process(None, nice).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_priority_is_put_back_and_a_chosen_one_is_kept() {
        let before = own();
        {
            let eager = Eager::start();
            assert_eq!(own(), if eager.is_raised { Some(EAGER_NICE) } else { before });
        }
        assert_eq!(own(), before);
        // Every process may lower its own.
        assert!(set(19));
        let _eager = Eager::start();
        assert_eq!(own(), Some(19));
    }
}
