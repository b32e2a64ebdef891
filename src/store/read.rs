//! The columns of a store's files, read back group by group. A file that an engine merged is read too: its times may be in other
//! units, and its columns in another order. Only the readers of the three types in use are linked: `SerializedFileReader` would
//! bring those of all eight, 0.2 MB.

use super::tables::Table;
use anyhow::anyhow;
use parquet::basic::{LogicalType, TimeUnit, Type};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

/// Rows of a group, whatever an engine makes of it: more would not fit into memory.
const GROUP_ROWS_MAX: i64 = 4 << 20;

/// A file of a table.
pub struct Rows<R: ChunkReader + 'static> {
    file: Arc<R>,
    metadata: ParquetMetaData,
    /// The columns that are read, with the units of a time by which a millisecond is divided.
    wanted: Vec<(usize, &'static str, i64)>,
}

/// The values of a group of rows.
#[derive(Default)]
pub struct Columns {
    rows: usize,
    longs: HashMap<&'static str, Vec<Option<i64>>>,
    texts: HashMap<&'static str, Vec<Option<ByteArray>>>,
}

impl<R: ChunkReader + 'static> Rows<R> {
    /// The columns of these names that the file has. `Err`: it is not of this table, or of a later version.
    pub fn of(file: R, table: Table, names: &[&'static str]) -> anyhow::Result<Rows<R>> {
        let metadata = guarded(|| ParquetMetaDataReader::new().parse_and_finish(&file))?;
        let facts = metadata.file_metadata();
        let pairs = facts.key_value_metadata().map_or(&[][..], |pairs| pairs);
        let schema =
            pairs.iter().find(|pair| pair.key == "marusa.schema").and_then(|pair| pair.value.as_deref());
        let ours = format!("{}/1", table.name());
        if let Some(other) = schema.filter(|schema| *schema != ours) {
            anyhow::bail!("its schema is {other}, and this version reads {ours}: use a newer marusa");
        }
        let columns = facts.schema_descr().columns().iter().enumerate();
        let wanted = columns.filter_map(|(place, column)| {
            let name = names.iter().find(|name| **name == column.name())?;
            let per_ms = match column.logical_type_ref() {
                Some(LogicalType::Timestamp(time)) if time.unit == TimeUnit::MICROS => 1_000,
                Some(LogicalType::Timestamp(time)) if time.unit == TimeUnit::NANOS => 1_000_000,
                _ => 1,
            };
            Some((place, *name, per_ms))
        });
        Ok(Rows { wanted: wanted.collect(), file: Arc::new(file), metadata })
    }

    pub fn each(&self, mut take: impl FnMut(&Columns) -> anyhow::Result<()>) -> anyhow::Result<()> {
        for group in self.metadata.row_groups() {
            take(&guarded(|| self.columns(group))?)?;
        }
        Ok(())
    }

    fn columns(&self, group: &RowGroupMetaData) -> Result<Columns, ParquetError> {
        let rows = group.num_rows();
        if !(0..=GROUP_ROWS_MAX).contains(&rows) {
            return Err(ParquetError::General(format!(
                "a group has {rows} rows, and {GROUP_ROWS_MAX} are read at most"
            )));
        }
        let rows = rows as usize;
        let mut columns = Columns { rows, ..Columns::default() };
        for (place, name, per_ms) in &self.wanted {
            let column = group.columns().get(*place);
            let column = column.ok_or_else(|| ParquetError::EOF(format!("a group has no column {name}")))?;
            let longs =
                |values: Vec<Option<i64>>| values.into_iter().map(|value| Some(value? / per_ms)).collect();
            match column.column_type() {
                Type::INT32 => {
                    let values = self.values::<Int32Type>(column, rows)?.into_iter();
                    columns.longs.insert(name, longs(values.map(|value| value.map(i64::from)).collect()));
                }
                Type::INT64 => {
                    columns.longs.insert(name, longs(self.values::<Int64Type>(column, rows)?));
                }
                Type::BYTE_ARRAY => {
                    columns.texts.insert(name, self.values::<ByteArrayType>(column, rows)?);
                }
                _ => return Err(ParquetError::General(format!("column {name} is of another type"))),
            }
        }
        Ok(columns)
    }

    fn values<T: DataType>(
        &self,
        column: &ColumnChunkMetaData,
        rows: usize,
    ) -> Result<Vec<Option<T::T>>, ParquetError> {
        let pages = SerializedPageReader::new(Arc::clone(&self.file), column, rows, None)?;
        values(ColumnReaderImpl::<T>::new(column.column_descr_ptr(), Box::new(pages)), rows)
    }
}

/// The library's readers panic at some damaged files (parquet 60.1, column/reader/decoder.rs: "Decoder for dict should have been
/// set"); to us that is an error like others. Only for programs that read a store in one thread: what a panic prints is the whole
/// process's.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> anyhow::Result<T> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = panic::catch_unwind(AssertUnwindSafe(read));
    panic::set_hook(hook);
    Ok(result.map_err(|_| anyhow!("it is damaged"))??)
}

/// The values of a flat column, `None` where a row has none.
fn values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    while levels.len() < rows || levels.is_empty() && values.len() < rows {
        let (read, ..) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
        if read == 0 {
            break;
        }
    }
    // A required column has no levels.
    if levels.is_empty() && values.len() == rows {
        return Ok(values.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    let all: Vec<Option<T::T>> =
        levels.iter().map(|level| if *level > 0 { values.next() } else { None }).collect();
    match all.len() == rows {
        true => Ok(all),
        false => Err(ParquetError::EOF("a column has fewer values than its group has rows".to_string())),
    }
}

impl Columns {
    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub fn long(&self, name: &str, row: usize) -> Option<i64> {
        *self.longs.get(name)?.get(row)?
    }

    pub fn text(&self, name: &str, row: usize) -> Option<Cow<'_, str>> {
        let bytes = self.texts.get(name)?.get(row)?.as_ref()?;
        Some(String::from_utf8_lossy(bytes.data()))
    }
}
