//! Rows of numbers as short texts: an hour of 100 parts is 360,000 numbers, most of them as the one before.

use crate::base::{Bytes, PAGE};
use crate::map::grid::{Run, State};

/// Differences to the last known number, parted by spaces; "~7": seven more that are the same as the one before; "-": not known.
pub fn series(values: impl IntoIterator<Item = Option<Bytes>>) -> String {
    let mut text = String::new();
    let (mut before, mut last, mut same) = (None::<Option<Bytes>>, 0_i128, 0_usize);
    for value in values {
        if before == Some(value) {
            same += 1;
            continue;
        }
        flush(&mut text, &mut same);
        before = Some(value);
        match value {
            Some(bytes) => {
                push(&mut text, &(i128::from(bytes) - last).to_string());
                last = i128::from(bytes);
            }
            None => push(&mut text, "-"),
        }
    }
    flush(&mut text, &mut same);
    text
}

fn flush(text: &mut String, same: &mut usize) {
    if *same > 0 {
        push(text, &format!("~{same}"));
        *same = 0;
    }
}

fn push(text: &mut String, word: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(word);
}

/// Four numbers to a run, in base 36: pages between it and the run before, its pages, its owner, and its state: 0 absent, 1
/// swapped, from 2 on the kind of its pages; where it is counted only, the pages that are in memory, below 0.
pub fn runs(runs: &[Run], state: impl Fn(&State) -> i64) -> String {
    let (mut text, mut end) = (String::new(), 0);
    for run in runs {
        let first = run.range.start.0 / PAGE;
        let pages = run.range.bytes() / PAGE;
        for number in [(first - end) as i64, pages as i64, run.owner as i64, state(&run.state)] {
            push(&mut text, &base36(number));
        }
        end = first + pages;
    }
    text
}

fn base36(number: i64) -> String {
    let mut digits = Vec::new();
    let mut rest = number.unsigned_abs();
    while rest > 0 || digits.is_empty() {
        digits.push(char::from_digit((rest % 36) as u32, 36).unwrap_or('0'));
        rest /= 36;
    }
    let sign = if number < 0 { "-" } else { "" };
    sign.chars().chain(digits.into_iter().rev()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Range;

    #[test]
    fn a_row_of_numbers_is_differences_and_repeats() {
        let values = [Some(5), Some(5), Some(5), Some(3), None, None, Some(4), Some(4)];
        assert_eq!(series(values), "5 ~2 -2 - ~1 1 ~1");
        assert_eq!(series([]), "");
        assert_eq!(series([Some(0), Some(u64::MAX)]), "0 18446744073709551615");
    }

    #[test]
    fn a_run_is_four_numbers() {
        let run = |start: u64, end: u64, owner, state| Run { range: Range::of(start, end), owner, state };
        let rows = [run(0x1000, 0x3000, 1, State::Absent), run(0x4000, 0x28000, 40, State::Some(17))];
        let state = |state: &State| if let State::Some(pages) = state { -(*pages as i64) } else { 0 };
        assert_eq!(runs(&rows, state), "1 2 1 0 1 10 14 -h");
    }
}
