//! The account as areas of a picture: as large as what they have, parts within their area. Static, so that it is there without
//! scripts and on paper; each area is a link to its parts in large.
//!
//! Laid out as squares as may be: M. Bruls, K. Huizing, J. van Wijk, "Squarified Treemaps" (2000).

use super::safe::escaped;
use crate::base::Bytes;
use crate::map::Area;
use crate::show::units::{human, percent};

/// An area, or a part of one.
#[derive(Clone, Debug)]
pub struct Node {
    pub area: Area,
    pub name: String,
    pub bytes: Bytes,
    pub parts: Vec<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Rect {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 460.0;
/// The strip with the name of an area above its parts.
const STRIP: f64 = 16.0;
/// A letter of the labels is about so wide.
const LETTER: f64 = 6.3;
/// What is smaller than this is not a picture.
const SIDE_MIN: f64 = 0.5;

/// All areas, and for each one its parts in large, which is shown when it is asked for.
pub fn treemap(areas: &[Node]) -> String {
    let total = areas.iter().fold(0, |sum: Bytes, area| sum.saturating_add(area.bytes));
    let mut html = "<div class=\"treemaps\"><figure class=\"all-areas\">".to_string();
    html += &svg("What each area has in memory; each is a link to its parts", areas, |node, rect| {
        outer(node, rect, total)
    });
    html += "<figcaption class=\"dim\">In memory. An area leads to its parts.</figcaption>\n";
    html += &list(areas, total);
    html += "</figure>\n";
    for area in areas.iter().filter(|area| !area.parts.is_empty()) {
        let name = escaped(&area.name);
        let sum = human(area.bytes);
        html += &format!(
            "<figure class=\"one-area\" id=\"area-{}\"><figcaption><a href=\"#account\">All areas</a> › {name}, {sum}</figcaption>",
            area.area.name()
        );
        html += &svg(&format!("{}: its parts", area.name), &area.parts, |part, rect| {
            leaf(part, rect, area.bytes)
        });
        html += "</figure>\n";
    }
    html + "</div>\n"
}

/// The same in words, the largest first.
fn list(areas: &[Node], total: Bytes) -> String {
    let mut sorted: Vec<&Node> = areas.iter().filter(|area| area.bytes > 0).collect();
    sorted.sort_by_key(|area| std::cmp::Reverse(area.bytes));
    let mut html = "<ul class=\"legend\">".to_string();
    for area in sorted {
        html += &format!(
            "<li><span class=\"swatch s-{}\" aria-hidden=\"true\"></span>{} <b>{}</b> \
             <span class=\"dim\">{} %</span></li>\n",
            area.area.name(),
            escaped(&area.name),
            human(area.bytes),
            percent(area.bytes, total)
        );
    }
    html + "</ul>\n"
}

fn svg(title: &str, nodes: &[Node], draw: impl Fn(&Node, Rect) -> String) -> String {
    let whole = Rect { x: 0.0, y: 0.0, width: WIDTH, height: HEIGHT };
    let mut svg = format!(
        "<svg class=\"treemap\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"group\" aria-label=\"{}\">\n",
        escaped(title)
    );
    for (node, rect) in squarified(nodes, whole) {
        svg += &draw(node, rect);
    }
    svg + "</svg>"
}

/// An area with its parts within.
fn outer(area: &Node, rect: Rect, total: Bytes) -> String {
    let tip = tip(area, total);
    let mut html = format!(
        "<a href=\"#area-{}\" aria-label=\"{tip}\"><g class=\"a-{}\"><title>{tip}</title>{}",
        area.area.name(),
        area.area.name(),
        shape(rect, "area")
    );
    let within = Rect { y: rect.y + STRIP, height: rect.height - STRIP, ..rect };
    if area.parts.len() > 1 && within.height > STRIP && rect.width > 2.0 * STRIP {
        for (part, rect) in squarified(&area.parts, inset(within)) {
            html += &shape(rect, "part");
            html += &label(rect, &part.name, part.bytes, " class=\"small\"");
        }
    }
    html += &label(rect, &area.name, area.bytes, "");
    html + "</g></a>\n"
}

fn leaf(part: &Node, rect: Rect, total: Bytes) -> String {
    let tip = tip(part, total);
    let mut html =
        format!("<g class=\"a-{}\" role=\"img\" aria-label=\"{tip}\"><title>{tip}</title>", part.area.name());
    html += &shape(rect, "area");
    html += &label(rect, &part.name, part.bytes, "");
    html + "</g>\n"
}

fn tip(node: &Node, total: Bytes) -> String {
    escaped(&format!("{}: {}, {} %", node.name, human(node.bytes), percent(node.bytes, total)))
}

fn shape(rect: Rect, class: &str) -> String {
    let Rect { x, y, width, height } = rect;
    format!("<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>")
}

/// As much of the name, and its bytes, as there is room for.
fn label(rect: Rect, name: &str, bytes: Bytes, class: &str) -> String {
    let letters = ((rect.width - 8.0) / LETTER).max(0.0) as usize;
    if rect.height < STRIP || letters < 4 {
        return String::new();
    }
    let whole = format!("{name} {}", human(bytes));
    let text = match (whole.chars().count() <= letters, name.chars().count() <= letters) {
        (true, _) => whole,
        (_, true) => name.to_string(),
        // Names begin with what tells them apart.
        _ => name.chars().take(letters - 1).chain(['…']).collect(),
    };
    format!("<text{class} x=\"{:.1}\" y=\"{:.1}\">{}</text>", rect.x + 4.0, rect.y + 12.0, escaped(&text))
}

fn inset(rect: Rect) -> Rect {
    let by = 2.0;
    Rect { x: rect.x + by, y: rect.y, width: rect.width - 2.0 * by, height: rect.height - by }
}

/// Each node with its place; the ones that would be nothing are left out.
fn squarified(nodes: &[Node], whole: Rect) -> Vec<(&Node, Rect)> {
    let mut sorted: Vec<&Node> = nodes.iter().filter(|node| node.bytes > 0).collect();
    sorted.sort_by_key(|node| std::cmp::Reverse(node.bytes));
    let total: f64 = sorted.iter().map(|node| node.bytes as f64).sum();
    let scale = whole.width * whole.height / total.max(1.0);
    let mut placed = Vec::with_capacity(sorted.len());
    let (mut rest, mut left) = (&sorted[..], whole);
    while !rest.is_empty() {
        let side = left.width.min(left.height);
        if side < SIDE_MIN {
            break;
        }
        let count = row(rest, side, scale);
        let (row, after) = rest.split_at(count);
        left = lay(row, left, scale, &mut placed);
        rest = after;
    }
    placed.retain(|(_, rect)| rect.width >= SIDE_MIN && rect.height >= SIDE_MIN);
    placed
}

/// How many of the first nodes make the squarest row along a side.
fn row(nodes: &[&Node], side: f64, scale: f64) -> usize {
    let size = |node: &&Node| node.bytes as f64 * scale;
    let (mut sum, mut best) = (0.0, f64::INFINITY);
    let largest = nodes.first().map_or(0.0, size);
    for (at, node) in nodes.iter().enumerate() {
        let smallest = size(node);
        sum += smallest;
        let worst = (side * side * largest / (sum * sum)).max(sum * sum / (side * side * smallest));
        if worst > best {
            return at;
        }
        best = worst;
    }
    nodes.len()
}

/// Puts a row along the shorter side; gives what is left.
fn lay<'a>(row: &[&'a Node], left: Rect, scale: f64, placed: &mut Vec<(&'a Node, Rect)>) -> Rect {
    let sum: f64 = row.iter().map(|node| node.bytes as f64 * scale).sum();
    let is_upright = left.width >= left.height;
    let side = if is_upright { left.height } else { left.width };
    let thick = (sum / side).min(if is_upright { left.width } else { left.height });
    let mut at = 0.0;
    for node in row {
        let long = node.bytes as f64 * scale / thick.max(f64::MIN_POSITIVE);
        let rect = match is_upright {
            true => Rect { x: left.x, y: left.y + at, width: thick, height: long },
            false => Rect { x: left.x + at, y: left.y, width: long, height: thick },
        };
        placed.push((node, rect));
        at += long;
    }
    match is_upright {
        true => Rect { x: left.x + thick, width: left.width - thick, ..left },
        false => Rect { y: left.y + thick, height: left.height - thick, ..left },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, bytes: Bytes) -> Node {
        Node { area: Area::JavaHeap, name: name.to_string(), bytes, parts: Vec::new() }
    }

    #[test]
    fn places_are_as_large_as_what_they_stand_for_and_do_not_overlap() {
        let nodes: Vec<Node> = [6, 6, 4, 3, 2, 2, 1, 0].map(|bytes| node("x", bytes << 20)).into();
        let whole = Rect { x: 0.0, y: 0.0, width: 600.0, height: 400.0 };
        let placed = squarified(&nodes, whole);
        assert_eq!(placed.len(), 7, "what has nothing has no place");
        for (node, rect) in &placed {
            let expected = 240_000.0 * node.bytes as f64 / f64::from(24 << 20);
            assert!((rect.width * rect.height - expected).abs() < 1.0, "{node:?} {rect:?}");
            assert!(rect.x >= -0.01 && rect.x + rect.width <= 600.01 && rect.y + rect.height <= 400.01);
            assert!(
                rect.width / rect.height < 5.0 && rect.height / rect.width < 5.0,
                "squares as may be: {rect:?}"
            );
        }
        for (index, (_, one)) in placed.iter().enumerate() {
            for (_, other) in &placed[index + 1..] {
                let apart = one.x + one.width <= other.x + 0.01
                    || other.x + other.width <= one.x + 0.01
                    || one.y + one.height <= other.y + 0.01
                    || other.y + other.height <= one.y + 0.01;
                assert!(apart, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn odd_accounts_make_no_odd_pictures() {
        assert!(squarified(&[], Rect { x: 0.0, y: 0.0, width: 9.0, height: 9.0 }).is_empty());
        let nodes = [node("all", u64::MAX), node("crumb", 1)];
        let html = treemap(&nodes);
        assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
        let mut hostile = node("<script>", 1 << 20);
        hostile.parts = vec![node("\"><img src=x>", 1 << 19), node("b", 1 << 19)];
        let html = treemap(&[hostile]);
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
    }
}
