//! The lines of a recording as one table in a Parquet file.

use crate::record::Recording;
use crate::record::rows::{Row, columns, each};
use crate::store::sheet::{About, Cell, Column, Kind, Sheet};
use std::io::{self, Write};

pub fn write<W: Write + Send>(out: W, recording: &Recording) -> io::Result<()> {
    let first = FIRST.map(|(name, kind, is_required)| Column { name, kind, is_required });
    let optional = |name| Column { name, kind: Kind::Long, is_required: false };
    let measures = columns();
    let measures = measures.iter().map(|measure| optional(measure.name()));
    let columns: Vec<Column> = first.into_iter().chain(measures).collect();
    let mut sheet = Sheet::new(out, &columns, &About::default());
    each(recording, |row| sheet.add(&cells(row)))?;
    sheet.finish().map(drop)
}

/// The columns before the measures, and which of them every row has.
const FIRST: [(&str, Kind, bool); 8] = [
    ("time", Kind::Time, true),
    ("steady_ms", Kind::Long, true),
    ("pid", Kind::Int, true),
    ("main", Kind::Text, false),
    ("subject", Kind::Text, true),
    ("area", Kind::Text, false),
    ("name", Kind::Text, false),
    ("account_age_ms", Kind::Long, false),
];

fn cells<'a>(row: &'a Row) -> Vec<Option<Cell<'a>>> {
    let mut cells = vec![
        Some(Cell::Number(row.time_ms)),
        Some(Cell::number(row.steady_ms)),
        Some(Cell::Number(row.pid.into())),
        row.main.map(Cell::Text),
        Some(Cell::Text(row.subject)),
        row.area.map(Cell::Text),
        row.name.as_deref().map(Cell::Text),
        row.account_age_ms.map(Cell::number),
    ];
    cells.extend(row.values.iter().map(|value| value.map(Cell::number)));
    cells
}
