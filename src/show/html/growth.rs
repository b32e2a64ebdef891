//! Which areas grow without bound or towards their bound, level off, or cannot be judged yet, over a recording.

use super::over_time::each;
use super::safe::escaped;
use super::table::{Cell, table};
use crate::map::Area;
use crate::measure::growth::Verdict;
use crate::measure::history::History;
use crate::record::leak_row::{Row, What};
use crate::record::since::Since;
use crate::show::leaks::{answer, title, words};

pub fn section(histories: &[History], growth: &[(Vec<Row>, Since)]) -> Option<String> {
    let one = |index: usize, _: &History| {
        let (rows, since) = growth.get(index).filter(|(rows, _)| !rows.is_empty())?;
        let cells: Vec<Vec<Cell>> = rows.iter().map(row).collect();
        let columns = ["WHAT", "VERDICT", ">BY THE HOUR", ">LEVEL NOW", "WHY"];
        let table = table(&format!("growth-{index}"), "By area", &columns, &cells, 0);
        Some(format!("<p>{}</p>\n{table}", escaped(&answer(rows, since))))
    };
    each(histories, 1, one)
}

fn row(row: &Row) -> Vec<Cell> {
    // Distinguished by a shape too, not by a place in a list alone.
    let verdict = match row.growth.verdict {
        Verdict::GrowsWithoutBound => "▲ grows without bound",
        Verdict::GrowsToBound => "grows towards its bound",
        Verdict::LevelsOff => "levels off",
        Verdict::CannotTellYet => "cannot be judged yet",
    };
    let rate = row.growth.rate.map_or(Cell::Bytes(None), |rate| Cell::Signed(rate.bytes_per_hour as i64));
    vec![
        match &row.what {
            What::Area(area) | What::Part(area, _) => Cell::Of(*area, title(&row.what)),
            What::HeapInUse => Cell::Of(Area::JavaHeap, title(&row.what)),
            What::All | What::Named(..) => Cell::Text(title(&row.what)),
        },
        Cell::Text(verdict.to_string()),
        rate,
        Cell::Bytes(Some(row.growth.level_bytes)),
        Cell::Text(words(&row.growth)),
    ]
}
