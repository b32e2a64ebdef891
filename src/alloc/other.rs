//! Allocators other than glibc: recognised, not walked.
