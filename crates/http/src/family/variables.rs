//! The variables of nginx's http core: request, response, connection, clock.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#variables>
//!
//! Variables that proxies read for every request (`$host`, `$remote_addr`, `$http_…`) only append to the caller's
//! buffer. Variables of files (`$document_root`) and of upstreams are in those families.

mod connection;
mod fields;
mod request;

pub use request::find_argument;

use std::io::Write;
use std::time::UNIX_EPOCH;

use crate::exchange::Exchange;
use crate::exchange::variable::Variable;
use crate::read::families::Family;
use crate::send::respond::VERSION;
use crate::text::template::Argument;
use crate::text::texts::{decimal, seconds, text};
use weir_net::clock;
use weir_net::log::{hostname, time};

crate::settings! {}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new("variables", &[]).variables(&[
    Variable::without_answer("host", request::host),
    Variable::without_answer("remote_addr", connection::remote_addr),
    Variable::without_answer("scheme", |x, _, out| text(out, x.client.scheme())),
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
    Variable::without_answer("request_length", |x, _, out| decimal(out, x.bytes.request)),
    Variable::without_answer("request_time", |x, _, out| {
        seconds(out, clock::now().saturating_duration_since(x.facts.started))
    }),
    Variable::without_answer("request_completion", request::completion),
    Variable::without_answer("request_body", request::body),
    Variable::without_answer("request_body_file", request::body_file),
    Variable::without_answer("content_length", request::content_length),
    Variable::without_answer("content_type", fields::content_type),
    Variable::without_answer("pipe", request::pipe),
    Variable::changeable(
        "limit_rate",
        |x, _, out| decimal(out, x.facts.limit_rate.unwrap_or(0)),
        request::set_limit_rate,
    ),
    Variable::without_answer("status", status),
    Variable::without_answer("bytes_sent", |x, _, out| decimal(out, x.bytes.sent)),
    // nginx includes the framing of chunked bodies, so this is not `Exchange::body_bytes_sent`.
    Variable::without_answer("body_bytes_sent", |x, _, out| {
        decimal(out, x.bytes.sent.saturating_sub(x.bytes.head_sent))
    }),
    Variable::without_answer("server_name", |x, _, out| text(out, x.server.name.as_bytes())),
    Variable::without_answer("server_addr", connection::server_addr),
    Variable::without_answer("server_port", connection::server_port),
    Variable::without_answer("remote_port", connection::remote_port),
    Variable::without_answer("binary_remote_addr", connection::binary_remote_addr),
    Variable::without_answer("connection", |x, _, out| decimal(out, x.client.number)),
    Variable::without_answer("connection_requests", |x, _, out| decimal(out, x.facts.number_on_connection)),
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
    Variable::new("sent_http_location", fields::sent_location),
    Variable::new("sent_http_connection", fields::sent_connection),
    Variable::new("sent_http_keep_alive", fields::sent_keep_alive),
    Variable::new("sent_http_transfer_encoding", fields::sent_transfer_encoding),
    Variable::new("sent_http_", fields::sent),
    Variable::new("sent_trailer_", fields::sent_trailer),
]);

/// `$status`: three digits; `009` for an HTTP/0.9 request without a response, as in nginx.
fn status(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let is_old = exchange.request.version() == weir_wire::Version::Http09 && !exchange.request.line().is_empty();
    let status = match exchange.response.status.get() {
        0 if is_old => 9,
        status => status,
    };
    write!(out, "{status:03}").is_ok()
}

/// Appends `$request_id`.
pub fn push_request_id(exchange: &Exchange<'_>, out: &mut Vec<u8>) {
    request::push_id(exchange, out);
}

#[cfg(test)]
mod tests;
