//! A recording for other tools: the same lines as CSV, as JSON and as Parquet.

pub mod parquet;
#[cfg(test)]
mod tests;

use crate::base::printable::{Escaping, escaped_lines};
use crate::record::rows::{FIRST, Row, columns, each};
use crate::record::{Moment, Recording};
use serde_json::{Map, Value};
use std::io::{self, Write};

/// "2026-01-01T00:00:00.250Z".
fn time(row: &Row) -> String {
    let wall = Moment { steady_ms: 0, wall_ms: row.time_ms }.wall();
    format!("{}.{:03}Z", wall.trim_end_matches('Z'), row.time_ms.max(0) % 1000)
}

/// RFC 4180; what is not known is empty.
pub fn csv(out: &mut dyn Write, recording: &Recording) -> io::Result<()> {
    let measures = columns();
    let names = FIRST.into_iter().chain(measures.iter().map(|measure| measure.name()));
    writeln!(out, "{}", names.collect::<Vec<_>>().join(","))?;
    each(recording, |row| {
        let text = |text: Option<&str>| text.map_or(String::new(), quoted);
        let number = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
        let mut fields = vec![
            time(row),
            row.steady_ms.to_string(),
            row.pid.to_string(),
            text(row.main),
            row.subject.to_string(),
            text(row.area),
            text(row.name.as_deref()),
            number(row.account_age_ms),
        ];
        fields.extend(row.values.iter().map(|value| number(*value)));
        writeln!(out, "{}", fields.join(","))
    })
}

/// A field as RFC 4180 writes it. What acts on a terminal is escaped: `cat` may follow.
fn quoted(text: &str) -> String {
    let text = escaped_lines(text);
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into_owned(),
    }
}

/// One object a line; a measure that a subject does not have, or that is not known, has no key.
pub fn json_lines(out: &mut dyn Write, recording: &Recording) -> io::Result<()> {
    let measures = columns();
    each(recording, |row| {
        let mut object = Map::new();
        let mut add = |key: &str, value: Value| object.insert(key.to_string(), value);
        add("time", time(row).into());
        add("steady_ms", row.steady_ms.into());
        add("pid", row.pid.into());
        add("main", row.main.into());
        add("subject", row.subject.into());
        add("area", row.area.into());
        add("name", row.name.clone().into());
        add("account_age_ms", row.account_age_ms.into());
        for (measure, value) in measures.iter().zip(&row.values) {
            if let Some(value) = value {
                add(measure.name(), (*value).into());
            }
        }
        serde_json::to_writer(Escaping::new(&mut *out), &object)?;
        writeln!(out)
    })
}
