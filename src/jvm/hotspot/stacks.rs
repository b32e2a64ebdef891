//! Stacks of all threads by their thread control block.
