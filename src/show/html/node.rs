//! The page of `marusa serve`: one file with its styles and scripts in itself. It has no figures; its script asks the service
//! that it came from, by relative paths, so that it also works behind a prefix.

use super::{COLUMNS_MAX, palette, safe};
use crate::map::Area;
use crate::show::plot;
use serde::Serialize;

const STYLES: [&str; 3] =
    [include_str!("../../../web/report.css"), plot::CARDS, include_str!("../../../web/node.css")];
const SCRIPTS: [&str; 3] = [
    include_str!("../../../web/base.js"),
    include_str!("../../../web/theme.js"),
    include_str!("../../../web/node.js"),
];
const BODY: &str = include_str!("../../../web/node.html");

/// What the shared scripts read: the areas, in the order of the account.
#[derive(Serialize)]
struct Data {
    areas: Vec<AreaRow>,
}

#[derive(Serialize)]
struct AreaRow {
    key: &'static str,
    title: &'static str,
}

/// The page, and what it has in itself, for the rules by which a browser takes nothing else.
pub struct Page {
    pub html: Vec<u8>,
    pub style: String,
    pub scripts: [&'static str; 3],
}

pub fn page() -> Page {
    let areas = Area::ALL.iter().map(|area| AreaRow { key: area.name(), title: area.title() });
    let data = safe::json(&Data { areas: areas.collect() });
    let styles: Vec<String> = [plot::STYLE.to_string(), palette::style()]
        .into_iter()
        .chain(STYLES.map(str::to_string))
        .chain([plot::label_rules(COLUMNS_MAX)])
        .collect();
    let scripts: String = SCRIPTS.iter().map(|script| format!("<script>{script}</script>\n")).collect();
    let style = styles.join("\n");
    let html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>JVMs of this node · marusa</title>\n<style>{style}</style></head><body>\n{BODY}\
         <script type=\"application/json\" id=\"data\">{data}</script>\n{scripts}</body></html>\n"
    );
    Page { html: html.into_bytes(), style, scripts: SCRIPTS }
}
