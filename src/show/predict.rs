//! What larger pages would give and take, for people and for programs. Intervals everywhere; what is not known says why.

use crate::base::{Bytes, Gap, Why};
use crate::map::Area;
use crate::map::model::GapRow;
use crate::measure::predict::{Choice, Interval, Prediction};
use crate::measure::price::AreaPrice;
use crate::show::json::Head;
use crate::show::table::Table;
use crate::show::units::{human, led, paragraph, prose};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

#[derive(JsonSchema, Serialize)]
pub struct PredictionRow<'a> {
    choice: &'static str,
    cpu_saved_percent: Option<Ends<f64>>,
    cpu_saved_by_kind: Option<Vec<KindRow<'a>>>,
    memory_more_low_bytes: Option<Bytes>,
    memory_more_high_bytes: Option<Bytes>,
    areas: Option<Vec<AreaRow>>,
    pages_2m: Option<Ends<u64>>,
    pages_1g: Option<Ends<u64>>,
    notes: &'a [String],
    gaps: Vec<GapRow>,
}

/// At least, at most.
#[derive(JsonSchema, Serialize)]
struct Ends<T> {
    low: T,
    high: T,
}

#[derive(JsonSchema, Serialize)]
struct KindRow<'a> {
    kind: &'a str,
    percent: Ends<f64>,
}

#[derive(JsonSchema, Serialize)]
struct AreaRow {
    area: Area,
    resident_bytes: Bytes,
    on_small_pages_bytes: Bytes,
    after_low_bytes: Bytes,
    after_high_bytes: Bytes,
}

/// Where nothing could be counted, and the price is all there is: a document of `marusa tlb --json`.
#[derive(JsonSchema, Serialize)]
pub struct PriceDocument<'a> {
    #[serde(flatten)]
    head: Head,
    /// Always null.
    total: (),
    larger_pages: Vec<PredictionRow<'a>>,
    gaps: [GapRow; 1],
}

pub fn json(predictions: &[Prediction]) -> Vec<PredictionRow<'_>> {
    predictions.iter().map(one_json).collect()
}

pub fn one_json(prediction: &Prediction) -> PredictionRow<'_> {
    let gain = prediction.gain.as_ref();
    let lost = prediction.price_gap.is_none().then(|| prediction.lost());
    let gaps = gain.err().into_iter().chain(&prediction.price_gap);
    PredictionRow {
        choice: prediction.choice.name(),
        cpu_saved_percent: gain.ok().map(|gain| ends(gain.percent)),
        cpu_saved_by_kind: gain.ok().map(|gain| gain.by_kind.iter().map(kind_row).collect()),
        memory_more_low_bytes: lost.map(|(low, _)| low),
        memory_more_high_bytes: lost.map(|(_, high)| high),
        areas: lost.map(|_| prediction.areas.iter().map(area_row).collect()),
        pages_2m: prediction.pool.map(|pool| ends(pool[0])),
        pages_1g: prediction.pool.map(|pool| ends(pool[1])),
        notes: &prediction.notes,
        gaps: gaps.map(GapRow::from).collect(),
    }
}

fn ends<T>((low, high): (T, T)) -> Ends<T> {
    Ends { low, high }
}

fn kind_row((kind, percent): &(String, Interval)) -> KindRow<'_> {
    KindRow { kind, percent: ends(*percent) }
}

fn area_row((area, price): &(Area, AreaPrice)) -> AreaRow {
    AreaRow {
        area: *area,
        resident_bytes: price.now,
        on_small_pages_bytes: price.on_small,
        after_low_bytes: price.after.0,
        after_high_bytes: price.after.1,
    }
}

pub fn alone<'a>(predictions: &'a [Prediction], why: &Gap) -> PriceDocument<'a> {
    let (larger_pages, gaps) = (json(predictions), [GapRow::from(why)]);
    PriceDocument { head: Head::now("marusa/tlb/2"), total: (), larger_pages, gaps }
}

/// The same for people: first what was asked for, and why there is no answer.
pub fn alone_text(out: &mut dyn Write, predictions: &[Prediction], why: &Gap) -> io::Result<()> {
    let answer = format!("CPU time lost in address translation: not known. {why}");
    paragraph(out, "", "", &answer)?;
    writeln!(out)?;
    said(out, predictions, Some(why))
}

pub fn text(out: &mut dyn Write, predictions: &[Prediction]) -> io::Result<()> {
    said(out, predictions, None)
}

fn said(out: &mut dyn Write, predictions: &[Prediction], known: Option<&Gap>) -> io::Result<()> {
    prose(out, "What larger pages would give and take")?;
    let mut table = Table::new(["", ">CPU TIME SAVED, %", ">MEMORY MORE", ">HUGETLB PAGES"]);
    // A choice that this JVM does not offer has a sentence, and no row.
    let is_refused = |one: &Prediction| {
        let why = one.price_gap.as_ref();
        why.is_some_and(|gap| gap.why == Why::NotInThisRuntime) && one.gain.as_ref().err() == why
    };
    let shown: Vec<&Prediction> = predictions.iter().filter(|one| !is_refused(one)).collect();
    for prediction in &shown {
        let gain = prediction.gain.as_ref().map_or("-".to_string(), |gain| percent(gain.percent));
        let memory = match prediction.price_gap {
            Some(_) => "-".to_string(),
            None => bytes(prediction.lost()),
        };
        let pages = prediction.pool.map_or("-".to_string(), pool);
        table.row([title(prediction.choice), &gain, &memory, &pages]);
    }
    table.write(out)?;
    areas(out, &shown)?;
    let notes = predictions.iter().flat_map(|prediction| prediction.notes.iter().cloned());
    let missing =
        predictions.iter().flat_map(|one| one.gain.as_ref().err().into_iter().chain(&one.price_gap));
    let missing = missing.filter(|gap| Some(*gap) != known);
    said_once(out, notes.chain(missing.map(Gap::to_string)))
}

/// What each area has, and would have.
fn areas(out: &mut dyn Write, predictions: &[&Prediction]) -> io::Result<()> {
    let Some(first) = predictions.iter().find(|prediction| !prediction.areas.is_empty()) else {
        return Ok(());
    };
    let choices = predictions.iter().map(|one| format!(">{}", title(one.choice)));
    let titles = ["RESIDENT", ">NOW", ">ON SMALL"].map(str::to_string).into_iter().chain(choices);
    let mut table = Table::new(titles).without_room(&[2]);
    for (area, price) in &first.areas {
        let of_area = |prediction: &&Prediction| {
            let price = prediction.areas.iter().find(|(one, _)| one == area);
            price.map_or("-".to_string(), |(_, price)| bytes(price.after))
        };
        let start = [area.title().to_string(), human(price.now), human(price.on_small)];
        table.row(start.into_iter().chain(predictions.iter().map(of_area)));
    }
    writeln!(out)?;
    table.write(out)
}

fn said_once(out: &mut dyn Write, sentences: impl Iterator<Item = String>) -> io::Result<()> {
    let mut said: Vec<String> = Vec::new();
    for sentence in sentences {
        if said.contains(&sentence) {
            continue;
        }
        if said.is_empty() {
            writeln!(out)?;
        }
        led(out, "- ", &sentence)?;
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
    range(format!("{low:.1}"), format!("{high:.1}"))
}

fn bytes((low, high): (u64, u64)) -> String {
    range(human(low), human(high))
}

/// Two ends that read the same are one figure; two of one unit name it once.
fn range(low: String, high: String) -> String {
    let unit = high.rfind(' ').map_or("", |at| &high[at..]);
    match low.strip_suffix(unit) {
        _ if low == high => high,
        Some(number) if !number.is_empty() => format!("{number} - {high}"),
        _ => format!("{low} - {high}"),
    }
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
    use crate::measure::predict::Gain;
    use crate::show::width::width;

    fn prediction(choice: Choice) -> Prediction {
        let price =
            AreaPrice { now: 5 << 20, on_small: 4 << 20, movable: 4 << 20, after: (5 << 20, 8 << 20) };
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
    fn an_interval_whose_ends_read_the_same_is_one_figure() {
        assert_eq!(bytes((1200 << 20, (1200 << 20) + 4096)), "1.2 GiB");
        assert_eq!((percent((0.01, 0.02)), percent((0.0, 0.3))), ("0.0".into(), "0.0 - 0.3".into()));
    }

    #[test]
    fn intervals_and_what_is_not_known_said_once() {
        let mut predictions: Vec<Prediction> = Choice::ALL.into_iter().map(prediction).collect();
        let denied = Gap::new("counters", Why::Denied);
        predictions[1].gain = Err(denied.clone());
        predictions[2] = Prediction {
            gain: Err(denied.clone()),
            areas: Vec::new(),
            price_gap: Some(denied.clone()),
            pool: None,
            ..predictions[2].clone()
        };
        let mut out = Vec::new();
        text(&mut out, &predictions).expect("written");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.contains("0.2 - 3.5") && text.contains("120 - 121 x 2M"), "{text}");
        assert!(text.contains("5.0 - 8.0 MiB"), "{text}");
        assert_eq!((text.matches("said by all").count(), text.matches("counters: denied").count()), (1, 1));
        assert!(text.lines().all(|line| line.chars().count() <= width()), "{text}");
        let narrow = crate::show::width::within(80, || {
            let mut out = Vec::new();
            alone_text(&mut out, &predictions, &denied).expect("written");
            String::from_utf8(out).expect("UTF-8")
        });
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(
            narrow.starts_with("CPU time lost in address translation: not known. counters: denied"),
            "{narrow}"
        );
        assert_eq!(narrow.matches("counters: denied").count(), 1, "{narrow}");

        let json = serde_json::to_value(json(&predictions)).expect("JSON");
        assert_eq!(json[0]["cpu_saved_percent"]["high"], 3.5);
        assert!(json[1]["cpu_saved_percent"].is_null() && json[1]["memory_more_high_bytes"] == 3 << 20);
        assert!(json[2]["memory_more_high_bytes"].is_null() && json[2]["areas"].is_null());
        assert_eq!(json[2]["gaps"].as_array().map(Vec::len), Some(2));
    }
}
