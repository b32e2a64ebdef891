//! Where and how metrics are pushed: `--otlp` and the environment variables that every OpenTelemetry program reads
//! (open-telemetry/opentelemetry-specification, protocol/exporter.md). Values of headers are secrets: no message has one.

use super::tls::Files;
use crate::base::{redact, refuse};
use crate::cmd::Failure;
use std::time::Duration;
use ureq::http::{HeaderName, HeaderValue, Uri};
use ureq::tls::TlsConfig;

/// The specification's timeout.
const TIMEOUT_MS: u64 = 10_000;
#[derive(Debug)]
pub struct Settings {
    pub url: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub timeout: Duration,
    pub is_gzip: bool,
    /// The files of https, and what is in them now.
    pub files: Option<Files>,
    pub tls: TlsConfig,
}

impl Settings {
    /// `None`: nothing is to be pushed.
    pub fn of(
        asked: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Option<Settings>> {
        let set =
            |name: &str| variable(&format!("OTEL_EXPORTER_OTLP_{name}")).filter(|text| !text.is_empty());
        // Of metrics alone before that of all signals.
        let either = |name: &str| set(&format!("METRICS_{name}")).or_else(|| set(name));
        let url = match (asked, set("METRICS_ENDPOINT"), set("ENDPOINT")) {
            (Some(url), ..) if has_path(url) => url.to_string(),
            (Some(url), ..) => below(url),
            (None, Some(url), _) => url,
            (None, None, Some(base)) => below(&base),
            (None, None, None) => return Ok(None),
        };
        let uri = check(&url)?;
        let timeout = match either("TIMEOUT") {
            None => TIMEOUT_MS,
            Some(text) => text.trim().parse().ok().filter(|ms| *ms > 0).ok_or_else(|| {
                Failure::usage("cannot read OTEL_EXPORTER_OTLP_TIMEOUT: it must be milliseconds, as in 10000")
            })?,
        };
        let is_gzip = match either("COMPRESSION").as_deref() {
            None | Some("none") => false,
            Some("gzip") => true,
            Some(_) => {
                refuse!("cannot read OTEL_EXPORTER_OTLP_COMPRESSION: it must be gzip or none");
            }
        };
        let files = match uri.scheme_str() {
            Some("https") => Some(Files::of(&either)?),
            _ => None,
        };
        Ok(Some(Settings {
            headers: headers(&either("HEADERS").unwrap_or_default())?,
            timeout: Duration::from_millis(timeout),
            is_gzip,
            tls: files.as_ref().map(Files::read).transpose()?.unwrap_or_default(),
            files,
            url,
        }))
    }

    /// As it may be shown.
    pub fn shown(&self) -> String {
        redact::url(&self.url)
    }
}

fn has_path(url: &str) -> bool {
    let after = url.split_once("://").map_or(url, |(_, rest)| rest);
    after.split_once('/').is_some_and(|(_, path)| !path.is_empty())
}

fn below(base: &str) -> String {
    format!("{}/v1/metrics", base.trim_end_matches('/'))
}

fn check(url: &str) -> anyhow::Result<Uri> {
    let uri = url.parse::<Uri>().ok().filter(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    });
    uri.ok_or_else(|| {
        Failure::usage(format!(
            "cannot push to {}: no URL; give one as in http://localhost:4318 or https://otlp.example.com/v1/metrics",
            redact::url(url)
        ))
    })
}

/// "name=value,name=value", values with percent-encoding (W3C Baggage).
fn headers(text: &str) -> anyhow::Result<Vec<(HeaderName, HeaderValue)>> {
    let entries = text.split(',').map(str::trim).enumerate().filter(|(_, entry)| !entry.is_empty());
    let read = |entry: &str| {
        let (name, value) = entry.split_once('=')?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        let mut value = HeaderValue::from_bytes(&decoded(value.trim())).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    };
    let read = entries.map(|(at, entry)| {
        read(entry).ok_or_else(|| {
            Failure::usage(format!(
                "cannot read OTEL_EXPORTER_OTLP_HEADERS: entry {} is not NAME=VALUE; encode a comma as %2C",
                at + 1
            ))
        })
    });
    read.collect()
}

/// Without percent-encoding; what is none stays.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3).filter(|two| two.bytes().all(|it| it.is_ascii_hexdigit()));
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(asked: Option<&str>, variables: &[(&str, &str)]) -> anyhow::Result<Option<Settings>> {
        let find = |name: &str| {
            let short = name.strip_prefix("OTEL_EXPORTER_OTLP_").expect("of OTLP");
            variables.iter().find(|(key, _)| *key == short).map(|(_, value)| value.to_string())
        };
        Settings::of(asked, &find)
    }

    #[test]
    fn the_url_by_the_rules_of_the_specification() {
        let url = |asked, variables: &[_]| of(asked, variables).expect("read").map(|it| it.url);
        assert_eq!(url(None, &[]), None);
        assert_eq!(url(None, &[("ENDPOINT", "")]), None);
        let added = Some("http://h:4318/v1/metrics".to_string());
        assert_eq!(url(Some("http://h:4318"), &[]), added);
        assert_eq!(url(Some("http://h:4318/"), &[("ENDPOINT", "http://other")]), added);
        assert_eq!(url(None, &[("ENDPOINT", "http://h:4318")]), added);
        assert_eq!(
            url(None, &[("ENDPOINT", "http://h/base/")]),
            Some("http://h/base/v1/metrics".to_string())
        );
        assert_eq!(url(Some("http://h/a/b"), &[]), Some("http://h/a/b".to_string()));
        let both = [("ENDPOINT", "http://h"), ("METRICS_ENDPOINT", "http://m/x")];
        assert_eq!(url(None, &both), Some("http://m/x".to_string()));
        for bad in ["h:4318", "ftp://h/", "http://", "nonsense", "/v1/metrics"] {
            assert!(of(Some(bad), &[]).is_err(), "{bad}");
        }
    }

    #[test]
    fn headers_are_decoded_and_never_shown() {
        let set = of(Some("http://h"), &[("HEADERS", "a=no"), ("METRICS_HEADERS", "X-Key = s%2Cx%, b=c=d,")]);
        let set = set.expect("read").expect("on");
        let pairs: Vec<_> =
            set.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(pairs, [("x-key", &b"s,x%"[..]), ("b", b"c=d")]);
        assert!(!format!("{set:?}").contains("s,x"));
        let error = of(Some("http://h"), &[("HEADERS", "a=b,geheim")]).expect_err("no pair").to_string();
        assert!(error.contains("entry 2") && !error.contains("geheim"), "{error}");
    }

    #[test]
    fn timeout_compression_and_certificates() {
        let set =
            of(Some("http://h"), &[("TIMEOUT", "250"), ("COMPRESSION", "gzip")]).expect("read").expect("on");
        assert_eq!((set.timeout, set.is_gzip), (Duration::from_millis(250), true));
        for bad in [("TIMEOUT", "10s"), ("TIMEOUT", "0"), ("METRICS_COMPRESSION", "br")] {
            assert!(of(Some("http://h"), &[bad]).is_err(), "{bad:?}");
        }
        let error = |variables: &[_]| of(Some("https://h"), variables).expect_err("no file").to_string();
        let missing = error(&[("CERTIFICATE", "/nonexistent")]);
        assert!(missing.contains("/nonexistent") && missing.contains("OTLP_CERTIFICATE"), "{missing}");
        let pair = [("CLIENT_CERTIFICATE", "/nonexistent"), ("METRICS_CLIENT_KEY", "/dev/null")];
        assert!(error(&pair).contains("OTLP_CLIENT_CERTIFICATE"));
        assert!(error(&pair[..1]).contains("both"));
        assert!(of(Some("http://h"), &pair[..1]).is_ok(), "not needed");
    }
}
