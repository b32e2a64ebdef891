//! The lines of a recording as Parquet, with `parquet`'s own writer of columns (without Arrow, which would double the time to
//! build).

use crate::record::Recording;
use crate::record::rows::{Row, columns, each};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::io::{self, Write};
use std::sync::Arc;

/// Lines that are put together before they are written, some tens of megabytes.
const GROUP_ROWS: usize = 64 << 10;

/// A column that may have gaps: its values, and for each line whether there is one.
#[derive(Default)]
struct Column<T> {
    values: Vec<T>,
    levels: Vec<i16>,
}

impl<T> Column<T> {
    fn add(&mut self, value: Option<T>) {
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

#[derive(Default)]
struct Group {
    time: Vec<i64>,
    steady: Vec<i64>,
    pid: Vec<i32>,
    main: Column<ByteArray>,
    subject: Vec<ByteArray>,
    area: Column<ByteArray>,
    name: Column<ByteArray>,
    age: Column<i64>,
    measures: Vec<Column<i64>>,
}

pub fn write<W: Write + Send>(out: W, recording: &Recording) -> io::Result<()> {
    let schema = Arc::new(parse_message_type(&schema()).map_err(io::Error::other)?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("marusa {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(failed)?;
    let mut group = Group::new();
    each(recording, |row| {
        group.add(row);
        if group.time.len() == GROUP_ROWS {
            std::mem::replace(&mut group, Group::new()).write(&mut writer)?;
        }
        Ok(())
    })
    .map_err(failed)?;
    if !group.time.is_empty() {
        group.write(&mut writer).map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    Ok(())
}

fn failed(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

/// Text is UTF-8, times are UTC, bytes and counts are 64 bits; what may be unknown is optional.
fn schema() -> String {
    let mut schema = "message recording {\n\
        REQUIRED INT64 time (TIMESTAMP(MILLIS,true));\n\
        REQUIRED INT64 steady_ms;\n\
        REQUIRED INT32 pid;\n\
        OPTIONAL BYTE_ARRAY main (STRING);\n\
        REQUIRED BYTE_ARRAY subject (STRING);\n\
        OPTIONAL BYTE_ARRAY area (STRING);\n\
        OPTIONAL BYTE_ARRAY name (STRING);\n\
        OPTIONAL INT64 account_age_ms;\n"
        .to_string();
    for measure in columns() {
        schema.push_str(&format!("OPTIONAL INT64 {};\n", measure.name()));
    }
    schema.push('}');
    schema
}

impl Group {
    fn new() -> Group {
        let measures = columns().iter().map(|_| Column::default()).collect();
        Group { measures, ..Group::default() }
    }

    fn add(&mut self, row: &Row) {
        let text = |text: &str| ByteArray::from(text.as_bytes().to_vec());
        // No memory has 2^63 bytes.
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.time.push(row.time_ms);
        self.steady.push(number(row.steady_ms));
        self.pid.push(row.pid);
        self.main.add(row.main.map(text));
        self.subject.push(text(row.subject));
        self.area.add(row.area.map(text));
        self.name.add(row.name.as_deref().map(text));
        self.age.add(row.account_age_ms.map(number));
        for (column, value) in self.measures.iter_mut().zip(&row.values) {
            column.add(value.map(number));
        }
    }

    fn write<W: Write + Send>(self, writer: &mut SerializedFileWriter<W>) -> Result<(), ParquetError> {
        let mut group = writer.next_row_group()?;
        put::<Int64Type, W>(&mut group, &self.time, None)?;
        put::<Int64Type, W>(&mut group, &self.steady, None)?;
        put::<Int32Type, W>(&mut group, &self.pid, None)?;
        put::<ByteArrayType, W>(&mut group, &self.main.values, Some(&self.main.levels))?;
        put::<ByteArrayType, W>(&mut group, &self.subject, None)?;
        put::<ByteArrayType, W>(&mut group, &self.area.values, Some(&self.area.levels))?;
        put::<ByteArrayType, W>(&mut group, &self.name.values, Some(&self.name.levels))?;
        put::<Int64Type, W>(&mut group, &self.age.values, Some(&self.age.levels))?;
        for column in &self.measures {
            put::<Int64Type, W>(&mut group, &column.values, Some(&column.levels))?;
        }
        group.close()?;
        Ok(())
    }
}

fn put<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let column = group.next_column()?;
    let mut column = column.ok_or_else(|| ParquetError::General("a column too many".to_string()))?;
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}
