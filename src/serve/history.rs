//! The last while of each JVM, kept small: one row for each sample, with the resident bytes of each area where an account was read.

use crate::base::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::VecDeque;

/// At 10 seconds a sample, an hour.
const MOMENTS_MAX: usize = 360;

/// One sample. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct MomentRow {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    pub kernel_resident_bytes: Option<Bytes>,
    pub heap_used_bytes: Option<Bytes>,
    pub group_held_bytes: Option<Bytes>,
    pub group_limit_bytes: Option<Bytes>,
    /// In the order of the document's `areas`; `None`: no account was read at this moment.
    pub areas: Option<Vec<Bytes>>,
}

#[derive(Clone, Debug, Default)]
pub struct History(VecDeque<MomentRow>);

impl History {
    pub fn add(&mut self, row: MomentRow) {
        if self.0.len() == MOMENTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(row);
    }

    pub fn rows(&self) -> impl Iterator<Item = &MomentRow> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_when_it_is_full() {
        let mut history = History::default();
        (0..1000).for_each(|at_ms| history.add(MomentRow { at_ms, ..MomentRow::default() }));
        assert_eq!(history.rows().count(), MOMENTS_MAX);
        assert_eq!(history.rows().next().map(|row| row.at_ms), Some(1000 - MOMENTS_MAX as i64));
    }
}
