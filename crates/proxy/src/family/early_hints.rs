//! `early_hints`: which interim answers (1xx) of an upstream weir passes on to the client.
//!
//! nginx passes on only a 103, and only if the directive is set and true. RFC 9110 §15.2 requires a proxy to pass on
//! all of them, so weir passes them to HTTP/2 clients if the directive is not set. HTTP/1.1 clients do not get them: a
//! client that does not know interim answers takes one for the final answer (RFC 8297 §3).
//! `docs/why/007-cache-meaning.md` has the rule. <https://nginx.org/en/docs/http/ngx_http_core_module.html#early_hints>

use std::io;
use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::message::Origin;
use weir_http::exchange::special;
use weir_http::hold::conn::{Conn, Gone};
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, HSL};
use weir_http::read::families::Family;
use weir_http::send::framed;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::{Template, any_set};
use weir_wire::{Known, ResponseHead, Version, encode};

use crate::family::proxy;
use crate::family::proxy::hidden::{Hidden, Named};
use crate::part;

weir_http::settings! {
    /// `early_hints`; `None` if it is not set.
    conditions: Option<Arc<Vec<Template>>> = None,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "early_hints",
    &[Directive::new(
        "early_hints",
        HSL,
        Arity::AtLeast(1),
        "weir passes an upstream's interim answers (1xx) on if one of these values is neither empty nor 0.",
        early_hints,
    )
    .many()
    .default("1 over HTTP/2 and to clients that send Sec-Fetch-Mode, else 0 (nginx: 0)")],
);

fn early_hints(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let conditions: Result<Vec<Template>, Refusal> = statement.args.iter().map(|word| b.template(&word.text)).collect();
    let all = crate::settings(b).early_hints.conditions.get_or_insert_default().get_or_insert_default();
    Arc::make_mut(all).extend(conditions?);
    Ok(())
}

/// Passes the interim answer in `origin` on to the client, if the client should get it.
///
/// Fails if the client takes nothing for `send_timeout`. If other requests wait for the answer too, weir does not wait
/// for this client: the client gets the answer without the hint.
pub async fn pass(exchange: &mut Exchange<'_>, conn: &mut Conn, origin: &Origin) -> Result<(), Gone> {
    if !is_wanted(exchange, origin.head.status) {
        return Ok(());
    }
    let hidden = &crate::values(exchange.location).proxy.hidden;
    let mut fields = fields(&origin.head, &origin.bytes, hidden).peekable();
    if origin.head.status == 103 && fields.peek().is_none() {
        // It hints at nothing.
        return Ok(());
    }
    if let Some(stream) = &conn.carried {
        return match framed::interim(stream.as_ref(), origin.head.status, fields) {
            Err(error) if proxy::is_for_its_client_alone(exchange) => Err(Gone::Closed(error)),
            sent => {
                exchange.bytes.sent += sent.unwrap_or(0) as u64;
                Ok(())
            }
        };
    }
    let mut out = exchange.worker.lease_out();
    out.clear();
    compose(origin.head.status, fields, &mut out);
    let sent = send(exchange, conn, &out).await;
    exchange.worker.return_out(out);
    exchange.bytes.sent += sent? as u64;
    Ok(())
}

/// Whether the client of this exchange gets an interim answer of this status.
fn is_wanted(exchange: &mut Exchange<'_>, status: u16) -> bool {
    // A 100 answers weir's own request; `body::welcome` has answered the client's `Expect`. HTTP/1.0 has no interim
    // answers, and in the middle of a body there is no place for one.
    if status == 100
        || exchange.request.version() < Version::Http11
        || part::is_part(exchange)
        || exchange.flags.is_subrequest
    {
        return false;
    }
    match crate::values(exchange.location).early_hints.conditions.clone() {
        Some(conditions) => any_set(exchange, &conditions),
        // RFC 8297 §3: over HTTP/1.1 only to clients that are known to handle it. A client of the Fetch standard does,
        // and sends `Sec-Fetch-Mode`; Python's http.client takes the first head for the answer.
        None => exchange.request.version().is_framed() || is_of_fetch(exchange),
    }
}

fn is_of_fetch(exchange: &Exchange<'_>) -> bool {
    let request = &exchange.request;
    request.fields().iter().any(|field| request.text(field.name).eq_ignore_ascii_case(b"sec-fetch-mode"))
}

/// The fields for the client: without those that `proxy_hide_header` hides, and without those of the upstream
/// connection.
fn fields<'o>(
    head: &'o ResponseHead,
    bytes: &'o [u8],
    hidden: &'o Hidden,
) -> impl Iterator<Item = (&'o [u8], &'o [u8], Option<Known>)> {
    let named = Named::of(head, bytes);
    head.fields.iter().filter_map(move |field| {
        let (name, value) = (field.name.of(bytes), field.value.of(bytes));
        let is_hop = field.known.is_some_and(|known| known.is_hop_by_hop());
        let stays = is_hop || named.has(field) || hidden.hides(field.known, || name);
        (!stays).then_some((name, value, field.known))
    })
}

/// Writes the head in HTTP/1.1 form.
fn compose<'o>(status: u16, fields: impl Iterator<Item = (&'o [u8], &'o [u8], Option<Known>)>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    special::status_line(status, out);
    out.extend_from_slice(b"\r\n");
    for (name, value, _) in fields {
        encode::push_field(out, name, value);
    }
    out.extend_from_slice(b"\r\n");
}

/// Sends the text; returns the number of bytes sent.
async fn send(exchange: &Exchange<'_>, conn: &mut Conn, text: &[u8]) -> Result<usize, Gone> {
    if proxy::is_for_its_client_alone(exchange) {
        return conn.write(text, exchange.location.values.core.send_timeout).await.map(|()| text.len());
    }
    match conn.stream().try_write(text) {
        Ok(written) if written == text.len() => Ok(written),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        // The client got half of a head, or is gone: it gets nothing more. The other requests still get their answer.
        half => {
            conn.stream().shutdown();
            Ok(half.unwrap_or(0))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::family::proxy::pass::Scheme;
    use crate::of_text;
    use weir_wire::{Parser, Progress};

    fn passed(hide: &[String], answer: &str) -> String {
        let (mut parser, mut head, mut out) = (Parser::default(), ResponseHead::default(), Vec::new());
        assert_eq!(parser.response(answer.as_bytes(), &mut head).unwrap(), Progress::Done);
        compose(head.status, fields(&head, answer.as_bytes(), &Hidden::compile(hide, &[], Scheme::Http)), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_for_the_edge_stays_here() {
        let link = "Link: </a.css>; rel=preload\r\n";
        let answer = format!(
            "HTTP/1.1 103 \r\n{link}Connection: x-hop\r\nX-Hop: 1\r\nDate: x\r\nServer: s\r\nUpgrade: h2c\r\n\
             Content-Length: 5\r\nX-Accel-Redirect: /in\r\nX-Own: 1\r\n\r\n"
        );
        assert_eq!(passed(&[], &answer), format!("HTTP/1.1 103 Early Hints\r\n{link}X-Own: 1\r\n\r\n"));
        assert_eq!(passed(&["x-own".to_owned()], &answer), format!("HTTP/1.1 103 Early Hints\r\n{link}\r\n"));
        assert_eq!(passed(&[], "HTTP/1.1 102 Processing\r\n\r\n"), "HTTP/1.1 102 \r\n\r\n");
    }

    #[test]
    fn it_is_written_as_in_nginx() {
        for (http, words) in [
            ("early_hints 1; server { early_hints $http_a $http_b; location / { early_hints 0; } }", ""),
            ("early_hints;", "invalid number of arguments in \"early_hints\" directive"),
            ("early_hints 1; early_hints $http_a;", ""),
            ("server { location / { if ($uri) { early_hints 1; } } }", "\"early_hints\" directive is not allowed here"),
        ] {
            let problems = of_text(&format!("events {{}} http {{ {http} }}")).1;
            assert_eq!(problems.join("; ").is_empty(), words.is_empty(), "{http}: {problems:?}");
            assert!(problems.iter().all(|problem| problem.contains(words)), "{http}: {problems:?}");
        }
    }

    mod mutate {
        use super::*;
        /// An interim answer of an origin: the client gets one head, without fields of the connection.
        #[test]
        fn interim_answers() {
            let seeds = [
                "HTTP/1.1 103 \r\nLink: </a.css>; rel=preload\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n",
                "HTTP/1.1 102 Processing\r\nTransfer-Encoding: chunked\r\n\r\n",
            ];
            let words =
                ["\r\n", "\n", ":", " ", "Connection: ", "x-hop", "X-Accel-Redirect: /\r\n", "\r", "\0", "HTTP/1.1"];
            weir_mutate::mutate(&seeds, &words, |answer| {
                let (mut parser, mut head) = (Parser::default(), ResponseHead::default());
                if parser.response(answer, &mut head) != Ok(Progress::Done) {
                    return;
                }
                let mut out = Vec::new();
                compose(head.status, fields(&head, answer, &Hidden::compile(&[], &[], Scheme::Http)), &mut out);
                assert!(out.len() <= answer.len() + 64 + 4 * head.fields.len());
                let (mut parser, mut again) = (Parser::default(), ResponseHead::default());
                assert_eq!(parser.response(&out, &mut again), Ok(Progress::Done));
                assert_eq!((again.len, again.status), (out.len(), head.status));
                assert!(again.fields.iter().all(|field| !field.known.is_some_and(|known| known.is_hop_by_hop())));
            });
        }
    }
}
