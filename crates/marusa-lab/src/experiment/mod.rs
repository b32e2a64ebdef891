//! Experiments: what a change gains is measured, not believed. Two arms take turns in an order that chance and the drift of a
//! busy machine cannot bias (`design`), the difference gets an interval (`stats`), and a rule that was fixed before says when
//! to stop (`verdict`). "No gain shown" is a good answer.

pub mod abab;
pub mod arm_pages;
pub mod arms;
pub mod bench;
pub mod compare_result;
pub mod design;
pub mod http_load;
pub mod metrics;
pub mod order;
pub mod resume;
pub mod stats;
pub mod trial_record;
pub mod trial_watch;
pub mod verdict;
pub mod warm_up;
