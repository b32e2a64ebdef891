//! `/proc/zoneinfo`: how much of each zone the kernel keeps free for itself. Huge pages are not taken below that: the page
//! allocator refuses beneath the watermark plus what is protected for lower zones (mm/page_alloc.c, `zone_watermark_ok`).

use super::machine::base_page;
use crate::base::Bytes;
use crate::base::limits::{MEMORY_ORDERS_MAX, MEMORY_ZONES_MAX};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub node: u32,
    pub zone: String,
    /// What must stay free for memory of a program that could also lie in the highest zone.
    pub bytes: Bytes,
}

pub fn parse(text: &str) -> Vec<Kept> {
    let mut zones: Vec<(Kept, u64, u64)> = Vec::new();
    for line in text.lines() {
        if let Some((node, zone)) = line.strip_prefix("Node ").and_then(|rest| rest.split_once(", zone")) {
            let Ok(node) = node.trim().parse() else { continue };
            if zones.len() == MEMORY_ZONES_MAX {
                break;
            }
            zones.push((Kept { node, zone: zone.trim().to_string(), bytes: 0 }, 0, 0));
            continue;
        }
        let Some((_, high, protected)) = zones.last_mut() else { continue };
        let mut words = line.split_ascii_whitespace();
        match (words.next(), words.next()) {
            (Some("high"), Some(number)) if *high == 0 => *high = number.parse().unwrap_or(0),
            (Some("protection:"), Some(_)) => *protected = largest(line),
            _ => {}
        }
    }
    let kept = |(zone, high, protected): (Kept, u64, u64)| Kept {
        bytes: high.saturating_add(protected).saturating_mul(base_page()),
        ..zone
    };
    zones.into_iter().map(kept).collect()
}

/// "        protection: (0, 1972, 24104, 24104)": the last ones are those of the highest zones.
fn largest(line: &str) -> u64 {
    let inside = line.split_once('(').map_or("", |(_, inside)| inside).trim_end_matches([')', ' ']);
    inside.split(',').take(MEMORY_ORDERS_MAX).filter_map(|word| word.trim().parse().ok()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watermark_and_what_is_protected() {
        let text = "Node 0, zone      DMA\n  per-node stats\n      nr_high 12\n  pages free     3840\n        low      13\n        \
                    high     16\n        protection: (0, 2951, 24078, 24078)\n      pcp\n              high:  0\n\
                    Node 1, zone   Normal\n  pages free     1\n        high     17000\n        protection: (0, 0, 0, 0)\n";
        let zones = parse(text);
        assert_eq!(zones[0], Kept { node: 0, zone: "DMA".into(), bytes: (16 + 24078) * 4096 });
        assert_eq!(zones[1], Kept { node: 1, zone: "Normal".into(), bytes: 17000 * 4096 });
        assert_eq!(parse("high 3\nprotection: (4\n"), []);
    }
}
