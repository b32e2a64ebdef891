//! Requests that wait for the back end: in order, and no more than a number of them and of their bytes. The oldest gives way.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// At 10 seconds a request, nearly three hours.
const REQUESTS_MAX: usize = 1024;

#[derive(Default)]
struct Waiting {
    requests: VecDeque<(u64, Arc<[u8]>)>,
    bytes: usize,
    number: u64,
    /// No more come, and an attempt that fails is the last.
    is_closing: bool,
    /// Nobody sends any more.
    is_given_up: bool,
}

pub struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    bytes_max: usize,
}

impl Queue {
    pub fn new(bytes_max: usize) -> Queue {
        Queue { waiting: Mutex::default(), changed: Condvar::new(), bytes_max }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one, and returns how many gave way. One for which there is no room at all takes no other with it.
    pub fn add(&self, request: Vec<u8>) -> u64 {
        let mut waiting = self.waiting();
        if request.len() > self.bytes_max {
            return 1;
        }
        let mut dropped = 0;
        while waiting.requests.len() == REQUESTS_MAX || waiting.bytes + request.len() > self.bytes_max {
            let Some((_, oldest)) = waiting.requests.pop_front() else { break };
            waiting.bytes -= oldest.len();
            dropped += 1;
        }
        waiting.number += 1;
        waiting.bytes += request.len();
        let number = waiting.number;
        waiting.requests.push_back((number, request.into()));
        self.changed.notify_all();
        dropped
    }

    /// The oldest, which stays until it is `settled`; waits for one. `None`: no more come.
    pub fn first(&self) -> Option<(u64, Arc<[u8]>)> {
        let mut waiting = self.waiting();
        loop {
            if let Some((number, request)) = waiting.requests.front() {
                return Some((*number, request.clone()));
            }
            if waiting.is_closing {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// It was accepted or refused. False: it had given way before.
    pub fn settled(&self, number: u64) -> bool {
        let mut waiting = self.waiting();
        if waiting.requests.front().is_none_or(|(first, _)| *first != number) {
            return false;
        }
        let bytes = waiting.requests.pop_front().map_or(0, |(_, request)| request.len());
        waiting.bytes -= bytes;
        self.changed.notify_all();
        true
    }

    /// Waits before the next attempt. False: there is to be none.
    pub fn pause(&self, time: Duration) -> bool {
        let waiting = self.waiting();
        if waiting.is_closing {
            return false;
        }
        let waited = self.changed.wait_timeout_while(waiting, time, |waiting| !waiting.is_closing);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        true
    }

    /// Nobody sends any more.
    pub fn give_up(&self) {
        self.waiting().is_given_up = true;
        self.changed.notify_all();
    }

    /// No more come. Waits until all are settled, for at most this time, and returns how many are left.
    pub fn close(&self, most: Duration) -> usize {
        let mut waiting = self.waiting();
        waiting.is_closing = true;
        self.changed.notify_all();
        let has_more = |waiting: &mut Waiting| !waiting.requests.is_empty() && !waiting.is_given_up;
        let (waiting, _) =
            self.changed.wait_timeout_while(waiting, most, has_more).unwrap_or_else(PoisonError::into_inner);
        waiting.requests.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES_MAX: usize = 1 << 20;

    fn queue() -> Queue {
        Queue::new(BYTES_MAX)
    }

    fn first(queue: &Queue) -> u64 {
        queue.first().expect("one").0
    }

    #[test]
    fn the_oldest_gives_way_to_number_and_bytes() {
        let queue = queue();
        let dropped: u64 = (0..REQUESTS_MAX as u64 + 2).map(|_| queue.add(vec![0; 8])).sum();
        assert_eq!((dropped, first(&queue)), (2, 3));
        assert_eq!(queue.add(vec![1; BYTES_MAX - 16]), REQUESTS_MAX as u64 - 2);
        assert_eq!(
            (queue.add(vec![1; BYTES_MAX + 1]), queue.waiting().requests.len()),
            (1, 3),
            "only itself"
        );
    }

    #[test]
    fn one_that_gave_way_while_it_was_sent_takes_no_other_with_it() {
        let queue = queue();
        queue.add(vec![1]);
        let number = first(&queue);
        queue.add(vec![0; BYTES_MAX]);
        assert!(!queue.settled(number));
        let next = first(&queue);
        assert!(queue.settled(next) && !queue.settled(next));
        assert_eq!(queue.add(vec![0; BYTES_MAX]), 0);
    }

    #[test]
    fn an_hour_without_a_back_end_costs_the_oldest_and_each_of_them_is_counted() {
        let queue = queue();
        let mut dropped = 0;
        for number in 0..360_u32 {
            let mut request = vec![0; 10_000];
            request[..4].copy_from_slice(&number.to_le_bytes());
            dropped += queue.add(request);
            assert!(queue.waiting().bytes <= BYTES_MAX);
        }
        let number = |request: &[u8]| u32::from_le_bytes(request[..4].try_into().expect("four"));
        let mut came = Vec::new();
        while !queue.waiting().requests.is_empty() {
            let (at, request) = queue.first().expect("one");
            came.push(number(&request));
            queue.settled(at);
        }
        assert_eq!(came, (dropped as u32..360).collect::<Vec<_>>(), "what is left is whole and in order");
        assert_eq!((came.len(), queue.waiting().bytes), (BYTES_MAX / 10_000, 0));
    }

    #[test]
    fn the_end_waits_for_what_is_left_and_not_for_long() {
        let queue = Arc::new(queue());
        assert_eq!(queue.close(Duration::from_secs(600)), 0);
        assert!(queue.first().is_none());
        queue.add(vec![1]);
        assert_eq!(queue.close(Duration::from_millis(1)), 1, "nobody sends");
        assert!(!queue.pause(Duration::from_secs(600)), "no other attempt");
        let other = queue.clone();
        let sender =
            std::thread::spawn(move || other.first().is_some_and(|(number, _)| other.settled(number)));
        assert_eq!(queue.close(Duration::from_secs(600)), 0);
        assert!(sender.join().expect("it ends"));
        queue.add(vec![1]);
        queue.give_up();
        assert_eq!(queue.close(Duration::from_secs(600)), 1);
    }
}
