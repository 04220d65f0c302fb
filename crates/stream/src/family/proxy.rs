//! `proxy_pass` of `stream`: which peer gets a session, and how weir relays it.
//!
//! <https://nginx.org/en/docs/stream/ngx_stream_proxy_module.html>

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use weir_conf::Statement;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, ONE, SS, STREAM_SERVER};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;
use weir_net::Local;

use super::server::{Written, serve_by};

weir_http::settings! {
    /// `proxy_bind`.
    bind: Bind = Bind::Off,
    /// `proxy_socket_keepalive`.
    keepalive: bool = false,
    /// `proxy_socket_rcvbuf`.
    receive_buffer: usize = 0,
    /// `proxy_socket_sndbuf`.
    send_buffer: usize = 0,
    /// `proxy_connect_timeout`.
    connect_timeout: Duration = Duration::from_secs(60),
    /// `proxy_timeout`.
    timeout: Duration = Duration::from_secs(600),
    /// `proxy_buffer_size`.
    buffer: usize = BUFFER_DEFAULT,
    /// `proxy_upload_rate`, bytes a second.
    upload_rate: Option<Template> = None,
    /// `proxy_download_rate`, bytes a second.
    download_rate: Option<Template> = None,
    /// `proxy_requests`.
    requests: u64 = 0,
    /// `proxy_responses`; `None` for any number.
    responses: Option<u64> = None,
    /// `proxy_next_upstream`.
    next: bool = true,
    /// `proxy_next_upstream_tries`.
    next_tries: u32 = 0,
    /// `proxy_next_upstream_timeout`.
    next_timeout: Duration = Duration::ZERO,
    /// `proxy_protocol`.
    protocol: Header = Header::Off,
    /// `proxy_half_close`.
    half_close: bool = false,
}

/// Bytes that weir reads at a time (nginx: 16 KiB).
pub const BUFFER_DEFAULT: usize = 64 << 10;

/// The largest buffer: a session whose client or peer reads nothing holds two (nginx has no limit).
const BUFFER_BYTES_MAX: u64 = 64 << 20;

/// Nothing is declared for all of `stream`.
pub type Declared = ();

/// `proxy_bind`.
#[derive(Clone)]
pub enum Bind {
    /// The kernel chooses.
    Off,
    /// This address.
    To(Local),
    /// The value of a text; it may be an address of another machine if the flag is set.
    Named(Template, bool),
}

/// `proxy_protocol`: the header before the client's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// None.
    Off,
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

macro_rules! time {
    ($name:literal, $field:ident, $default:literal, $doc:literal) => {
        Directive::new($name, SS, ONE, $doc, |b, s| {
            crate::settings(b).proxy.$field = Some(value::time(s)?);
            Ok(())
        })
        .default($default)
    };
}

macro_rules! flag {
    ($name:literal, $field:ident, $default:literal, $doc:literal) => {
        Directive::new($name, SS, Arity::Flag, $doc, |b, s| {
            crate::settings(b).proxy.$field = Some(value::flag(s)?);
            Ok(())
        })
        .default($default)
    };
}

/// The family.
#[rustfmt::skip]
pub static FAMILY: Family = Family::new("stream_proxy", &[
    Directive::new("proxy_pass", STREAM_SERVER, ONE,
        "Passes sessions to an address, to a unix socket or to a group; the text may have variables.", pass),
    Directive::new("proxy_bind", SS, Arity::Between(1, 2), "The local address of connections to peers; with transparent it may be an address of another machine.", bind).default("off"),
    flag!("proxy_socket_keepalive", keepalive, "off", "Lets the kernel probe silent connections to peers."),
    Directive::new("proxy_socket_rcvbuf", SS, ONE, "The kernel's receive buffer of connections to peers.",
        |b, s| { crate::settings(b).proxy.receive_buffer = Some(value::size(s)? as usize); Ok(()) }),
    Directive::new("proxy_socket_sndbuf", SS, ONE, "The kernel's send buffer of connections to peers.",
        |b, s| { crate::settings(b).proxy.send_buffer = Some(value::size(s)? as usize); Ok(()) }),
    time!("proxy_connect_timeout", connect_timeout, "60s", "The longest time for connecting to a peer."),
    time!("proxy_timeout", timeout, "10m", "How long a session may be silent in both directions."),
    Directive::new("proxy_buffer_size", SS, ONE, "The most bytes that weir reads from a side at a time.", buffer)
        .default("64k (nginx: 16k)"),
    Directive::new("proxy_downstream_buffer", SS, ONE, "An old name of proxy_buffer_size.", buffer),
    Directive::new("proxy_upstream_buffer", SS, ONE, "An old name of proxy_buffer_size.", buffer),
    Directive::new("proxy_upload_rate", SS, ONE, "Bytes a second from a client; 0 for no limit.",
        |b, s| { let rate = rate(b, s)?; crate::settings(b).proxy.upload_rate = Some(Some(rate)); Ok(()) }).default("0"),
    Directive::new("proxy_download_rate", SS, ONE, "Bytes a second from a peer; 0 for no limit.",
        |b, s| { let rate = rate(b, s)?; crate::settings(b).proxy.download_rate = Some(Some(rate)); Ok(()) }).default("0"),
    Directive::new("proxy_requests", SS, ONE,
        "After so many datagrams of a client, its next datagram begins a new session; 0 for never.",
        |b, s| { crate::settings(b).proxy.requests = Some(value::first_number(s)?); Ok(()) }).default("0"),
    Directive::new("proxy_responses", SS, ONE,
        "The number of datagrams that answer one datagram of a client; then the session ends.",
        |b, s| { crate::settings(b).proxy.responses = Some(Some(value::first_number(s)?)); Ok(()) }),
    flag!("proxy_next_upstream", next, "on", "Tries another peer if a connection cannot be made."),
    Directive::new("proxy_next_upstream_tries", SS, ONE, "The most peers that weir tries; 0 for no limit.",
        |b, s| { crate::settings(b).proxy.next_tries = Some(value::at_most(s, u64::from(u32::MAX))? as u32); Ok(()) })
        .default("0"),
    time!("proxy_next_upstream_timeout", next_timeout, "0", "How long weir tries other peers; 0 for no limit."),
    Directive::new("proxy_protocol", SS, ONE, "Sends a PROXY protocol header to the peer: on for version 1, or v2.",
        |b, s| {
            let choices = [("off", Header::Off), ("on", Header::V1), ("v2", Header::V2)];
            crate::settings(b).proxy.protocol = Some(value::choice(s, &choices)?);
            Ok(())
        }).default("off"),
    flag!("proxy_half_close", half_close, "off", "Keeps one direction open after the other has ended."),
]);

fn pass(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let text = statement.text(0);
    let template = b.template(text)?;
    let written = match template.literal() {
        Some(_) => Written::Proxy(text.to_owned()),
        None => Written::ProxyNamed(template),
    };
    serve_by(b, written);
    Ok(())
}

fn bind(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let text = statement.text(0);
    let transparent = match statement.args.get(1).map(|word| word.text.as_str()) {
        None => false,
        Some("transparent") => true,
        Some(other) => return Err(Refusal::whole(format!("invalid parameter \"{other}\""))),
    };
    b.keeps_raw |= transparent;
    let bind = match (text, text.contains('$')) {
        ("off", _) => Bind::Off,
        (_, true) => Bind::Named(b.template(text)?, transparent),
        _ => {
            let address = local(text).ok_or_else(|| Refusal::whole(format!("invalid address \"{text}\"")))?;
            Bind::To(Local { address, transparent })
        }
    };
    crate::settings(b).proxy.bind = Some(bind);
    Ok(())
}

/// An address with or without a port.
pub fn local(text: &str) -> Option<SocketAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    match bare.parse::<IpAddr>() {
        Ok(ip) => Some(SocketAddr::new(ip, 0)),
        Err(_) => text.parse().ok(),
    }
}

fn buffer(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let size = value::size(statement)?;
    if !(1..=BUFFER_BYTES_MAX).contains(&size) {
        return Err(Refusal::directive("invalid value").weirs_own().todo("write a size from 1 to 64m"));
    }
    crate::settings(b).proxy.buffer = Some(size as usize);
    Ok(())
}

/// A size, or a text with variables that gives a size at run time.
fn rate(b: &mut Build<'_>, statement: &Statement) -> Result<Template, Refusal> {
    if !statement.text(0).contains('$') {
        value::size(statement)?;
    }
    b.template(statement.text(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_may_have_a_port() {
        for (text, address) in [
            ("127.0.0.1", Some("127.0.0.1:0")),
            ("127.0.0.1:5", Some("127.0.0.1:5")),
            ("[::1]", Some("[::1]:0")),
            ("[::1]:7", Some("[::1]:7")),
            ("name", None),
        ] {
            assert_eq!(local(text).map(|address| address.to_string()).as_deref(), address, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_nginx_words() {
        for (directive, words) in [
            ("proxy_bind name", "invalid address \"name\""),
            ("proxy_bind 127.0.0.1 opaque", "invalid parameter \"opaque\""),
            ("proxy_buffer_size 0", "\"proxy_buffer_size\" directive invalid value"),
            ("proxy_buffer_size 65m", "\"proxy_buffer_size\" directive invalid value"),
            ("proxy_timeout x", "\"proxy_timeout\" directive invalid value"),
            ("proxy_protocol v3", "invalid value \"v3\""),
            (
                "proxy_half_close maybe",
                "invalid value \"maybe\" in \"proxy_half_close\" directive, it must be \"on\" or \"off\"",
            ),
            ("proxy_requests x", "\"proxy_requests\" directive invalid number"),
            ("proxy_next_upstream_tries -1", "\"proxy_next_upstream_tries\" directive invalid number"),
            ("proxy_upload_rate x", "\"proxy_upload_rate\" directive invalid value"),
            ("proxy_pass 127.0.0.1:0", "invalid port in upstream \"127.0.0.1:0\""),
            ("proxy_pass $nothing", "unknown \"nothing\" variable"),
        ] {
            let told = crate::tests::problems(&format!("server {{ listen 1; {directive}; }}"));
            assert_eq!(told, [words], "{directive}");
        }
    }

    #[test]
    fn settings_of_the_block_reach_its_servers_unless_these_have_their_own() {
        let text = "events {} stream { proxy_timeout 3s; proxy_half_close on; proxy_responses 2; \
                    server { listen 1; proxy_pass 127.0.0.1:1; } \
                    server { listen 2; proxy_pass 127.0.0.1:1; proxy_timeout 5s; proxy_half_close off; } }";
        let conf = crate::of_text(text).0.unwrap();
        let shown: Vec<_> = crate::conf::of(&conf)
            .servers
            .iter()
            .map(|server| {
                let values = &crate::values(&server.place).proxy;
                (values.timeout.as_secs(), values.half_close, values.responses, values.connect_timeout.as_secs())
            })
            .collect();
        assert_eq!(shown, [(3, true, Some(2), 60), (5, false, Some(2), 60)]);
    }
}
