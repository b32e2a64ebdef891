"""The part of `scripts/fleet-simulation` that DuckDB does: WORK/source/*/ are the stores of recordings, WORK/store becomes the fleet's.

    fleet_simulation.py WORK JVMS
"""
import datetime, glob, os, re, subprocess, sys, time
import duckdb

work, jvms = sys.argv[1], int(sys.argv[2])
DAY_SAMPLES = 8640
HOUR_SAMPLES = 360
BATCH = 250
SAMPLES_MIN = 10            # of a JVM that was seen for longer than a moment
NODE_JVMS = 30
SORTED_BY = {
    "process": "jvm_id, time", "jvm": "jvm_id, time", "account": "jvm_id, subject, area, name, time",
    "holders": "jvm_id, holder, time", "ledger": "jvm_id, item, time", "finding": "jvm_id, id, time",
}
IDENTITY = {
    "jvm_id": "f.id", "node": "f.node", "namespace": "'shop'", "pod": "f.pod", "container": "'app'", "workload": "f.workload",
    "unit": "NULL::VARCHAR", "pod_uid": "f.id", "container_id": "f.id",
}
SCRIPT = subprocess.run(
    [os.environ["MARUSA"], "fleet", "sql", "duckdb", "--store", f"{work}/store"], check=True, capture_output=True, text=True
).stdout
# As merging writes the files of a day.
MERGED = re.search(r"\(FORMAT parquet, (.*?), PARTITION_BY", SCRIPT).group(1)
yesterday = (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)).date()
base = duckdb.connect()
base.execute("SET TimeZone = 'UTC'; SET threads = 2; SET memory_limit = '6GB'")
base.execute(f"SET temp_directory = '{work}/spill'")


def source(table):
    return f"read_parquet({glob.glob(f'{work}/source/*/v1/{table}/*/*/*.parquet')}, union_by_name = true)"


def read():
    """The samples of each recorded JVM that has an account, numbered in their order."""
    base.execute(f"""CREATE TABLE samples AS
        SELECT jvm_id, time, row_number() OVER (PARTITION BY jvm_id ORDER BY time) - 1 AS k, count(*) OVER (PARTITION BY jvm_id) AS n
        FROM (SELECT DISTINCT jvm_id, time FROM {source('process')})
        WHERE jvm_id IN (SELECT jvm_id FROM {source('account')} WHERE subject = 'area')
        QUALIFY n >= {SAMPLES_MIN}""")
    for table in SORTED_BY:
        if table == "jvm":
            base.execute(f"CREATE TABLE of_jvm AS SELECT DISTINCT ON (jvm_id) *, 0 AS k, 1 AS n, false AS is_first FROM {source(table)}")
            continue
        # What has a row only where it moved has one at the begin of each hour's file.
        base.execute(f"""CREATE TABLE of_{table} AS
            SELECT t.*, k, n, {"subject <> 'area' AND k = min(k) OVER (PARTITION BY jvm_id)" if table == "account" else "false"} AS is_first
            FROM {source(table)} t JOIN samples USING (jvm_id, time)""")
    # Sorted by id, as a store is; each 500th is killed in the evening.
    base.execute(f"""CREATE TABLE fleet AS
        SELECT row_number() OVER (ORDER BY md5('jvm' || i)) - 1 AS place, md5('jvm' || i) AS id, 'node-' || (i // {NODE_JVMS}) AS node,
               'program-' || (i % 200) AS workload, 'program-' || (i % 200) || '-' || i AS pod, 'program:' || (i % 3) AS image,
               list_extract(ids, 1 + i % len(ids)) AS source, hash(i) % 10000 AS offset_ms, hash(i) % 1000000 AS chance, i % 500 = 0 AS is_killed
        FROM range({jvms}) r(i), (SELECT list(DISTINCT jvm_id ORDER BY jvm_id) AS ids FROM samples)""")


def cell(table, name, kind):
    if name in IDENTITY:
        return f"{IDENTITY[name]} AS {name}"
    if table == "jvm" and name in ("started", "last_seen", "ended", "ending", "image"):
        return {
            "started": "f.day_begin AS started", "last_seen": "moment + INTERVAL 1 HOUR AS last_seen", "image": "f.image AS image",
            "ended": "CASE WHEN f.is_killed AND h = 23 THEN f.day_begin + INTERVAL 86390 SECOND END AS ended",
            "ending": "CASE WHEN f.is_killed AND h = 23 THEN 'oom_killed' END AS ending",
        }[name]
    if kind == "BIGINT" and name.endswith("_bytes") and table != "jvm":
        return f"CASE WHEN t.{name} >= 1048576 THEN t.{name} + 4096 * ((f.chance + 7919 * h) % 1021)::BIGINT ELSE t.{name} END AS {name}"
    return f"t.{name}"


def write(table):
    columns = base.execute(f"DESCRIBE of_{table}").fetchall()
    columns = [(name, kind) for name, kind, *_ in columns if name not in ("k", "n", "is_first", "date", "cluster")]
    cells = ", ".join("moment AS time" if name == "time" else cell(table, name, kind) for name, kind in columns)
    directory = f"{work}/store/v1/{table}/date={yesterday}/cluster=eu1"
    os.makedirs(directory)
    # `h`: the round through the recording; of a JVM's own row, the hour.
    index = f"h * {HOUR_SAMPLES}" if table == "jvm" else "h * t.n + t.k"
    for begin in range(0, jvms, BATCH):
        base.execute(f"""COPY (
            SELECT {cells} FROM (
                SELECT *, TIMESTAMPTZ '{yesterday} 00:00:00+00' AS day_begin FROM fleet WHERE place >= {begin} AND place < {begin + BATCH}
            ) f JOIN of_{table} t ON t.jvm_id = f.source, range(0, {DAY_SAMPLES}) r(h),
                 LATERAL (SELECT day_begin + to_milliseconds(({index}) * 10000 + f.offset_ms) AS moment)
            WHERE {index} < {DAY_SAMPLES} AND (NOT is_first OR (h * t.n) % {HOUR_SAMPLES} < t.n)
            ORDER BY {SORTED_BY[table].replace("jvm_id", "f.id").replace("time", "moment")}
        ) TO '{directory}/{begin:06}.parquet'
        (FORMAT parquet, {MERGED})""")


def size(pattern):
    return sum(os.path.getsize(path) for path in glob.glob(pattern))


def sizes():
    looks = base.execute(f"SELECT count(*) FROM {source('process')}").fetchone()[0]
    print(f"{'table':8} {'rows':>13} {'bytes':>15} {'B/JVM-sample':>13} {'as recorded':>12}")
    all_bytes, all_source = 0, 0
    for table in SORTED_BY:
        of_table = f"{work}/store/v1/{table}/*/*/*.parquet"
        rows = base.execute(f"SELECT count(*) FROM read_parquet('{of_table}')").fetchone()[0]
        here, there = size(of_table), size(f"{work}/source/*/v1/{table}/*/*/*.parquet")
        all_bytes, all_source = all_bytes + here, all_source + there
        print(f"{table:8} {rows:13,} {here:15,} {here / jvms / DAY_SAMPLES:13.2f} {there / looks:12.2f}")
    print(f"{'all':8} {'':13} {all_bytes:15,} {all_bytes / jvms / DAY_SAMPLES:13.2f} {all_source / looks:12.2f}")


def queries():
    tables, rest = SCRIPT.split("\n-- Merging", 1)
    asked = duckdb.connect()
    asked.execute("SET threads = 2; SET memory_limit = '6GB'")
    asked.execute(f"SET temp_directory = '{work}/spill'")
    asked.execute("\n".join(line for line in tables.split("\n") if not line.startswith("--")))
    print(f"\n{'query':12} {'seconds':>8} {'rows':>9}")
    for name, query in re.findall(r"^-- ([a-z-]+): .*\n((?:.*\n)*?.*;)$", rest.split("\n-- Queries.\n", 1)[1], re.M):
        begun = time.monotonic()
        rows = len(asked.execute(query).fetchall())
        print(f"{name:12} {time.monotonic() - begun:8.2f} {rows:9,}", flush=True)


read()
count = base.execute("SELECT count(DISTINCT jvm_id) FROM samples").fetchone()[0]
if count == 0:
    sys.exit(f"no JVM was recorded with {SAMPLES_MIN} samples and an account")
print(f"{jvms:,} JVMs, of {count} that were recorded; {DAY_SAMPLES:,} samples each", flush=True)
for table in SORTED_BY:
    write(table)
sizes()
queries()
