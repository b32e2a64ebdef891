//! SQL for the engines that query a store: how its tables are named there, how a day's files are merged, and the questions that a
//! fleet is asked. The queries are one text for all engines; only what their dialects differ in is filled in.

use super::sheet::Kind;
use super::tables::Table;

const QUERIES: &str = include_str!("sql/queries.sql");

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Duckdb,
    Clickhouse,
    Trino,
    Spark,
}

impl Engine {
    /// Everything: tables, merging, queries. `store`: as the engine reaches it.
    pub fn script(self, store: &str) -> String {
        let store = store.trim_end_matches('/');
        let tables = Table::ALL.map(|table| self.table(table, store)).concat();
        let merging = Table::ALL.map(|table| self.merging(table, store)).concat();
        let queries = self.queries();
        let merging = commented(&merging);
        format!("-- Tables.\n{}{tables}\n{MERGING}{merging}\n-- Queries.\n{queries}", self.preamble())
    }

    fn preamble(self) -> &'static str {
        match self {
            Engine::Trino => {
                "-- In a catalog of the hive connector; hive.metastore=file needs no metastore service.\n\
                 CREATE SCHEMA IF NOT EXISTS marusa;\nUSE marusa;\n"
            }
            _ => "",
        }
    }

    /// A name for the files of a table.
    fn table(self, table: Table, store: &str) -> String {
        let (name, root) = (table.name(), format!("{store}/v1/{}", table.name()));
        match self {
            Engine::Duckdb => format!(
                "CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet('{root}/*/*/*.parquet', hive_partitioning = true, \
                 hive_types = {{'date': VARCHAR, 'cluster': VARCHAR}}, union_by_name = true);\n"
            ),
            Engine::Clickhouse => {
                let of = if store.starts_with("http") { "s3" } else { "file" };
                format!(
                    "CREATE OR REPLACE VIEW {name} AS SELECT *, toString(_date) AS date FROM (SELECT *, extract(_path, \
                     'date=([0-9-]+)') AS _date FROM {of}('{root}/*/*/*.parquet', 'Parquet', '{}')) ;\n",
                    columns(table, clickhouse)
                )
            }
            Engine::Trino => format!(
                "CREATE TABLE IF NOT EXISTS {name} ({}, date varchar, cluster varchar) WITH (external_location = '{root}', \
                 format = 'PARQUET', partitioned_by = ARRAY['date', 'cluster']);\n\
                 CALL system.sync_partition_metadata('marusa', '{name}', 'FULL');\n",
                columns(table, trino)
            ),
            Engine::Spark => format!(
                "CREATE OR REPLACE TEMPORARY VIEW {name} USING parquet OPTIONS (path '{root}', mergeSchema 'true');\n"
            ),
        }
    }

    /// One sorted file for each cluster and day instead of one for each node and hour.
    fn merging(self, table: Table, store: &str) -> String {
        let (name, by) = (table.name(), table.sorted_by().join(", "));
        let to = format!("{store}/merged/{name}");
        match self {
            Engine::Duckdb => format!(
                "COPY (SELECT * FROM {name} WHERE date = 'DAY' ORDER BY {by}) TO '{to}' (FORMAT parquet, COMPRESSION zstd, \
                 PARTITION_BY (date, cluster), OVERWRITE_OR_IGNORE);\n"
            ),
            Engine::Clickhouse => format!(
                "INSERT INTO FUNCTION file('{to}/date=DAY/all.parquet', 'Parquet') SELECT * FROM {name} WHERE date = 'DAY' ORDER \
                 BY {by};\n"
            ),
            Engine::Trino => format!(
                "CREATE TABLE {name}_DAY WITH (external_location = '{to}/date=DAY', format = 'PARQUET') AS SELECT * FROM {name} \
                 WHERE date = 'DAY' ORDER BY {by};\n"
            ),
            Engine::Spark => format!(
                "INSERT OVERWRITE DIRECTORY '{to}/date=DAY' USING parquet SELECT * FROM {name} WHERE date = 'DAY' ORDER BY {by};\n"
            ),
        }
    }

    /// The queries, each after a comment that begins with its name.
    pub fn queries(self) -> String {
        let sixty = match self {
            Engine::Clickhouse => "INTERVAL 60 SECOND",
            _ => "INTERVAL '60' SECOND",
        };
        let yesterday = match self {
            Engine::Duckdb => "strftime(current_date - 1, '%Y-%m-%d')",
            Engine::Clickhouse => "toString(today() - 1)",
            Engine::Trino => "format_datetime(current_timestamp - INTERVAL '1' DAY, 'yyyy-MM-dd')",
            Engine::Spark => "date_format(date_sub(current_date(), 1), 'yyyy-MM-dd')",
        };
        let date = if self == Engine::Spark { "CAST(date AS STRING)" } else { "date" };
        QUERIES.replace("{sixty_seconds}", sixty).replace("{yesterday}", yesterday).replace("{date}", date)
    }
}

const MERGING: &str = "-- Merging of a day that is over. Replace DAY; then remove the day's directories below v1 and put the\n\
                       -- merged ones into their place.\n";

fn commented(text: &str) -> String {
    text.lines().map(|line| format!("-- {line}\n")).collect()
}

fn columns(table: Table, kind: fn(Kind) -> &'static str) -> String {
    let columns = table.columns();
    let columns: Vec<String> =
        columns.iter().map(|column| format!("{} {}", column.name, kind(column.kind))).collect();
    columns.join(", ")
}

fn trino(kind: Kind) -> &'static str {
    match kind {
        Kind::Time => "timestamp(3)",
        Kind::Int => "integer",
        Kind::Long => "bigint",
        Kind::Text => "varchar",
    }
}

fn clickhouse(kind: Kind) -> &'static str {
    match kind {
        Kind::Time => "Nullable(DateTime64(3))",
        Kind::Int => "Nullable(Int32)",
        Kind::Long => "Nullable(Int64)",
        Kind::Text => "Nullable(String)",
    }
}
