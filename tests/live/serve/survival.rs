//! What a service outlives: its own death in the middle of a write, more JVMs than were asked for, and thousands of clients that mean it ill.

use super::*;
use crate::record::{Directory, of};
use std::fs;
use std::io::ErrorKind;
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};

const PATIENCE: Duration = Duration::from_secs(120);
/// What the service keeps open of JVMs that other tests start at the same time, at most.
pub const FILES_OF_OTHERS: usize = 50;

pub fn until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(done) = done() {
            return done;
        }
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub fn grow(options: &[&str]) -> Option<Jvm> {
    let java = java("17")?;
    Some(Jvm::start(&java, &[&["-Xmx32m", "-XX:+UseSerialGC"], options].concat(), &["marusa.Grow"]))
}

/// The value of a sample without labels, or with these.
fn value(text: &str, sample: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
}

/// `None`: nothing is counted yet.
fn state(service: &Service, state: &str) -> Option<usize> {
    Some(value(&service.text("/metrics"), &format!("marusa_jvms{{state=\"{state}\"}}"))? as usize)
}

/// When samples of one JVM were taken, as a recording has them.
fn moments(path: &str, pid: i32) -> Vec<String> {
    let output = marusa(&["export", path, "--json-lines", "-"]);
    if !output.status.success() {
        assert!(text(&output.stderr).contains("no JVM is in it"), "{}", text(&output.stderr));
        return Vec::new();
    }
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of_it = of(&lines, "process").into_iter().filter(|line| line["pid"] == pid);
    let mut times: Vec<String> = of_it.map(|line| line["time"].to_string()).collect();
    times.sort();
    times
}

#[test]
fn one_that_is_killed_while_it_writes_goes_on_with_its_file() {
    let Some(jvm) = grow(&[]) else { return };
    let directory = Directory::new("serve-killed");
    let path = directory.file("node.marusa");
    let arguments = ["--output", &path, "--keep", "24h", "--every", "20ms"];
    let mut before = Vec::new();
    for _ in 0..3 {
        let mut service = Service::start(&arguments);
        // It writes every few milliseconds: wherever in a round it is hit, what was written before is whole.
        let seen = until("it records", || {
            let seen = moments(&path, jvm.pid);
            (seen.len() >= before.len() + 20).then_some(seen)
        });
        service.child.kill().expect("ours");
        service.child.wait().expect("ours");
        let after = moments(&path, jvm.pid);
        assert!(seen.starts_with(&before), "what an earlier service wrote is there");
        assert!(after.starts_with(&seen), "nothing that was written is lost");
        before = after;
    }
    // Torn, as where the kernel had a part of the last write only.
    let bytes = fs::read(&path).expect("a file");
    fs::write(&path, &bytes[..bytes.len() - 5]).expect("ours");
    let whole = moments(&path, jvm.pid);
    assert!(
        before.starts_with(&whole) && whole.len() + 10 > before.len(),
        "{} {}",
        before.len(),
        whole.len()
    );
    let _service = Service::start(&arguments);
    let after = until("it records again", || {
        let seen = moments(&path, jvm.pid);
        (seen.len() > whole.len() + 5).then_some(seen)
    });
    assert!(after.starts_with(&whole));
    let leak = marusa(&["leak", &path, "--jvm", &jvm.pid.to_string(), "--json"]);
    assert!(leak.status.success(), "{}", text(&leak.stderr));
}

#[test]
fn no_more_jvms_are_shown_than_were_asked_for_and_the_rest_is_counted() {
    let mut jvms = Vec::new();
    for _ in 0..3 {
        let Some(jvm) = grow(&[]) else { return };
        jvms.push(jvm);
    }
    let service = Service::start(&["--jvms-max", "2"]);
    until("one is left out", || state(&service, "left_out").filter(|count| *count >= 1));
    assert_eq!(state(&service, "shown"), Some(2));
    let text = service.text("/metrics");
    assert_eq!(text.matches("\nmarusa_jvm_info{").count(), 2);
    // One that was left out comes into the place of one that ends.
    let pids = |service: &Service| -> Vec<i64> {
        let document = service.json("/api/v1/jvms");
        document["jvms"].as_array().expect("rows").iter().filter_map(|row| row["pid"].as_i64()).collect()
    };
    let shown = pids(&service);
    let Some(index) = jvms.iter().position(|jvm| shown.contains(&i64::from(jvm.pid))) else {
        return skip("other JVMs of this host took both places");
    };
    let ended = i64::from(jvms.remove(index).pid);
    until("another takes its place", || {
        let shown = pids(&service);
        (shown.len() == 2 && !shown.contains(&ended)).then_some(())
    });
}

/// What our own process has: resident bytes and open files.
pub fn own(service: &Service) -> (u64, usize) {
    let pid = service.child.id();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    (
        kib.map(|kib: u64| kib << 10).expect("VmRSS"),
        fs::read_dir(format!("/proc/{pid}/fd")).expect("ours").count(),
    )
}

/// What a client that means it ill does with its connection. An error: it was let go before its time, which is as well.
fn attack(service: &Service, kind: usize) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", service.port))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    match kind % 6 {
        // Half a request, and gone.
        0 => stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: tex")?,
        // TLS where there is none, or noise.
        1 => stream
            .write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\xff\xfe\x80GET / HTTP\r\n\r\n")?,
        // Asks, and does not wait for the answer.
        2 => stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")?,
        // A head without an end.
        3 => stream.write_all(&[b"GET / HTTP/1.1\r\nX: ".to_vec(), vec![b'x'; 1 << 20]].concat())?,
        // A body that never comes.
        4 => stream.write_all(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\nx")?,
        // An answer that is not read to its end.
        _ => {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")?;
            stream.read_exact(&mut [0; 16])?;
        }
    }
    stream.shutdown(Shutdown::Write)?;
    Ok(stream)
}

/// `count` requests in one connection, sent before the first answer is read; the number of answers.
fn pipelined(service: &Service, count: usize) -> usize {
    let mut stream = TcpStream::connect(("127.0.0.1", service.port)).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("ours");
    let one = "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n".repeat(count - 1);
    let last = "GET /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let mut sends = stream.try_clone().expect("ours");
    let sender = std::thread::spawn(move || sends.write_all(format!("{one}{last}").as_bytes()));
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).expect("answers");
    sender.join().expect("ours").expect("sent");
    text(&answers).matches("HTTP/1.1 200 OK").count()
}

#[test]
fn ten_thousand_requests_of_bad_clients_leave_nothing_behind() {
    let service = Service::start(&[]);
    until("it is ready", || (service.get("/-/ready", "").0 == 200).then_some(()));
    let before = own(&service);
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for of_thread in 0..4 {
            let (service, answered) = (&service, &answered);
            scope.spawn(move || {
                for round in 0..10 {
                    answered.fetch_add(pipelined(service, 250), Ordering::Relaxed);
                    for kind in 0..30 {
                        // It may close while the client still sends.
                        if let Err(error) = attack(service, kind + of_thread) {
                            let kinds =
                                [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset, ErrorKind::NotConnected];
                            assert!(kinds.contains(&error.kind()), "{kind} in round {round}: {error}");
                        }
                    }
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..20 {
                assert!(service.text("/metrics").contains("process_open_fds"), "a scrape works all the time");
            }
        });
    });
    assert_eq!(answered.load(Ordering::Relaxed), 10_000);
    until("all connections are closed", || (own(&service).1 < before.1 + FILES_OF_OTHERS).then_some(()));
    let after = own(&service);
    assert!(after.0 < before.0 + (48 << 20), "{before:?} {after:?}");
    assert!(
        value(&service.text("/metrics"), "marusa_http_requests_total{code=\"200\"}")
            .is_some_and(|it| it > 10_000.0)
    );
}

#[test]
fn handshakes_that_fail_leave_nothing_behind() {
    let at = directory("garbage");
    certificate(&at, "server", &OF_NOBODY_ELSE);
    let path = at.join("web.yml").display().to_string();
    fs::write(&path, "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n").expect("ours");
    let service = Service::start(&["--web-config", &path]);
    let scrape = || {
        let mut curl = Command::new("curl");
        curl.args(["-s", "--max-time", "60", "--cacert", &at.join("server.crt").display().to_string()]);
        let output = curl.arg(format!("https://localhost:{}/metrics", service.port)).output();
        text(&output.expect("curl runs").stdout).contains("process_open_fds")
    };
    assert!(scrape());
    let before = own(&service);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for kind in 0..250 {
                    // More at once than wait in the kernel's queue would try again after a second.
                    let _ = attack(&service, kind).and_then(|mut stream| stream.read_to_end(&mut Vec::new()));
                }
            });
        }
        scope.spawn(|| (0..3).for_each(|_| assert!(scrape(), "a scrape works all the time")));
    });
    until("all connections are closed", || (own(&service).1 < before.1 + FILES_OF_OTHERS).then_some(()));
    let after = own(&service);
    assert!(after.0 < before.0 + (48 << 20), "{before:?} {after:?}");
    fs::remove_dir_all(&at).expect("ours");
}

/// The last figures are pushed when it is asked to end, and a back end that does not answer does not keep it.
#[test]
fn the_end_is_pushed_too() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let mut service = Service::start(&["--otlp", &url, "--otlp-every", "1h"]);
    until("it is ready", || (service.get("/-/ready", "").0 == 200).then_some(()));
    signal(service.child.id() as i32, libc::SIGTERM);
    let (mut stream, _) = listener.accept().expect("a push");
    let mut start = [0; 16];
    stream.read_exact(&mut start).expect("a request");
    assert_eq!(&start, b"POST /v1/metrics");
    let status = until("it ends without an answer", || service.child.try_wait().expect("ours"));
    assert!(status.success(), "{status}");
}
