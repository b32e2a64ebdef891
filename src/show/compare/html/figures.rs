//! The figures of a comparison: plots of the one that it is about, a table of all, and a plot of each.

use super::class;
use crate::base::Bytes;
use crate::experiment::compare_result::{ArmCount, Cell, Row};
use crate::experiment::stats::Scale;
use crate::experiment::trial_record::{ResidentAreas, Trial, Unit};
use crate::map::Area;
use crate::show::compare::{Result, figure};
use crate::show::plot::{self, Dot, Room, Series, Span, escaped};
use crate::show::units::human;

/// Areas below this share of the whole are one row.
const AREA_SHARE_MIN: f64 = 0.01;

/// Differences with their intervals, every run, and the order of the runs.
pub fn main(result: &Result) -> String {
    let comparison = &result.comparison;
    let Some(row) = comparison.main_row() else { return String::new() };
    let name = row.figure.name.trim();
    let differences = match differences(result, row) {
        Some(plot) => format!("<figure tabindex=\"0\">{plot}</figure>\n"),
        None => String::new(),
    };
    format!(
        "<h2>{}</h2>\n{differences}<figure tabindex=\"0\">{}</figure>\n<figure tabindex=\"0\">{}</figure>",
        escaped(name),
        every_run(result, row, Room::WHOLE),
        order(result, row)
    )
}

fn differences(result: &Result, row: &Row) -> Option<String> {
    let arms = result.comparison.arms.iter().zip(&row.cells).enumerate().skip(1);
    let mut scale = Scale::Percent;
    let rows: Vec<plot::Row> = arms
        .filter_map(|(index, (arm, cell))| {
            let against = cell.against.as_ref()?;
            scale = against.scale;
            let claim = against.claim.interval;
            let of = |value: f64| figure::signed(value, against.scale, &row.figure.unit);
            Some(plot::Row {
                name: arm.name.clone(),
                index,
                dots: Vec::new(),
                span: Some(Span { estimate: claim.estimate, low: claim.low, high: claim.high }),
                note: format!("{} ({} to {})", of(claim.estimate), of(claim.low), of(claim.high)),
            })
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let base = result.comparison.arms.first().map_or("", |arm| arm.name.as_str());
    let better = if row.figure.lower_is_better { "left of 0 is better" } else { "right of 0 is better" };
    let unit = match scale {
        Scale::Percent => format!("% of {base}; {better}"),
        Scale::Unit => format!("{}; {better}", scaled(&row.figure.unit, 0.0).0),
    };
    Some(plot::rows(
        Room::WHOLE,
        &format!("Difference from {base}, with its interval"),
        &unit,
        &rows,
        Some(0.0),
    ))
}

/// What a plot's axis is in, and by how much figures are divided for it: bytes in MiB, seconds below one in ms.
fn scaled(unit: &Unit, most: f64) -> (String, f64) {
    match unit {
        Unit::Seconds if most > 0.0 && most < 1.0 => ("ms".to_string(), 1e-3),
        Unit::Seconds => ("s".to_string(), 1.0),
        Unit::Milliseconds => ("ms".to_string(), 1.0),
        Unit::Bytes => ("MiB".to_string(), f64::from(1 << 20)),
        Unit::Count => (String::new(), 1.0),
        Unit::Percent => ("%".to_string(), 1.0),
        Unit::Own(unit) => (unit.clone(), 1.0),
    }
}

fn most(result: &Result, key: &str) -> f64 {
    result.trials.iter().filter_map(|trial| trial.figure(key)).fold(0.0, f64::max)
}

fn every_run(result: &Result, row: &Row, room: Room) -> String {
    let (unit, divisor) = scaled(&row.figure.unit, most(result, &row.figure.key));
    let rows: Vec<plot::Row> = result
        .comparison
        .arms
        .iter()
        .zip(&row.cells)
        .enumerate()
        .map(|(index, (arm, cell))| plot::Row {
            name: arm.name.clone(),
            index,
            dots: of_arm(result, arm).filter_map(|trial| dot(result, trial, row, divisor)).collect(),
            span: mean(cell).map(|mean| Span {
                estimate: mean / divisor,
                low: mean / divisor,
                high: mean / divisor,
            }),
            note: mean(cell).map_or("not measured".to_string(), |mean| figure::value(mean, &row.figure.unit)),
        })
        .collect();
    let better = if row.figure.lower_is_better { "lower is better" } else { "higher is better" };
    let title = format!("{}: every run that counts, and the mean", row.figure.name.trim());
    plot::rows(room, &title, &format!("{unit} ({better})").trim().replacen("( ", "(", 1), &rows, None)
}

fn of_arm<'a>(result: &'a Result, arm: &'a ArmCount) -> impl Iterator<Item = &'a Trial> {
    result.trials.iter().filter(|trial| trial.arm == arm.name)
}

fn mean(cell: &Cell) -> Option<f64> {
    cell.sample.as_ref().map(|sample| sample.mean)
}

fn dot(result: &Result, trial: &Trial, row: &Row, divisor: f64) -> Option<Dot> {
    let value = trial.figure(&row.figure.key).filter(|_| counts(result, trial))?;
    let tip =
        format!("run {}, block {}: {}", trial.number, trial.block, figure::value(value, &row.figure.unit));
    Some(Dot { value: value / divisor, tip, is_hollow: false })
}

fn counts(result: &Result, trial: &Trial) -> bool {
    trial.counts() && trial.block > result.comparison.warm_up_blocks
}

/// In the order in which they were measured: a drift of the machine is seen, and whether it favoured an arm.
fn order(result: &Result, row: &Row) -> String {
    let (unit, divisor) = scaled(&row.figure.unit, most(result, &row.figure.key));
    let series: Vec<Series> = result
        .comparison
        .arms
        .iter()
        .enumerate()
        .map(|(index, arm)| {
            let place = |trial: &Trial| Some((trial.number as f64, trial.figure(&row.figure.key)? / divisor));
            let of = |wanted: bool| of_arm(result, arm).filter(move |trial| counts(result, trial) == wanted);
            Series {
                name: arm.name.clone(),
                index,
                points: of(true).filter_map(place).collect(),
                hollow: of(false).filter_map(place).collect(),
                is_joined: false,
            }
        })
        .collect();
    let title = format!("{}: in the order of the runs (hollow: does not count)", row.figure.name.trim());
    plot::lines(&title, "run", &unit, &series, false)
}

/// Every figure of every arm, and its difference from the first.
pub fn table(result: &Result) -> String {
    let comparison = &result.comparison;
    let mut columns = vec!["mean of one run".to_string()];
    for (index, arm) in comparison.arms.iter().enumerate() {
        columns.push(format!(">{}", arm.name));
        if index > 0 {
            columns.extend([format!(">{}: difference", arm.name), ">interval".to_string()]);
        }
    }
    let rows = comparison
        .rows
        .iter()
        .enumerate()
        .filter(|(_, row)| row.cells.iter().any(|cell| cell.sample.is_some()));
    let rows: String = rows.map(|(index, row)| line(row, index == comparison.about) + "\n").collect();
    format!(
        "<h2>All figures</h2>\n{}\n\
         <p class=\"dim\">In bold: a difference that is shown. The shaded row is what the comparison is about; the others share an \
         error probability of 5 % among them.</p>",
        super::table("All figures", &columns, &rows)
    )
}

fn line(row: &Row, is_about: bool) -> String {
    let name = row
        .figure
        .name
        .strip_prefix("  ")
        .map_or(escaped(&row.figure.name), |name| format!("&emsp;{}", escaped(name)));
    let mut line = format!("<tr{}><td>{name}</td>", if is_about { " class=\"about\"" } else { "" });
    for (index, cell) in row.cells.iter().enumerate() {
        let value = mean(cell).map_or("-".to_string(), |mean| figure::value(mean, &row.figure.unit));
        line += &format!("<td class=\"n\">{}</td>", escaped(&value));
        if index > 0 {
            line += &difference(row, cell);
        }
    }
    line + "</tr>"
}

fn difference(row: &Row, cell: &Cell) -> String {
    let Some(against) = &cell.against else {
        return "<td class=\"n\"></td><td class=\"n\"></td>".to_string();
    };
    let claim = against.claim.interval;
    let of = |value: f64| escaped(&figure::signed(value, against.scale, &row.figure.unit));
    let estimate = match class(&row.figure, against) {
        "" => of(claim.estimate),
        class => format!("<span class=\"{class}\"><b class=\"word\">{}</b></span>", of(claim.estimate)),
    };
    format!("<td class=\"n\">{estimate}</td><td class=\"n dim\">{} to {}</td>", of(claim.low), of(claim.high))
}

/// Each of the other figures, every run.
pub fn all(result: &Result) -> String {
    let comparison = &result.comparison;
    let others = comparison.rows.iter().enumerate().filter(|(index, row)| {
        // A figure that is the same in all runs has nothing to show.
        let values: Vec<f64> =
            result.trials.iter().filter_map(|trial| trial.figure(&row.figure.key)).collect();
        *index != comparison.about && values.iter().any(|value| *value != values[0])
    });
    let plots: Vec<String> = others
        .map(|(_, row)| format!("<figure tabindex=\"0\">{}</figure>", every_run(result, row, Room::HALF)))
        .collect();
    match plots.is_empty() {
        true => String::new(),
        false => {
            format!("<h2>Each figure, run by run</h2>\n<div class=\"pair\">\n{}\n</div>", plots.join("\n"))
        }
    }
}

/// Whose the memory was, at the end and at the most.
pub fn accounts(result: &Result) -> String {
    let arms = &result.comparison.arms;
    let end = account(arms, "at the end", |arm| arm.account_end.as_ref());
    let peak = account(arms, "at the most", |arm| arm.account_peak.as_ref());
    let tables = [end, peak].concat();
    if tables.is_empty() {
        tables
    } else {
        format!("<h2>Whose the memory was</h2>\n<div class=\"pair\">{tables}</div>")
    }
}

fn account(arms: &[ArmCount], when: &str, of: impl Fn(&ArmCount) -> Option<&ResidentAreas>) -> String {
    let known: Vec<(&ArmCount, &ResidentAreas)> =
        arms.iter().filter_map(|arm| Some((arm, of(arm)?))).collect();
    if known.is_empty() {
        return String::new();
    }
    let mut rows = String::new();
    let mut add = |name: &str, bytes: Vec<Bytes>| {
        let cells: Vec<String> =
            bytes.into_iter().map(|bytes| format!("<td class=\"n\">{}</td>", human(bytes))).collect();
        rows += &format!("<tr><td>{}</td>{}</tr>\n", escaped(name), cells.concat());
    };
    let is_large = |area: &Area| {
        known.iter().any(|(_, one)| one.of(*area) as f64 >= AREA_SHARE_MIN * one.resident_bytes as f64)
    };
    let (large, small): (Vec<Area>, Vec<Area>) = Area::ALL.iter().copied().partition(is_large);
    for area in large {
        add(area.title(), known.iter().map(|(_, one)| one.of(area)).collect());
    }
    add("all others", known.iter().map(|(_, one)| small.iter().map(|area| one.of(*area)).sum()).collect());
    add("resident", known.iter().map(|(_, one)| one.resident_bytes).collect());
    let mut columns = vec![when.to_string()];
    columns.extend(known.iter().map(|(arm, _)| format!(">{}", arm.name)));
    super::table(when, &columns, &rows) + "\n"
}
