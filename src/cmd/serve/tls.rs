//! TLS by rustls: the certificate, the authority of clients' certificates, and when the certificate expires.

use super::web_config::{ClientAuth, Tls, Version};
use crate::base::days_since_1970;
use crate::os::input_file;
use anyhow::{anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use tokio_rustls::rustls::{RootCertStore, ServerConfig, client, version};

const PEM_BYTES_MAX: u64 = 1 << 20;

/// What a TLS connection begins with.
pub struct Door {
    pub config: Arc<ServerConfig>,
    /// Names of which a client's certificate must have one; empty: any.
    pub sans: Arc<[String]>,
    pub expires: Option<SystemTime>,
}

impl Door {
    pub fn open(tls: &Tls) -> anyhow::Result<Door> {
        let chain = certificates("cert_file", &tls.cert_file)?;
        let key = pem("key_file", &tls.key_file)?;
        let key =
            PrivateKeyDer::from_pem_slice(&key).map_err(|error| wrong("key_file", &tls.key_file, &error))?;
        let versions: &[_] = match (tls.min_version, tls.max_version) {
            (Version::TLS13, Version::TLS12) => {
                bail!("tls_server_config.max_version: it is below min_version");
            }
            (Version::TLS13, _) => &[&version::TLS13],
            (_, Version::TLS12) => &[&version::TLS12],
            _ => &[&version::TLS13, &version::TLS12],
        };
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(|error| anyhow!("tls_server_config: {error}"))?;
        let builder = match &tls.client_ca_file {
            Some(file) if tls.client_auth_type != ClientAuth::NoClientCert => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates("client_ca_file", file)? {
                    roots.add(certificate).map_err(|error| wrong("client_ca_file", file, &error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = match tls.client_auth_type {
                    ClientAuth::VerifyClientCertIfGiven => verifier.allow_unauthenticated(),
                    _ => verifier,
                };
                builder.with_client_cert_verifier(
                    verifier.build().map_err(|error| wrong("client_ca_file", file, &error))?,
                )
            }
            _ => builder.with_no_client_auth(),
        };
        let expires = chain.first().and_then(|certificate| not_after(certificate));
        let config =
            builder.with_single_cert(chain, key).map_err(|error| wrong("key_file", &tls.key_file, &error))?;
        Ok(Door { config: Arc::new(config), sans: tls.client_allowed_sans.clone().into(), expires })
    }
}

/// Whether a client's certificate has one of these names. One that has sent none is let in where none is required.
pub fn has_name(certificates: Option<&[CertificateDer<'_>]>, names: &[String]) -> bool {
    let Some(certificate) = certificates.and_then(<[_]>::first) else { return true };
    let Ok(parsed) = ParsedCertificate::try_from(certificate) else { return false };
    let is = |name: &String| {
        ServerName::try_from(name.as_str())
            .is_ok_and(|name| client::verify_server_name(&parsed, &name).is_ok())
    };
    names.is_empty() || names.iter().any(is)
}

/// A style or script in the form that a Content-Security-Policy names it by.
pub fn source_of(text: &str) -> String {
    // The suite's hash is SHA-256 (RFC 8446, appendix B.4).
    let hash = ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().map(|suite| suite.common.hash_provider);
    let hash = hash.map(|hash| STANDARD.encode(hash.hash(text.as_bytes())));
    format!("'sha256-{}'", hash.unwrap_or_default())
}

fn wrong(key: &str, path: &Path, error: &dyn std::fmt::Display) -> anyhow::Error {
    anyhow!("tls_server_config.{key}: {}: {error}", path.display())
}

fn pem(key: &str, path: &Path) -> anyhow::Result<Vec<u8>> {
    input_file::read(path, PEM_BYTES_MAX).map_err(|error| wrong(key, path, &error))
}

fn certificates(key: &str, path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let text = pem(key, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(wrong(key, path, &"no certificate is in it")),
        Err(error) => Err(wrong(key, path, &error)),
    }
}

/// One element of DER: its tag, its content, and what follows (X.690, 8.1).
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// When a certificate expires: in TBSCertificate the validity follows version, serial number, algorithm and issuer; of it the
/// second time (RFC 5280, 4.1).
fn not_after(certificate: &[u8]) -> Option<SystemTime> {
    const VERSION: u8 = 0xa0;
    let (_, certificate, _) = element(certificate)?;
    let (_, mut rest, _) = element(certificate)?;
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (_, validity, _) = element(rest)?;
    let (tag, text, _) = element(element(validity)?.2)?;
    time(tag, std::str::from_utf8(text).ok()?)
}

/// UTCTime "YYMMDDHHMMSSZ" or GeneralizedTime "YYYYMMDDHHMMSSZ".
fn time(tag: u8, text: &str) -> Option<SystemTime> {
    let text = text.strip_suffix('Z')?;
    let whole = match tag {
        0x17 if text.len() == 12 => format!("{}{text}", if text.get(..2)? < "50" { "20" } else { "19" }),
        0x18 if text.len() == 14 => text.to_string(),
        _ => return None,
    };
    let number = |from: usize, to: usize| whole.get(from..to)?.parse::<u32>().ok().map(i64::from);
    let days = days_since_1970(number(0, 4)?, number(4, 6)?, number(6, 8)?)?;
    let seconds = days * 86_400 + number(8, 10)? * 3600 + number(10, 12)? * 60 + number(12, 14)?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(seconds).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_by_which_a_browser_knows_a_script() {
        // printf %s "alert('Hello, world.');" | openssl dgst -sha256 -binary | base64: the example of CSP Level 3, 8.3.
        let source = source_of("alert('Hello, world.');");
        assert_eq!(source, "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='");
    }

    #[test]
    fn times_of_certificates() {
        let seconds =
            |tag, text| Some(time(tag, text)?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs());
        assert_eq!(seconds(0x17, "700101000000Z"), Some(0));
        assert_eq!(seconds(0x17, "000229120000Z"), Some(951_825_600));
        assert_eq!(seconds(0x18, "20261126000000Z"), Some(1_795_651_200));
        for (tag, text) in [(0x17, "x"), (0x18, ""), (0x17, "7001010000Z"), (5, "700101000000Z")] {
            assert_eq!(seconds(tag, text), None);
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_time() {
        for bytes in [&[][..], &[0x30], &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x30, 2, 0x30, 0]] {
            assert_eq!(not_after(bytes), None);
        }
    }
}
