//! SQL for the engines that query a store: how its tables are named there, how a day's files are merged, and the questions that a
//! fleet is asked. The queries are one text for all engines; only what their dialects differ in is filled in.

use super::sheet::{self, Kind};
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
        let store = self.reached(store);
        let tables = Table::ALL.map(|table| self.table(table, &store)).concat();
        let merging = Table::ALL.map(|table| self.merging(table, &store)).concat();
        let queries = self.queries();
        let merging = commented(&merging);
        format!("-- Tables.\n{}{tables}\n{MERGING}{merging}\n-- Queries.\n{queries}", self.preamble())
    }

    fn preamble(self) -> &'static str {
        match self {
            Engine::Trino => {
                "-- In a catalog of the hive connector, with hive.parquet.time-zone=UTC, and to merge, with\n\
                 -- hive.non-managed-table-writes-enabled=true; hive.metastore=file needs no metastore service.\n\
                 CREATE SCHEMA IF NOT EXISTS marusa;\nUSE marusa;\n"
            }
            Engine::Spark => "SET spark.sql.session.timeZone=UTC;\n",
            Engine::Duckdb => "SET TimeZone = 'UTC';\n",
            Engine::Clickhouse => "SET session_timezone = 'UTC';\n",
        }
    }

    /// The store as the engine names it.
    fn reached(self, store: &str) -> String {
        let store = store.trim_end_matches('/');
        match (self, store.strip_prefix("s3://")) {
            // Hadoop's file system for S3.
            (Engine::Spark, Some(bucket)) => format!("s3a://{bucket}"),
            _ => store.to_string(),
        }
    }

    /// A name for the files of a table.
    fn table(self, table: Table, store: &str) -> String {
        let (name, root) = (table.name(), format!("{store}/{}", table.directory()));
        match self {
            Engine::Duckdb => format!(
                "CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet('{root}/*/*/*.parquet', hive_partitioning = true, \
                 hive_types = {{'date': VARCHAR, 'cluster': VARCHAR}}, union_by_name = true);\n"
            ),
            Engine::Clickhouse => format!(
                "CREATE OR REPLACE VIEW {name} AS SELECT * FROM {}('{root}/*/*/*.parquet', 'Parquet', '{}') SETTINGS \
                 use_hive_partitioning = 1;\n",
                clickhouse_function(store),
                self.definitions(table)
            ),
            Engine::Trino => self.trino_table(table, name, &root),
            Engine::Spark => format!(
                "CREATE OR REPLACE TEMPORARY VIEW {name} USING parquet OPTIONS (path '{root}', mergeSchema 'true');\n"
            ),
        }
    }

    fn trino_table(self, table: Table, name: &str, root: &str) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {name} ({}) WITH (external_location = '{root}', format = 'PARQUET', partitioned_by = \
             ARRAY['date', 'cluster']);\nCALL system.sync_partition_metadata('marusa', '{name}', 'FULL');\n",
            self.definitions(table)
        )
    }

    /// One sorted file for each cluster and day instead of one for each node and hour.
    fn merging(self, table: Table, store: &str) -> String {
        let (name, by) = (table.name(), table.sorted_by().join(", "));
        let to = format!("{store}/merged-{name}");
        let columns: Vec<&str> = table.columns().iter().map(|column| column.name).chain(PARTITIONS).collect();
        let rows = format!("SELECT {} FROM {name} WHERE {} = 'DAY'", columns.join(", "), self.date());
        match self {
            // Only the second version of Parquet's encodings has differences, which times and bytes take the fewest bits as; DuckDB
            // uses them for columns of which a group of rows has more values than DICTIONARY_SIZE_LIMIT.
            Engine::Duckdb => format!(
                "COPY ({rows} ORDER BY {by}) TO '{to}' (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, \
                 DICTIONARY_SIZE_LIMIT 1024, PARTITION_BY (date, cluster), KV_METADATA {{'{}': '{}'}}, OVERWRITE_OR_IGNORE);\n",
                sheet::SCHEMA_KEY,
                table.schema()
            ),
            // The expression of the partition is its name, which becomes a part of the path.
            Engine::Clickhouse => format!(
                "INSERT INTO FUNCTION {}('{to}/date=DAY/cluster={{_partition_id}}/merged.parquet', 'Parquet', '{}') PARTITION BY \
                 cluster {rows} ORDER BY {by} SETTINGS output_format_parquet_compression_method = 'zstd', \
                 use_hive_partitioning = 0;\n",
                clickhouse_function(store),
                self.definitions(table)
            ),
            Engine::Trino => format!(
                "{}INSERT INTO {name}_merged {rows} ORDER BY {by};\n",
                self.trino_table(table, &format!("{name}_merged"), &to)
            ),
            Engine::Spark => format!(
                "CREATE TABLE IF NOT EXISTS {name}_merged ({}) USING parquet OPTIONS (compression 'zstd') PARTITIONED BY (date, \
                 cluster) LOCATION '{to}';\nINSERT INTO {name}_merged {rows} ORDER BY date, cluster, {by};\n",
                self.definitions(table)
            ),
        }
    }

    /// The columns of a table with their types, and the ones that its directories name.
    fn definitions(self, table: Table) -> String {
        let columns = table.columns();
        let own = columns.iter().map(|column| (column.name, column.kind, column.is_required));
        let all = own.chain(PARTITIONS.map(|name| (name, Kind::Text, true)));
        let one = |(name, kind, is_required): (&str, Kind, bool)| match self {
            Engine::Clickhouse if !is_required => format!("{name} Nullable({})", self.kind(kind)),
            _ => format!("{name} {}", self.kind(kind)),
        };
        all.map(one).collect::<Vec<String>>().join(", ")
    }

    fn kind(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Engine::Clickhouse, Kind::Time) => "DateTime64(3)",
            (Engine::Clickhouse, Kind::Int) => "Int32",
            (Engine::Clickhouse, Kind::Long) => "Int64",
            (Engine::Clickhouse | Engine::Spark, Kind::Text) => "String",
            (Engine::Trino, Kind::Time) => "timestamp(3)",
            (_, Kind::Time) => "timestamp",
            (_, Kind::Int) => "integer",
            (_, Kind::Long) => "bigint",
            (_, Kind::Text) => "varchar",
        }
    }

    /// The day as text. Spark takes the names of the directories for dates.
    fn date(self) -> &'static str {
        if self == Engine::Spark { "CAST(date AS STRING)" } else { "date" }
    }

    /// The queries, each after a comment that begins with its name.
    pub fn queries(self) -> String {
        let interval = |count: u32, unit: &str| match self {
            Engine::Clickhouse => format!("INTERVAL {count} {unit}"),
            _ => format!("INTERVAL '{count}' {unit}"),
        };
        let day = |ago: u32| match self {
            Engine::Duckdb => format!("strftime(current_date - {ago}, '%Y-%m-%d')"),
            Engine::Clickhouse => format!("toString(today() - {ago})"),
            Engine::Trino => {
                format!("format_datetime(current_timestamp - INTERVAL '{ago}' DAY, 'yyyy-MM-dd')")
            }
            Engine::Spark => format!("date_format(date_sub(current_date(), {ago}), 'yyyy-MM-dd')"),
        };
        QUERIES
            .replace("{sixty_seconds}", &interval(60, "SECOND"))
            .replace("{two_hours}", &interval(2, "HOUR"))
            .replace("{yesterday}", &day(1))
            .replace("{last_week}", &day(7))
            .replace("{date}", self.date())
    }
}

const MERGING: &str = "-- Merging of a day that is over. Replace DAY, then put each directory below merged-TABLE into the\n\
                       -- place of the one below v1/TABLE that has its name. A table without rows has none.\n";

fn commented(text: &str) -> String {
    text.lines().map(|line| format!("-- {line}\n")).collect()
}

/// Columns that the names of the directories give.
const PARTITIONS: [&str; 2] = ["date", "cluster"];

/// ClickHouse reads a bucket by another function than files.
fn clickhouse_function(store: &str) -> &'static str {
    if store.contains("://") { "s3" } else { "file" }
}
