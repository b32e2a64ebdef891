//! The page: for each run the paper's areas over time, without the Java heap, as the paper's figures have them; two runs of a
//! program next to each other; and the tables. One file, nothing is loaded.

use super::{Results, text, title};
use crate::experiment::bench::account_series::{Program, Row, Run};
use crate::map::area::PaperArea;
use crate::show::bench::picture::as_file;
use crate::show::plot::{self, Layer, Series};

const MIB: f64 = 1048576.0;

const PAGE_STYLE: &str = "\
body { margin: 2em auto; max-width: 1560px; padding: 0 1em; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
.runs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 560px), 1fr)); gap: 1.5em; }
pre { background: var(--soft); padding: 1em; overflow-x: auto; font-size: 12.5px; } p { color: var(--dim); }";

pub fn html(results: &Results) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>marusa bench account</title>\n\
         <style>{}{PAGE_STYLE}</style></head><body><main>\n<h1>The account over time</h1>\n<p>{}</p>\n",
        plot::STYLE,
        plot::escaped(&results.at)
    );
    for program in &results.settings.programs {
        let runs = results.of(*program);
        page += &section(*program, &runs, results);
    }
    let mut tables = Vec::new();
    // Writing to memory does not fail.
    let _ = text(&mut tables, results);
    let tables = String::from_utf8_lossy(&tables);
    page + &format!(
        "<h2>Figures</h2>\n<pre tabindex=\"0\">{}</pre>\n</main></body></html>\n",
        plot::escaped(&tables)
    )
}

/// The areas of the first run over time; `None`: nothing was seen.
pub fn svg(results: &Results) -> Option<String> {
    let first = results.runs.iter().find(|run| !run.samples.is_empty())?;
    Some(as_file(&stacked(first, &title(first, results.settings))))
}

fn section(program: Program, runs: &[&Run], results: &Results) -> String {
    let how = if program.is_server() { "under load" } else { "again and again" };
    let mut text = format!("<h2>{} {how}</h2>\n<div class=\"runs\">\n", program.title());
    for run in runs.iter().filter(|run| !run.samples.is_empty()) {
        text += &stacked(run, &title(run, results.settings));
    }
    text += "</div>\n<div class=\"runs\">\n";
    for row in [Row::Paper(PaperArea::MallocFreed), Row::Paper(PaperArea::JitWork)] {
        text += &side_by_side(runs, row);
    }
    text + "</div>\n"
}

/// In the order of the paper's table, the first at the bottom.
fn stacked(run: &Run, title: &str) -> String {
    let rows = Row::all().into_iter().filter(|row| *row != Row::JavaHeap);
    let layer = |row: Row| Layer {
        name: row.title().to_string(),
        values: run.series(row).into_iter().map(|bytes| bytes / MIB).collect(),
        fill: None,
    };
    let layers: Vec<Layer> = rows.map(layer).collect();
    plot::stacked(&format!("{title}: all but the Java heap"), "seconds", "MiB", &run.seconds(), &layers)
}

fn side_by_side(runs: &[&Run], row: Row) -> String {
    let one = |run: &&Run| Series {
        name: format!("run {}", run.run),
        index: run.run - 1,
        hollow: Vec::new(),
        is_joined: true,
        points: run.seconds().into_iter().zip(run.series(row).into_iter().map(|bytes| bytes / MIB)).collect(),
    };
    let series: Vec<Series> = runs.iter().filter(|run| !run.samples.is_empty()).map(one).collect();
    if series.is_empty() { String::new() } else { plot::lines(row.title(), "seconds", "MiB", &series, true) }
}
