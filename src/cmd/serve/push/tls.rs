//! What a back end is trusted by over https, and the certificate that this service shows it. Files are read again after each
//! failure: certificates are renewed while the service runs.

use crate::base::refuse;
use crate::cmd::web;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;
use ureq::tls::{ClientCert, PrivateKey, RootCerts, TlsConfig};

const VARIABLES: &str = "OTEL_EXPORTER_OTLP_";

/// The names of the files.
#[derive(Debug)]
pub struct Files {
    /// `None`: the ones that the host trusts.
    roots: Option<PathBuf>,
    /// A certificate with its chain, and its key.
    client: Option<(PathBuf, PathBuf)>,
}

impl Files {
    pub fn of(set: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Files> {
        let client = match (set("CLIENT_CERTIFICATE"), set("CLIENT_KEY")) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate.into(), key.into())),
            _ => {
                refuse!("cannot use OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE or _CLIENT_KEY alone: set both");
            }
        };
        Ok(Files { roots: set("CERTIFICATE").map(PathBuf::from), client })
    }

    pub fn read(&self) -> anyhow::Result<TlsConfig> {
        let client = self.client.as_ref().map(|(certificate, key)| client(certificate, key)).transpose()?;
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&web::roots(
                self.roots.as_deref(),
                &format!("{VARIABLES}CERTIFICATE"),
            )?))
            .client_cert(client)
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
        Ok(tls.build())
    }
}

fn client(certificate: &Path, key: &Path) -> anyhow::Result<ClientCert> {
    let (chain_pem, key_pem) = (pem("CLIENT_CERTIFICATE", certificate)?, pem("CLIENT_KEY", key)?);
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain_pem).collect();
    let chain = chain.map_err(|error| wrong("CLIENT_CERTIFICATE", certificate, &error))?;
    if chain.is_empty() {
        return Err(wrong("CLIENT_CERTIFICATE", certificate, &"no certificate is in it"));
    }
    let key_der =
        PrivateKeyDer::from_pem_slice(&key_pem).map_err(|error| wrong("CLIENT_KEY", key, &error))?;
    // ureq 3.5 panics at its first connection over a pair that does not match (src/tls/rustls.rs, build_config).
    CertifiedKey::from_der(chain, key_der, &ring::default_provider())
        .map_err(|error| wrong("CLIENT_KEY", key, &error))?;
    let key = PrivateKey::from_pem(&key_pem).map_err(|error| wrong("CLIENT_KEY", key, &error))?;
    Ok(ClientCert::new_with_certs(&web::certificates(&chain_pem), key))
}

fn pem(variable: &str, path: &Path) -> anyhow::Result<Vec<u8>> {
    web::pem(&format!("{VARIABLES}{variable}"), path)
}

fn wrong(variable: &str, path: &Path, error: &dyn std::fmt::Display) -> anyhow::Error {
    web::wrong(&format!("{VARIABLES}{variable}"), path, error)
}
