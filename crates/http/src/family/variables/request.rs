//! Variables of the request: its line, its target, its body.

use std::hash::{BuildHasher, RandomState};
use std::io::Write;

use crate::exchange::Exchange;
use crate::exchange::request_body::RequestBody;
use crate::exchange::subrequest;
use crate::text::template::Argument;
use crate::text::texts::{decimal, text};
use crate::text::value;
use weir_net::log::Level;
use weir_wire::{BodyLength, Known};

/// `$host`: from the request line, else the `Host` field, else the server's name.
pub fn host(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    match exchange.request.host.as_slice() {
        b"" => text(out, exchange.server.name.as_bytes()),
        host => text(out, host),
    }
}

/// `$uri` and `$document_uri`: empty, but found, if the target could not be normalised.
pub fn uri(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    !exchange.request.line().is_empty() && text(out, exchange.uri)
}

/// `$args` and `$query_string`.
pub fn args(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    !exchange.args.is_empty() && text(out, exchange.args)
}

/// `set $args …`.
pub fn set_args(exchange: &mut Exchange<'_>, value: &[u8]) {
    exchange.args.clear();
    exchange.args.extend_from_slice(value);
    exchange.flags.target_is_valid = false;
}

/// `$is_args`.
pub fn is_args(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    text(out, if exchange.args.is_empty() { b"" } else { b"?" })
}

/// `$arg_NAME`: the first such argument; names are compared without regard to case.
pub fn argument(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    find_argument(exchange.args, argument.name.as_bytes()).is_some_and(|value| text(out, value))
}

/// The first argument of this name in a query string; names are compared without regard to case.
pub fn find_argument<'a>(args: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    args.split(|byte| *byte == b'&').find_map(|pair| {
        let value = pair.get(name.len()..)?.strip_prefix(b"=")?;
        pair.get(..name.len())?.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// `$request_uri`: as the client wrote it, without a scheme and host in front.
pub fn request_uri(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let request = &exchange.request;
    match request.text(request.head.path) {
        b"" => !request.target().is_empty() && text(out, b"/"),
        path => text(out, path),
    }
}

/// `$request`: the request line; for an unreadable line, the part that was received.
pub fn line(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let request = &exchange.request;
    let line = match request.line() {
        b"" => request.bytes.split(|byte| matches!(byte, b'\r' | b'\n')).find(|line| !line.is_empty()),
        line => Some(line),
    };
    line.is_some_and(|line| text(out, line))
}

/// `$request_method`: the client's, also in a subrequest, or the `GET` that `error_page` or `X-Accel-Redirect` put in
/// its place.
pub fn method(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    if exchange.flags.is_subrequest
        && let Some(method) = subrequest::client_method(exchange)
    {
        return text(out, method);
    }
    let method = exchange.request.method();
    !method.is_empty() && text(out, method)
}

/// `$server_protocol`: as the client wrote it; not found for HTTP/0.9, which has none.
pub fn protocol(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let protocol = exchange.request.text(exchange.request.head.protocol);
    !protocol.is_empty() && text(out, protocol)
}

/// `$request_port`: the port in the request line or `Host`; empty when there is none.
pub fn port(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    match exchange.request.port {
        Some(port) if port > 0 => decimal(out, u64::from(port)),
        Some(_) | None => true,
    }
}

/// `$is_request_port`: `:` if there is a port, empty otherwise.
pub fn is_port(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    text(out, if exchange.request.port.is_some_and(|port| port > 0) { b":" } else { b"" })
}

/// `$request_id`: 32 hexadecimal digits.
///
/// A keyed hash of the request's number, so every read gives the same value without storing it. Each worker has its
/// own keys from the OS.
pub fn id(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    push_id(exchange, out)
}

/// Appends the id.
pub fn push_id(exchange: &Exchange<'_>, out: &mut Vec<u8>) -> bool {
    thread_local! {
        static KEYS: (RandomState, RandomState) = (RandomState::new(), RandomState::new());
    }
    let number = (exchange.client.number, exchange.facts.number_on_connection);
    let (high, low) = KEYS.with(|(high, low)| (high.hash_one(number), low.hash_one(number)));
    write!(out, "{high:016x}{low:016x}").is_ok()
}

/// `$request_completion`: `OK` once the whole response was sent.
pub fn completion(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    text(out, if exchange.flags.complete { b"OK" } else { b"" })
}

/// `$request_body`: not found unless weir read the body into memory.
pub fn body(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    match &exchange.body {
        RequestBody::Memory(bytes) => !bytes.is_empty() && text(out, bytes),
        _ => false,
    }
}

/// `$request_body_file`: not found unless the body is in a file.
pub fn body_file(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    match &exchange.body {
        RequestBody::File(file) => text(out, file.path().as_bytes()),
        _ => false,
    }
}

/// `$content_length`: the field; for a chunked body its length once it was read.
pub fn content_length(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    if let Some(value) = exchange.request.field(Known::ContentLength) {
        return text(out, value);
    }
    let was_read = match &exchange.body {
        // Also in an exchange that sends a chunked body once more.
        RequestBody::Memory(_) | RequestBody::File(_) => true,
        // Nothing came; a body that was passed on has no length here.
        RequestBody::Gone => {
            exchange.request.length == Some(BodyLength::Chunked)
                && exchange.reader.as_ref().is_some_and(|reader| reader.is_done() && reader.taken == 0)
        }
        RequestBody::Unread => false,
    };
    was_read && decimal(out, exchange.body.length())
}

/// `$pipe`: `p` if the request came together with the one before.
pub fn pipe(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    text(out, if exchange.request.pipelined { b"p" } else { b"." })
}

/// `set $limit_rate …`.
pub fn set_limit_rate(exchange: &mut Exchange<'_>, value: &[u8]) {
    match std::str::from_utf8(value).ok().and_then(value::size_of) {
        Some(rate) => exchange.facts.limit_rate = Some(rate),
        None => {
            let shown = String::from_utf8_lossy(value).into_owned();
            exchange.log(Level::Error, format_args!("invalid $limit_rate \"{shown}\""));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found_by_name() {
        let args = b"a=1&Bc=2&bc=3&d&e=&=x";
        for (name, value) in
            [("a", Some(&b"1"[..])), ("bc", Some(b"2")), ("b", None), ("d", None), ("e", Some(b"")), ("x", None)]
        {
            assert_eq!(find_argument(args, name.as_bytes()), value, "{name}");
        }
    }

    mod mutate {
        use super::*;
        /// The value of an argument is a part of the query and ends before the next argument.
        #[test]
        fn arguments() {
            weir_mutate::mutate(&["a=1&b=2&&c", "A=&a==x"], &["&", "=", "a", "%26", "\0", "é"], |query| {
                for name in [&b"a"[..], b"b", b""] {
                    if let Some(value) = find_argument(query, name) {
                        assert!(!value.contains(&b'&') && value.len() < query.len());
                    }
                }
            });
        }
    }
}
