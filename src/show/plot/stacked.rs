//! Areas on top of each other over time: who has the memory. The first layer is at the bottom, and the legend has them as
//! they lie.

use super::axis::Axis;
use super::lines::frame;
use super::{COLOURS, WIDTH, colour, escaped, open};
use crate::show::units::shorten;

#[derive(Clone, Debug)]
pub struct Layer {
    pub name: String,
    /// One figure for each time; a missing one has height 0.
    pub values: Vec<f64>,
    /// A colour of the page's own, as CSS has it; `None`: the plots' own, in turn.
    pub fill: Option<String>,
}

const LEFT: f64 = 70.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 26.0;
const HEIGHT: f64 = 300.0;

/// `times`: in the unit that `across` names.
pub fn stacked(title: &str, across: &str, unit: &str, times: &[f64], layers: &[Layer]) -> String {
    let bottom = TOP + HEIGHT;
    let tops = tops(times.len(), layers);
    let x = Axis { step: 1.0, ..Axis::around(times.iter().copied(), None, LEFT, WIDTH - RIGHT, 6) };
    // Areas begin and end where the times do.
    let (low, high) = (times.first().copied().unwrap_or(0.0), times.last().copied().unwrap_or(1.0));
    let round = Axis::around([low, high].into_iter(), None, LEFT, WIDTH - RIGHT, 6);
    let x = if low < high { Axis { low, high, step: round.step, ..x } } else { round };
    let y = Axis::around(tops.iter().flatten().copied(), Some(0.0), bottom, TOP, 6);
    let legend = 18.0 * layers.len() as f64;
    let mut svg =
        open(title, WIDTH, (bottom + 42.0).max(TOP + legend + 10.0)) + &frame(&x, &y, across, unit, bottom);
    let place = |at: usize, value: f64| format!("{:.1},{:.1}", x.place(times[at]), y.place(value));
    for (index, layer) in layers.iter().enumerate() {
        let above = (0..times.len()).map(|at| place(at, tops[index + 1][at]));
        let below = (0..times.len()).rev().map(|at| place(at, tops[index][at]));
        let path: Vec<String> = above.chain(below).collect();
        svg += &format!(
            "<polygon class=\"layer{}\" fill=\"{}\" points=\"{}\"><title>{}</title></polygon>\n",
            again(index, layer),
            fill(index, layer),
            path.join(" "),
            escaped(&layer.name)
        );
    }
    for (at, (index, layer)) in layers.iter().enumerate().rev().enumerate() {
        let y = TOP + 18.0 * at as f64;
        let x = WIDTH - RIGHT + 14.0;
        svg += &format!(
            "<rect class=\"layer{}\" x=\"{x:.0}\" y=\"{y:.0}\" width=\"12\" height=\"12\" fill=\"{}\"/>",
            again(index, layer),
            fill(index, layer)
        );
        svg += &format!(
            "<text x=\"{:.0}\" y=\"{:.0}\">{}</text>\n",
            x + 18.0,
            y + 10.0,
            escaped(&shorten(&layer.name, 24))
        );
    }
    svg + "</svg>\n"
}

fn again(index: usize, layer: &Layer) -> &'static str {
    if index >= COLOURS && layer.fill.is_none() { " again" } else { "" }
}

fn fill(index: usize, layer: &Layer) -> String {
    layer.fill.as_deref().map_or_else(|| colour(index), escaped)
}

/// Where each layer begins and, in the next row, ends.
fn tops(count: usize, layers: &[Layer]) -> Vec<Vec<f64>> {
    let mut tops = vec![vec![0.0; count]];
    for layer in layers {
        let below = &tops[tops.len() - 1];
        let height = |at: usize| {
            layer.values.get(at).copied().filter(|value| value.is_finite()).unwrap_or(0.0).max(0.0)
        };
        let top = below.iter().enumerate().map(|(at, below)| below + height(at)).collect();
        tops.push(top);
    }
    tops
}
