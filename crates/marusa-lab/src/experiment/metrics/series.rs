//! A series of a Prometheus page as a figure of a range of time: a counter's rate, a gauge's mean, or what one counter
//! grew by for each that another grew by (`seconds_sum / seconds_count`: the mean time of one).

use crate::base::{Gap, Known, Refused, Why};
use crate::os::series::{self, Selector, Sum};

/// One series, or two that are divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    pub of: Selector,
    pub by: Option<Selector>,
}

/// What a page says of them at one time.
pub type Sums = (Sum, Option<Sum>);

impl Series {
    pub fn parse(text: &str) -> Result<Series, Refused> {
        match text.split_once(" / ") {
            Some((of, by)) => Ok(Series { of: of.parse()?, by: Some(by.parse()?) }),
            None => Ok(Series { of: text.parse()?, by: None }),
        }
    }

    /// "requests_total", "seconds_sum / seconds_count".
    pub fn name(&self) -> String {
        match &self.by {
            Some(by) => format!("{} / {}", self.of.name, by.name),
            None => self.of.name.clone(),
        }
    }

    pub fn sums(&self, page: &str) -> Known<Sums> {
        let by = self.by.as_ref().map(|by| series::sum(page, by)).transpose()?;
        Ok((series::sum(page, &self.of)?, by))
    }
}

/// Growth in `seconds`, by what the other grew by or else by time.
pub fn grown(name: &str, first: Sums, last: Sums, seconds: f64) -> Known<f64> {
    let of = last.0.value - first.0.value;
    let by = match (first.1, last.1) {
        (Some(first), Some(last)) => last.value - first.value,
        _ => seconds,
    };
    match (of >= 0.0, by > 0.0) {
        (true, true) => Ok(of / by),
        (false, _) => Err(Gap::new(name, Why::Torn).hint("the counter went backwards")),
        (_, false) => Err(Gap::new(name, Why::NotMeasured).hint("nothing happened in this period")),
    }
}

/// Looks at a page over one trial: the figure of each interval between two samples, and of the whole.
#[derive(Clone, Debug)]
pub struct Watch {
    name: String,
    looks: Vec<(f64, Sums)>,
}

/// Samples that are kept: one a second for a day.
const LOOKS_MAX: usize = 86_400;

impl Watch {
    pub fn new(series: &Series) -> Watch {
        Watch { name: series.name(), looks: Vec::new() }
    }

    /// `seconds`: when, on any clock that goes on.
    pub fn take(&mut self, seconds: f64, sums: Sums) {
        let is_later = self.looks.last().is_none_or(|(last, _)| seconds > *last);
        if is_later && self.looks.len() < LOOKS_MAX {
            self.looks.push((seconds, sums));
        }
    }

    /// For the steady state. An interval in which nothing happened has no figure of one that is divided, and is left out.
    pub fn series(&self) -> Vec<f64> {
        let pairs = self.looks.windows(2);
        pairs.filter_map(|pair| self.between(pair[0], pair[1]).ok()).collect()
    }

    /// From the reading at or after these seconds to the last.
    pub fn since(&self, from_seconds: f64) -> Known<f64> {
        let first = self.looks.partition_point(|(seconds, _)| *seconds < from_seconds);
        let looks = &self.looks[first..];
        let gap =
            || Gap::new(self.name.clone(), Why::NotMeasured).hint("fewer than two readings of the page");
        let (Some(first), Some(last)) = (looks.first(), looks.last()) else { return Err(gap()) };
        if is_gauge(first.1) {
            return Ok(looks.iter().map(|(_, sums)| sums.0.value).sum::<f64>() / looks.len() as f64);
        }
        if looks.len() < 2 {
            return Err(gap());
        }
        self.between(*first, *last)
    }

    fn between(&self, first: (f64, Sums), last: (f64, Sums)) -> Known<f64> {
        if is_gauge(first.1) {
            return Ok(last.1.0.value);
        }
        grown(&self.name, first.1, last.1, last.0 - first.0)
    }
}

fn is_gauge(sums: Sums) -> bool {
    !sums.0.is_counter && sums.1.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(value: f64) -> Sum {
        Sum { value, series: 1, is_counter: true }
    }

    #[test]
    fn figures_of_counters() {
        assert_eq!(grown("a", (sum(10.0), None), (sum(30.0), None), 4.0), Ok(5.0));
        let both = |of: f64, by: f64| (sum(of), Some(sum(by)));
        assert_eq!(grown("a", both(1.0, 10.0), both(3.0, 30.0), 4.0), Ok(0.1));
        assert!(grown("a", both(1.0, 10.0), both(3.0, 10.0), 4.0).is_err());
        assert!(grown("a", (sum(10.0), None), (sum(3.0), None), 4.0).is_err_and(|gap| gap.why == Why::Torn));
        assert_eq!(Series::parse("a_sum / a_count").map(|series| series.by.is_some()), Ok(true));
        assert!(Series::parse("a{").is_err());
    }

    #[test]
    fn a_counter_over_time_and_a_gauge() {
        let series = Series::parse("requests_total").expect("a series");
        let page = |count: u32| format!("# TYPE requests_total counter\nrequests_total {count}\n");
        let mut watch = Watch::new(&series);
        for (seconds, count) in [(0.0, 0), (1.0, 10), (2.0, 40), (2.0, 50), (4.0, 100)] {
            watch.take(seconds, series.sums(&page(count)).expect("a page"));
        }
        assert_eq!(watch.series(), [10.0, 30.0, 30.0], "a second reading of the same time is none");
        assert_eq!((watch.since(0.0), watch.since(1.0)), (Ok(25.0), Ok(30.0)));
        assert!(watch.since(3.0).is_err(), "one sample is not a rate");
        let series = Series::parse("load").expect("a series");
        let mut watch = Watch::new(&series);
        for (seconds, load) in [(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)] {
            watch.take(seconds, series.sums(&format!("# TYPE load gauge\nload {load}\n")).expect("a page"));
        }
        assert_eq!((watch.since(0.5), watch.series()), (Ok(4.0), vec![3.0, 5.0]));
    }
}
