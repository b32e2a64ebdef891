//! One offline page: what a JVM has, page by page and over time. Nothing is loaded: styles, scripts and data are in the file, and
//! its policy forbids the browser to ask for anything. Whatever can be drawn here is (treemap, tables, first and last moment), so
//! that the page is complete without scripts and on paper; scripts add zooming, sorting and choosing.
//!
//! Names of threads, classes, files and commands are the target's words: they are escaped everywhere, and scripts put
//! them in as text, never as markup.

mod account;
mod data;
mod encode;
mod findings;
mod growth;
pub mod node;
mod over_time;
mod palette;
mod safe;
mod table;
mod treemap;

use crate::doctor::Finding;
use crate::map::grid::Grid;
use crate::map::model::GapRow;
use crate::map::{Account, MemoryMap};
use crate::measure::history::History;
use crate::measure::peak::Others;
use crate::record::leak_row;
use crate::record::since::Since;
use crate::show::plot;
use crate::snapshot::Snapshot;
use safe::escaped;
use std::io::{self, Write};

/// Moments of one history that a page has at most; of more, the ones that show the same course (`History::thinned`).
const MOMENTS_MAX: usize = 7_200;
/// Numbers of all histories together: some ten megabytes of page, where all of them change all the time.
const NUMBERS_MAX: usize = 1_500_000;
/// What each history keeps, however many there are.
const MOMENTS_MIN: usize = 120;

/// What a page is made of. What is not there has no section.
pub struct Page<'a> {
    /// "com.example.Main, pid 4711".
    pub title: String,
    /// RFC 3339.
    pub made_at: String,
    pub moment: Option<Moment<'a>>,
    /// The largest first.
    pub histories: &'a [History],
    /// The JVMs that there was no room for.
    pub others: Option<&'a Others>,
    /// What grows in each history.
    pub growth: &'a [(Vec<leak_row::Row>, Since)],
    /// `None`: not examined, which is not the same as healthy.
    pub findings: Option<Findings<'a>>,
    pub gaps: &'a [GapRow],
    /// Letters and digits that cannot be guessed: scripts without it are not run, whatever text brought them in.
    pub nonce: String,
}

/// What was found, and what was looked at for it.
#[derive(Clone, Copy)]
pub struct Findings<'a> {
    pub list: &'a [Finding],
    /// A sentence; may be empty.
    pub looked_at: &'a str,
}

/// One moment in full.
pub struct Moment<'a> {
    pub account: &'a Account,
    pub snapshot: &'a Snapshot,
    pub map: &'a MemoryMap,
    pub grid: Option<&'a Grid>,
}

const STYLES: [&str; 3] =
    [include_str!("../../../web/vendor/uPlot.min.css"), include_str!("../../../web/report.css"), plot::CARDS];
/// The most columns of any table.
const COLUMNS_MAX: usize = 12;
/// In the order in which they are run; each keeps to itself except for `marusa`, which the first makes.
const SCRIPTS: [&str; 8] = [
    include_str!("../../../web/base.js"),
    include_str!("../../../web/theme.js"),
    include_str!("../../../web/treemap.js"),
    include_str!("../../../web/tables.js"),
    include_str!("../../../web/chart.js"),
    include_str!("../../../web/diff.js"),
    include_str!("../../../web/pages.js"),
    include_str!("../../../web/start.js"),
];
const CHART_LIBRARY: &str = include_str!("../../../web/vendor/uPlot.iife.min.js");
const CHART_LICENSE: &str = include_str!("../../../web/vendor/uPlot.LICENSE");

/// Writes the page.
pub fn page(out: &mut dyn Write, page: &Page) -> io::Result<()> {
    let sections = sections(page);
    head(out, page)?;
    header(out, page, &sections)?;
    writeln!(out, "<main id=\"main\">")?;
    for section in &sections {
        let (id, title) = (section.id, escaped(section.title));
        writeln!(
            out,
            "<section id=\"{id}\" aria-labelledby=\"{id}-title\"><h2 id=\"{id}-title\">{title}</h2>"
        )?;
        out.write_all(section.body.as_bytes())?;
        writeln!(out, "</section>")?;
    }
    writeln!(out, "</main>")?;
    footer(out, page)?;
    scripts(out, page)?;
    writeln!(out, "</body></html>")
}

/// Moments that each history has room for.
fn moments_max(histories: &[History]) -> usize {
    let rows: usize = histories.iter().map(|history| history.rows.len() + history.details.len()).sum();
    (NUMBERS_MAX / rows.max(1)).clamp(MOMENTS_MIN, MOMENTS_MAX)
}

struct Section {
    id: &'static str,
    title: &'static str,
    body: String,
}

fn sections(page: &Page) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut add = |id, title, body: Option<String>| {
        if let Some(body) = body {
            sections.push(Section { id, title, body });
        }
    };
    // One moment is looked at for where its memory is, a recording for what became of it.
    let (first, later) = match page.moment {
        Some(_) => (account::treemap(page), None),
        None => (None, account::treemap(page)),
    };
    add("account", "The account", first);
    add("findings", "Findings", page.findings.map(findings::section));
    add(
        "time",
        "Over time",
        (!page.histories.is_empty()).then(|| over_time::section(page.histories, page.others)),
    );
    add("growth", "A leak or not", growth::section(page.histories, page.growth));
    let held = page.moment.as_ref().and_then(|moment| account::holders(moment.account));
    add("held", "Who holds native memory", held.or_else(|| over_time::holders(page.histories)));
    add("account", "The account", later);
    add("pages", "Pages", page.moment.as_ref().and_then(account::pages));
    add("diff", "What changed between two moments", over_time::diff(page.histories));
    add("tables", "Tables", page.moment.as_ref().map(account::tables));
    add("gaps", "Not known", gaps(page.gaps));
    sections
}

fn head(out: &mut dyn Write, page: &Page) -> io::Result<()> {
    writeln!(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">")?;
    // Styles of elements are set by scripts and in the drawings; nothing else is allowed, from nowhere.
    writeln!(
        out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
         script-src 'nonce-{}'; base-uri 'none'; form-action 'none'\">",
        escaped(&page.nonce)
    )?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(
        out,
        "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">"
    )?;
    writeln!(out, "<title>{} · marusa</title>", escaped(&page.title))?;
    writeln!(out, "<style>{}\n{}", plot::STYLE, palette::style())?;
    STYLES.iter().try_for_each(|style| writeln!(out, "{style}"))?;
    out.write_all(plot::label_rules(COLUMNS_MAX).as_bytes())?;
    writeln!(out, "</style></head>")
}

fn header(out: &mut dyn Write, page: &Page, sections: &[Section]) -> io::Result<()> {
    writeln!(out, "<body><a class=\"skip\" href=\"#main\">To the content</a><header>")?;
    writeln!(out, "<h1>{}</h1>", escaped(&page.title))?;
    if let Some(moment) = &page.moment {
        out.write_all(account::summary(moment.account).as_bytes())?;
    }
    if let Some(text) = over_time::summary(page.histories, page.others) {
        writeln!(out, "<p class=\"dim\">{}</p>", escaped(&text))?;
    }
    writeln!(out, "<nav aria-label=\"Sections\"><ul>")?;
    for section in sections {
        writeln!(out, "<li><a href=\"#{}\">{}</a></li>", section.id, escaped(section.title))?;
    }
    writeln!(
        out,
        "</ul><button type=\"button\" id=\"theme\" class=\"needs-script\" hidden>Theme: as the system</button></nav></header>"
    )
}

fn gaps(gaps: &[GapRow]) -> Option<String> {
    let gaps: Vec<&GapRow> = gaps.iter().filter(|gap| !gap.is_for_json()).collect();
    if gaps.is_empty() {
        return None;
    }
    let mut text = String::from("<p>Absent is not zero: these could not be read.</p><dl class=\"gaps\">");
    for gap in gaps {
        text += &format!("<dt>{}: {}</dt>", escaped(&gap.what), escaped(&gap.why));
        if let Some(hint) = &gap.hint {
            text += &format!("<dd>{}</dd>", escaped(hint));
        }
    }
    Some(text + "</dl>")
}

fn footer(out: &mut dyn Write, page: &Page) -> io::Result<()> {
    writeln!(
        out,
        "<footer class=\"dim\"><p>Made {} by marusa {}. This page is one file: it loads nothing and sends nothing.</p>",
        escaped(&page.made_at),
        env!("CARGO_PKG_VERSION")
    )?;
    if page.histories.is_empty() {
        return writeln!(out, "</footer>");
    }
    let license = escaped(CHART_LICENSE);
    writeln!(out, "<details><summary>Charts by uPlot 1.6.32</summary><pre>{license}</pre></details></footer>")
}

fn scripts(out: &mut dyn Write, page: &Page) -> io::Result<()> {
    writeln!(
        out,
        "<script type=\"application/json\" id=\"data\">{}</script>",
        safe::json(&data::data(page))
    )?;
    let nonce = escaped(&page.nonce);
    let library = (!page.histories.is_empty()).then_some(CHART_LIBRARY);
    library
        .into_iter()
        .chain(SCRIPTS)
        .try_for_each(|script| writeln!(out, "<script nonce=\"{nonce}\">{script}</script>"))
}

#[cfg(test)]
mod tests;
