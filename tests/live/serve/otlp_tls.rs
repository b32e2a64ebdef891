//! A back end behind TLS whose certificate is signed by a stranger, then expired, and that asks for a client's certificate, which
//! is renewed while the service runs: each failure is counted, and nothing is lost.

use super::*;
use std::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

const WAIT_MAX: Duration = Duration::from_secs(120);

/// A server with the certificate of this name, which asks for one of `ca`.
fn server(at: &Path, name: &str) -> Arc<ServerConfig> {
    let file = |name: &str| at.join(name);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("ca.crt")).expect("a certificate")).expect("a root");
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let chain = vec![CertificateDer::from_pem_file(file(&format!("{name}.crt"))).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key"))).expect("a key");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier.build().expect("a verifier"))
        .with_single_cert(chain, key);
    Arc::new(config.expect("a pair"))
}

/// The status that a request was answered with, if a connection came about.
fn serve(config: Arc<ServerConfig>, stream: TcpStream, status: &str) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).expect("ours");
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().expect("a number");
        }
        if line == "\r\n" {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    let stream = reader.get_mut();
    stream.write_all(
        format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// How each connection ended, in their order.
fn back_end(at: PathBuf) -> (String, Arc<Mutex<Vec<bool>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://localhost:{}", listener.local_addr().expect("its address").port());
    let ends = Arc::new(Mutex::new(Vec::new()));
    let ended = ends.clone();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            if number == 2 {
                // The one that connects has read the other already.
                for ending in ["crt", "key"] {
                    fs::copy(at.join(format!("client.{ending}")), at.join(format!("shown.{ending}")))
                        .expect("ours");
                }
            }
            let name = ["stranger", "old", "server"][number.min(2)];
            let status = if number == 3 { "401 Unauthorized" } else { "200 OK" };
            let end = serve(server(&at, name), stream.expect("a client"), status);
            ended.lock().expect("ours").push(end.is_ok());
        }
    });
    (url, ends)
}

#[test]
fn certificates_that_nobody_trusts_expired_and_are_renewed() {
    let at = directory("otlp-tls");
    let of_ca = ["-CA", "ca.crt", "-CAkey", "ca.key", "-addext", "basicConstraints=CA:FALSE"];
    certificate(&at, "ca", &[]);
    for name in ["stranger", "shown"] {
        certificate(&at, name, &OF_NOBODY_ELSE);
    }
    for name in ["server", "client"] {
        certificate(&at, name, &of_ca);
    }
    let asked = "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout old.key -out old.csr -subj /CN=localhost \
                 -addext subjectAltName=DNS:localhost";
    openssl(&at, &asked.split_whitespace().collect::<Vec<_>>());
    let signed = "x509 -req -in old.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 0 -copy_extensions copyall -out old.crt";
    openssl(&at, &signed.split_whitespace().collect::<Vec<_>>());

    let file = |name: &str| at.join(name).display().to_string();
    let (url, ends) = back_end(at.clone());
    let (ca, crt, key) = (file("ca.crt"), file("shown.crt"), file("shown.key"));
    let set = |name: &'static str| format!("OTEL_EXPORTER_OTLP_{name}");
    let variables = [(set("CERTIFICATE"), ca), (set("CLIENT_CERTIFICATE"), crt), (set("CLIENT_KEY"), key)];
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (&name[..], &value[..])).collect();

    // A key of another certificate is said before anything is pushed.
    let mut wrong = Command::new(env!("CARGO_BIN_EXE_marusa"));
    wrong.args(["serve", "--listen", "127.0.0.1:0", "--otlp", &url]).envs(variables.iter().copied());
    let output = wrong.env(set("CLIENT_KEY"), file("server.key")).output().expect("marusa runs");
    let said = text(&output.stderr);
    assert!(
        output.status.code() == Some(2) && said.contains("server.key") && said.contains("CLIENT_KEY"),
        "{said}"
    );
    assert!(ends.lock().expect("ours").is_empty());

    let service = Service::with(&["--otlp", &url], &variables);
    let until = Instant::now() + WAIT_MAX;
    let count = |outcome: &str| -> usize {
        let line = format!("marusa_otlp_requests_total{{outcome=\"{outcome}\"}} ");
        let metrics = service.text("/metrics");
        metrics.lines().find_map(|it| it.strip_prefix(&line)?.parse().ok()).expect("a counter")
    };
    while count("accepted") < 2 {
        assert!(Instant::now() < until, "{:?} {}", ends.lock().expect("ours"), service.said());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(ends.lock().expect("ours")[..5], [false, false, false, true, true]);
    assert_eq!((count("failed"), count("refused"), count("dropped")), (3, 1, 0));
    let said = service.said();
    let failures: Vec<&str> = said.lines().filter(|line| line.contains("cannot push")).collect();
    assert!(
        failures.len() == 2 && failures[0].contains("UnknownIssuer") && failures[1].contains("401"),
        "{said}"
    );
    fs::remove_dir_all(&at).expect("ours");
}
