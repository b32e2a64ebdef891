//! The client of the services that Marusa writes to: bounded time, no redirects, and the certificates that the host trusts.

use super::Failure;
use crate::os::input_file;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::crypto::ring;
use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// Where distributions keep the certificates that they trust (golang/go src/crypto/x509/root_linux.go).
const ROOTS: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
const PEM_BYTES_MAX: u64 = 16 << 20;

pub fn agent(timeout: Duration, tls: TlsConfig) -> Agent {
    let config = Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        // Headers and signatures are for this service only.
        .max_redirects(0)
        .user_agent(concat!("marusa/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls);
    config.build().new_agent()
}

/// Trusts these certificates, and shows none of ours.
pub fn trusting(roots: &[Certificate<'static>]) -> TlsConfig {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(roots))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
    tls.build()
}

/// The certificates of a PEM file, or the ones that the host trusts. `variable`: which one of the environment names a file.
pub fn roots(named: Option<&Path>, variable: &str) -> anyhow::Result<Vec<Certificate<'static>>> {
    let Some(path) = named else {
        let mut found = ROOTS.iter().filter_map(|path| input_file::read(path, PEM_BYTES_MAX).ok());
        return found.find_map(|pem| Some(certificates(&pem)).filter(|found| !found.is_empty())).ok_or_else(|| {
            Failure::usage(format!(
                "cannot find the trusted certificates of this host: install ca-certificates, or name a PEM file in {variable}"
            ))
        });
    };
    let found = certificates(&pem(variable, path)?);
    if found.is_empty() { Err(wrong(variable, path, &"no certificate is in it")) } else { Ok(found) }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    // Writing to memory does not fail.
    let _ = packed.write_all(bytes);
    packed.finish().unwrap_or_default()
}

/// One that is not understood is one that is not trusted.
pub fn certificates(pem: &[u8]) -> Vec<Certificate<'static>> {
    let found = parse_pem(pem).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    found.collect()
}

/// The file that a variable of the environment names.
pub fn pem(variable: &str, path: &Path) -> anyhow::Result<Vec<u8>> {
    input_file::read(path, PEM_BYTES_MAX).map_err(|error| wrong(variable, path, &error))
}

pub fn wrong(variable: &str, path: &Path, error: &dyn std::fmt::Display) -> anyhow::Error {
    Failure::usage(format!("cannot read {}: {error}; it is what {variable} names", path.display()))
}
