//! The picture of an experiment: our figures with their intervals, and the published ones between them, as a file of SVG.

use super::cells;
use crate::experiment::bench::rounds::{Mean, Ratio};
use crate::experiment::bench::spread::Spread;
use crate::show::plot::{self, Dot, Room, Row, Span};

const OURS: usize = 0;
const PUBLISHED: usize = 1;

/// Rows from top to bottom; unknown figures are left out.
pub struct Picture {
    title: String,
    unit: &'static str,
    /// A line at this value: what means no difference.
    zero: Option<f64>,
    rows: Vec<Row>,
}

impl Picture {
    pub fn new(title: impl Into<String>, unit: &'static str, zero: Option<f64>) -> Picture {
        Picture { title: title.into(), unit, zero, rows: Vec::new() }
    }

    pub fn ratio(&mut self, name: impl Into<String>, ratio: Option<Ratio>) {
        if let Some(Ratio { ratio: estimate, low, high, .. }) = ratio {
            self.row(OURS, name.into(), estimate, low.zip(high), cells::ratio(ratio));
        }
    }

    pub fn mean(&mut self, name: impl Into<String>, mean: Option<Mean>) {
        if let Some(Mean { mean: estimate, plus_minus, .. }) = mean {
            let span = plus_minus.map(|half| (estimate - half, estimate + half));
            self.row(OURS, name.into(), estimate, span, cells::mean(mean));
        }
    }

    pub fn spread(&mut self, name: impl Into<String>, spread: Option<Spread>) {
        if let Some(Spread { median, min, max, .. }) = spread {
            self.row(OURS, name.into(), median, Some((min, max)), cells::spread(spread));
        }
    }

    /// A figure of a publication.
    pub fn published(&mut self, name: impl Into<String>, figure: f64, said: &str) {
        self.row(PUBLISHED, name.into(), figure, None, format!("{said} (published)"));
    }

    fn row(&mut self, index: usize, name: String, figure: f64, range: Option<(f64, f64)>, note: String) {
        let dot = Dot { value: figure, tip: note.clone(), is_hollow: false };
        let span = range.map(|(low, high)| Span { estimate: figure, low, high });
        let dots = if span.is_some() { Vec::new() } else { vec![dot] };
        self.rows.push(Row { name, index, dots, span, note });
    }

    /// `None`: there is nothing to draw.
    pub fn svg(&self) -> Option<String> {
        let plot = plot::rows(Room::LONG_NAMES, &self.title, self.unit, &self.rows, self.zero);
        (!self.rows.is_empty()).then(|| as_file(&plot))
    }
}

/// A plot as a file of its own.
pub fn as_file(plot: &str) -> String {
    let own = plot.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1);
    own.replacen('>', &format!("><style>{}</style>", plot::STYLE), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_have_intervals_and_the_published_ones_are_named() {
        let mut picture = Picture::new("fork", "times", Some(1.0));
        assert_eq!(picture.svg(), None);
        picture.ratio("1 GiB", Some(Ratio { ratio: 17.3, low: Some(15.6), high: Some(19.2), rounds: 4 }));
        picture.published("1 GiB, 2008", 17.26, "17.26");
        picture.mean("one trial", Mean::of([3.0]));
        picture.ratio("unknown", None);
        let svg = picture.svg().expect("three rows");
        assert!(svg.starts_with("<svg xmlns=") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert!(svg.contains("17.3 (15.6 to 19.2)") && svg.contains("17.26 (published)"), "{svg}");
        assert_eq!((svg.matches("class=\"span\"").count(), svg.contains("unknown")), (1, false));
    }
}
