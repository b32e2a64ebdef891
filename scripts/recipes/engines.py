"""The engines of `scripts/engines`: each runs what `marusa fleet sql` prints for it, over the same store, and the answers are
compared cell by cell; then each merges the days, and must answer the merged store as before.

    engines.py answers ENGINE STORE        the rows of the seven queries, as JSON
    engines.py compare STORE [ENGINE...]   ends with status 1 where two engines differ
"""
import datetime, decimal, glob, json, math, os, re, shutil, socket, subprocess, sys, tempfile, time

os.environ["TZ"] = "UTC"
time.tzset()
HOME = os.environ["MARUSA_ENGINES"]
MARUSA = os.environ["MARUSA"]
TABLES = ["process", "account", "holders", "ledger", "finding", "jvm"]
READY_SECONDS_MAX = 300


class Script:
    """What `marusa fleet sql` prints: statements that define the tables, ones that merge them, and queries by name."""

    def __init__(self, engine, store):
        asked = [MARUSA, "fleet", "sql", engine, "--store", store]
        text = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
        begun, rest = text.split("\n-- Merging", 1)
        merging, queries = rest.split("\n-- Queries.\n", 1)
        self.tables = split("\n".join(line for line in begun.split("\n") if not line.startswith("--")))
        self.merging = split("\n".join(line[3:] for line in merging.split("\n")[2:]))
        named = re.findall(r"^-- ([a-z-]+): .*\n((?:.*\n)*?.*;)$", queries, re.M)
        self.queries = [(name, query.rstrip(";")) for name, query in named]


def split(text):
    return [one.strip() for one in re.split(r";\s*(?:\n|$)", text) if one.strip()]


class Duckdb:
    def __init__(self, root):
        import duckdb
        self.base = duckdb.connect()

    def run(self, sql):
        return self.base.execute(sql).fetchall()

    def end(self):
        self.base.close()


class Clickhouse:
    """ClickHouse's engine in a process of Python: chDB."""

    def __init__(self, root):
        import chdb.session
        self.session = chdb.session.Session()

    def run(self, sql):
        answer = self.session.query(sql, "JSONCompact").bytes()
        if not answer:
            return []
        found = json.loads(answer)
        kinds = [column["type"] for column in found["meta"]]
        return [tuple(self.cell(cell, kind) for cell, kind in zip(row, kinds)) for row in found["data"]]

    def cell(self, cell, kind):
        if cell is None or "String" in kind:
            return cell
        if "DateTime" in kind:
            return datetime.datetime.fromisoformat(cell)
        return float(cell) if "Float" in kind else int(cell)

    def end(self):
        self.session.close()


class Spark:
    def __init__(self, root):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        from pyspark.sql import SparkSession
        self.at = tempfile.mkdtemp(prefix="marusa-spark-")
        build = SparkSession.builder.master("local[2]").config("spark.driver.memory", "2g")
        for key, value in {
            "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false", "spark.local.dir": self.at, "spark.sql.warehouse.dir": self.at,
            "spark.sql.shuffle.partitions": "4",
        }.items():
            build = build.config(key, value)
        self.spark = build.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")

    def run(self, sql):
        return [tuple(row) for row in self.spark.sql(sql).collect()]

    def end(self):
        self.spark.stop()
        shutil.rmtree(self.at, ignore_errors=True)


class Trino:
    """A server of its own, whose file system is the directory `root`, which it names local:///."""

    def __init__(self, root):
        import trino
        self.at = tempfile.mkdtemp(prefix="marusa-trino-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.write("node.properties", f"node.environment=test\nnode.id=one\nnode.data-dir={self.at}/data\n")
        self.write("jvm.config", "-Xmx2G\n-XX:+ExitOnOutOfMemoryError\n-Duser.timezone=UTC\n--enable-native-access=ALL-UNNAMED\n"
                   "--sun-misc-unsafe-memory-access=allow\n-Djdk.attach.allowAttachSelf=true\n")
        self.write("config.properties", "coordinator=true\nnode-scheduler.include-coordinator=true\n"
                   f"http-server.http.port={port}\ndiscovery.uri=http://127.0.0.1:{port}\n")
        self.write("log.properties", "io.trino=WARN\n")
        self.write("catalog/marusa.properties", "connector.name=hive\nhive.metastore=file\n"
                   "hive.metastore.catalog.dir=local:///trino-metastore\nfs.native-local.enabled=true\n"
                   f"local.location={root}\nhive.parquet.time-zone=UTC\nhive.compression-codec=ZSTD\n"
                   "hive.non-managed-table-writes-enabled=true\n")
        home, home_of_java = f"{HOME}/trino", java(25)
        self.log = open(f"{self.at}/log", "wb")
        self.server = subprocess.Popen([f"{home}/bin/launcher", f"--etc-dir={self.at}/etc", "run"], stdin=subprocess.DEVNULL,
                                       stdout=self.log, stderr=self.log, start_new_session=True,
                                       env={**os.environ, "JAVA_HOME": home_of_java, "PATH": f"{home_of_java}/bin:{os.environ['PATH']}"})
        self.base = trino.dbapi.connect(host="127.0.0.1", port=port, user="marusa", catalog="marusa", schema="marusa")
        end = time.monotonic() + READY_SECONDS_MAX
        while True:
            try:
                return self.run("SELECT count(*) FROM system.runtime.nodes WHERE state = 'active'") and None
            except Exception as error:
                if time.monotonic() > end or self.server.poll() is not None:
                    tail = open(self.log.name, errors="replace").read()[-3000:]
                    self.end()
                    raise SystemExit(f"Trino does not get ready: {error}\n{tail}")
                time.sleep(0.5)

    def write(self, name, text):
        path = f"{self.at}/etc/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def run(self, sql):
        cursor = self.base.cursor()
        cursor.execute(sql)
        return [tuple(row) for row in cursor.fetchall()]

    def end(self):
        try:
            os.killpg(self.server.pid, 9)
        except ProcessLookupError:
            pass
        self.server.wait()
        self.log.close()
        shutil.rmtree(self.at, ignore_errors=True)


def java(release):
    """The home of a test JDK."""
    home = os.path.join(os.environ.get("MARUSA_JDKS") or os.path.expanduser("~/.cache/marusa/jdks"), str(release))
    if not os.path.exists(f"{home}/bin/java"):
        raise SystemExit(f"no JDK {release} at {home}; scripts/jdks installs it")
    return home


ENGINES = {"duckdb": Duckdb, "clickhouse": Clickhouse, "spark": Spark, "trino": Trino}


def cell(value):
    """One form for all engines."""
    if isinstance(value, datetime.datetime):
        if value.tzinfo:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def is_same(one, other):
    if isinstance(one, float) or isinstance(other, float):
        numbers = [value for value in (one, other) if isinstance(value, (int, float))]
        return len(numbers) == 2 and math.isclose(one, other, rel_tol=1e-9)
    return type(one) is type(other) and one == other


def answers(engine, script):
    for statement in script.tables:
        engine.run(statement)
    return {name: [[cell(value) for value in row] for row in engine.run(query)] for name, query in script.queries}


def differences(name, one, other):
    """Between the answers of two: at most one line for each query."""
    for query, rows in one.items():
        of_other = other.get(query, [])
        if len(rows) != len(of_other):
            yield f"{query}: {len(rows)} rows, {name} {len(of_other)}"
            continue
        for number, (row, other_row) in enumerate(zip(rows, of_other)):
            if len(row) != len(other_row) or not all(map(is_same, row, other_row)):
                yield f"{query}: row {number}: {row}, {name} {other_row}"
                break


def sums(pattern):
    """For each table its rows, and the sum of each column: of numbers, of times in milliseconds, of the lengths of texts."""
    import duckdb
    base = duckdb.connect()
    base.execute("SET TimeZone = 'UTC'")
    found = {}
    for table in TABLES:
        files = glob.glob(f"{pattern.format(table)}/date=*/cluster=*/[!._]*")      # Trino's have no ending
        source = f"read_parquet({files}, hive_partitioning = true, union_by_name = true, " \
                 "hive_types = {'date': VARCHAR, 'cluster': VARCHAR})"
        columns = sorted(base.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()) if files else []
        of_kind = lambda column, kind: (f"epoch_ms({column})" if kind.startswith("TIMESTAMP") else
                                        f"length({column})" if kind == "VARCHAR" else column)
        one = "".join(f", sum({of_kind(column, kind)}::HUGEINT)" for column, kind, *_ in columns)
        values = base.execute(f"SELECT count(*){one} FROM {source}").fetchone() if files else [0]
        found[table] = dict(zip(["rows"] + [column for column, *_ in columns], values))
    return found


def merged(engine, script, store):
    """Runs the merging of each day, and puts what comes of it into the place of what was there."""
    days = sorted({os.path.basename(path)[len("date="):] for path in glob.glob(f"{store}/v1/*/date=*")})
    before = sums(f"{store}/v1/{{}}")
    for day in days:
        for statement in script.merging:
            engine.run(statement.replace("DAY", day))
    after = sums(f"{store}/merged-{{}}")
    for table in TABLES:
        if before[table] != after[table] and before[table]["rows"]:
            moved = [column for column in before[table] if before[table][column] != after[table].get(column)]
            yield f"merging of {table}: {[(it, before[table][it], after[table].get(it)) for it in moved][:3]}"
        for path in glob.glob(f"{store}/merged-{table}/date=*"):
            place = f"{store}/v1/{table}/{os.path.basename(path)}"
            shutil.rmtree(place)
            os.rename(path, place)


def compare(store, names):
    """Each engine has a copy of the store, which it merges."""
    wrong, first = [], None
    for name in names:
        with tempfile.TemporaryDirectory(prefix="marusa-engines-") as root:
            copy = f"{root}/store"
            shutil.copytree(f"{store}/v1", f"{copy}/v1")
            script = Script(name, "local:///store" if name == "trino" else copy)
            engine = ENGINES[name](root)
            try:
                found = answers(engine, script)
                first = first or (name, found)
                print(f"{name}: " + ", ".join(f"{query} {len(rows)}" for query, rows in found.items()), flush=True)
                wrong += [f"{first[0]}: {line}" for line in differences(name, first[1], found)]
                wrong += [f"{name}: {line}" for line in merged(engine, script, copy)]
                again = answers(engine, script)
                wrong += [f"{name}, merged: {line}" for line in differences("then", found, again)]
            finally:
                engine.end()
    print("\n".join(wrong) or "all answers are the same", flush=True)
    return 1 if wrong else 0


def main(arguments):
    command, *rest = arguments
    if command == "compare":
        store, *names = rest
        return compare(store, names or list(ENGINES))
    if command == "answers":
        name, store = rest
        engine = ENGINES[name](os.path.dirname(os.path.abspath(store)))
        reached = f"local:///{os.path.basename(os.path.abspath(store))}" if name == "trino" else store
        try:
            print(json.dumps(answers(engine, Script(name, reached)), indent=1))
        finally:
            engine.end()
        return 0
    raise SystemExit(__doc__)


sys.exit(main(sys.argv[1:] or [""]))
