//! Pages fit the screens that people have, say something to those who see or hear them otherwise, and are whole on paper: in a real
//! browser, with axe-core, and with the names of a hostile program in them.

use super::browser::Browser;
use super::{HOSTILE, NONCE, page_with, recording};
use crate::common::*;
use marusa::measure::history::{Event, History};
use marusa::measure::peak::Others;
use serde_json::Value;
use std::process::Command;

/// Widths, and whether the page is dark.
const SCREENS: [(u32, bool); 6] =
    [(360, false), (390, false), (390, true), (768, false), (1280, false), (1280, true)];
/// A screen on which a row of a table is a card.
const NARROW: u32 = 600;

/// The text of axe-core. `None` prints why the test is skipped.
pub fn axe() -> Option<String> {
    let output = Command::new(root().join("scripts/axe")).output().expect("it starts");
    let file = text(&output.stdout).trim().to_string();
    let read = output.status.success().then(|| std::fs::read_to_string(&file).ok()).flatten();
    if read.is_none() {
        skip(&format!("no axe-core; scripts/axe fetches it: {}", text(&output.stderr)));
    }
    read
}

/// Whether the page and each table fit, and the rules that it violates, with the first places of each.
pub fn assert_fits(browser: &Browser, axe: &str, name: &str, html: &str) {
    let html = html.replace("</body>", &format!("<script nonce=\"{NONCE}\">{axe}</script></body>"));
    let facts = browser.facts_on(&SCREENS, name, &html, NONCE, include_str!("probe_fits.js"));
    assert_eq!(facts.console, Vec::<String>::new(), "{name}");
    let none = Value::Array(Vec::new());
    for (index, (width, is_dark)) in SCREENS.into_iter().enumerate() {
        let value = &facts.value[index];
        let place = format!("{name} at {width}, dark: {is_dark}: {value:#}");
        assert_eq!((&value["width"], &value["dark"]), (&width.into(), &is_dark.into()), "{place}");
        assert_eq!(value["over"], none, "wider than the screen: {place}");
        assert!(width >= NARROW || value["cut"] == none, "cells that are cut: {place}");
        assert_eq!(value["violations"], none, "{place}");
        assert!(value["passes"].as_u64().is_some_and(|rules| rules > 10), "axe ran: {place}");
    }
}

/// As after a kill: many messages at once.
fn killed(moments: usize) -> History {
    let mut history = recording(moments);
    let end = history.times[moments - 1];
    history.events = (0..6).map(|at| Event { at: end - f64::from(at), text: HOSTILE.to_string() }).collect();
    history.events.reverse();
    history
}

#[test]
fn the_page_of_a_recording_fits_and_everybody_can_use_it() {
    let (Some(browser), Some(axe)) = (Browser::find(), axe()) else { return };
    assert_fits(&browser, &axe, "recording", &page_with(&[killed(120)], None));
}

#[test]
fn the_page_of_many_jvms_fits_and_everybody_can_use_it() {
    let (Some(browser), Some(axe)) = (Browser::find(), axe()) else { return };
    let shown: Vec<History> = (0..4).map(|_| killed(30)).collect();
    let one = recording(2);
    let others = Others::of(std::iter::repeat_n(&one, 280));
    assert_fits(&browser, &axe, "many", &page_with(&shown, others.as_ref()));
}

fn account() -> String {
    let file = root().join("tests/data/frozen/jdk17-g1.frozen");
    text(&marusa(&["report", &file.to_string_lossy(), "-o", "-"]).stdout)
}

#[test]
fn the_page_of_an_account_fits_and_everybody_can_use_it() {
    let (Some(browser), Some(axe)) = (Browser::find(), axe()) else { return };
    let html = account();
    let nonce = html.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).expect("a nonce");
    assert_fits(&browser, &axe, "account", &html.replace(nonce, NONCE));
}

#[test]
fn the_page_of_a_comparison_fits_and_everybody_can_use_it() {
    let (Some(browser), Some(axe), Some(java)) = (Browser::find(), axe(), java("17")) else { return };
    let file = std::env::temp_dir().join(format!("marusa-test-fits-{}.html", std::process::id()));
    let (path, java) = (file.to_string_lossy(), java.to_string_lossy());
    let arms = ["--arm", "base=", "--arm", "serial=-XX:+UseSerialGC", "--arm", "small=-Xmx64m"];
    let how = ["--html", &path, "--runs", "2", "--warm-up", "0", "--", &java, "-version"];
    let output = marusa(&[&["compare", "--quiet-wait", "0s"], &arms[..], &how].concat());
    let html = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    std::fs::remove_file(&file).expect("ours");
    // It has no scripts, and lets none in except this.
    let open = format!("default-src 'none'; script-src 'nonce-{NONCE}'");
    assert_fits(&browser, &axe, "comparison", &html.replace("default-src 'none'", &open));
}

/// What is folded on the screen is there on paper: the browser prints to PDF, whose pages are counted.
#[test]
fn paper_has_what_is_folded_on_the_screen() {
    let Some(browser) = Browser::find() else { return };
    let all = page_with(&(0..4).map(|_| recording(30)).collect::<Vec<_>>(), None);
    let open = all.replace("<details class=\"jvm\"", "<details open class=\"jvm\"");
    assert_ne!(all, open);
    let (folded, open) = (browser.sheets("folded", &all), browser.sheets("open", &open));
    assert!(folded > 4 && folded == open, "{folded} sheets, {open} where nothing is folded");
    assert!(browser.sheets("account", &account()) > 2);
}
