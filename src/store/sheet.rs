//! A table as one Parquet file, with `parquet`'s own writers of columns: its Arrow half would double the time to build. Rows are
//! put together in groups, so that memory does not grow with the file.

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaDataReader, SortingColumn};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::Arc;

/// Rows that are put together before they are written: some tens of megabytes with 40 columns.
const GROUP_ROWS: usize = 32 << 10;
/// Higher levels take several times as long and save a few percent.
const ZSTD_LEVEL: i32 = 3;

/// The key of a file's facts that has `About::schema`.
pub const SCHEMA_KEY: &str = "marusa.schema";

/// The type of a column. Times are UTC, text is UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Milliseconds since 1970.
    Time,
    Int,
    Long,
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    /// Every row has a value.
    pub is_required: bool,
}

/// A value of a row; a column without one is unknown there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    Number(i64),
    Text(&'a str),
}

impl Cell<'_> {
    /// No memory has 2^63 bytes.
    pub fn number(number: u64) -> Cell<'static> {
        Cell::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// What a file says about its rows.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// "account/1".
    pub schema: Option<String>,
    /// The columns that the rows are sorted by, the first one first.
    pub sorted_by: Vec<&'static str>,
}

/// The values of a column within a group.
enum Values {
    Ints(Vec<i32>),
    Longs(Vec<i64>),
    Texts(Vec<ByteArray>),
}

struct Filled {
    column: Column,
    values: Values,
    /// For each row, whether it has a value: what Parquet calls definition levels.
    levels: Vec<i16>,
}

/// A file that is being written.
pub struct Sheet<W: Write + Send> {
    /// Until the first group: it decides on the encodings.
    out: Option<W>,
    writer: Option<SerializedFileWriter<W>>,
    about: About,
    columns: Vec<Filled>,
    rows: usize,
    /// The rows of all groups.
    written: u64,
}

impl<W: Write + Send> Sheet<W> {
    pub fn new(out: W, columns: &[Column], about: &About) -> Sheet<W> {
        let columns = columns.iter().copied().map(Filled::new).collect();
        Sheet { out: Some(out), writer: None, about: about.clone(), columns, rows: 0, written: 0 }
    }

    /// A row, with a cell for each column. A required column without a value, or of another type, has 0 or "".
    pub fn add(&mut self, row: &[Option<Cell>]) -> io::Result<()> {
        for (filled, cell) in self.columns.iter_mut().zip(row) {
            filled.add(*cell);
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> io::Result<()> {
        let writer = begun(&mut self.out, &mut self.writer, &self.columns, &self.about)?;
        let mut group = writer.next_row_group().map_err(failed)?;
        self.columns.iter_mut().try_for_each(|filled| filled.write(&mut group)).map_err(failed)?;
        group.close().map_err(failed)?;
        self.written += self.rows as u64;
        self.rows = 0;
        Ok(())
    }

    /// Writes what is left and the table of contents; the number of rows.
    pub fn finish(mut self) -> io::Result<u64> {
        if self.rows > 0 {
            self.write_group()?;
        }
        begun(&mut self.out, &mut self.writer, &self.columns, &self.about)?.finish().map_err(failed)?;
        Ok(self.written)
    }
}

fn begun<'a, W: Write + Send>(
    out: &mut Option<W>,
    writer: &'a mut Option<SerializedFileWriter<W>>,
    columns: &[Filled],
    about: &About,
) -> io::Result<&'a mut SerializedFileWriter<W>> {
    if let Some(out) = out.take() {
        let schema = Arc::new(parse_message_type(&message(columns)).map_err(io::Error::other)?);
        let properties = Arc::new(properties(columns, about)?);
        *writer = Some(SerializedFileWriter::new(out, schema, properties).map_err(failed)?);
    }
    writer.as_mut().ok_or_else(|| io::Error::other("the file could not be begun"))
}

impl Filled {
    fn new(column: Column) -> Filled {
        let values = match column.kind {
            Kind::Int => Values::Ints(Vec::new()),
            Kind::Time | Kind::Long => Values::Longs(Vec::new()),
            Kind::Text => Values::Texts(Vec::new()),
        };
        Filled { column, values, levels: Vec::new() }
    }

    /// Numbers that hardly ever come again, as times do, are kept as differences of a few bits; the others as they are: zstd finds
    /// the repetitions that neighbouring rows have. A dictionary would take more than either. `None`: text.
    fn encoding(&self) -> Option<Encoding> {
        let (known, distinct) = match &self.values {
            Values::Ints(values) => (values.len(), values.iter().collect::<HashSet<_>>().len()),
            Values::Longs(values) => (values.len(), values.iter().collect::<HashSet<_>>().len()),
            Values::Texts(_) => return None,
        };
        let is_always_new = distinct * 4 > known * 3;
        Some(if is_always_new { Encoding::DELTA_BINARY_PACKED } else { Encoding::PLAIN })
    }

    fn add(&mut self, cell: Option<Cell>) {
        let default = if self.column.kind == Kind::Text { Cell::Text("") } else { Cell::Number(0) };
        let cell = cell.or(self.column.is_required.then_some(default));
        self.levels.push(i16::from(cell.is_some()));
        match (&mut self.values, cell) {
            (_, None) => {}
            (Values::Ints(values), Some(Cell::Number(number))) => {
                values.push(i32::try_from(number).unwrap_or(i32::MAX));
            }
            (Values::Longs(values), Some(Cell::Number(number))) => values.push(number),
            (Values::Texts(values), Some(Cell::Text(text))) => {
                // Rows are sorted: most texts are the one before, which is shared.
                let same = values.last().filter(|last| last.data() == text.as_bytes()).cloned();
                values.push(same.unwrap_or_else(|| ByteArray::from(text.as_bytes().to_vec())));
            }
            // The tables are ours: a test writes each of their columns.
            (_, Some(_)) => debug_assert!(false, "{}: not of its type", self.column.name),
        }
    }

    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let levels = std::mem::take(&mut self.levels);
        let levels = (!self.column.is_required).then_some(levels.as_slice());
        match &mut self.values {
            Values::Ints(values) => put::<Int32Type, W>(group, std::mem::take(values), levels),
            Values::Longs(values) => put::<Int64Type, W>(group, std::mem::take(values), levels),
            Values::Texts(values) => put::<ByteArrayType, W>(group, std::mem::take(values), levels),
        }
    }
}

fn put<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let column = group.next_column()?;
    let mut column = column.ok_or_else(|| ParquetError::General("a column too many".to_string()))?;
    column.typed::<T>().write_batch(&values, levels, None)?;
    column.close()
}

/// The schema in Parquet's own language.
fn message(columns: &[Filled]) -> String {
    let line = |Filled { column, .. }: &Filled| {
        let need = if column.is_required { "REQUIRED" } else { "OPTIONAL" };
        let (kind, meaning) = match column.kind {
            Kind::Time => ("INT64", " (TIMESTAMP(MILLIS,true))"),
            Kind::Int => ("INT32", ""),
            Kind::Long => ("INT64", ""),
            Kind::Text => ("BYTE_ARRAY", " (STRING)"),
        };
        format!("{need} {kind} {}{meaning};\n", column.name)
    };
    format!("message marusa {{\n{}}}", columns.iter().map(line).collect::<String>())
}

fn properties(columns: &[Filled], about: &About) -> io::Result<WriterProperties> {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).map_err(failed)?;
    let place = |name: &&str| columns.iter().position(|filled| filled.column.name == *name);
    let sorted = about.sorted_by.iter().filter_map(place).map(|place| SortingColumn {
        column_idx: place as i32,
        descending: false,
        nulls_first: true,
    });
    let sorted: Vec<SortingColumn> = sorted.collect();
    let schema = about.schema.iter().map(|schema| KeyValue::new(SCHEMA_KEY.to_string(), schema.clone()));
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_created_by(format!("marusa {}", env!("CARGO_PKG_VERSION")))
        .set_sorting_columns((!sorted.is_empty()).then_some(sorted))
        .set_key_value_metadata(Some(schema.collect()));
    for filled in columns {
        let Some(encoding) = filled.encoding() else { continue };
        let path = || ColumnPath::from(filled.column.name);
        properties =
            properties.set_column_dictionary_enabled(path(), false).set_column_encoding(path(), encoding);
    }
    Ok(properties.build())
}

/// What a file says of its schema, in its table of contents.
pub fn schema_in(contents: &[u8]) -> Option<String> {
    let found = ParquetMetaDataReader::decode_metadata(contents).ok()?;
    let facts = found.file_metadata().key_value_metadata()?;
    facts.iter().find(|fact| fact.key == SCHEMA_KEY)?.value.clone()
}

fn failed(error: ParquetError) -> io::Error {
    io::Error::other(error)
}
