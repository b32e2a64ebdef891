//! The file of `--web-config`, in the form of Prometheus' exporter-toolkit (docs/web-configuration.md), so that one file guards a
//! node_exporter and this service. An unknown key is an error that names it: a typo must not open the door.

use crate::os::input_file;
use anyhow::{anyhow, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use yaml_rust2::{Yaml, YamlLoader};

const CONFIG_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebConfig {
    pub tls_server_config: Option<Tls>,
    pub http_server_config: Http,
    /// Users and the bcrypt hashes of their passwords.
    pub basic_auth_users: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    #[serde(default)]
    pub client_auth_type: ClientAuth,
    pub client_ca_file: Option<PathBuf>,
    #[serde(default)]
    pub client_allowed_sans: Vec<String>,
    #[serde(default)]
    pub min_version: Version,
    #[serde(default)]
    pub max_version: Version,
    /// Taken and without effect, as in Go since 1.17.
    #[serde(default, rename = "prefer_server_cipher_suites")]
    _prefers: Option<bool>,
}

/// Which certificates of clients are asked for. The forms of Go that accept any certificate without checking it are refused.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum ClientAuth {
    #[default]
    NoClientCert,
    VerifyClientCertIfGiven,
    RequireAndVerifyClientCert,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum Version {
    #[default]
    #[serde(rename = "")]
    Unset,
    TLS12,
    TLS13,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// Without effect: HTTP/1.1 is what is spoken.
    #[serde(rename = "http2")]
    _http2: Option<bool>,
    pub headers: BTreeMap<String, String>,
}

impl WebConfig {
    /// Paths in it are relative to its directory. An error names the file and the key.
    pub fn read(path: &Path) -> anyhow::Result<WebConfig> {
        let text = input_file::text(path, CONFIG_BYTES_MAX).map_err(anyhow::Error::from);
        let config = text.and_then(|text| WebConfig::parse(&text));
        let mut config = config.map_err(|why| anyhow!("cannot read {}: {why}", path.display()))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        if let Some(tls) = &mut config.tls_server_config {
            tls.cert_file = directory.join(&tls.cert_file);
            tls.key_file = directory.join(&tls.key_file);
            tls.client_ca_file = tls.client_ca_file.as_ref().map(|file| directory.join(file));
        }
        Ok(config)
    }

    fn parse(text: &str) -> anyhow::Result<WebConfig> {
        let documents = YamlLoader::load_from_str(text)?;
        let Some(document) = documents.first().filter(|document| !document.is_null()) else {
            return Ok(WebConfig::default());
        };
        let config: WebConfig = serde_path_to_error::deserialize(value(document)?)
            .map_err(|error| anyhow!("{}: {}", error.path(), error.inner()))?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> anyhow::Result<()> {
        for (user, hash) in &self.basic_auth_users {
            if hash.parse::<bcrypt::HashParts>().is_err() {
                bail!("basic_auth_users.{user}: this is not a bcrypt hash; htpasswd -nBC 10 USER makes one");
            }
        }
        let Some(tls) = &self.tls_server_config else { return Ok(()) };
        match (tls.client_auth_type, &tls.client_ca_file) {
            (ClientAuth::NoClientCert, Some(_)) => {
                bail!("tls_server_config.client_ca_file: client_auth_type asks for no certificate")
            }
            (ClientAuth::NoClientCert, None) if !tls.client_allowed_sans.is_empty() => {
                bail!("tls_server_config.client_allowed_sans: client_auth_type asks for no certificate")
            }
            (ClientAuth::NoClientCert, _) | (_, Some(_)) => Ok(()),
            (_, None) => {
                bail!("tls_server_config.client_ca_file: it is missing, and client_auth_type needs it")
            }
        }
    }
}

/// YAML as JSON.
fn value(yaml: &Yaml) -> anyhow::Result<serde_json::Value> {
    use serde_json::Value;
    Ok(match yaml {
        Yaml::String(text) => Value::from(text.as_str()),
        Yaml::Integer(number) => Value::from(*number),
        Yaml::Real(text) => Value::from(text.as_str()),
        Yaml::Boolean(is) => Value::from(*is),
        Yaml::Null => Value::Null,
        Yaml::Array(list) => Value::Array(list.iter().map(value).collect::<Result<_, _>>()?),
        Yaml::Hash(map) => {
            let pair = |(key, of): (&Yaml, &Yaml)| match key {
                Yaml::String(key) => Ok((key.clone(), value(of)?)),
                Yaml::Integer(key) => Ok((key.to_string(), value(of)?)),
                _ => bail!("a key is not text"),
            };
            Value::Object(map.iter().map(pair).collect::<anyhow::Result<_>>()?)
        }
        Yaml::Alias(_) | Yaml::BadValue => bail!("an alias, or a value that is none"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "$2b$04$EIiLLTVDcYFhKFNVGPLKXeTYwWfq6lXHGaTrdOYZWMEBYDFHdbCAC";

    fn error(text: &str) -> String {
        WebConfig::parse(text).expect_err(text).to_string()
    }

    #[test]
    fn a_whole_file() {
        let text = format!(
            "tls_server_config:\n  cert_file: a.crt\n  key_file: a.key\n  client_auth_type: RequireAndVerifyClientCert\n  \
             client_ca_file: ca.crt\n  client_allowed_sans: [prometheus]\n  min_version: TLS13\nbasic_auth_users:\n  \
             me: {HASH}\nhttp_server_config:\n  http2: false\n  headers:\n    Strict-Transport-Security: max-age=1\n"
        );
        let config = WebConfig::parse(&text).expect("right");
        let tls = config.tls_server_config.expect("TLS");
        assert_eq!(
            (tls.client_auth_type, tls.min_version),
            (ClientAuth::RequireAndVerifyClientCert, Version::TLS13)
        );
        assert_eq!((config.basic_auth_users.len(), config.http_server_config.headers.len()), (1, 1));
        assert!(WebConfig::parse("").expect("empty").tls_server_config.is_none());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_key() {
        assert!(error("tls_server_confg: {}").contains("tls_server_confg"));
        let typo = error("tls_server_config:\n  cert_file: a\n  key_file: b\n  cert_fil: c\n");
        assert!(typo.starts_with("tls_server_config") && typo.contains("cert_fil"), "{typo}");
        assert!(error("tls_server_config:\n  cert_file: a\n").contains("key_file"));
        assert!(error("basic_auth_users:\n  me: secret\n").contains("basic_auth_users.me"));
        let tls = "tls_server_config:\n  cert_file: a\n  key_file: b\n";
        assert!(
            error(&format!("{tls}  client_auth_type: RequireAnyClientCert\n")).contains("client_auth_type")
        );
        assert!(
            error(&format!("{tls}  client_auth_type: RequireAndVerifyClientCert\n"))
                .contains("client_ca_file")
        );
        assert!(error(&format!("{tls}  min_version: TLS10\n")).contains("min_version"));
        assert!(!error("a: [").is_empty() && !error("[1]").is_empty());
    }
}
