//! What larger pages would give and take, for people and for programs. Intervals everywhere; what is not known says why.

use super::json::gap;
use super::units::{human, wrapped};
use crate::base::Gap;
use crate::map::Area;
use crate::measure::predict::{Choice, Interval, Prediction};
use crate::measure::price::AreaPrice;
use serde_json::{Value, json};
use std::io::{self, Write};

const WIDTH: usize = super::text::WIDTH;

pub fn json(predictions: &[Prediction]) -> Value {
    let interval = |(low, high): &Interval| json!({"low": low, "high": high});
    let area = |(area, price): &(Area, AreaPrice)| {
        json!({
            "area": area.name(),
            "resident_bytes": price.now,
            "on_small_pages_bytes": price.on_small,
            "after_low_bytes": price.after.0,
            "after_high_bytes": price.after.1,
        })
    };
    let one = |prediction: &Prediction| {
        let gain = prediction.gain.as_ref().ok();
        let kinds = gain.map(|gain| {
            let kind =
                |(kind, percent): &(String, Interval)| json!({"kind": kind, "percent": interval(percent)});
            gain.by_kind.iter().map(kind).collect::<Vec<_>>()
        });
        let is_priced = prediction.price_gap.is_none();
        let gaps = prediction.gain.as_ref().err().into_iter().chain(&prediction.price_gap);
        json!({
            "choice": prediction.choice.name(),
            "cpu_saved_percent": gain.map(|gain| interval(&gain.percent)),
            "cpu_saved_by_kind": kinds,
            "memory_more_low_bytes": is_priced.then(|| prediction.lost().0),
            "memory_more_high_bytes": is_priced.then(|| prediction.lost().1),
            "areas": is_priced.then(|| prediction.areas.iter().map(area).collect::<Vec<_>>()),
            "pages_2m": prediction.pool.map(|pool| json!({"low": pool[0].0, "high": pool[0].1})),
            "pages_1g": prediction.pool.map(|pool| json!({"low": pool[1].0, "high": pool[1].1})),
            "notes": prediction.notes,
            "gaps": gaps.map(gap).collect::<Vec<_>>(),
        })
    };
    predictions.iter().map(one).collect()
}

/// Where nothing could be counted, and the price is all there is.
pub fn alone(predictions: &[Prediction], why: &Gap) -> Value {
    json!({"schema": "marusa/tlb/1", "total": null, "larger_pages": json(predictions), "gaps": [gap(why)]})
}

pub fn text(out: &mut dyn Write, predictions: &[Prediction]) -> io::Result<()> {
    writeln!(out, "What larger pages would give and take")?;
    writeln!(out, "{:<16} {:>20}  {:>26}  {:>30}", "", "CPU TIME SAVED, %", "MEMORY MORE", "HUGETLB PAGES")?;
    for prediction in predictions {
        let gain = prediction.gain.as_ref().map_or("-".to_string(), |gain| percent(gain.percent));
        let memory = match prediction.price_gap {
            Some(_) => "-".to_string(),
            None => bytes(prediction.lost()),
        };
        let pages = prediction.pool.map_or("-".to_string(), pool);
        writeln!(out, "{:<16} {gain:>20}  {memory:>26}  {pages:>30}", title(prediction.choice))?;
    }
    areas(out, predictions)?;
    let notes = predictions.iter().flat_map(|prediction| prediction.notes.iter().cloned());
    let missing =
        predictions.iter().flat_map(|one| one.gain.as_ref().err().into_iter().chain(&one.price_gap));
    said_once(out, notes.chain(missing.map(Gap::to_string)))
}

/// What each area has, and would have.
fn areas(out: &mut dyn Write, predictions: &[Prediction]) -> io::Result<()> {
    let Some(first) = predictions.iter().find(|prediction| !prediction.areas.is_empty()) else {
        return Ok(());
    };
    write!(out, "\n{:<12} {:>10} {:>10}", "RESIDENT", "NOW", "ON SMALL")?;
    predictions.iter().try_for_each(|one| write!(out, " {:>21}", title(one.choice)))?;
    writeln!(out)?;
    for (area, price) in &first.areas {
        write!(out, "{:<12} {:>10} {:>10}", area.title(), human(price.now), human(price.on_small))?;
        for prediction in predictions {
            let of_area = prediction.areas.iter().find(|(one, _)| one == area);
            write!(out, " {:>21}", of_area.map_or("-".to_string(), |(_, price)| bytes(price.after)))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn said_once(out: &mut dyn Write, sentences: impl Iterator<Item = String>) -> io::Result<()> {
    let mut said: Vec<String> = Vec::new();
    for sentence in sentences {
        if said.contains(&sentence) {
            continue;
        }
        for (index, line) in wrapped(&sentence, WIDTH - 2).iter().enumerate() {
            writeln!(out, "{}{line}", if index == 0 { "- " } else { "  " })?;
        }
        said.push(sentence);
    }
    Ok(())
}

fn title(choice: Choice) -> &'static str {
    match choice {
        Choice::Transparent => "THP 2 MiB",
        Choice::HugeTlb2M => "HugeTLB 2 MiB",
        Choice::HugeTlb1G => "HugeTLB 1 GiB",
    }
}

fn percent((low, high): Interval) -> String {
    format!("{low:.1} - {high:.1}")
}

fn bytes((low, high): (u64, u64)) -> String {
    if low == high { human(high) } else { format!("{} - {}", human(low), human(high)) }
}

fn pool(pool: [(u64, u64); 2]) -> String {
    let one = |(low, high): (u64, u64), size: &str| match (low, high) {
        (_, 0) => None,
        (low, high) if low == high => Some(format!("{high} x {size}")),
        (low, high) => Some(format!("{low} - {high} x {size}")),
    };
    let parts: Vec<String> = [one(pool[1], "1G"), one(pool[0], "2M")].into_iter().flatten().collect();
    parts.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Why;
    use crate::measure::predict::Gain;

    fn prediction(choice: Choice) -> Prediction {
        let price = AreaPrice { now: 5 << 20, on_small: 4 << 20, after: (5 << 20, 8 << 20) };
        Prediction {
            choice,
            gain: Ok(Gain { percent: (0.25, 3.5), by_kind: vec![("gc".to_string(), (0.25, 3.5))] }),
            areas: vec![(Area::JavaHeap, price)],
            price_gap: None,
            pool: (choice != Choice::Transparent).then_some([(120, 121), (0, 0)]),
            notes: vec!["said by all".to_string()],
        }
    }

    #[test]
    fn intervals_and_what_is_not_known_said_once() {
        let mut predictions: Vec<Prediction> = Choice::ALL.into_iter().map(prediction).collect();
        let denied = Gap::new("counters", Why::Denied);
        predictions[1].gain = Err(denied.clone());
        predictions[2] = Prediction {
            gain: Err(denied.clone()),
            areas: Vec::new(),
            price_gap: Some(denied),
            pool: None,
            ..predictions[2].clone()
        };
        let mut out = Vec::new();
        text(&mut out, &predictions).expect("written");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.contains("0.2 - 3.5") && text.contains("120 - 121 x 2M"), "{text}");
        assert!(text.contains("5.0 MiB - 8.0 MiB"), "{text}");
        assert_eq!((text.matches("said by all").count(), text.matches("counters: denied").count()), (1, 1));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");

        let json = json(&predictions);
        assert_eq!(json[0]["cpu_saved_percent"]["high"], 3.5);
        assert!(json[1]["cpu_saved_percent"].is_null() && json[1]["memory_more_high_bytes"] == 3 << 20);
        assert!(json[2]["memory_more_high_bytes"].is_null() && json[2]["areas"].is_null());
        assert_eq!(json[2]["gaps"].as_array().map(Vec::len), Some(2));
    }
}
