//! The table of SUPPORT.md that says on which machines this was proved: what the last whole run found. `MARUSA_BLESS=1 make vm`
//! writes it.

use super::checks::Row;
use super::{MACHINES, Machine};
use std::path::Path;

const START: &str = "<!-- what `make vm` found -->\n";
const END: &str = "<!-- end -->\n";
const COLLECTORS: [&str; 4] = ["serial", "parallel", "g1", "z"];

/// Whether SUPPORT.md has the table of these rows, now at least.
pub fn is_recorded(rows: &[Row]) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("SUPPORT.md");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let parts = text.split_once(START).and_then(|(before, rest)| Some((before, rest.split_once(END)?)));
    let Some((before, (now, after))) = parts else {
        println!("vm: SUPPORT.md has no place for the table");
        return false;
    };
    let wanted = table(rows);
    if now == wanted {
        return true;
    }
    if std::env::var_os("MARUSA_BLESS").is_some() {
        return std::fs::write(&path, format!("{before}{START}{wanted}{END}{after}")).is_ok();
    }
    println!("vm: the table in SUPPORT.md is not what was found: MARUSA_BLESS=1 writes it\n{wanted}");
    false
}

fn table(rows: &[Row]) -> String {
    let mut text =
        "| machine | JDK | Serial | Parallel | G1 | ZGC |\n| --- | --- | --- | --- | --- | --- |\n"
            .to_string();
    for machine in MACHINES {
        for (jdk, _, _) in machine.jdks {
            let cells = COLLECTORS.map(|collector| cell(rows, machine, &format!("{jdk}-{collector}")));
            text += &format!("| {} | {jdk} | {} |\n", machine.title(), cells.join(" | "));
        }
    }
    text
}

/// Rounded up, since two runs are never the same.
fn cell(rows: &[Row], machine: &Machine, jvm: &str) -> String {
    let row = rows.iter().find(|row| row.machine == machine.name && row.jvm == jvm);
    match row.and_then(|row| row.unattributed) {
        Some(share) => format!("{:.1} %", (share * 1000.0).ceil().max(1.0) / 10.0),
        None => "not run".to_string(),
    }
}
