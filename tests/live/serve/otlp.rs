//! A back end that refuses, asks for patience, says nothing and then accepts: each answer is counted, and what it did not refuse
//! arrives.

use super::Service;
use crate::common::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const WAIT_MAX: Duration = Duration::from_secs(120);

/// Bodies in the order in which they came. Connections that follow the first three are answered with 200.
fn back_end() -> (String, Arc<Mutex<Vec<Vec<u8>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let came = Arc::new(Mutex::new(Vec::new()));
    let bodies = came.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.expect("a client"));
            let mut head = Vec::new();
            while !head.last().is_some_and(String::is_empty) {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a head");
                head.push(line.trim_end().to_ascii_lowercase());
            }
            assert!(head[0].starts_with("post /v1/metrics "), "{head:?}");
            for wanted in ["content-type: application/x-protobuf", "x-token: a,b"] {
                assert!(head.iter().any(|line| line == wanted), "no {wanted} in {head:?}");
            }
            let length =
                head.iter().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
            let mut body = vec![0; length.parse().expect("a number")];
            reader.read_exact(&mut body).expect("a body");
            let answer = match bodies.lock().expect("ours").len() {
                0 => "401 Unauthorized\r\n",
                1 => "503 Service Unavailable\r\nRetry-After: 1\r\n",
                2 => "",
                _ => "200 OK\r\n",
            };
            bodies.lock().expect("ours").push(body);
            if !answer.is_empty() {
                let text = format!("HTTP/1.1 {answer}Content-Length: 0\r\nConnection: close\r\n\r\n");
                let _ = reader.into_inner().write_all(text.as_bytes());
            }
        }
    });
    (url, came)
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

/// The values of one field that are messages or text.
fn all(mut bytes: &[u8], field: u64) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let length = match key & 7 {
            0 => {
                varint(&mut bytes);
                continue;
            }
            1 => 8,
            2 => varint(&mut bytes) as usize,
            other => panic!("wire type {other}"),
        };
        let (value, rest) = bytes.split_at(length);
        if key == field << 3 | 2 {
            found.push(value);
        }
        bytes = rest;
    }
    found
}

/// The process.pid of each resource, with the names of its metrics.
fn resources(body: &[u8]) -> Vec<(Option<u64>, Vec<String>)> {
    let pid = |resource: &[u8]| {
        let attributes = all(all(resource, 1)[0], 1);
        let pid = attributes.into_iter().find(|pair| all(pair, 1)[0] == b"process.pid")?;
        // AnyValue.int_value.
        Some(varint(&mut &all(pid, 2)[0][1..]))
    };
    let names = |resource: &[u8]| {
        all(all(resource, 2)[0], 2).into_iter().map(|metric| text(all(metric, 1)[0])).collect()
    };
    all(body, 1).into_iter().map(|resource| (pid(resource), names(resource))).collect()
}

#[test]
fn a_back_end_that_refuses_fails_and_accepts() {
    let Some(java) = java("17") else { return };
    let jvm = Jvm::start(&java, &["-Xmx64m", "-XX:+UseSerialGC"], &["marusa.Grow"]);
    let (url, came) = back_end();
    let serve = Service::with(&["--otlp", &url], &[("OTEL_EXPORTER_OTLP_HEADERS", "x-token=a%2Cb")]);
    let of_jvm = |body: &[u8]| {
        let found = resources(body);
        assert!(
            found.iter().filter(|(pid, _)| *pid == Some(jvm.pid as u64)).count() <= 1,
            "one for each JVM"
        );
        found.into_iter().find(|(pid, _)| *pid == Some(jvm.pid as u64)).map(|(_, names)| names)
    };
    let started = Instant::now();
    let has_areas = || {
        let bodies = came.lock().expect("ours");
        bodies.last().and_then(|body| of_jvm(body)).is_some_and(|names| {
            ["marusa.jvm.memory.resident", "marusa.jvm.kernel.resident", "marusa.jvm.info"]
                .iter()
                .all(|wanted| names.iter().any(|name| name == wanted))
        })
    };
    while came.lock().expect("ours").len() < 6 || !has_areas() {
        assert!(started.elapsed() < WAIT_MAX, "no account was pushed");
        std::thread::sleep(Duration::from_millis(50));
    }
    let bodies = came.lock().expect("ours").clone();
    assert!(bodies[0] != bodies[1], "what was refused is not sent again");
    assert!(bodies[1] == bodies[2] && bodies[2] == bodies[3], "what failed is sent again");
    assert!(bodies[3] != bodies[4] && bodies[4] != bodies[5]);
    let metrics = serve.text("/metrics");
    for (outcome, count) in [("refused", 1), ("failed", 2), ("dropped", 0)] {
        let line = format!("marusa_otlp_requests_total{{outcome=\"{outcome}\"}} {count}\n");
        assert!(metrics.contains(&line), "no {line} in {metrics}");
    }
    let accepted = metrics
        .lines()
        .find_map(|line| line.strip_prefix("marusa_otlp_requests_total{outcome=\"accepted\"} "));
    // The last answer may not be counted yet.
    assert!(
        accepted.is_some_and(|count| count.parse::<usize>().is_ok_and(|count| count + 4 >= bodies.len()))
    );
}
