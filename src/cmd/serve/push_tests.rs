use super::*;
use crate::serve::node::Limits;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A back end that is up or down; the bodies that it took, in order.
struct BackEnd {
    url: String,
    is_up: AtomicBool,
    refusals: Mutex<usize>,
    came: Mutex<Vec<Vec<u8>>>,
    answer: Vec<u8>,
}

impl BackEnd {
    fn start(answer: &[u8]) -> Arc<BackEnd> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let back_end = Arc::new(BackEnd {
            url: format!("http://{}/v1/metrics", listener.local_addr().expect("its address")),
            is_up: AtomicBool::new(false),
            refusals: Mutex::default(),
            came: Mutex::default(),
            answer: answer.to_vec(),
        });
        let server = back_end.clone();
        std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| server.answer(stream)));
        back_end
    }

    fn answer(&self, stream: std::net::TcpStream) {
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
            let lower = line.to_ascii_lowercase();
            length = lower
                .strip_prefix("content-length: ")
                .map_or(length, |it| it.trim().parse().expect("a number"));
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let (status, answer) = match self.is_up.load(Ordering::Relaxed) {
            true => ("200 OK", &self.answer[..]),
            false => ("503 Service Unavailable\r\nRetry-After: 0", &[][..]),
        };
        if answer.is_empty() && status.starts_with("503") {
            *self.refusals.lock().expect("ours") += 1;
        } else {
            self.came.lock().expect("ours").push(body);
        }
        let head =
            format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", answer.len());
        let _ = reader.get_mut().write_all(&[head.as_bytes(), answer].concat());
    }
}

fn node() -> Arc<Node> {
    let (min_age, every) = (Duration::ZERO, Duration::from_secs(10));
    let node = Node::new(Limits { min_age, every, memory_bytes: 0 });
    node.state().own.otlp = OUTCOMES.map(|outcome| (outcome, 0)).to_vec();
    Arc::new(node)
}

fn counted(node: &Node, outcome: &str) -> u64 {
    node.state().own.otlp.iter().find(|(name, _)| *name == outcome).expect("an outcome").1
}

fn until(what: &str, is: impl Fn() -> bool) {
    let started = Instant::now();
    while !is() {
        assert!(started.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// 360 pushes while it is down: what the queue has room for arrives in order, and what does not is counted.
#[test]
fn an_hour_without_a_back_end() {
    // PartialSuccess of field 1: two rejected data points, and why.
    let back_end = BackEnd::start(b"\x0a\x06\x08\x02\x12\x02no");
    let (node, queue) = (node(), Arc::new(Queue::new(1 << 20)));
    let settings = Settings::of(Some(&back_end.url), &|_| None).expect("read").expect("on");
    let (sent, counts) = (queue.clone(), node.clone());
    let sender = std::thread::spawn(move || send(&sent, &counts, &settings));
    for number in 0..360_u32 {
        let mut request = vec![0; 10_000];
        request[..4].copy_from_slice(&number.to_le_bytes());
        add(&queue, &node, request);
    }
    until("it is asked while it is down", || *back_end.refusals.lock().expect("ours") > 1);
    back_end.is_up.store(true, Ordering::Relaxed);
    // A refusal that is still on its way would be the last attempt of a queue that is closed.
    until("it takes one", || !back_end.came.lock().expect("ours").is_empty());
    assert_eq!(queue.close(Duration::from_secs(120)), 0);
    sender.join().expect("it ends");
    let dropped = counted(&node, "dropped") as u32;
    let came = back_end.came.lock().expect("ours");
    let came: Vec<u32> =
        came.iter().map(|body| u32::from_le_bytes(body[..4].try_into().expect("four"))).collect();
    assert_eq!(came, (dropped..360).collect::<Vec<_>>());
    assert!(dropped > 200 && counted(&node, "failed") > 1);
    assert_eq!(counted(&node, "accepted"), came.len() as u64);
    assert_eq!(node.state().own.otlp_rejected, Some(2 * came.len() as u64));
}

#[test]
fn which_answers_are_tried_again() {
    let accepted = || Outcome::Accepted(Rejected::default());
    let of = |status: u16, after: &str| {
        let answer = Response::builder().status(status).header("Retry-After", after);
        judged(&answer.body(()).expect("an answer"), b"")
    };
    assert_eq!((of(200, ""), of(202, "")), (accepted(), accepted()));
    for status in [429, 502, 503, 504] {
        let Outcome::Failed(_, after) = of(status, "7") else { panic!("{status}") };
        assert_eq!(after, Some(Duration::from_secs(7)));
    }
    assert!(matches!(of(503, "Wed, 21 Oct 2026 07:28:00 GMT"), Outcome::Failed(_, None)));
    for status in [301, 400, 401, 404, 413, 500] {
        assert!(matches!(of(status, ""), Outcome::Refused(_)), "{status}");
    }
}

#[test]
fn pauses_grow_to_an_end() {
    assert!(pause(0, None) <= BACK_OFF.0 && pause(0, None) >= BACK_OFF.0 / 2);
    assert!(pause(40, None) <= BACK_OFF.1 && pause(40, None) >= BACK_OFF.1 / 2);
    assert_eq!(pause(0, Some(Duration::from_secs(90))), Duration::from_secs(90));
    assert_eq!(pause(0, Some(Duration::from_secs(1 << 40))), RETRY_AFTER_MAX);
}
