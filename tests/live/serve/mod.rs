//! `marusa serve` on real JVMs: what it answers, and its page in a real browser.

mod page;

use crate::common::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A running service. It ends with the value.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(more: &[&str]) -> Serving {
        let mut child = Command::new(env!("CARGO_BIN_EXE_marusa"))
            .args(["serve", "--listen", "127.0.0.1:0", "--min-age", "1ms", "--every", "500ms"])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let address = lines
            .find_map(|line| line.split_once("listening on http://").map(|(_, address)| address.to_string()))
            .expect("it says where it listens");
        // Else the pipe fills.
        std::thread::spawn(move || lines.for_each(drop));
        Serving { child, address }
    }

    /// The status and the body.
    fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)
            .expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("answered");
        let answer = text(&bytes);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
        (status, body.to_string())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
