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
        let fields = first(row).into_iter().chain(row.values.iter().map(|value| (*value).into()));
        let field = |value: Value| match value {
            Value::Null => String::new(),
            Value::String(text) => quoted(&text),
            number => number.to_string(),
        };
        writeln!(out, "{}", fields.map(field).collect::<Vec<_>>().join(","))
    })
}

/// The columns before the measures.
fn first(row: &Row) -> [Value; FIRST.len()] {
    [
        time(row).into(),
        row.steady_ms.into(),
        row.pid.into(),
        row.main.into(),
        row.subject.into(),
        row.area.into(),
        row.name.clone().into(),
        row.account_age_ms.into(),
    ]
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
        let known = measures.iter().zip(&row.values).filter_map(|(of, value)| Some((of.name(), (*value)?)));
        let known = known.map(|(name, value)| (name, value.into()));
        let first = FIRST.into_iter().zip(first(row));
        let object: Map<String, Value> =
            first.chain(known).map(|(name, value)| (name.to_string(), value)).collect();
        serde_json::to_writer(Escaping::new(&mut *out), &object)?;
        writeln!(out)
    })
}
