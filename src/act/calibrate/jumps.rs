//! The instruction side: code of our own that is nothing but jumps, one to a page, each of which needs the page of the next.
//! A jump's aim is in the instruction, so the front end may run ahead: there is one figure, not one for dependent and one for
//! independent steps.

#[cfg(target_arch = "x86_64")]
pub use x86::JumpField;

#[cfg(not(target_arch = "x86_64"))]
pub use elsewhere::JumpField;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::own::Own;
    use super::super::{LINE, Layout, Pages, clock, order};
    use crate::base::{Bytes, Gap, Known, PAGE, Why};

    /// Laps that are timed at least this many jumps long, so that the clock's own time does not show.
    const STEPS_MIN: u64 = 1 << 15;
    /// How far a jump reaches, with room to spare.
    const REACH_BYTES: Bytes = 1 << 30;

    /// Code that visits its pages in random order.
    pub struct JumpField {
        own: Own,
        /// Offset of the first jump.
        entry: u64,
        nodes: u64,
    }

    impl JumpField {
        /// A jump in each page of `footprint` bytes, or as many jumps packed line by line.
        pub fn map(layout: Layout, footprint: Bytes, pages: Pages) -> Known<JumpField> {
            if !(PAGE..=REACH_BYTES).contains(&footprint) {
                return Err(Gap::new("code to jump through", Why::OverLimit).hint("4 KiB to 1 GiB"));
            }
            let bytes = match layout {
                Layout::OneToAPage => footprint,
                Layout::Dense => footprint / PAGE * order::DENSE_LINES * LINE,
            };
            let own = Own::map(bytes, pages)?;
            let lines = order::lines(layout, (footprint / PAGE) as usize);
            let offset = |index: usize| lines[index % lines.len()] as u64 * LINE;
            for index in 0..lines.len() {
                let is_last = index + 1 == lines.len();
                let code = step(offset(index), offset(index + 1), is_last);
                // SAFETY: the line lies within the mapping (`order::lines`), and no code is longer than a line.
                unsafe {
                    let at = own.start().add(offset(index) as usize);
                    std::ptr::copy_nonoverlapping(code.as_ptr(), at, code.len());
                }
            }
            own.make_executable()?;
            Ok(JumpField { entry: offset(0), nodes: lines.len() as u64, own })
        }

        /// How many jumps one `ns_per_step` takes, the ones that only warm included.
        pub fn steps(&self) -> u64 {
            self.nodes * (1 + STEPS_MIN.div_ceil(self.nodes))
        }

        /// Nanoseconds of a jump, after a lap that warms the caches.
        pub fn ns_per_step(&self) -> f64 {
            let laps = STEPS_MIN.div_ceil(self.nodes);
            // SAFETY: `map` wrote a whole function there, which counts its one argument down to 0 and returns; it was made
            // executable, and uses neither the stack nor a register that a caller keeps.
            let run: extern "sysv64" fn(u64) =
                unsafe { std::mem::transmute(self.own.start().add(self.entry as usize)) };
            run(1);
            let before = clock::thread_ns();
            run(laps);
            clock::thread_ns().saturating_sub(before) as f64 / (laps * self.nodes) as f64
        }
    }

    /// A jump from the line at `at` to the one at `next`. The last of a lap counts rdi, the first argument, down and ends at 0.
    fn step(at: u64, next: u64, is_last: bool) -> Vec<u8> {
        let (before, after): (&[u8], &[u8]) = match is_last {
            false => (&[0xe9], &[]),                            // jmp next
            true => (&[0x48, 0xff, 0xcf, 0x0f, 0x85], &[0xc3]), // dec rdi; jnz next; ret
        };
        // From the end of the instruction that it stands in.
        let distance = next as i64 - (at as i64 + before.len() as i64 + 4);
        [before, &(distance as i32).to_le_bytes(), after].concat()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_code_of_a_step() {
            assert_eq!(step(0x1000, 0x1005, false), [0xe9, 0, 0, 0, 0]);
            assert_eq!(step(0x2000, 0x1000, false), [0xe9, 0xfb, 0xef, 0xff, 0xff]);
            assert_eq!(step(0, 9, true), [0x48, 0xff, 0xcf, 0x0f, 0x85, 0, 0, 0, 0, 0xc3]);
        }

        #[test]
        fn code_runs_through_all_its_pages_and_comes_back() {
            for layout in [Layout::OneToAPage, Layout::Dense] {
                match JumpField::map(layout, 2 << 20, Pages::Small) {
                    Ok(field) => assert!(field.ns_per_step() > 0.0),
                    Err(gap) => {
                        assert_eq!(gap.what, "memory to run generated code in", "a policy may forbid it")
                    }
                }
            }
            assert!(JumpField::map(Layout::Dense, 1 << 40, Pages::Small).is_err());
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod elsewhere {
    use super::super::{Layout, Pages};
    use crate::base::{Bytes, Gap, Known, Why};

    /// Code is generated for x86-64 only.
    pub struct JumpField(std::convert::Infallible);

    impl JumpField {
        pub fn map(_: Layout, _: Bytes, _: Pages) -> Known<JumpField> {
            Err(Gap::new("cost of a walk for instructions", Why::NotRead)
                .hint("measured on x86-64 only; the data side's cost stands for it"))
        }
        pub fn steps(&self) -> u64 {
            match self.0 {}
        }
        pub fn ns_per_step(&self) -> f64 {
            match self.0 {}
        }
    }
}
