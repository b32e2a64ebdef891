//! One pass over the target, in a fixed order.

pub mod take;
