//! A TLS client against OpenSSL's server and nginx, with certificates made for these tests.
//!
//! The table has the codes that Node 20 and 24 reported for each certificate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "tls/authority.rs"]
mod authority;
#[path = "tls/server.rs"]
mod server;

use authority::Authority;
use server::{Nginx, Openssl, plain_server};
use std::net::SocketAddr;
use std::time::Duration;
use weir_net::tls::{Client, ClientCertificate, ClientOptions, Noted, Sessions, failure};
use weir_net::{Address, ConnectOptions, Deadline, Stream, TlsStream, Transport, worker};

/// The result of an attempt: `ok` or Node's code.
async fn try_hands(
    address: SocketAddr,
    client: &Client,
    name: &str,
    sessions: Option<&Sessions>,
) -> Result<TlsStream, String> {
    let deadline = Deadline::new();
    deadline.set(Duration::from_secs(20));
    let stream = Stream::connect(&Address::Tcp(address), &ConnectOptions::default()).unwrap();
    stream.connected(&deadline).await.unwrap();
    let tls = TlsStream::client(stream, client, name, sessions).map_err(|failed| failed.code.to_owned())?;
    match tls.handshake(&deadline).await {
        Ok(()) => Ok(tls),
        Err(error) => Err(code(&error)),
    }
}

fn code(error: &std::io::Error) -> String {
    match failure(error) {
        Some(failed) => failed.code.to_owned(),
        None => format!("{:?}", error.kind()),
    }
}

/// Sends all of a request and reads until `done` returns true, or the end.
async fn ask(link: &Transport, mut request: &[u8], done: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>, String> {
    let deadline = Deadline::new();
    deadline.set(Duration::from_secs(20));
    while !request.is_empty() {
        match link.try_write(request) {
            Ok(len) => request = &request[len..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => link.writable(&deadline).await.unwrap(),
            Err(error) => return Err(code(&error)),
        }
    }
    let mut answer = Vec::new();
    loop {
        link.readable(&deadline).await.map_err(|_| "late".to_owned())?;
        // An odd size, so that records do not end where reads do.
        match link.try_read_vec(&mut answer, 5001) {
            Ok(0) => return Ok(answer),
            Ok(_) if done(&answer) => return Ok(answer),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(code(&error)),
        }
    }
}

fn trusting(authorities: &[&[u8]]) -> Client {
    let authorities = authorities.iter().map(|text| text.to_vec()).collect();
    Client::new(&ClientOptions { authorities, ..ClientOptions::default() }).unwrap()
}

fn anyone() -> Client {
    Client::new(&ClientOptions { accepts_anyone: true, ..ClientOptions::default() }).unwrap()
}

#[test]
fn certificates_are_judged_as_node_judges_them() {
    let made = Authority::new();
    let (nobody, ca) = (Vec::new(), made.read("ca.pem"));
    let own = |name: &str| made.read(name);
    #[rustfmt::skip]
    let cases = [
        // certificate, other certificates sent with it, trusted, requested name, outcome
        ("good.pem", "", &nobody, "localhost", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
        ("good.pem", "", &ca, "localhost", "ok"),
        ("good.pem", "", &ca, "LOCALHOST.", "ok"),
        ("good.pem", "", &ca, "127.0.0.1", "ok"),
        ("good.pem", "", &ca, "127.0.0.2", "ERR_TLS_CERT_ALTNAME_INVALID"),
        ("good.pem", "ca.pem", &nobody, "localhost", "SELF_SIGNED_CERT_IN_CHAIN"),
        ("below.pem", "", &nobody, "localhost", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
        ("below.pem", "", &ca, "localhost", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
        ("below.pem", "between.pem", &nobody, "localhost", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"),
        ("below.pem", "between.pem", &ca, "localhost", "ok"),
        ("good.pem", "", &own("self.pem"), "localhost", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
        ("wrong.pem", "", &ca, "localhost", "ERR_TLS_CERT_ALTNAME_INVALID"),
        ("wrong.pem", "", &nobody, "localhost", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
        ("wrong.pem", "", &ca, "other.test", "ok"),
        ("common.pem", "", &ca, "localhost", "ok"),
        ("common.pem", "", &ca, "other.test", "ERR_TLS_CERT_ALTNAME_INVALID"),
        ("self.pem", "", &nobody, "localhost", "DEPTH_ZERO_SELF_SIGNED_CERT"),
        ("self.pem", "", &own("self.pem"), "localhost", "ok"),
        ("self.pem", "", &own("self.pem"), "other.test", "ERR_TLS_CERT_ALTNAME_INVALID"),
        ("selfcommon.pem", "", &own("selfcommon.pem"), "localhost", "ok"),
        ("selfexpired.pem", "", &nobody, "localhost", "CERT_HAS_EXPIRED"),
        ("selfexpired.pem", "", &own("selfexpired.pem"), "localhost", "CERT_HAS_EXPIRED"),
        ("expired.pem", "", &nobody, "localhost", "CERT_HAS_EXPIRED"),
        ("expired.pem", "", &ca, "localhost", "CERT_HAS_EXPIRED"),
        ("future.pem", "", &ca, "localhost", "CERT_NOT_YET_VALID"),
    ];
    for (certificate, chain, trusted, name, wanted) in cases {
        let server = Openssl::start(&made, certificate, chain, &[]);
        let trusted: Vec<&[u8]> = if trusted.is_empty() { Vec::new() } else { vec![trusted] };
        let client = trusting(&trusted);
        let outcome = worker::block_on(async move {
            match try_hands(server.address, &client, name, None).await {
                Ok(_) => "ok".to_owned(),
                Err(code) => code,
            }
        });
        assert_eq!(outcome.unwrap(), wanted, "{certificate} {chain} as {name}");
    }
}

#[test]
fn anyone_is_accepted_when_told_so() {
    let made = Authority::new();
    for certificate in ["self.pem", "expired.pem", "wrong.pem", "version1.pem"] {
        for version in ["-tls1_2", "-tls1_3"] {
            let server = Openssl::start(&made, certificate, "", &[version]);
            let answer = worker::block_on(async move {
                let tls = try_hands(server.address, &anyone(), "localhost", None).await?;
                let agreed = tls.agreement(Noted::default()).unwrap();
                assert_eq!(agreed.version, if version == "-tls1_2" { "TLSv1.2" } else { "TLSv1.3" });
                ask(&tls.into(), b"GET / HTTP/1.0\r\n\r\n", |_| false).await
            });
            let answer = answer.unwrap().unwrap();
            assert!(answer.starts_with(b"HTTP/1.0 200 ok"), "{certificate} {version}");
        }
    }
}

#[test]
fn servers_that_do_not_shake_hands() {
    let made = Authority::new();
    let old = Openssl::start(&made, "good.pem", "", &["-tls1_2", "-cipher", "AES128-SHA"]);
    let cases = [
        (plain_server(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "EPROTO"),
        (plain_server(b"SSH-2.0-OpenSSH_9.2\r\n"), "EPROTO"),
        (plain_server(b""), "ECONNRESET"),
        (old.address, "EPROTO"),
    ];
    for (address, wanted) in cases {
        let outcome = worker::block_on(async move { try_hands(address, &anyone(), "localhost", None).await.err() });
        assert_eq!(outcome.unwrap().as_deref(), Some(wanted));
    }
    let outcome = worker::block_on(async move { try_hands(old.address, &anyone(), "no name", None).await.err() });
    assert_eq!(outcome.unwrap().as_deref(), Some("ERR_TLS_INVALID_SERVERNAME"));
}

#[test]
fn bodies_of_many_records_come_whole_both_ways() {
    let made = Authority::new();
    let nginx = Nginx::start(&made, "");
    let large: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(made.path("large"), &large).unwrap();
    let client = trusting(&[&made.read("ca.pem")]);
    let address = nginx.address;
    let (down, up, stale) = worker::block_on(async move {
        let link: Transport = try_hands(address, &client, "localhost", None).await.unwrap().into();
        let whole = 3_000_000;
        let get = b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let down = ask(&link, get, |answer| body(answer).is_some_and(|body| body.len() == whole)).await.unwrap();
        // Tickets that arrived meanwhile do not make the connection count as closed.
        let stale = link.peek_closed();
        let mut post =
            format!("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: {whole}\r\n\r\n").into_bytes();
        post.extend_from_slice(body(&down).unwrap());
        let up = ask(&link, &post, |answer| body(answer).is_some_and(|body| body.ends_with(b"\n"))).await.unwrap();
        (down, up, stale)
    })
    .unwrap();
    assert!(body(&down) == Some(&large), "3 MB down");
    assert!(String::from_utf8_lossy(&up).contains("got 3000000 "), "{}", String::from_utf8_lossy(&up));
    assert!(!stale);
}

fn body(answer: &[u8]) -> Option<&[u8]> {
    let at = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    answer.get(at + 4..)
}

#[test]
fn only_its_own_sessions_are_resumed() {
    let made = Authority::new();
    for version in ["TLSv1.2", "TLSv1.3"] {
        let nginx = Nginx::start(&made, &format!("ssl_protocols {version};"));
        let client = trusting(&[&made.read("ca.pem")]);
        let address = nginx.address;
        let resumed = worker::block_on(async move {
            let get = b"GET /who HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            let (one, other) = (Sessions::new(1), Sessions::new(1));
            let mut resumed = Vec::new();
            for sessions in [Some(&one), Some(&one), Some(&other), None, Some(&one)] {
                let tls = try_hands(address, &client, "localhost", sessions).await.unwrap();
                resumed.push(tls.is_resumed());
                let link = tls.into();
                let answer = ask(&link, get, |_| false).await.unwrap();
                let Transport::Tls(tls) = link else { panic!("plain") };
                let word = if tls.is_resumed() { "reused" } else { "fresh" };
                assert!(tls.has_ended_in_order());
                assert!(tls.peek_closed());
                // nginx writes "r" for a reused session and "." for a new one.
                let said = if answer.ends_with(b" r\n") { "reused" } else { "fresh" };
                assert_eq!(word, said, "{}", String::from_utf8_lossy(&answer));
            }
            resumed
        });
        assert_eq!(resumed.unwrap(), [false, true, false, false, true], "{version}");
    }
}

#[test]
fn clients_show_who_they_are() {
    let made = Authority::new();
    let asking = format!("ssl_verify_client on; ssl_client_certificate {};", made.path("ca.pem").display());
    for version in ["TLSv1.2", "TLSv1.3"] {
        let nginx = Nginx::start(&made, &format!("{asking} ssl_protocols {version};"));
        for (certificate, wanted) in [("good.pem", " 200 "), ("", " 400 "), ("self.pem", " 400 ")] {
            let identity = (!certificate.is_empty())
                .then(|| ClientCertificate { certificates: made.read(certificate), key: made.read("leaf.key") });
            let options = ClientOptions { accepts_anyone: true, identity, ..ClientOptions::default() };
            let client = Client::new(&options).unwrap();
            let address = nginx.address;
            let answer = worker::block_on(async move {
                let link = try_hands(address, &client, "localhost", None).await.unwrap().into();
                ask(&link, b"GET /who HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", |_| false).await
            });
            let answer = String::from_utf8(answer.unwrap().unwrap()).unwrap();
            assert!(answer.lines().next().unwrap().contains(wanted), "{version} {certificate}: {answer}");
        }
    }
    // OpenSSL's server refuses during the handshake, or in TLS 1.3 after the client's side of it.
    for (version, wanted) in [("-tls1_2", "EPROTO"), ("-tls1_3", "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED")] {
        let server = Openssl::start(&made, "good.pem", "", &[version, "-Verify", "1"]);
        let outcome = worker::block_on(async move {
            let tls = try_hands(server.address, &anyone(), "localhost", None).await?;
            ask(&tls.into(), b"GET / HTTP/1.0\r\n\r\n", |_| false).await
        });
        assert_eq!(outcome.unwrap().unwrap_err(), wanted, "{version}");
    }
    let mismatched = ClientCertificate { certificates: made.read("good.pem"), key: made.read("ca.key") };
    let error = Client::new(&ClientOptions { identity: Some(mismatched), ..ClientOptions::default() }).unwrap_err();
    assert!(error.to_string().starts_with("does not match the certificate"), "{error}");
}

#[test]
fn protocols_are_agreed_on() {
    let made = Authority::new();
    let nginx = Nginx::start(&made, "http2 on;");
    for (offered, wanted) in
        [(vec!["h2", "http/1.1"], Some("h2")), (vec!["http/1.1"], Some("http/1.1")), (vec![], None)]
    {
        let alpn = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
        let client = Client::new(&ClientOptions { accepts_anyone: true, alpn, ..ClientOptions::default() }).unwrap();
        let address = nginx.address;
        let agreed =
            worker::block_on(async move { try_hands(address, &client, "localhost", None).await.unwrap().alpn() });
        assert_eq!(agreed.unwrap().as_deref(), wanted.map(str::as_bytes));
    }
}
