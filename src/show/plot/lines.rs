//! Figures over time, or over the order in which they were measured: joined for a series, dots alone for trials.

use super::axis::Axis;
use super::{WIDTH, colour, escaped, legend, mark, open, ticks};

#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    pub index: usize,
    pub points: Vec<(f64, f64)>,
    /// Points that do not count.
    pub hollow: Vec<(f64, f64)>,
    pub is_joined: bool,
}

const LEFT: f64 = 70.0;
const TOP: f64 = 26.0;
const HEIGHT: f64 = 200.0;
/// Points of one line that are drawn: more than there are places for.
const POINTS_MAX: usize = 2000;

/// `from_zero`: the scale begins at 0.
pub fn lines(title: &str, across: &str, unit: &str, all: &[Series], from_zero: bool) -> String {
    let bottom = TOP + HEIGHT;
    let (names, height) =
        legend(&all.iter().map(|one| (one.index, one.name.clone())).collect::<Vec<_>>(), bottom + 42.0);
    let points = || all.iter().flat_map(|one| one.points.iter().chain(&one.hollow));
    let x = Axis::around(points().map(|point| point.0), None, LEFT, WIDTH - 10.0, 8);
    let x = if points().all(|point| point.0.fract() == 0.0) { x.whole() } else { x };
    let y = Axis::around(points().map(|point| point.1), from_zero.then_some(0.0), bottom, TOP, 6);
    let mut svg = open(title, WIDTH, bottom + 42.0 + height) + &frame(&x, &y, across, unit, bottom);
    for one in all {
        let step = one.points.len().div_ceil(POINTS_MAX).max(1);
        let drawn = one.points.iter().filter(|point| point.0.is_finite() && point.1.is_finite());
        let places: Vec<(f64, f64)> =
            drawn.step_by(step).map(|point| (x.place(point.0), y.place(point.1))).collect();
        if one.is_joined {
            let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            svg += &format!(
                "<polyline class=\"join\" stroke=\"{}\" points=\"{}\"/>\n",
                colour(one.index),
                path.join(" ")
            );
        }
        if !one.is_joined || places.len() <= 60 {
            places.iter().for_each(|(x, y)| svg += &mark(one.index, *x, *y, false, &one.name));
        }
        let tip = format!("{}: does not count", one.name);
        one.hollow
            .iter()
            .filter(|point| point.0.is_finite() && point.1.is_finite())
            .for_each(|point| svg += &mark(one.index, x.place(point.0), y.place(point.1), true, &tip));
    }
    svg + &names + "</svg>\n"
}

/// Both scales, and what they are of.
pub(super) fn frame(x: &Axis, y: &Axis, across: &str, unit: &str, bottom: f64) -> String {
    let mut svg = String::new();
    for tick in y.ticks() {
        let at = y.place(tick);
        svg +=
            &format!("<line class=\"grid\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.0}\" y2=\"{at:.1}\"/>", x.to);
        svg += &format!(
            "<text class=\"dim end\" x=\"{:.0}\" y=\"{:.1}\">{}</text>\n",
            LEFT - 8.0,
            at + 4.0,
            y.label(tick)
        );
    }
    svg += &ticks(x, [bottom, bottom + 4.0], bottom + 16.0);
    svg += &format!("<text class=\"dim end\" x=\"{:.0}\" y=\"14\">{}</text>", x.to, escaped(unit));
    let middle = (x.from + x.to) / 2.0;
    svg + &format!(
        "<text class=\"dim middle\" x=\"{middle:.0}\" y=\"{:.0}\">{}</text>\n",
        bottom + 33.0,
        escaped(across)
    )
}
