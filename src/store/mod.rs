//! The store of a fleet: recordings as tables in Parquet files, in the directories that DuckDB, ClickHouse, Trino and Spark know
//! ("hive" layout). These engines query, merge and delete; Marusa only writes, so that a fleet needs no engine of ours. The store
//! of a few nodes can be read back (`read`), for advice on their JVMs.
//!
//! Nothing here touches a disk or a network: `cmd::store` puts the files into a directory or a bucket.

pub mod layout;
pub mod read;
pub mod sheet;
pub mod sql;
pub mod tables;
#[cfg(test)]
mod tables_tests;
