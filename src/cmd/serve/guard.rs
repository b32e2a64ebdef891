//! Who may ask, and how: TLS, client certificates, users and headers, as `--web-config` says. The files are read again when they
//! change; while they cannot be read, what was read before stays in force.

use super::tls;
use super::web_config::WebConfig;
use anyhow::anyhow;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderName, HeaderValue};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// The files are looked at no more often than this.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Answers to passwords that are kept: bcrypt takes a tenth of a second by design.
const KNOWN_MAX: usize = 100;
const HEADER_BYTES_MAX: usize = 4 << 10;

/// How a connection begins.
pub enum Door {
    Plain,
    Tls { acceptor: TlsAcceptor, sans: Arc<[String]> },
}

pub struct Guard {
    path: Option<PathBuf>,
    rules: Mutex<Rules>,
    /// One password is checked at a time, so that guessing takes one core at most.
    checks: Semaphore,
}

/// What is in force.
#[derive(Default)]
struct Rules {
    tls: Option<tls::Door>,
    users: BTreeMap<String, String>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The files that this is of, with length and time of change.
    files: Vec<(PathBuf, Option<(u64, SystemTime)>)>,
    looked: Option<Instant>,
    /// Authorization headers that were right.
    known: HashSet<String>,
}

impl Guard {
    /// An error names the file and the key.
    pub fn new(path: Option<&Path>) -> anyhow::Result<Guard> {
        let rules = path.map(Rules::read).transpose()?.unwrap_or_default();
        Ok(Guard { path: path.map(Path::to_path_buf), rules: Mutex::new(rules), checks: Semaphore::new(1) })
    }

    pub fn is_tls(&self) -> bool {
        self.rules().tls.is_some()
    }

    /// When the certificate expires; `None`: there is none, or it does not say.
    pub fn expires(&self) -> Option<SystemTime> {
        self.rules().tls.as_ref()?.expires
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the next connection begins.
    pub fn door(&self) -> Door {
        let mut rules = self.rules();
        if let Some(path) = self.path.as_deref().filter(|_| rules.is_changed()) {
            match Rules::read(path) {
                Ok(new) => *rules = new,
                // Reported once for each change of the files.
                Err(error) => {
                    crate::say!("marusa: {error}; the rules from before stay in force");
                    rules.files = rules.files.iter().map(|(file, _)| (file.clone(), facts(file))).collect();
                }
            }
        }
        match &rules.tls {
            Some(door) => {
                Door::Tls { acceptor: TlsAcceptor::from(door.config.clone()), sans: door.sans.clone() }
            }
            None => Door::Plain,
        }
    }

    /// Whether this Authorization header is one of a user, or nobody needs one.
    pub async fn admits(&self, authorization: &str) -> bool {
        let Some((password, hash)) = ({
            let rules = self.rules();
            if rules.users.is_empty() || rules.known.contains(authorization) {
                return true;
            }
            self::password(authorization).map(|(user, password)| {
                // A user that is not there takes as long as one that is.
                let hash =
                    rules.users.get(&user).or(rules.users.values().next()).cloned().unwrap_or_default();
                let is_user = rules.users.contains_key(&user);
                (password, (hash, is_user))
            })
        }) else {
            return false;
        };
        let Ok(_turn) = self.checks.acquire().await else { return false };
        let (hash, is_user) = hash;
        let check = move || bcrypt::verify(password, &hash).unwrap_or(false);
        let is_right = tokio::task::spawn_blocking(check).await.unwrap_or(false) && is_user;
        if is_right {
            let mut rules = self.rules();
            if rules.known.len() >= KNOWN_MAX {
                rules.known.clear();
            }
            rules.known.insert(authorization.to_string());
        }
        is_right
    }

    pub fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        self.rules().headers.clone()
    }
}

impl Rules {
    fn read(path: &Path) -> anyhow::Result<Rules> {
        let config = WebConfig::read(path)?;
        let fails = |why: anyhow::Error| anyhow!("cannot use {}: {why}", path.display());
        let mut files = vec![path.to_path_buf()];
        if let Some(tls) = &config.tls_server_config {
            files.extend([tls.cert_file.clone(), tls.key_file.clone()]);
            files.extend(tls.client_ca_file.clone());
        }
        // Taken before they are read: a change in between is seen the next time.
        let files = files.into_iter().map(|file| (file.clone(), facts(&file))).collect();
        let tls = config.tls_server_config.as_ref().map(tls::Door::open).transpose().map_err(fails)?;
        let header = |(name, value): (&String, &String)| {
            let header = name.parse::<HeaderName>().ok().zip(value.parse::<HeaderValue>().ok());
            header.ok_or_else(|| {
                fails(anyhow!("http_server_config.headers.{name}: not a header that HTTP allows"))
            })
        };
        let headers = config.http_server_config.headers.iter().map(header).collect::<anyhow::Result<_>>()?;
        Ok(Rules { tls, users: config.basic_auth_users, headers, files, looked: None, known: HashSet::new() })
    }

    fn is_changed(&mut self) -> bool {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return false;
        }
        self.looked = Some(Instant::now());
        self.files.iter().any(|(file, before)| facts(file) != *before)
    }
}

fn facts(path: &Path) -> Option<(u64, SystemTime)> {
    let facts = std::fs::metadata(path).ok()?;
    Some((facts.len(), facts.modified().ok()?))
}

/// User and password of "Basic BASE64" (RFC 7617).
fn password(header: &str) -> Option<(String, String)> {
    if header.len() > HEADER_BYTES_MAX {
        return None;
    }
    let (scheme, encoded) = header.split_once(' ')?;
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    scheme.eq_ignore_ascii_case("basic").then(|| (user.to_string(), password.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_of_a_header() {
        let of = |header: &str| password(header);
        let me = |password: &str| Some(("me".to_string(), password.to_string()));
        assert_eq!((of("Basic bWU6c2VjcmV0"), of("basic bWU6YTpi")), (me("secret"), me("a:b")));
        assert_eq!((of("Basic bWU6"), of("Basic bWU6YQ==")), (me(""), me("a")));
        for wrong in ["", "Basic", "Basic !", "Bearer bWU6YQ==", "Basic bWU", "Basic /////w=="] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(of(&format!("Basic {}", "A".repeat(1 << 20))), None);
    }
}
