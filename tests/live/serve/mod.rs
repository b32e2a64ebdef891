//! `marusa serve` next to real JVMs.

mod engines;
mod mayflies;
mod metrics;
mod otlp;
mod otlp_tls;
mod page;
mod store;
mod store_faults;
mod survival;
mod web_config;

use crate::common::*;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A service on a free port.
pub struct Service {
    child: Child,
    said: Arc<Mutex<String>>,
    pub port: u16,
    pub scheme: String,
}

impl Service {
    pub fn start(arguments: &[&str]) -> Service {
        Service::with(arguments, &[])
    }

    /// With variables of the environment.
    pub fn with(arguments: &[&str], variables: &[(&str, &str)]) -> Service {
        let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--min-age", "0s", "--account-every", "1s"]);
        if !arguments.contains(&"--every") {
            command.args(["--every", "500ms"]);
        }
        if !arguments.contains(&"--cpu") {
            command.args(["--cpu", "200"]);
        }
        command.args(arguments).envs(variables.iter().copied()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("marusa runs");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let said = Arc::new(Mutex::new(String::new()));
        let hear = |said: &Mutex<String>, line: &str| *said.lock().expect("ours") += &format!("{line}\n");
        let url = lines.by_ref().map_while(Result::ok).find_map(|line| {
            hear(&said, &line);
            line.split_once("listening on ").map(|(_, url)| url.to_string())
        });
        let heard = said.clone();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| hear(&heard, &line)));
        let url = url.expect("it listens");
        let (scheme, address) = url.split_once("://").expect("a URL");
        let port = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        Service { child, said, port, scheme: scheme.to_string() }
    }

    /// What it has written to standard error.
    pub fn said(&self) -> String {
        self.said.lock().expect("ours").clone()
    }

    /// Status and body.
    pub fn get(&self, path: &str, headers: &str) -> (u16, Vec<u8>) {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n"))
    }

    pub fn send(&self, request: &str) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("ours");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let head = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let status = String::from_utf8_lossy(&answer[9..12]).parse().expect("a status");
        (status, answer.split_off(head + 4))
    }

    /// The lines before the body.
    pub fn head(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        text(&answer).split("\r\n\r\n").next().expect("a head").to_string()
    }

    /// Status and text.
    pub fn page(&self, path: &str) -> (u16, String) {
        let (status, body) = self.get(path, "");
        (status, text(&body))
    }

    pub fn text(&self, path: &str) -> String {
        let (status, body) = self.get(path, "");
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        String::from_utf8(body).expect("text")
    }

    pub fn json(&self, path: &str) -> serde_json::Value {
        serde_json::from_str(&self.text(path)).expect("JSON")
    }

    /// The row of `/api/v1/jvms` of a JVM whose account was read.
    pub fn jvm(&self, pid: i32) -> serde_json::Value {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let jvms = self.json("/api/v1/jvms");
            let rows = jvms["jvms"].as_array().expect("rows");
            let row = rows.iter().find(|row| row["pid"] == pid && !row["account_age_seconds"].is_null());
            if let Some(row) = row {
                return row.clone();
            }
            assert!(Instant::now() < until, "{jvms}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("marusa-serve-{}-{name}", std::process::id()));
    fs::create_dir_all(&path).expect("ours");
    path
}

fn openssl(directory: &Path, arguments: &[&str]) {
    let made = Command::new("openssl").args(arguments).current_dir(directory).stderr(Stdio::null()).status();
    assert!(made.is_ok_and(|status| status.success()), "openssl {arguments:?}");
}

/// NAME.crt and NAME.key, for localhost: signed by itself unless the options name another certificate.
fn certificate(directory: &Path, name: &str, options: &[&str]) {
    let (key, crt, subject) = (format!("{name}.key"), format!("{name}.crt"), format!("/CN={name}"));
    let fixed = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 \
                 -addext subjectAltName=DNS:localhost";
    let mut arguments: Vec<&str> =
        fixed.split_whitespace().chain(["-subj", &subject, "-keyout", &key, "-out", &crt]).collect();
    arguments.extend(options);
    openssl(directory, &arguments);
}

const OF_NOBODY_ELSE: [&str; 2] = ["-addext", "basicConstraints=CA:FALSE"];
