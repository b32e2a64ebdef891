//! Figures in lines of text: what a regular expression finds. Its first group is the number; without a group, all that it
//! matches.

use crate::base::{Gap, Known, Why};
use regex_lite::Regex;

/// Most matches that are kept of one trial.
const MATCHES_MAX: usize = 1_000_000;

/// All numbers that it finds, in their order.
pub fn all(text: &str, pattern: &Regex) -> Known<Vec<f64>> {
    let (mut numbers, mut others) = (Vec::new(), 0);
    for line in text.lines() {
        for found in pattern.captures_iter(line).take(MATCHES_MAX - numbers.len()) {
            let part = found.get(1).or_else(|| found.get(0));
            match part.and_then(|part| number(part.as_str())) {
                Some(value) => numbers.push(value),
                None => others += 1,
            }
        }
    }
    match (numbers.len(), others) {
        (0, 0) => Err(gap(pattern).hint(format!("none of {} lines fits", text.lines().count()))),
        (0, _) => {
            Err(gap(pattern).hint("it fits, but what it fits is not a number; put the number in parentheses"))
        }
        _ => Ok(numbers),
    }
}

/// The last.
pub fn last(text: &str, pattern: &Regex) -> Known<f64> {
    let found = all(text, pattern)?;
    found.last().copied().ok_or_else(|| gap(pattern))
}

/// The mean over some lines; of a pattern without a group, how many lines fit in a second.
pub fn mean(lines: &[String], pattern: &Regex, seconds: f64) -> Known<f64> {
    let found = lines.iter().filter_map(|line| pattern.captures(line));
    if pattern.captures_len() == 1 {
        return Ok(found.count() as f64 / seconds);
    }
    let values: Vec<f64> = found.filter_map(|found| number(found.get(1)?.as_str())).collect();
    match values.len() {
        0 => {
            Err(gap(pattern)
                .hint(format!("none of {} new lines in this period has a number there", lines.len())))
        }
        count => Ok(values.iter().sum::<f64>() / count as f64),
    }
}

fn gap(pattern: &Regex) -> Gap {
    Gap::new(format!("lines that fit `{pattern}`"), Why::NotMeasured)
}

/// "12.5", "1e3", and with thousands parted, "1,234.5".
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain = if is_parted(text) { text.replace(',', "") } else { text.to_string() };
    plain.parse().ok().filter(|value: &f64| value.is_finite())
}

fn is_parted(text: &str) -> bool {
    let whole = text.split('.').next().unwrap_or(text);
    let mut groups = whole.trim_start_matches('-').split(',');
    let is_number = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    groups.next().is_some_and(|first| (1..=3).contains(&first.len()) && is_number(first))
        && whole.contains(',')
        && groups.all(|group| group.len() == 3 && is_number(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Regex {
        Regex::new(text).expect("a pattern")
    }

    #[test]
    fn figures_of_lines() {
        let lines: Vec<String> = ["dependent 10.0 x", "other", "dependent 20.0 x"].map(String::from).to_vec();
        assert_eq!(mean(&lines, &pattern(r"dependent ([\d.]+)"), 2.0), Ok(15.0));
        assert_eq!(mean(&lines, &pattern("dependent"), 4.0), Ok(0.5));
        assert!(mean(&lines, &pattern("(absent)"), 1.0).is_err());
        let text = lines.join("\n");
        assert_eq!(all(&text, &pattern(r"dependent ([\d.]+)")), Ok(vec![10.0, 20.0]));
        assert_eq!(last(&text, &pattern(r"\d+\.\d")), Ok(20.0));
        assert_eq!(all("a 1, a 2", &pattern(r"a (\d)")), Ok(vec![1.0, 2.0]), "two in one line");
    }

    #[test]
    fn no_match_and_no_number_are_gaps_that_differ() {
        let none = last("x\ny\n", &pattern("rate (\\d+)")).expect_err("none");
        assert!(none.to_string().contains("none of 2 lines"), "{none}");
        let no_number = last("rate: fast", &pattern("rate: \\w+")).expect_err("no number");
        assert!(no_number.to_string().contains("parentheses"), "{no_number}");
    }

    #[test]
    fn thousands_may_be_parted() {
        assert_eq!(
            (number("1,234.5"), number("-12,345,678"), number("1e3"), number(" 7 ")),
            (Some(1234.5), Some(-12_345_678.0), Some(1000.0), Some(7.0))
        );
        assert_eq!(
            (number("1,23"), number("1,2345"), number(",123"), number("NaN"), number("")),
            (None, None, None, None, None)
        );
    }
}
