//! `$upstream_…`: the results of the tries at upstreams, one value each.
//!
//! <https://nginx.org/en/docs/http/ngx_http_upstream_module.html#variables>
//!
//! Values of several tries are joined by `, `, or by ` : ` if an internal redirect happened between them.

use std::time::Duration;

use weir_http::exchange::Exchange;
use weir_http::exchange::message::Try;
use weir_http::exchange::variable::Variable;
use weir_http::read::families::Family;
use weir_http::text::template::Argument;
use weir_http::text::texts::{decimal, joined, seconds, set_cookie, text};
use weir_wire::Known;

weir_http::settings! {}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new("upstream_variables", &[]).variables(&[
    Variable::without_answer("upstream_addr", |x, _, out| {
        list(x.tries, out, |one, out| text(out, one.peer.as_bytes()))
    }),
    Variable::without_answer("upstream_status", |x, _, out| {
        list(x.tries, out, |one, out| one.status != 0 && decimal(out, u64::from(one.status)))
    }),
    Variable::without_answer("upstream_connect_time", |x, _, out| {
        list(x.tries, out, |one, out| time(one.connect_us.map(u64::from), out))
    }),
    Variable::without_answer("upstream_queue_time", |x, _, out| {
        list(x.tries, out, |one, out| time(Some(one.queue_us), out))
    }),
    Variable::without_answer("upstream_header_time", |x, _, out| {
        list(x.tries, out, |one, out| time(one.header_us, out))
    }),
    Variable::without_answer("upstream_response_time", |x, _, out| {
        list(x.tries, out, |one, out| time(one.response_us, out))
    }),
    Variable::without_answer("upstream_response_length", |x, _, out| {
        list(x.tries, out, |one, out| decimal(out, one.response_length))
    }),
    Variable::without_answer("upstream_bytes_received", |x, _, out| {
        list(x.tries, out, |one, out| decimal(out, one.bytes_received))
    }),
    Variable::without_answer("upstream_bytes_sent", |x, _, out| {
        list(x.tries, out, |one, out| decimal(out, one.bytes_sent))
    }),
    Variable::new("upstream_http_", http),
    Variable::new("upstream_cookie_", cookie),
    Variable::new("upstream_trailer_", trailer),
]);

/// Appends one value for each try; `-` where `value` has none. Not found if there was no try.
fn list(tries: &[Try], out: &mut Vec<u8>, value: impl Fn(&Try, &mut Vec<u8>) -> bool) -> bool {
    for (index, one) in tries.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(if one.after_redirect { b" : " } else { b", " });
        }
        if !value(one, out) {
            out.push(b'-');
        }
    }
    !tries.is_empty()
}

fn time(micros: Option<u64>, out: &mut Vec<u8>) -> bool {
    micros.is_some_and(|micros| seconds(out, Duration::from_micros(micros)))
}

fn http(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    let Some(origin) = &exchange.origin else {
        return false;
    };
    let fields = origin.head.fields.iter();
    joined(
        fields.map(|field| (field.name.of(&origin.bytes), field.value.of(&origin.bytes))),
        &argument.name,
        b", ",
        out,
    )
}

fn cookie(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    let Some(origin) = &exchange.origin else {
        return false;
    };
    let mut lines = origin.head.fields.iter().filter(|field| field.known == Some(Known::SetCookie));
    lines
        .find_map(|field| set_cookie(field.value.of(&origin.bytes), argument.name.as_bytes()))
        .is_some_and(|value| text(out, value))
}

/// nginx: the trailers of HTTP/1.1 are read only if they are passed on (`proxy_pass_trailers`).
fn trailer(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    let Some(origin) = &exchange.origin else { return false };
    joined(origin.trailers.iter().map(|field| (field.name, field.value)), &argument.name, b", ", out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(peer: &str, status: u16, header_ms: Option<u64>, after_redirect: bool) -> Try {
        Try { status, header_us: header_ms.map(|ms| ms * 1000), after_redirect, ..Try::at(peer.into()) }
    }

    fn shown(tries: &[Try], value: impl Fn(&Try, &mut Vec<u8>) -> bool) -> Option<String> {
        let mut out = Vec::new();
        list(tries, &mut out, value).then(|| String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn attempts_are_listed_as_in_nginx() {
        let tries = [
            attempt("127.0.0.1:81", 502, None, false),
            attempt("127.0.0.1:82", 200, Some(12), false),
            attempt("unix:/s", 0, Some(1_003), true),
        ];
        let peers = shown(&tries, |one, out| text(out, one.peer.as_bytes()));
        assert_eq!(peers.as_deref(), Some("127.0.0.1:81, 127.0.0.1:82 : unix:/s"));
        let status = shown(&tries, |one, out| one.status != 0 && decimal(out, u64::from(one.status)));
        assert_eq!(status.as_deref(), Some("502, 200 : -"));
        let times = shown(&tries, |one, out| time(one.header_us, out));
        assert_eq!(times.as_deref(), Some("-, 0.012 : 1.003"));
        assert_eq!(shown(&[], |_, _| true), None);
    }
}
