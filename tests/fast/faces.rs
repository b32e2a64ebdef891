//! One account, many faces: text, the page, `top` and JSON of one recorded JVM have the same figures, and what is not known is
//! unknown in each.

use marusa::base::human;
use marusa::map::{self, Account, MemoryMap};
use marusa::measure::look::Look;
use marusa::show::html::{self, Moment, Page};
use marusa::show::look::TopDocument;
use marusa::show::text;
use marusa::snapshot::Snapshot;
use marusa::snapshot::file::Frozen;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

fn recorded() -> Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/frozen/jdk17-g1.frozen");
    Frozen::load(&mut File::open(path).expect("a recording")).expect("whole").snapshot()
}

struct Faces {
    json: Value,
    top: Value,
    text: String,
    html: String,
}

fn faces(snapshot: &Snapshot) -> Faces {
    let map: MemoryMap = map::join(snapshot);
    let account = Account::of(snapshot, &map);
    let mut text = Vec::new();
    text::head(&mut text, &account)
        .and_then(|()| text::by_part(&mut text, &account))
        .and_then(|()| text::gap_rows(&mut text, &account.gaps))
        .expect("a vector takes all");
    let page = Page {
        title: String::new(),
        made_at: String::new(),
        moment: Some(Moment { account: &account, snapshot, map: &map, grid: None }),
        histories: &[],
        others: None,
        growth: &[],
        findings: None,
        gaps: &account.gaps,
        nonce: "n".to_string(),
    };
    let mut html = Vec::new();
    html::page(&mut html, &page).expect("a vector takes all");
    let json = serde_json::to_value(&account).expect("JSON");
    let look = Look {
        pid: 1,
        start_ticks: 0,
        name: String::new(),
        runtime: String::new(),
        at: 0.0,
        took_ms: 0.0,
        kernel_resident_bytes: None,
        account: Ok(account),
        memory_limit: None,
        is_jdk_tool: false,
        holders: None,
    };
    Faces {
        json,
        top: serde_json::to_value(TopDocument::of(&look)).expect("JSON"),
        text: String::from_utf8(text).expect("UTF-8"),
        html: String::from_utf8(html).expect("UTF-8"),
    }
}

/// The cells of a table of the page: texts, and numbers as the page has them for scripts.
fn table(html: &str, id: &str) -> Vec<Vec<String>> {
    let from = html.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no table {id}"));
    let body = html[from..].split("<tbody>").nth(1).and_then(|body| body.split("</tbody>").next());
    let cell = |cell: &str| match cell.split_once("data-n=\"") {
        Some((_, rest)) => rest.split('"').next().unwrap_or_default().to_string(),
        None => {
            cell.split('<').filter_map(|tag| tag.split_once('>')).map(|(_, text)| text.trim_end()).collect()
        }
    };
    let body = body.expect("rows").replace("&#39;", "'");
    let rows = body.split("<tr").skip(1);
    rows.map(|row| row.split("<td").skip(1).map(cell).collect()).collect()
}

fn parts(areas: &Value) -> BTreeMap<(String, String), Value> {
    let of = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let areas = areas.as_array().expect("areas").iter();
    let parts = areas.flat_map(|area| {
        let parts = area["parts"].as_array().expect("parts").iter();
        parts.map(|part| ((of(&area["area"]), of(&part["part"])), part.clone())).collect::<Vec<_>>()
    });
    parts.collect()
}

fn shown(bytes: &Value) -> String {
    bytes.as_u64().map_or("-".to_string(), |bytes| bytes.to_string())
}

#[test]
fn every_face_has_the_figures_of_the_account() {
    let faces = faces(&recorded());
    let json = parts(&faces.json["areas"]);
    assert!(json.len() > 50, "a real account");
    let rows = table(&faces.html, "parts");
    assert_eq!(rows.len(), json.len(), "the page has every part");
    let title = |area: &str| {
        map::Area::ALL
            .iter()
            .find(|it| it.name() == area)
            .map_or(String::new(), |area| area.title().to_string())
    };
    let top = parts(&faces.top["areas"]);
    for ((area, part), figures) in &json {
        let wanted =
            ["resident_bytes", "resident_bytes", "committed_bytes", "reserved_bytes", "swapped_bytes"]
                .map(|key| shown(&figures[key]));
        let is_it = |row: &&Vec<String>| row[0] == title(area) && row[1] == *part;
        let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("the page has no {area} {part}"));
        assert_eq!(row[2..7], wanted, "{area} {part}");
        assert_eq!(row[7], shown(&figures["in_use_bytes"]), "{area} {part}");
        if figures["resident_bytes"] != 0 {
            let of_top = top.get(&(area.clone(), part.clone())).expect("top has what is in memory");
            assert_eq!(of_top["resident_bytes"], figures["resident_bytes"]);
        }
    }
    for area in faces.json["areas"].as_array().expect("areas") {
        let line =
            faces.text.lines().find(|line| line.starts_with(&title(area["area"].as_str().expect("a name"))));
        let line = line.expect("a line");
        let bytes = |key: &str| area[key].as_u64().map_or("-".to_string(), human);
        for key in ["resident_bytes", "committed_bytes", "reserved_bytes", "in_use_bytes"] {
            assert!(line.contains(&bytes(key)), "{key} {}: {line}", bytes(key));
        }
        let of_top =
            faces.top["areas"].as_array().expect("areas").iter().find(|it| it["area"] == area["area"]);
        assert!(of_top.is_none_or(|it| it["in_use_bytes"] == area["in_use_bytes"]), "{area}");
    }
}

#[test]
fn swap_that_is_not_known_is_0_in_no_face() {
    let mut snapshot = recorded();
    snapshot.os.status.swapped_bytes = None;
    let faces = faces(&snapshot);
    assert!(!faces.json.to_string().contains("\"swapped_bytes\":0"), "{}", faces.json["totals"]);
    assert!(faces.json["gaps"].to_string().contains("swapped_bytes"));
    assert!(faces.top["swapped_bytes"].is_null());
    assert!(faces.text.contains("swapped unknown") && faces.text.contains("swapped_bytes: not recorded"));
    assert!(faces.html.contains("<dt>swapped</dt><dd>not known</dd>"));
    for (table_id, at) in [("parts", 6), ("threads", 7), ("libraries", 5), ("mappings", 8)] {
        assert!(table(&faces.html, table_id).iter().all(|row| row[at] == "-"), "{table_id}");
    }
}

#[test]
fn a_table_has_as_many_columns_as_are_asked_for() {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/frozen/jdk17-g1.frozen");
    let widest = |arguments: &[&str], columns: Option<&str>| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_marusa"));
        command.args(["map", "--from"]).arg(&recording).args(arguments).env_remove("COLUMNS");
        let output = command.envs(columns.map(|columns| ("COLUMNS", columns))).output().expect("marusa runs");
        assert!(output.status.success());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    };
    for by in ["area", "part", "mapping", "library", "arena", "page-size"] {
        assert!((61..=100).contains(&widest(&["--by", by], None)), "{by}");
        assert!(widest(&["--by", by, "--width", "60"], None) <= 60, "{by}");
        assert!(widest(&["--by", by], Some("60")) <= 60, "{by}, by COLUMNS");
        assert!(widest(&["--by", by, "--width", "80"], Some("60")) > 60, "{by}: the option goes first");
    }
}
