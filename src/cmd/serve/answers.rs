//! What is answered to which path. Everything comes from the node's state; the documents are those of `--json`.

use super::tls;
use crate::cmd::web;
use crate::serve::node::Node;
use crate::serve::openmetrics::{self, Form};
use crate::show::serve::{self as documents, FindingsDocument, HistoryDocument, JvmsDocument};
use bytes::Bytes;
use flate2::read::GzDecoder;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use std::io::Read;

/// On every answer.
const HEADERS: [(HeaderName, &str); 4] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];

/// The page, and the headers of all answers.
pub struct Fixed {
    page: Bytes,
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl Fixed {
    /// The page has its styles and scripts in itself: a browser takes those with these hashes and no others (Content Security
    /// Policy Level 3, section 6.7.3), and asks nobody but this service.
    pub fn new() -> Fixed {
        let page = crate::show::html::node::page();
        let policy = format!(
            "default-src 'none'; style-src {}; script-src {}; connect-src 'self'; img-src data:; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'",
            tls::source_of(&page.style),
            page.scripts.map(tls::source_of).join(" ")
        );
        let headers = HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value)));
        // Words and Base64 are a header that HTTP allows.
        let policy = HeaderValue::try_from(policy).ok().map(|policy| (CONTENT_SECURITY_POLICY, policy));
        Fixed { page: page.html.into(), headers: headers.into_iter().chain(policy).collect() }
    }
}

/// A smaller answer is not worth packing.
const PACKED_BYTES_MIN: usize = 4 << 10;
/// An account's document, unpacked for a client that does not take gzip.
const DOCUMENT_BYTES_MAX: u64 = 256 << 20;

const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=utf-8";
pub const TEXT: &str = "text/plain; charset=utf-8";

pub struct Asked<'a> {
    pub path: &'a str,
    pub query: &'a str,
    pub accept: &'a str,
    pub takes_gzip: bool,
}

pub struct Answer {
    pub status: u16,
    pub content_type: &'static str,
    pub bytes: Bytes,
    pub is_gzip: bool,
}

/// Paths that a load balancer asks without being anybody.
pub fn is_health(path: &str) -> bool {
    matches!(path, "/-/healthy" | "/-/ready")
}

pub fn to(node: &Node, fixed: &Fixed, asked: &Asked) -> Answer {
    match asked.path {
        "/" => packed(200, HTML, fixed.page.clone(), asked),
        "/metrics" => {
            let form = Form::accepted(asked.accept);
            let text = openmetrics::text(node, &node.state(), form);
            packed(200, form.content_type(), text.into(), asked)
        }
        "/-/healthy" => plain(200, "healthy\n"),
        "/-/ready" if node.state().is_ready() => plain(200, "ready\n"),
        "/-/ready" => plain(503, "the JVMs of this host are not listed yet\n"),
        "/api/v1/jvms" => json(&JvmsDocument::of(node, &node.state()), asked),
        "/api/v1/findings" => json(&FindingsDocument::of(node, &node.state()), asked),
        "/api/v1/history" => match jvm_of(asked.query) {
            None => plain(400, "name a JVM: /api/v1/history?jvm=JVM_ID\n"),
            Some(id) => match HistoryDocument::of(&node.state(), &id) {
                Some(document) => json(&document, asked),
                None => plain(404, "no JVM of this node has that id; /api/v1/jvms lists them\n"),
            },
        },
        "/api/v1/map" => match jvm_of(asked.query) {
            None => plain(400, "name a JVM: /api/v1/map?jvm=JVM_ID\n"),
            Some(id) => account(node, &id, asked),
        },
        _ => plain(
            404,
            "no such path; there are /, /metrics, /-/healthy, /-/ready and /api/v1/{jvms,map,findings,history,events}\n",
        ),
    }
}

/// The last account, as it was packed when it was read.
fn account(node: &Node, id: &str, asked: &Asked) -> Answer {
    let state = node.state();
    let Some(jvm) = documents::jvm(&state, id) else {
        return plain(404, "no JVM of this node has that id; /api/v1/jvms lists them\n");
    };
    let Some(packed) = jvm.account().and_then(|account| account.document.clone()) else {
        let why = jvm
            .unread
            .clone()
            .unwrap_or_else(|| "none was read yet, or --memory has no room for it".to_string());
        return plain(503, &format!("no account of this JVM: {why}\n"));
    };
    drop(state);
    if asked.takes_gzip {
        return Answer {
            status: 200,
            content_type: JSON,
            bytes: Bytes::copy_from_slice(&packed),
            is_gzip: true,
        };
    }
    let mut bytes = Vec::new();
    match GzDecoder::new(&packed[..]).take(DOCUMENT_BYTES_MAX).read_to_end(&mut bytes) {
        Ok(_) => Answer { status: 200, content_type: JSON, bytes: bytes.into(), is_gzip: false },
        Err(error) => plain(500, &format!("the account cannot be unpacked: {error}\n")),
    }
}

/// `jvm=ID` of a query.
fn jvm_of(query: &str) -> Option<String> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("jvm="))?;
    (!value.is_empty() && value.len() <= 64 && value.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .then(|| value.to_string())
}

fn json(document: &impl serde::Serialize, asked: &Asked) -> Answer {
    let mut bytes = Vec::new();
    match crate::show::json::print(&mut bytes, document) {
        Ok(()) => packed(200, JSON, bytes.into(), asked),
        Err(error) => plain(500, &format!("the document cannot be written: {error}\n")),
    }
}

fn plain(status: u16, text: &str) -> Answer {
    Answer { status, content_type: TEXT, bytes: Bytes::copy_from_slice(text.as_bytes()), is_gzip: false }
}

fn packed(status: u16, content_type: &'static str, bytes: Bytes, asked: &Asked) -> Answer {
    if !asked.takes_gzip || bytes.len() < PACKED_BYTES_MIN {
        return Answer { status, content_type, bytes, is_gzip: false };
    }
    Answer { status, content_type, bytes: web::gzip(&bytes).into(), is_gzip: true }
}
