//! The walk of glibc's heap against what glibc itself says (malloc_info(3)): C programs whose heaps are known, and JVMs, at
//! rest, on several glibc and under its tunables, must agree to the byte. Then programs that do not hold still, and heaps
//! that are broken.

mod bad_input;
mod churn;
mod compare;
mod glibcs;
mod info;
mod jvms;
mod programs;
mod quiet;
