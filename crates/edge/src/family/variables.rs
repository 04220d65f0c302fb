//! The variables of nginx's http core: request, response, connection, clock.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#variables>
//!
//! Variables that proxies read for every request (`$host`, `$remote_addr`, `$http_…`) only append to the caller's
//! buffer. Variables of files (`$document_root`) and of upstreams are in those families.

mod connection;
pub(crate) mod fields;
mod request;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, UNIX_EPOCH};

use weir_net::{SocketAddress, clock};

use crate::exchange::Exchange;
use crate::family::Family;
use weir_net::log::{hostname, time};
use crate::respond::VERSION;
use crate::variable::{Argument, Variable};

pub(crate) use self::fields::{joined, set_cookie};

crate::settings! {}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new("variables", &[]).variables(&[
    Variable::without_answer("host", request::host),
    Variable::without_answer("remote_addr", connection::remote_addr),
    Variable::without_answer("scheme", |x, _, out| text(out, scheme(x.client))),
    Variable::without_answer("https", |x, _, out| text(out, if x.client.facts().is_some() { b"on" } else { b"" })),
    Variable::without_answer("uri", request::uri),
    Variable::without_answer("document_uri", request::uri),
    Variable::changeable("args", request::args, request::set_args),
    Variable::without_answer("query_string", request::args),
    Variable::without_answer("is_args", request::is_args),
    Variable::without_answer("request_uri", request::request_uri),
    Variable::without_answer("request", request::line),
    Variable::without_answer("request_method", request::method),
    Variable::without_answer("server_protocol", request::protocol),
    Variable::without_answer("request_port", request::port),
    Variable::without_answer("is_request_port", request::is_port),
    Variable::without_answer("request_id", request::id),
    Variable::without_answer("request_length", |x, _, out| decimal(out, x.request_length)),
    Variable::without_answer("request_time", |x, _, out| {
        seconds(out, clock::now().saturating_duration_since(x.started))
    }),
    Variable::without_answer("request_completion", request::completion),
    Variable::without_answer("request_body", request::body),
    Variable::without_answer("request_body_file", request::body_file),
    Variable::without_answer("content_length", request::content_length),
    Variable::without_answer("content_type", fields::content_type),
    Variable::without_answer("pipe", request::pipe),
    Variable::changeable("limit_rate", |x, _, out| decimal(out, x.limit_rate.unwrap_or(0)), request::set_limit_rate),
    Variable::without_answer("status", status),
    Variable::without_answer("bytes_sent", |x, _, out| decimal(out, x.bytes_sent)),
    // nginx includes the framing of chunked bodies, so this is not `Exchange::body_bytes_sent`.
    Variable::without_answer("body_bytes_sent", |x, _, out| {
        decimal(out, x.bytes_sent.saturating_sub(x.head_bytes_sent))
    }),
    Variable::without_answer("server_name", |x, _, out| text(out, x.server.name.as_bytes())),
    Variable::without_answer("server_addr", connection::server_addr),
    Variable::without_answer("server_port", connection::server_port),
    Variable::without_answer("remote_port", connection::remote_port),
    Variable::without_answer("binary_remote_addr", connection::binary_remote_addr),
    Variable::without_answer("connection", |x, _, out| decimal(out, x.client.number)),
    Variable::without_answer("connection_requests", |x, _, out| decimal(out, x.number_on_connection)),
    Variable::without_answer("connection_time", |x, _, out| {
        seconds(out, clock::now().saturating_duration_since(x.client.accepted))
    }),
    Variable::without_answer("proxy_protocol_addr", connection::proxied_source_addr),
    Variable::without_answer("proxy_protocol_port", connection::proxied_source_port),
    Variable::without_answer("proxy_protocol_server_addr", connection::proxied_destination_addr),
    Variable::without_answer("proxy_protocol_server_port", connection::proxied_destination_port),
    Variable::without_answer("proxy_protocol_tlv_", connection::proxied_tlv),
    Variable::without_answer("tcpinfo_rtt", |x, _, out| connection::tcp_info(x, out, |info| info.rtt_us)),
    Variable::without_answer("tcpinfo_rttvar", |x, _, out| connection::tcp_info(x, out, |info| info.rttvar_us)),
    Variable::without_answer("tcpinfo_snd_cwnd", |x, _, out| connection::tcp_info(x, out, |info| info.snd_cwnd)),
    Variable::without_answer("tcpinfo_rcv_space", |x, _, out| connection::tcp_info(x, out, |info| info.rcv_space)),
    Variable::without_answer("hostname", |_, _, out| text(out, hostname().as_bytes())),
    Variable::without_answer("pid", |_, _, out| decimal(out, u64::from(std::process::id()))),
    Variable::without_answer("nginx_version", |_, _, out| text(out, VERSION.as_bytes())),
    Variable::without_answer("msec", |_, _, out| {
        seconds(out, clock::wall().duration_since(UNIX_EPOCH).unwrap_or_default())
    }),
    Variable::without_answer("time_local", |_, _, out| text(out, &time::common())),
    Variable::without_answer("time_iso8601", |_, _, out| text(out, &time::iso8601())),
    Variable::without_answer("http_cookie", fields::cookies),
    Variable::without_answer("http_", fields::http),
    Variable::without_answer("cookie_", fields::request_cookie),
    Variable::without_answer("arg_", request::argument),
    Variable::new("sent_http_content_type", fields::sent_content_type),
    Variable::new("sent_http_content_length", fields::sent_content_length),
    Variable::new("sent_http_last_modified", fields::sent_last_modified),
    Variable::new("sent_http_location", fields::sent),
    Variable::new("sent_http_connection", fields::sent_connection),
    Variable::new("sent_http_keep_alive", fields::sent_keep_alive),
    Variable::new("sent_http_transfer_encoding", fields::sent_transfer_encoding),
    Variable::new("sent_http_", fields::sent),
    Variable::new("sent_trailer_", fields::sent_trailer),
]);

/// `https` over TLS, else `http`.
pub(crate) fn scheme(client: &crate::exchange::Client) -> &'static [u8] {
    if client.facts().is_some() { b"https" } else { b"http" }
}

/// `$status`: three digits; `009` for an HTTP/0.9 request without a response, as in nginx.
fn status(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let is_old = exchange.request.version() == weir_wire::Version::Http09 && !exchange.request.line().is_empty();
    let status = match exchange.response.status {
        0 if is_old => 9,
        status => status,
    };
    write!(out, "{status:03}").is_ok()
}

/// Appends a text; every value that is found uses this function or `decimal`.
pub(crate) fn text(out: &mut Vec<u8>, value: &[u8]) -> bool {
    out.extend_from_slice(value);
    true
}

/// Appends a number.
pub(crate) fn decimal(out: &mut Vec<u8>, number: u64) -> bool {
    weir_wire::encode::push_decimal(out, number);
    true
}

/// Appends `SECONDS.MILLISECONDS`.
pub(crate) fn seconds(out: &mut Vec<u8>, time: Duration) -> bool {
    decimal(out, time.as_secs());
    out.push(b'.');
    three_digits(out, time.subsec_millis());
    true
}

fn three_digits(out: &mut Vec<u8>, millis: u32) {
    let digit = |n: u32| b'0' + (n % 10) as u8;
    out.extend_from_slice(&[digit(millis / 100), digit(millis / 10), digit(millis)]);
}

/// Appends an address without its port: `127.0.0.1`, `::1`, `unix:` and the path if there is one.
pub fn push_address(address: &SocketAddress, out: &mut Vec<u8>) {
    use std::os::unix::ffi::OsStrExt;
    match address {
        SocketAddress::Tcp(tcp) => push_ip(tcp.ip(), out),
        SocketAddress::Unix(path) => {
            out.extend_from_slice(b"unix:");
            out.extend_from_slice(path.as_os_str().as_bytes());
        }
    }
}

/// Appends an IP address; IPv4 avoids the formatting code, because proxies write it for every request.
pub(crate) fn push_ip(ip: IpAddr, out: &mut Vec<u8>) {
    match ip {
        IpAddr::V4(v4) => push_v4(v4, out),
        // Writing to memory does not fail.
        IpAddr::V6(v6) => drop(write!(out, "{v6}")),
    }
}

fn push_v4(ip: Ipv4Addr, out: &mut Vec<u8>) {
    for (index, octet) in ip.octets().into_iter().enumerate() {
        if index > 0 {
            out.push(b'.');
        }
        if octet >= 100 {
            out.push(b'0' + octet / 100);
        }
        if octet >= 10 {
            out.push(b'0' + octet / 10 % 10);
        }
        out.push(b'0' + octet % 10);
    }
}

/// Appends `$request_id`.
pub fn push_request_id(exchange: &Exchange<'_>, out: &mut Vec<u8>) {
    request::push_id(exchange, out);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_are_written_as_nginx_writes_them() {
        for (address, shown) in [
            (SocketAddress::Tcp("127.0.0.1:80".parse().unwrap()), "127.0.0.1"),
            (SocketAddress::Tcp("10.200.99.100:80".parse().unwrap()), "10.200.99.100"),
            (SocketAddress::Tcp("[::1]:80".parse().unwrap()), "::1"),
            (SocketAddress::Tcp("[2001:db8::5]:80".parse().unwrap()), "2001:db8::5"),
            (SocketAddress::Unix("".into()), "unix:"),
            (SocketAddress::Unix("/run/s".into()), "unix:/run/s"),
        ] {
            let mut out = Vec::new();
            push_address(&address, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), shown);
        }
    }

    #[test]
    fn times_have_three_decimals() {
        for (millis, shown) in [(0, "0.000"), (7, "0.007"), (1_234, "1.234"), (60_050, "60.050")] {
            let mut out = Vec::new();
            seconds(&mut out, Duration::from_millis(millis));
            assert_eq!(String::from_utf8_lossy(&out), shown);
        }
    }

    #[test]
    fn no_variable_is_defined_twice() {
        let all = crate::family::FAMILIES.iter().flat_map(|family| family.variables);
        let mut names: Vec<&str> = all.map(|variable| variable.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
