//! Requests that wait for the back end: in order, and no more than a number of them and of their bytes. The oldest gives way.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// At 10 seconds a request, nearly three hours.
const REQUESTS_MAX: usize = 1024;
const BYTES_MAX: usize = 32 << 20;

#[derive(Default)]
struct Waiting {
    requests: VecDeque<(u64, Arc<[u8]>)>,
    bytes: usize,
    number: u64,
}

#[derive(Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    added: Condvar,
}

impl Queue {
    /// Adds one, and returns how many gave way.
    pub fn add(&self, request: Vec<u8>) -> u64 {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut dropped = 0;
        while waiting.requests.len() == REQUESTS_MAX || waiting.bytes + request.len() > BYTES_MAX {
            let Some((_, oldest)) = waiting.requests.pop_front() else { return dropped + 1 };
            waiting.bytes -= oldest.len();
            dropped += 1;
        }
        waiting.number += 1;
        waiting.bytes += request.len();
        let number = waiting.number;
        waiting.requests.push_back((number, request.into()));
        self.added.notify_one();
        dropped
    }

    /// The oldest, which stays until it is `settled`; waits for one.
    pub fn first(&self) -> (u64, Arc<[u8]>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some((number, request)) = waiting.requests.front() {
                return (*number, request.clone());
            }
            waiting = self.added.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// It was accepted or refused. False: it had given way before.
    pub fn settled(&self, number: u64) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.requests.front().is_none_or(|(first, _)| *first != number) {
            return false;
        }
        let bytes = waiting.requests.pop_front().map_or(0, |(_, request)| request.len());
        waiting.bytes -= bytes;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way_to_number_and_bytes() {
        let queue = Queue::default();
        let dropped: u64 = (0..REQUESTS_MAX as u64 + 2).map(|_| queue.add(vec![0; 8])).sum();
        assert_eq!((dropped, queue.first().0), (2, 3));
        assert_eq!(queue.add(vec![1; BYTES_MAX - 16]), REQUESTS_MAX as u64 - 2);
        assert_eq!(queue.add(vec![1; BYTES_MAX + 1]), 4, "all, and itself");
    }

    #[test]
    fn one_that_gave_way_while_it_was_sent_takes_no_other_with_it() {
        let queue = Queue::default();
        queue.add(vec![1]);
        let (number, _) = queue.first();
        queue.add(vec![0; BYTES_MAX]);
        assert!(!queue.settled(number));
        let (next, _) = queue.first();
        assert!(queue.settled(next) && !queue.settled(next));
        assert_eq!(queue.add(vec![0; BYTES_MAX]), 0);
    }
}
