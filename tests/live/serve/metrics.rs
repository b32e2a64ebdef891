//! What a scrape and the API say of a JVM.

use super::survival::until;
use super::*;
use flate2::read::GzDecoder;

/// Samples of one metric whose labels contain `of`.
fn samples(text: &str, metric: &str, of: &str) -> Vec<f64> {
    let is_meant = |line: &&str| line.starts_with(&format!("{metric}{{")) && line.contains(of);
    text.lines()
        .filter(is_meant)
        .map(|line| line.rsplit(' ').next().expect("a value").parse().expect("a number"))
        .collect()
}

#[test]
fn a_scrape_and_the_documents_say_what_map_says() {
    let Some(java) = java("21") else { return };
    let jvm = Jvm::start(&java, &["-Xmx96m", "-Xlog:disable"], &["marusa.Steady"]);
    let service = Service::start(&[]);
    let row = service.jvm(jvm.pid);
    assert_eq!(service.text("/-/healthy"), "healthy\n");
    until("all JVMs are listed", || {
        (service.get("/-/ready", "") == (200, b"ready\n".to_vec())).then_some(())
    });
    let (id, name) = (row["jvm_id"].as_str().expect("an id"), row["jvm"].as_str().expect("a name"));
    assert!(name.starts_with("Steady") && id.len() == 32, "{row}");

    let text = service.text("/metrics");
    let of_it =
        text.lines().find(|line| line.starts_with("marusa_jvm_info{") && line.contains(id)).expect("a line");
    let labels =
        of_it.split_once(",jvm_id").expect("the id").0.split_once('{').expect("labels").1.to_string();
    let areas: f64 = samples(&text, "marusa_jvm_memory_resident_bytes", &labels).iter().sum();
    let kernel = samples(&text, "marusa_jvm_kernel_resident_bytes", &labels)[0];
    assert!(areas > 20e6 && (areas - kernel).abs() < kernel * 0.2, "{areas} {kernel}");
    assert_eq!(samples(&text, "marusa_jvm_heap_max_bytes", &labels), [96.0 * 1024.0 * 1024.0]);
    assert!(samples(&text, "marusa_jvm_threads", &labels)[0] > 5.0);
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let pid = format!("\"{}\"", jvm.pid);
    assert!(lines.all(|line| !line.contains("Xmx") && !line.contains(&pid)), "no arguments, no pids");
    let (status, open) = service.get("/metrics", "Accept: application/openmetrics-text;version=1.0.0\r\n");
    assert!(status == 200 && open.ends_with(b"# EOF\n"));

    let map = service.json(&format!("/api/v1/map?jvm={id}"));
    assert_eq!((&map["schema"], &map["process"]["pid"]), (&"marusa/map/2".into(), &jvm.pid.into()));
    let (_, packed) = service.get(&format!("/api/v1/map?jvm={id}"), "Accept-Encoding: gzip\r\n");
    let packed: serde_json::Value =
        serde_json::from_reader(GzDecoder::new(&packed[..])).expect("gzip of JSON");
    assert_eq!(packed["schema"], map["schema"]);
    let history = service.json(&format!("/api/v1/history?jvm={id}"));
    assert!(history["moments"].as_array().is_some_and(|moments| !moments.is_empty()), "{history}");
    assert!(service.json("/api/v1/findings")["jvms"].is_array());

    let pid = jvm.pid;
    drop(jvm);
    let until = Instant::now() + Duration::from_secs(60);
    while !service.json("/api/v1/jvms")["ended"].as_array().expect("rows").iter().any(|row| row["pid"] == pid)
    {
        assert!(Instant::now() < until, "it ended, and nobody says so");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(!service.text("/metrics").contains(id), "one that is gone has no series");
}

#[test]
fn clients_that_are_slow_or_wrong_get_an_answer_or_are_let_go() {
    let service = Service::start(&[]);
    // They hold their connections and say nothing, or never end a head, or never read.
    let mut silent: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(("127.0.0.1", service.port)).expect("it listens")).collect();
    silent.iter_mut().take(30).for_each(|stream| stream.write_all(b"GET /metrics HTT").expect("sent"));
    silent.iter_mut().skip(30).take(30).for_each(|stream| {
        stream.write_all(b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    });
    for (request, status) in [
        ("POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 405),
        ("GET /api/v1/map HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400),
        ("GET /api/v1/map?jvm=../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400),
        ("GET /api/v1/history?jvm=0123 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404),
        ("GET /../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404),
        ("GET / HTTP/9.9\r\n\r\n", 400),
    ] {
        assert_eq!(service.send(request).0, status, "{request}");
    }
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    // Whether its end is read before the connection is closed is a matter of luck.
    let mut stream = TcpStream::connect(("127.0.0.1", service.port)).expect("it listens");
    let _ = stream.write_all(long.as_bytes());
    assert_eq!(service.get("/-/healthy", "").0, 200);
    assert!(service.text("/metrics").contains("marusa_http_requests_total{code=\"405\"} 1"));
}

#[test]
fn a_port_in_use_and_a_wrong_address_are_said() {
    let service = Service::start(&[]);
    let taken = format!("127.0.0.1:{}", service.port);
    let output = marusa(&["serve", "--listen", &taken]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains(&format!("cannot listen on {taken}: ")),
        "{}",
        text(&output.stderr)
    );
}
