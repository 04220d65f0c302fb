//! The variables of nginx's stream core and of its upstreams.
//!
//! <https://nginx.org/en/docs/stream/ngx_stream_core_module.html#variables>

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, UNIX_EPOCH};

use weir_http::read::families::Family;
use weir_http::send::respond::VERSION;
use weir_http::text::template::Argument;
use weir_http::text::texts::{decimal, push_address, push_ip, seconds, text};
use weir_net::SocketAddress;
use weir_net::clock;
use weir_net::log::{hostname, time};
use weir_wire::proxy_protocol;

use crate::attempt::Try;
use crate::session::Session;
use crate::variable::Variable;

weir_http::settings! {}

/// Nothing is declared for all of `stream`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new("stream_variables", &[]);

/// Its variables.
#[rustfmt::skip]
pub static VARIABLES: &[Variable] = &[
    Variable::new("binary_remote_addr", binary_remote_addr),
    Variable::new("remote_addr", |s, _, out| { push_address(s.remote(), out); true }),
    Variable::new("remote_port", |s, _, out| port(s.remote(), out)),
    Variable::new("server_addr", |s, _, out| { push_address(&s.local(), out); true }),
    Variable::new("server_port", |s, _, out| port(&s.local(), out)),
    Variable::new("server_name", |s, _, out| text(out, s.server.name.as_bytes())),
    Variable::new("proxy_protocol_addr", |s, _, out| address_of(s.proxied.as_ref().map(|p| p.source), out)),
    Variable::new("proxy_protocol_port", |s, _, out| port_of(s.proxied.as_ref().map(|p| p.source), out)),
    Variable::new("proxy_protocol_server_addr", |s, _, out| address_of(s.proxied.as_ref().map(|p| p.destination), out)),
    Variable::new("proxy_protocol_server_port", |s, _, out| port_of(s.proxied.as_ref().map(|p| p.destination), out)),
    Variable::new("proxy_protocol_tlv_", proxied_tlv),
    Variable::new("bytes_sent", |s, _, out| decimal(out, s.sent)),
    Variable::new("bytes_received", |s, _, out| decimal(out, s.received)),
    Variable::new("session_time", |s, _, out| seconds(out, clock::now().saturating_duration_since(s.started))),
    Variable::new("status", |s, _, out| text(out, format!("{:03}", s.status).as_bytes())),
    Variable::new("connection", |s, _, out| decimal(out, s.number)),
    Variable::new("nginx_version", |_, _, out| text(out, VERSION.as_bytes())),
    Variable::new("hostname", |_, _, out| text(out, hostname().as_bytes())),
    Variable::new("pid", |_, _, out| decimal(out, u64::from(std::process::id()))),
    Variable::new("msec", |_, _, out| seconds(out, clock::wall().duration_since(UNIX_EPOCH).unwrap_or_default())),
    Variable::new("time_iso8601", |_, _, out| text(out, &time::iso8601())),
    Variable::new("time_local", |_, _, out| text(out, &time::common())),
    Variable::new("protocol", |s, _, out| text(out, if s.is_datagram { b"UDP" } else { b"TCP" })),
    Variable::new("upstream_addr", |s, _, out| each(s, out, |attempt, out| text(out, attempt.peer.as_bytes()))),
    Variable::new("upstream_bytes_sent", |s, _, out| each(s, out, |attempt, out| decimal(out, attempt.sent))),
    Variable::new("upstream_bytes_received", |s, _, out| each(s, out, |attempt, out| decimal(out, attempt.received))),
    Variable::new("upstream_connect_time", |s, _, out| each(s, out, |attempt, out| duration(attempt.connect, out))),
    Variable::new("upstream_first_byte_time", |s, _, out| each(s, out, |attempt, out| duration(attempt.first_byte, out))),
    Variable::new("upstream_session_time", |s, _, out| each(s, out, |attempt, out| duration(attempt.session, out))),
];

/// `$binary_remote_addr`: 4 or 16 bytes; the text for a unix socket.
fn binary_remote_addr(session: &mut Session<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    match session.remote().tcp().map(|tcp| tcp.ip()) {
        Some(IpAddr::V4(ip)) => out.extend_from_slice(&ip.octets()),
        Some(IpAddr::V6(ip)) => out.extend_from_slice(&ip.octets()),
        None => push_address(session.remote(), out),
    }
    true
}

fn proxied_tlv(session: &mut Session<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    let Some(proxied) = &session.proxied else { return false };
    proxy_protocol::tlv(&proxied.tlvs, &argument.name, out)
}

/// Empty, but found, for a unix socket.
fn port(address: &SocketAddress, out: &mut Vec<u8>) -> bool {
    if let Some(tcp) = address.tcp() {
        decimal(out, u64::from(tcp.port()));
    }
    true
}

fn address_of(address: Option<SocketAddr>, out: &mut Vec<u8>) -> bool {
    address.map(|address| push_ip(address.ip(), out)).is_some()
}

fn port_of(address: Option<SocketAddr>, out: &mut Vec<u8>) -> bool {
    address.map(|address| decimal(out, u64::from(address.port()))).is_some()
}

/// A value for each try, `, ` between them; not found without a try.
fn each(session: &mut Session<'_>, out: &mut Vec<u8>, write: impl Fn(&Try, &mut Vec<u8>) -> bool) -> bool {
    for (number, attempt) in session.tries.iter().enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        write(attempt, out);
    }
    !session.tries.is_empty()
}

fn duration(time: Option<Duration>, out: &mut Vec<u8>) -> bool {
    match time {
        Some(time) => seconds(out, time),
        None => text(out, b"-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::Content;
    use crate::tests::{Edge, on_worker};
    use std::rc::Rc;
    use weir_http::hold::client::Proxied;
    use weir_net::Address;

    fn attempt(peer: &str, connect: Option<u64>, first: Option<u64>) -> Try {
        let ms = |ms: Option<u64>| ms.map(Duration::from_millis);
        let (connect, first_byte, session) = (ms(connect), ms(first), ms(Some(1500)));
        Try { connect, first_byte, session, sent: 10, received: 20, ..Try::new(Rc::from(peer)) }
    }

    /// The value of a text in a session that has learnt everything.
    fn value(text: &'static str, learns: bool) -> String {
        on_worker(async move {
            let edge = Edge::new(&format!(
                "server {{ listen 127.0.0.1:1; server_name a.test; set $mine \"<$protocol>\"; return \"{text}\"; }} \
                 server {{ listen 127.0.0.1:9; set $theirs x; return a; }}"
            ));
            let mut session = edge.session();
            session.came_to(Address::Tcp("203.0.113.9:80".parse().unwrap()));
            session.number = 42;
            if learns {
                session.is_datagram = false;
                (session.sent, session.received, session.status) = (5, 6, 200);
                session.tries.push(attempt("127.0.0.1:1", None, None));
                session.tries.push(attempt("unix:/a", Some(1), Some(20)));
                let proxied = Proxied {
                    source: "198.51.100.1:1111".parse().unwrap(),
                    destination: "[2001:db8::1]:2222".parse().unwrap(),
                    tlvs: vec![1, 0, 2, b'h', b'2'].into(),
                };
                session.proxied = Some(Box::new(proxied));
            }
            crate::family::set::run(&mut session);
            let Content::Return(text) = &session.server.content else { panic!("it returns a text") };
            String::from_utf8_lossy(&text.text(&mut session)).into_owned()
        })
    }

    #[test]
    fn each_variable_has_nginx_s_form() {
        // The text; its value in a session that just began; its value at the end of one.
        for (text, first, last) in [
            ("$remote_addr $remote_port", "192.0.2.7 5555", "192.0.2.7 5555"),
            ("$server_addr $server_port", "203.0.113.9 80", "203.0.113.9 80"),
            ("$server_name $connection", "a.test 42", "a.test 42"),
            ("$protocol $mine", "UDP <UDP>", "TCP <TCP>"),
            ("[$theirs]", "[]", "[]"),
            ("$status $bytes_sent $bytes_received", "000 0 0", "200 5 6"),
            ("[$proxy_protocol_addr]", "[]", "[198.51.100.1]"),
            ("[$proxy_protocol_port]", "[]", "[1111]"),
            ("[$proxy_protocol_server_addr]", "[]", "[2001:db8::1]"),
            ("[$proxy_protocol_server_port]", "[]", "[2222]"),
            ("[$proxy_protocol_tlv_alpn]", "[]", "[h2]"),
            ("[$proxy_protocol_tlv_authority]", "[]", "[]"),
            ("[$upstream_addr]", "[]", "[127.0.0.1:1, unix:/a]"),
            ("[$upstream_bytes_sent]", "[]", "[10, 10]"),
            ("[$upstream_bytes_received]", "[]", "[20, 20]"),
            ("[$upstream_connect_time]", "[]", "[-, 0.001]"),
            ("[$upstream_first_byte_time]", "[]", "[-, 0.020]"),
            ("[$upstream_session_time]", "[]", "[1.500, 1.500]"),
            ("[$ssl_preread_server_name]", "[]", "[]"),
        ] {
            assert_eq!([value(text, false), value(text, true)], [first, last], "{text}");
        }
    }

    #[test]
    fn a_binary_address_has_its_family_s_length_and_a_unix_socket_its_name() {
        on_worker(async {
            let edge = Edge::new("server { listen 127.0.0.1:1; return a; }");
            let mut session = edge.session();
            for (remote, expected) in [
                ("192.0.2.7:1", &[192, 0, 2, 7][..]),
                ("[2001:db8::1]:1", &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
                ("unix:/a", b"unix:/a"),
            ] {
                let mut out = Vec::new();
                session.tell_remote(weir_http::read::authority::literal_address(remote).unwrap());
                let nothing = Argument { name: String::new(), index: 0 };
                assert!(binary_remote_addr(&mut session, &nothing, &mut out));
                assert_eq!(out, expected, "{remote}");
                out.clear();
                assert!(port(session.remote(), &mut out));
                assert_eq!(out, if remote.starts_with("unix") { &b""[..] } else { b"1" }, "{remote}");
            }
        });
    }
}
