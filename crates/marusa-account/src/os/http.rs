//! One page by HTTP: where programs give their figures. Without TLS, which such pages seldom have, and which would be most of
//! this program.

use super::budget;
use crate::base::redact;
use crate::base::{Gap, Known, Why};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Largest page that is read, in bytes.
const PAGE_BYTES_MAX: u64 = 64 << 20;
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Interval between checks for a pending signal to end, where those are blocked (`budget::is_signal_pending`).
const LOOK: Duration = Duration::from_millis(20);

/// The text at `url`.
pub fn get(url: &str) -> Known<String> {
    get_within(url, WAIT_MAX)
}

/// As `get`, of a page that may take its time. On a signal to end it returns at once and leaves the request to its
/// thread.
pub fn get_within(url: &str, limit: Duration) -> Known<String> {
    let (sender, page) = mpsc::sync_channel(1);
    let asked = url.to_string();
    let asking = std::thread::Builder::new().name("http".to_string());
    let failed = |why: Why, hint: &str| Gap::new(redact::url(url), why).hint(hint);
    let started = asking.spawn(move || sender.send(ask(&asked, limit)));
    started.map_err(|error| failed(Why::Gone, &error.to_string()))?;
    loop {
        match page.recv_timeout(LOOK) {
            Ok(page) => return page,
            Err(RecvTimeoutError::Timeout) if !budget::is_signal_pending() => {}
            Err(RecvTimeoutError::Timeout) => return Err(failed(Why::Interrupted, "the page had not come")),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(failed(Why::Gone, "the request was not finished"));
            }
        }
    }
}

fn ask(url: &str, limit: Duration) -> Known<String> {
    let agent = ureq::Agent::config_builder().timeout_global(Some(limit)).build().new_agent();
    let page = agent
        .get(url)
        .call()
        .and_then(|mut answer| answer.body_mut().with_config().limit(PAGE_BYTES_MAX).read_to_string());
    page.map_err(|error| {
        let why = if matches!(error, ureq::Error::BodyExceedsLimit(_)) { Why::OverLimit } else { Why::Gone };
        Gap::new(redact::url(url), why)
            .hint(format!("{error}; what needs https can be read by a command of yours"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_page_and_none() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/metrics", server.local_addr().expect("its address"));
        let serving = std::thread::spawn(move || {
            let (mut client, _) = server.accept().expect("a client");
            let mut asked = [0; 4096];
            let length = client.read(&mut asked).expect("a question");
            client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n").expect("answered");
            String::from_utf8_lossy(&asked[..length]).into_owned()
        });
        assert_eq!(get(&url), Ok("a 1\n".to_string()));
        assert!(serving.join().expect("served").starts_with("GET /metrics "));
        assert!(get(&url).is_err_and(|gap| gap.why == Why::Gone), "nobody listens any more");
        assert!(get("https://localhost/").is_err());
    }
}
