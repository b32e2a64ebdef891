//! TLS, client certificates, users, and files that change while the service runs.

use super::*;

/// The status that curl sees; 0 where there is no answer.
fn status(service: &Service, arguments: &[&str]) -> u16 {
    let url = format!("{}://localhost:{}/api/v1/jvms", service.scheme, service.port);
    let mut curl = Command::new("curl");
    let output = curl
        .args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "60"])
        .args(arguments)
        .arg(url);
    text(&output.output().expect("curl runs").stdout).parse().unwrap_or(0)
}

#[test]
fn tls_client_certificates_users_and_headers() {
    let at = directory("tls");
    for name in ["server", "client", "other"] {
        certificate(&at, name, &OF_NOBODY_ELSE);
    }
    let file = |name: &str| at.join(name).display().to_string();
    let hash = bcrypt::hash("secret", 4).expect("a hash");
    let config = |users: &str| {
        format!(
            "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n  client_ca_file: client.crt\n  \
             client_auth_type: VerifyClientCertIfGiven\nhttp_server_config:\n  headers:\n    X-Marusa: yes\n{users}"
        )
    };
    let path = file("web.yml");
    fs::write(&path, config(&format!("basic_auth_users:\n  me: {hash}\n"))).expect("ours");
    let service = Service::start(&["--web-config", &path]);
    assert_eq!(service.scheme, "https");
    let (ca, me) = (["--cacert", &file("server.crt")], ["-u", "me:secret"]);
    assert_eq!(status(&service, &[&ca[..], &me].concat()), 200);
    assert_eq!(status(&service, &[&ca[..], &["-u", "me:wrong"]].concat()), 401);
    assert_eq!(status(&service, &[&ca[..], &["-u", "you:secret"]].concat()), 401);
    assert_eq!(status(&service, &ca), 401);
    assert_eq!(status(&service, &me), 0, "nobody trusts that certificate");
    let with = |name: &str| {
        [
            "--cert".to_string(),
            file(&format!("{name}.crt")),
            "--key".to_string(),
            file(&format!("{name}.key")),
        ]
    };
    let of = |name: &str| {
        let with = with(name);
        let with: Vec<&str> = with.iter().map(String::as_str).collect();
        status(&service, &[&ca[..], &me, &with].concat())
    };
    assert_eq!((of("client"), of("other")), (200, 0));

    // A typo leaves what was; then the file is right, and nobody needs a password any more.
    fs::write(&path, "basic_auth_user: {}\n").expect("ours");
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(status(&service, &ca), 401);
    fs::write(&path, config("")).expect("ours");
    let until = Instant::now() + Duration::from_secs(30);
    while status(&service, &ca) != 200 {
        assert!(Instant::now() < until, "the new file is in force");
        std::thread::sleep(Duration::from_millis(200));
    }
    fs::remove_dir_all(&at).expect("ours");
}

#[test]
fn a_file_that_is_wrong_is_named_with_its_key() {
    let at = directory("wrong");
    let path = at.join("web.yml").display().to_string();
    for (config, said) in [
        ("tls_server_confg: {}\n", "tls_server_confg"),
        ("tls_server_config:\n  cert_file: a\n  key_file: b\n", "tls_server_config.cert_file"),
        ("basic_auth_users:\n  me: plain\n", "basic_auth_users.me"),
    ] {
        fs::write(&path, config).expect("ours");
        let output = marusa(&["serve", "--listen", "127.0.0.1:0", "--web-config", &path]);
        let stderr = text(&output.stderr);
        assert!(
            output.status.code() == Some(2) && stderr.contains(said) && stderr.contains(&path),
            "{stderr}"
        );
    }
    fs::remove_dir_all(&at).expect("ours");
}
