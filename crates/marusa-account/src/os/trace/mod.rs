//! The kernel's tracepoints about memory that a task had to wait for, as tracefs gives them: what the bytes of the ring
//! buffers mean. Only what is read; who makes the instance and takes it away again is `act::tracing`.

pub mod decode;
mod event;
pub mod format;
pub mod names;
pub mod ring;
pub mod tracefs;

pub use event::{Batch, Event, Hole, Mm, What};
