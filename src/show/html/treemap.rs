//! The account as areas of a picture: as large as what they have, parts within their area. Boxes of the page itself, in shares of
//! its width, so that letters stay as large as all others on a telephone and on paper, and it is there without scripts; each area
//! is a link to its parts in large.
//!
//! Laid out as squares as may be: M. Bruls, K. Huizing, J. van Wijk, "Squarified Treemaps" (2000).

use super::palette::swatch;
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

/// The picture on a wide page; on others, shares of it.
const WHOLE: Rect = Rect { x: 0.0, y: 0.0, width: 960.0, height: 460.0 };
/// The strip with the name of an area above its parts; the style sheet has the same.
const STRIP: f64 = 18.0;
/// What is smaller than this is not a picture.
const SIDE_MIN: f64 = 0.5;

/// All areas, and for each one its parts in large, which is shown when it is asked for.
pub fn treemap(areas: &[Node]) -> String {
    let total = areas.iter().fold(0, |sum: Bytes, area| sum.saturating_add(area.bytes));
    let mut html = "<div class=\"treemaps\"><figure class=\"all-areas\">".to_string();
    let boxes = squarified(areas, WHOLE).into_iter().map(|(area, rect)| outer(area, rect, total));
    html += &picture("What each area has in memory; each is a link to its parts", boxes);
    html += "<figcaption class=\"dim\">In memory. An area leads to its parts.</figcaption>\n";
    html += &list(areas, total);
    html += "</figure>\n";
    for area in areas.iter().filter(|area| !area.parts.is_empty()) {
        let (name, sum) = (escaped(&area.name), human(area.bytes));
        html += &format!(
            "<figure class=\"one-area\" id=\"area-{}\"><figcaption><a href=\"#account\">All areas</a> › {name}, {sum}, {} % \
             <span class=\"dim needs-script\" hidden>(Escape: all areas)</span></figcaption>",
            area.area.name(),
            percent(area.bytes, total)
        );
        let boxes = squarified(&area.parts, WHOLE).into_iter().map(|(part, rect)| leaf(part, rect, area));
        html += &picture(&format!("{}: its parts", area.name), boxes);
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
            "<li>{}{} <b>{}</b> <span class=\"dim\">{} %</span></li>\n",
            swatch(area.area),
            escaped(&area.name),
            human(area.bytes),
            percent(area.bytes, total)
        );
    }
    html + "</ul>\n"
}

fn picture(title: &str, boxes: impl Iterator<Item = String>) -> String {
    let boxes: String = boxes.collect();
    format!("<div class=\"treemap\" role=\"group\" aria-label=\"{}\">\n{boxes}</div>", escaped(title))
}

/// An area with its parts within.
fn outer(area: &Node, rect: Rect, total: Bytes) -> String {
    let name = area.area.name();
    let within = Rect { x: 0.0, y: 0.0, height: rect.height - STRIP, ..rect };
    let parts = match area.parts.len() > 1 && within.height > STRIP && rect.width > 2.0 * STRIP {
        true => squarified(&area.parts, within),
        false => Vec::new(),
    };
    let parts: String = parts
        .into_iter()
        .map(|(part, rect)| {
            let (tip, style) = (tip(part, area.bytes, &area.name), style(rect, within));
            format!("<span class=\"part\" {style} title=\"{tip}\">{}</span>", label(part))
        })
        .collect();
    format!(
        "<a class=\"box s-{name}\" href=\"#area-{name}\" {} title=\"{}\">{}<span class=\"parts\">{parts}</span></a>\n",
        style(rect, WHOLE),
        tip(area, total, "all"),
        label(area)
    )
}

fn leaf(part: &Node, rect: Rect, area: &Node) -> String {
    format!(
        "<span class=\"box s-{}\" role=\"img\" tabindex=\"0\" {} title=\"{}\">{}</span>\n",
        part.area.name(),
        style(rect, WHOLE),
        tip(part, area.bytes, &area.name),
        label(part)
    )
}

fn tip(node: &Node, total: Bytes, of: &str) -> String {
    let share = percent(node.bytes, total);
    escaped(&format!("{}: {}, {share} % of {of}", node.name, human(node.bytes)))
}

fn style(rect: Rect, whole: Rect) -> String {
    let [left, width] = [rect.x, rect.width].map(|length| length / whole.width * 100.0);
    let [top, height] = [rect.y, rect.height].map(|length| length / whole.height * 100.0);
    format!("style=\"left:{left:.2}%;top:{top:.2}%;width:{width:.2}%;height:{height:.2}%\"")
}

/// Shown where there is room for it.
fn label(node: &Node) -> String {
    format!("<b>{} {}</b>", escaped(&node.name), human(node.bytes))
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
