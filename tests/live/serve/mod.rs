//! `marusa serve` on real JVMs: what it answers, and what it pushes.

mod otlp;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A service at work, ended when dropped.
pub struct Serve {
    child: Child,
    /// "127.0.0.1:40123".
    pub address: String,
}

impl Serve {
    pub fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Serve {
        let mut command = Command::new(env!("CARGO_BIN_EXE_marusa"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--min-age", "1ms", "--every", "500ms"]);
        command.args(arguments).envs(variables.iter().copied()).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("marusa runs");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.split_once("listening on http://")?.1.to_string()));
        std::thread::spawn(move || lines.count());
        Serve { child, address: address.expect("it listens") }
    }

    /// The body of an answer.
    pub fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer.split_once("\r\n\r\n").expect("a head").1.to_string()
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
