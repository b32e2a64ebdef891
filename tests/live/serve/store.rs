//! The store that a service writes is read by DuckDB, with the SQL that `fleet sql` prints; a second service, a kill and a bucket that
//! refuses lose nothing.

use super::survival::{grow, until};
use super::*;
use crate::record::Directory;
use crate::record::parquet::python;
use std::net::TcpListener;

/// Runs the script of `fleet sql duckdb` and prints the rows of its queries, and what must be true of the tables, as JSON.
const READ: &str = r#"
import duckdb, json, re, sys
script = "\n".join(line for line in sys.stdin.read().split("\n") if not line.startswith("--"))
base = duckdb.connect()
base.sql("SET TimeZone = 'UTC'")
ask = lambda query: base.execute(query).fetchall()
statements = [one.strip() for one in re.split(r";\s*\n", script) if one.strip()]
answers = [(one, ask(one)) for one in statements]
queries = [rows for one, rows in answers if not one.startswith(("CREATE", "SET"))]
print(json.dumps({
    "rows": [len(rows) for rows in queries],
    "jvms": sorted({id for id, in ask("SELECT jvm_id FROM jvm")}),
    "mains": sorted({main for main, in ask("SELECT DISTINCT main FROM process WHERE main IS NOT NULL")}),
    "samples": ask("SELECT count(*), count(DISTINCT (jvm_id, time)) FROM process")[0],
    "series": ask("SELECT count(*), count(DISTINCT (jvm_id, subject, area, name, time)) FROM account")[0],
    # The account is of a moment before its sample.
    "off": ask("""SELECT max(abs(sum_bytes - kernel_resident_bytes)) FROM process JOIN (
        SELECT jvm_id, time, sum(resident_bytes) AS sum_bytes FROM account WHERE subject = 'area' GROUP BY ALL)
        USING (jvm_id, time)""")[0][0],
    "cluster": ask("SELECT DISTINCT cluster FROM account")[0][0],
}, default=str))
"#;

pub fn read(python: &Path, store: &str) -> serde_json::Value {
    let script = marusa(&["fleet", "sql", "duckdb", "--store", store]);
    let mut child = Command::new(python)
        .args(["-c", READ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python runs");
    child.stdin.take().expect("a pipe").write_all(&script.stdout).expect("written");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).expect("JSON")
}

pub fn files(store: &str, table: &str) -> usize {
    let below = |path: &Path| {
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|it| it.path()).collect::<Vec<_>>()
    };
    let dates = below(&Path::new(store).join("v1").join(table));
    let clusters: Vec<PathBuf> = dates.iter().flat_map(|date| below(date)).collect();
    let files = clusters.iter().flat_map(|cluster| below(cluster));
    files.filter(|path| path.extension().is_some_and(|extension| extension == "parquet")).count()
}

#[test]
fn what_a_service_stores_answers_the_questions_of_a_fleet() {
    let Some(python) = python() else { return };
    let Some(jvm) = grow(&[]) else { return };
    let directory = Directory::new("serve-store");
    let (ring, store) = (directory.file("node.marusa"), directory.file("store"));
    // A ring of 40 s has files of 5 s.
    let arguments = ["--output", &ring, "--keep", "40s", "--store", &store, "--cluster", "eu1"];
    let mut service = Service::start(&arguments);
    let id = service.jvm(jvm.pid)["jvm_id"].as_str().expect("an id").to_string();
    let second = marusa(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--output",
        &directory.file("other"),
        "--store",
        &store,
    ]);
    assert_eq!(second.status.code(), Some(2), "{}", text(&second.stderr));
    assert!(text(&second.stderr).contains("another marusa serve of node"), "{}", text(&second.stderr));
    until("two hours are stored", || (files(&store, "jvm") >= 2).then_some(()));
    let metrics = service.text("/metrics");
    assert!(metrics.contains("marusa_store_files_total") && metrics.contains("marusa_store_lost_total 0"));
    service.child.kill().expect("ours");
    service.child.wait().expect("ours");
    let before = files(&store, "jvm");
    let service = Service::start(&arguments);
    until("it goes on", || (files(&store, "jvm") > before).then_some(()));
    drop(service);
    let found = read(&python, &store);
    let rows = found["rows"].as_array().expect("numbers");
    assert_eq!((rows.len(), &found["cluster"]), (7, &"eu1".into()), "{found:#}");
    assert!(rows[..4].iter().all(|rows| rows.as_u64() > Some(0)), "{found:#}");
    assert!(found["jvms"].as_array().expect("ids").iter().any(|one| *one == id.as_str()), "{found:#}");
    assert!(found["mains"].as_array().expect("names").iter().any(|one| one == "Grow"), "{found:#}");
    for table in ["samples", "series"] {
        assert_eq!(found[table][0], found[table][1], "no row twice: {found:#}");
        assert!(found[table][0].as_u64().is_some_and(|rows| rows > 10), "{found:#}");
    }
    let off = found["off"].as_u64().expect("accounts with their samples");
    assert!(off < 32 << 20, "{found:#}");
    [&store, &ring].into_iter().for_each(|source| is_advised(source));
}

/// The limit has room for the whole heap of marusa.Grow and for what is next to it.
fn is_advised(source: &str) {
    let output = marusa(&["advise", source, "--workload", "Grow", "--json"]);
    assert!(output.status.success(), "{source}: {}", text(&output.stderr));
    let advice: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let workload = &advice["workloads"][0];
    let (limit, heap) = (&workload["limit"], workload["key"]["max_heap_bytes"].as_u64().expect("known"));
    let base = limit["base_bytes"].as_u64().expect("known");
    let parts = limit["peak"]["parts"].as_array().expect("parts");
    assert!(base > 10 << 20 && !parts.is_empty(), "{source}: {limit:#}");
    assert!(limit["limit_bytes"].as_u64() > Some(heap + base), "{source}: {limit:#}");
}

/// A bucket that answers each request in its turn, and what was put into it.
fn bucket(answers: Vec<&'static str>) -> (u16, std::thread::JoinHandle<Vec<(String, usize)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let serving = std::thread::spawn(move || {
        let mut put = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a client");
            let (head, body) = request(&mut stream);
            assert!(head.contains("AWS4-HMAC-SHA256 Credential=key/"), "{head}");
            assert!(!head.contains("hidden"), "the secret stays here");
            assert!(body.starts_with(b"PAR1") && body.ends_with(b"PAR1"), "whole files only");
            put.push((head.split(' ').nth(1).expect("a path").to_string(), body.len()));
            stream.write_all(answer.as_bytes()).expect("sent");
        }
        put
    });
    (port, serving)
}

/// Head and body.
pub fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let (head, length) = head(&mut reader);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    (head, body)
}

/// And the length of the body that follows.
pub fn head(reader: &mut BufReader<&mut TcpStream>) -> (String, usize) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).expect("a request") > 0, "{head}");
    }
    let lower = head.to_lowercase();
    let length = lower.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    (head, length.expect("a length"))
}

#[test]
fn a_bucket_gets_whole_signed_files_and_a_refusal_is_said() {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    const DENIED: &str =
        "HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n<Error><Code>AccessDenied</Code></Error>";
    const HALF: &str = "HTTP/1.1 200 OK\r\nContent-Le";
    let Some(jvm) = grow(&[]) else { return };
    let directory = Directory::new("bucket");
    let path = directory.file("a.marusa");
    let recorded = marusa(&["record", &jvm.pid.to_string(), "-o", &path, "--for", "2s", "--every", "200ms"]);
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let export = |port: u16| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
        command.args([
            "export",
            &path,
            "--layout",
            "hive",
            "--parquet",
            "s3://fleet/a b",
            "--cluster",
            "eu1",
        ]);
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "hidden");
        command.env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")).output().expect("it runs")
    };
    for (answer, said) in
        [(DENIED, "the service answers 403 AccessDenied"), (HALF, "cannot write s3://fleet/a b/v1/")]
    {
        let (port, serving) = bucket(vec![answer]);
        let output = export(port);
        serving.join().expect("served");
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{errors}");
        assert!(errors.contains(said) && !errors.contains("hidden"), "{errors}");
    }
    let (port, serving) = bucket(vec![OK; 6]);
    let output = export(port);
    let put = serving.join().expect("served");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        put.iter().all(|(path, _)| path.starts_with("/fleet/a%20b/v1/") && path.contains("/cluster%3Deu1/"))
    );
    assert!(put.iter().map(|(_, bytes)| bytes).sum::<usize>() > 5000, "{put:?}");
}
