//! `$ssl_*`: the parameters of the connection, and the client's certificate. Not found without TLS.

use weir_http::exchange::Exchange;
use weir_http::exchange::variable::Variable;
use weir_http::hold::client::TlsFacts;
use weir_http::text::template::Argument;
use weir_http::text::texts::text;
use weir_net::Transport;
use weir_net::clock;
use weir_net::tls::ciphers::{group_name, is_grease, suite_name};
use weir_net::tls::{Described, pem_of, signature_name};
use weir_stream::session::Session;
use weir_stream::variable as of_session;

/// Makes the variables of exchanges and those of sessions from one list.
macro_rules! both {
    ($($name:literal: $get:expr;)*) => {
        /// Those of exchanges.
        pub(super) static ALL: &[Variable] = &[
            $( Variable::without_answer($name, $get), )*
            Variable::without_answer("ssl_early_data", early_data),
        ];

        /// Those of sessions.
        pub(super) static OF_SESSIONS: &[of_session::Variable] = &[ $( of_session::Variable::new($name, $get), )* ];
    };
}

both! {
    "ssl_protocol": |x, _, out| agreed(x, out, |facts, out| {
        out.extend_from_slice(facts.agreed.get().map_or("", |agreed| agreed.protocol).as_bytes());
    });
    "ssl_cipher": |x, _, out| agreed(x, out, |facts, out| {
        out.extend(facts.agreed.get().map(|agreed| suite_name(agreed.cipher)).unwrap_or_default().as_bytes());
    });
    "ssl_curve": |x, _, out| agreed(x, out, |facts, out| {
        let group = facts.agreed.get().map_or(0, |agreed| agreed.group);
        if group != 0 {
            out.extend(group_name(group).as_bytes());
        }
    });
    "ssl_alpn_protocol": |x, _, out| agreed(x, out, |facts, out| {
        out.extend_from_slice(facts.agreed.get().map_or(&[], |agreed| &agreed.alpn));
    });
    "ssl_session_reused": |x, _, out| agreed(x, out, |facts, out| {
        out.push(if facts.agreed.get().is_some_and(|agreed| agreed.is_resumed) { b'r' } else { b'.' });
    });
    "ssl_session_id": |x, _, out| agreed(x, out, |facts, out| hex(&facts.random, out));
    "ssl_sigalg": |x, _, out| agreed(x, out, |facts, out| {
        let scheme = facts.agreed.get().and_then(|agreed| agreed.noted.signature);
        out.extend(scheme.map(signature_name).unwrap_or_default().as_bytes());
    });
    "ssl_client_sigalg": |x, _, out| agreed(x, out, |facts, out| {
        let scheme = facts.agreed.get().and_then(|agreed| agreed.noted.client_signature);
        out.extend(scheme.map(signature_name).unwrap_or_default().as_bytes());
    });
    // weir has no key for encrypted hellos. nginx without such a key, or with an OpenSSL that has none, shows nothing too.
    "ssl_ech_status": |_, _, _| false;
    "ssl_ech_outer_server_name": |_, _, _| false;
    "ssl_ciphers": |x, _, out| offered(x, out, |hello| &hello.ciphers, suite_name);
    "ssl_curves": |x, _, out| offered(x, out, |hello| &hello.groups, group_name);
    "ssl_sigalgs": |x, _, out| offered(x, out, |hello| &hello.signatures, signature_name);
    "ssl_server_name": |x, _, out| match x.facts().and_then(|facts| facts.server_name.as_ref()) {
        Some(name) => text(out, name.as_bytes()),
        None => false,
    };
    "ssl_client_cert": |x, _, out| client_cert(x, out);
    "ssl_client_raw_cert": |x, _, out| client(x, out, |it| it.pem());
    "ssl_client_escaped_cert": |x, _, out| client(x, out, |it| escaped(&it.pem()));
    "ssl_client_s_dn": |x, _, out| client(x, out, |it| it.subject());
    "ssl_client_i_dn": |x, _, out| client(x, out, |it| it.issuer());
    "ssl_client_s_dn_legacy": |x, _, out| client(x, out, |it| it.subject_line());
    "ssl_client_i_dn_legacy": |x, _, out| client(x, out, |it| it.issuer_line());
    "ssl_client_serial": |x, _, out| client(x, out, |it| it.serial());
    "ssl_client_fingerprint": |x, _, out| client(x, out, |it| it.fingerprint());
    "ssl_client_v_start": |x, _, out| client(x, out, |it| it.starts());
    "ssl_client_v_end": |x, _, out| client(x, out, |it| it.ends());
    "ssl_client_v_remain": |x, _, out| {
        let now = i64::try_from(clock::unix_seconds()).unwrap_or(i64::MAX);
        client(x, out, |it| it.days_left(now).to_string())
    };
    "ssl_client_verify": |x, _, out| client_verify(x, out);
}

/// Something with a client that may speak TLS.
trait Secure {
    /// The facts about its TLS.
    fn facts(&self) -> Option<&TlsFacts>;
}

impl Secure for Exchange<'_> {
    fn facts(&self) -> Option<&TlsFacts> {
        self.client.facts()
    }
}

impl Secure for Session<'_> {
    fn facts(&self) -> Option<&TlsFacts> {
        self.facts.get().map(Box::as_ref)
    }
}

/// Writes a fact about the TLS connection. nginx: an empty value is not found, and a log shows `-`.
fn agreed(of: &impl Secure, out: &mut Vec<u8>, write: impl FnOnce(&TlsFacts, &mut Vec<u8>)) -> bool {
    let before = out.len();
    of.facts().map(|facts| write(facts, out)).is_some_and(|()| out.len() > before)
}

/// Writes names with colons between them.
fn offered(
    of: &impl Secure,
    out: &mut Vec<u8>,
    list: fn(&weir_net::tls::ClientHello) -> &Vec<u16>,
    name: fn(u16) -> String,
) -> bool {
    let Some(hello) = of.facts().and_then(|facts| facts.offered.as_ref()) else { return false };
    let before = out.len();
    for (index, id) in list(hello).iter().filter(|id| !is_grease(**id)).enumerate() {
        if index > 0 {
            out.push(b':');
        }
        out.extend(name(*id).as_bytes());
    }
    out.len() > before
}

/// Writes a fact about the client's certificate.
fn client(of: &impl Secure, out: &mut Vec<u8>, describe: impl FnOnce(Described<'_>) -> String) -> bool {
    agreed(of, out, |facts, out| {
        if let Some(described) = facts.shown().and_then(|(der, _)| Described::read(der).ok()) {
            out.extend(describe(described).as_bytes());
        }
    })
}

/// In the form of a request field: without the last line end, and with a tab after each other line end.
fn client_cert(of: &impl Secure, out: &mut Vec<u8>) -> bool {
    agreed(of, out, |facts, out| {
        if let Some((der, _)) = facts.shown() {
            out.extend(pem_of(der).trim_end().replace('\n', "\n\t").as_bytes());
        }
    })
}

fn client_verify(of: &impl Secure, out: &mut Vec<u8>) -> bool {
    agreed(of, out, |facts, out| match facts.shown() {
        None => out.extend_from_slice(b"NONE"),
        Some((_, Ok(()))) => out.extend_from_slice(b"SUCCESS"),
        Some((_, Err(complaint))) => {
            out.extend_from_slice(b"FAILED:");
            out.extend_from_slice(complaint.text.as_bytes());
        }
    })
}

/// `1` while the request may be a replay: the handshake is not complete.
fn early_data(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let is_early = match &exchange.client.shared.stream {
        Transport::Tls(tls) => tls.is_handshaking(),
        Transport::Carried(carried) => carried.is_early(),
        Transport::Plain(_) => false,
    };
    exchange.client.facts().is_some() && is_early && text(out, b"1")
}

/// nginx's `NGX_ESCAPE_URI_COMPONENT`: the unreserved characters of RFC 3986 stay.
fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len() * 3 / 2);
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.extend(format!("{byte:02x}").as_bytes());
    }
}
