//! A bucket of an S3-compatible service. A file is one signed PUT: S3 shows an object when all of it has arrived and its hash is
//! right, so half a file is never there. Credentials come from where AWS' own programs look for them.

mod credentials;

use crate::base::printable::escaped;
use crate::base::rfc3339;
use crate::cmd::web;
use anyhow::{anyhow, bail};
use credentials::{Credentials, variable};
use ring::digest::{self, Context, SHA256};
use ring::hmac;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::time::{Duration, SystemTime};
use ureq::Agent;
use ureq::tls::TlsConfig;

const TIMEOUT: Duration = Duration::from_secs(300);
const ANSWER_BYTES_MAX: u64 = 64 << 10;
const CODE_LETTERS_MAX: usize = 100;
const REGION: &str = "us-east-1";

pub struct Bucket {
    agent: Agent,
    /// "https://host", without "/" at its end.
    base: String,
    /// Between the host and the keys of the objects: "/bucket/prefix", "/prefix", "".
    path: String,
    host: String,
    region: String,
    /// As the user wrote it.
    shown: String,
}

impl Bucket {
    /// "BUCKET/PREFIX". `AWS_ENDPOINT_URL_S3` and `AWS_ENDPOINT_URL` name another service than Amazon's.
    pub fn open(text: &str) -> anyhow::Result<Bucket> {
        let (name, prefix) = text.split_once('/').unwrap_or((text, ""));
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
        if name.is_empty() || !name.chars().all(is_name) {
            bail!("cannot store into s3://{text}: it must be s3://BUCKET/PREFIX");
        }
        let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        let region = region.unwrap_or_else(|| REGION.to_string());
        let endpoint = variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"));
        let prefix = encoded(prefix.trim_matches('/'));
        let prefix = if prefix.is_empty() { prefix } else { format!("/{prefix}") };
        let (base, path) = match endpoint {
            // Few services other than Amazon's have a host name for each bucket.
            Some(endpoint) => (endpoint.trim_end_matches('/').to_string(), format!("/{name}{prefix}")),
            None => (format!("https://{name}.s3.{region}.amazonaws.com"), prefix),
        };
        let (scheme, host) = base.split_once("://").unwrap_or_default();
        let host = host.to_string();
        let tls = match scheme {
            "http" => TlsConfig::default(),
            "https" => trusted()?,
            _ => bail!("cannot read AWS_ENDPOINT_URL: it must be a URL as in http://localhost:9000"),
        };
        let agent = web::agent(TIMEOUT, tls);
        let shown = format!("s3://{}", text.trim_end_matches('/'));
        Ok(Bucket { agent, base, path, host, region, shown })
    }

    /// Writes an object and returns its bytes. `key`: below the prefix.
    pub fn put(&self, key: &str, file: &File) -> anyhow::Result<u64> {
        self.send(key, file).map_err(|why| anyhow!("cannot write {}/{key}: {why}", self.shown))
    }

    fn send(&self, key: &str, mut file: &File) -> anyhow::Result<u64> {
        let unread = |error: io::Error| anyhow!("the temporary file cannot be read: {error}");
        let (hash, bytes) = hash(file).map_err(unread)?;
        file.rewind().map_err(unread)?;
        let credentials = Credentials::get(&self.agent)?;
        let path = format!("{}/{}", self.path, encoded(key));
        let now = rfc3339(SystemTime::now()).replace(['-', ':'], "");
        let mut headers = vec![
            ("host", self.host.clone()),
            ("x-amz-content-sha256", hash.clone()),
            ("x-amz-date", now.clone()),
        ];
        headers.extend(credentials.token.iter().map(|token| ("x-amz-security-token", token.clone())));
        let signature = authorization(&credentials, &self.region, &path, &headers, &hash, &now);
        let mut asked = self.agent.put(format!("{}{path}", self.base)).header("authorization", signature);
        for (name, value) in headers.iter().skip(1) {
            asked = asked.header(*name, value);
        }
        let mut answer = asked.send(file)?;
        let said = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        match answer.status().as_u16() {
            200..300 => Ok(bytes),
            status => Err(anyhow!("the service answers {status}{}", code(&said.unwrap_or_default()))),
        }
    }
}

fn trusted() -> anyhow::Result<TlsConfig> {
    const VARIABLE: &str = "AWS_CA_BUNDLE";
    let named = variable(VARIABLE);
    let roots = web::roots(named.as_deref().map(Path::new), VARIABLE)?;
    Ok(web::trusting(&roots))
}

/// " AccessDenied", of the XML of an error.
fn code(answer: &str) -> String {
    let after = answer.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let code = after.map(|(code, _)| code.chars().take(CODE_LETTERS_MAX).collect::<String>());
    code.map(|code| format!(" {}", escaped(&code))).unwrap_or_default()
}

fn hash(mut file: &File) -> io::Result<(String, u64)> {
    let (mut context, mut bytes, mut piece) = (Context::new(&SHA256), 0, vec![0; 64 << 10]);
    file.rewind()?;
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((hex(context.finish().as_ref()), bytes)),
            count => {
                context.update(&piece[..count]);
                bytes += count as u64;
            }
        }
    }
}

/// AWS Signature Version 4 of a PUT without a query (docs.aws.amazon.com, "Create a signed AWS API request"). `headers` are in the
/// order of their names; `now`: "20260102T030405Z".
fn authorization(
    credentials: &Credentials,
    region: &str,
    path: &str,
    headers: &[(&str, String)],
    hash: &str,
    now: &str,
) -> String {
    let day = now.split('T').next().unwrap_or_default();
    let scope = format!("{day}/{region}/s3/aws4_request");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let request = format!("PUT\n{path}\n\n{lines}\n{names}\n{hash}");
    let request = hex(digest::digest(&SHA256, request.as_bytes()).as_ref());
    let text = format!("AWS4-HMAC-SHA256\n{now}\n{scope}\n{request}");
    let first = format!("AWS4{}", credentials.secret).into_bytes();
    let key = [day, region, "s3", "aws4_request"].iter().fold(first, |key, part| signed(&key, part));
    let signature = hex(&signed(&key, &text));
    let id = &credentials.id;
    format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}")
}

fn signed(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A path as it is signed and sent: all but the unreserved letters and "/" is percent-encoded, "=" too.
fn encoded(path: &str) -> String {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    path.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of "Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk", PUT Object.
    #[test]
    fn the_signature_is_that_of_the_published_example() {
        let credentials = Credentials {
            id: "AKIAIOSFODNN7EXAMPLE".to_string(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_string(),
            token: None,
        };
        let hash = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
        let headers = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT".to_string()),
            ("host", "examplebucket.s3.amazonaws.com".to_string()),
            ("x-amz-content-sha256", hash.to_string()),
            ("x-amz-date", "20130524T000000Z".to_string()),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY".to_string()),
        ];
        let path = format!("/{}", encoded("test$file.text"));
        let signed = authorization(&credentials, "us-east-1", &path, &headers, hash, "20130524T000000Z");
        assert!(
            signed.ends_with("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
            "{signed}"
        );
    }

    #[test]
    fn paths_and_errors() {
        assert_eq!(encoded("date=1/a b.parquet"), "date%3D1/a%20b.parquet");
        assert_eq!(code("<Error><Code>AccessDenied</Code>"), " AccessDenied");
        assert_eq!(code("<html>"), "");
        for bad in ["", "/x", "a b/x", "é/x"] {
            assert!(Bucket::open(bad).is_err(), "{bad:?}");
        }
    }
}
