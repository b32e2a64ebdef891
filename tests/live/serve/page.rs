//! The page in a real browser, with the answers of a service that watches a real JVM: it fits all screens, everybody can use it, a
//! hostile name stays text, and one JVM's view opens.

use super::Service;
use crate::common::*;
use crate::report::browser::Browser;
use crate::report::fits::{assert_fits, axe};
use crate::report::{HOSTILE, NONCE};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

/// A browser that opens a file asks no service: what the service answered is in the file, with a hostile name instead of the
/// name of the JVM.
fn with_answers(serving: &Service, id: &str, hash: &str) -> String {
    let mut answers = serde_json::Map::new();
    for path in
        ["jvms".to_string(), "findings".to_string(), format!("history?jvm={id}"), format!("map?jvm={id}")]
    {
        let (status, body) = serving.page(&format!("/api/v1/{path}"));
        assert_eq!(status, 200, "{path}: {body}");
        answers.insert(format!("api/v1/{path}"), serde_json::from_str(&body).expect("JSON"));
    }
    for jvm in answers["api/v1/jvms"]["jvms"].as_array_mut().expect("a list") {
        if jvm["jvm_id"] == id {
            jvm["jvm"] = HOSTILE.into();
            jvm["findings"] = json!([{ "id": "thread-stacks", "level": "warn", "title": HOSTILE }]);
        }
    }
    let text = Value::Object(answers).to_string().replace('<', "\\u003c");
    let stub = format!(
        "<script>const answers = {text}; fetch = async (path) => ({{ ok: true, status: 200, json: async () => answers[path] }});\n\
         EventSource = class extends EventTarget {{}}; if ('{hash}') location.hash = '{hash}';</script></head>"
    );
    let (status, page) = serving.page("/");
    assert_eq!(status, 200);
    page.replacen("</head>", &stub, 1)
}

/// Once an account is there, and a moment after it.
fn id_of(serving: &Service, pid: i32) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let (_, body) = serving.page("/api/v1/jvms");
        let jvms: Value = serde_json::from_str(&body).expect("JSON");
        let jvm = jvms["jvms"].as_array().and_then(|all| all.iter().find(|jvm| jvm["pid"] == pid));
        if let Some(id) = jvm.and_then(|jvm| jvm["jvm_id"].as_str()) {
            let history = serving.json(&format!("/api/v1/history?jvm={id}"));
            let moments = history["moments"].as_array().expect("moments");
            let read = moments.iter().position(|moment| moment["areas"].is_array());
            // The page draws from the first account on.
            if read.is_some_and(|first| first + 1 < moments.len())
                && serving.page(&format!("/api/v1/map?jvm={id}")).0 == 200
            {
                return id.to_string();
            }
        }
        assert!(Instant::now() < until, "no account of {pid}: {body}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn the_page_of_a_node_fits_and_opens_a_jvm() {
    let (Some(browser), Some(axe)) = (Browser::find(), axe()) else { return };
    let load = ["heap=32m", "threads=5", "classes=50", "quiet=1"];
    let Some(jvm) = Jvm::under_load(&row("21", "g1"), &[], &load) else { return };
    let serving = Service::start(&[]);
    let id = id_of(&serving, jvm.pid);
    let (node, one) = (with_answers(&serving, &id, ""), with_answers(&serving, &id, &format!("#jvm={id}")));
    assert_fits(&browser, &axe, "node", &node);
    assert_fits(&browser, &axe, "node-jvm", &one);
    let facts = browser.facts("node-opens", &node, NONCE, include_str!("probe_node.js"));
    let value = &facts.value;
    assert_eq!(facts.console, Vec::<String>::new());
    assert_eq!(
        (&value["title"], &value["images"]),
        (&"JVMs of this node · marusa".into(), &0.into()),
        "{value}"
    );
    assert!(value["name"].as_str().is_some_and(|name| name.starts_with("</script><img")), "{value}");
    assert!(value["areas"].as_u64().is_some_and(|areas| areas > 5), "areas now: {value}");
    assert!(value["layers"].as_u64().is_some_and(|layers| layers > 5), "areas over time: {value}");
    assert!(value["threads"].as_u64().is_some_and(|threads| threads > 5), "{value}");
    assert_eq!(value["explains"], true, "{value}");
}

/// Passes on what a browser asks. The stream of events has no end, and the browser's clock would wait for it: it is not there.
fn without_events(port: u16) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("its address"));
    let answer = move |mut stream: TcpStream| -> std::io::Result<()> {
        let mut line = String::new();
        let mut reader = BufReader::new(stream.try_clone()?);
        reader.read_line(&mut line)?;
        let path = line.split(' ').nth(1).unwrap_or("/").to_string();
        while reader.read_line(&mut line)? > 2 {}
        if path.ends_with("/events") {
            return stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        }
        let mut service = TcpStream::connect(("127.0.0.1", port))?;
        write!(service, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
        let mut bytes = Vec::new();
        service.read_to_end(&mut bytes)?;
        stream.write_all(&bytes)
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A browser also opens connections that it does not use.
            std::thread::spawn(move || answer(stream));
        }
    });
    url
}

#[test]
fn a_browser_takes_the_page_by_the_hashes_of_its_styles_and_scripts() {
    let Some(browser) = Browser::find() else { return };
    let Some(jvm) = Jvm::under_load(&row("21", "g1"), &[], &["heap=32m", "threads=2", "quiet=1"]) else {
        return;
    };
    let serving = Service::start(&[]);
    let id = id_of(&serving, jvm.pid);
    let head = serving.head("/");
    let policy = head.lines().find(|line| line.starts_with("content-security-policy: ")).expect("a policy");
    assert!(policy.contains("'sha256-") && !policy.contains("unsafe"), "{policy}");
    let url = without_events(serving.port);
    for hash in [String::new(), format!("#jvm={id}")] {
        let (dom, console) = browser.visit("node-csp", &format!("{url}{hash}"));
        assert_eq!(console, Vec::<String>::new());
        assert!(dom.contains(&id) && dom.contains("Load"), "the script filled the page: {dom}");
        assert!(hash.is_empty() || dom.contains("<polygon"), "the view of a JVM is drawn");
    }
    // What is not of the page is not run.
    let (_, page) = serving.page("/");
    let other = page.replacen("</body>", "<script>document.title = 'hacked';</script></body>", 1);
    assert_ne!(page, other);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("its address"));
    let answer =
        format!("HTTP/1.1 200 OK\r\n{policy}\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n{other}");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut line = String::new();
                let mut reader = BufReader::new(stream);
                while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {}
                reader.get_mut().write_all(answer.as_bytes())
            });
        }
    });
    let (dom, console) = browser.visit("node-hacked", &url);
    assert!(
        !dom.contains("<title>hacked") && console.iter().any(|line| line.contains("Content Security Policy"))
    );
}
