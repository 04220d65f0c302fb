//! Answers of weir's own: status lines, error pages, `error_page`, absolute redirects.
//!
//! Reason phrases and page texts are nginx's, byte for byte: clients and test suites compare them. Not here: the
//! directives (`family/error_page.rs`) and the handling of an unread body (`conn`).

use std::io::Write;

use weir_net::SocketAddress;
use weir_net::log::Level;
use weir_wire::escape::{Unescape, unescape_uri};
use weir_wire::{Known, status};

use crate::exchange::Exchange;
use crate::exchange::composing::Composed;
use crate::exchange::phase::{From, Next, Outcome};
use crate::exchange::response_body::Body;
use crate::exchange::walk;
use crate::family::core::Tokens;
use crate::family::error_page::Page;
use crate::family::server::address_text;

/// Lets the location's `error_page` answer for `status`; `None` if it has no entry for this status.
///
/// In both cases the client will see this status. A status that leaves the connection's state in doubt ends
/// keep-alive (nginx: `ngx_http_special_response_handler`).
pub fn redirect(exchange: &mut Exchange<'_>, status: u16) -> Option<Outcome> {
    exchange.response.status.fix(status);
    if matches!(status, 400 | 413 | 414 | 495 | 496 | 497 | 500 | 501) {
        exchange.flags.keeps_alive = false;
    }
    exchange.response.content_type.clear();
    exchange.response.body_filters.clear();
    exchange.own.remove::<Composed>();
    let target = page_of(exchange, status).map(|page| {
        match page.shown {
            None => {}
            Some(0) => exchange.response.status.free(),
            Some(shown) => exchange.response.status.fix(shown),
        }
        (page, page.target.text(exchange))
    });
    let is_here = target.as_ref().is_none_or(|(_, target)| matches!(target.first(), Some(b'/' | b'@')));
    if !is_here || exchange.response.status.get() != 405 {
        // It names methods for an answer with 405 alone. This status or an earlier one has set it.
        exchange.response.fields.remove(Known::Allow);
    }
    target.map(|(page, target)| follow(exchange, page, &target))
}

/// The location's entry for this status, if an error page may follow.
fn page_of<'c>(exchange: &mut Exchange<'c>, status: u16) -> Option<&'c Page> {
    let settings = &exchange.location.values.error_page;
    if exchange.flags.in_error_page || settings.pages.is_empty() || exchange.facts.redirects_left == 0 {
        return None;
    }
    if !settings.recursive {
        exchange.flags.in_error_page = true;
    }
    settings.pages.iter().find(|page| page.status == status)
}

/// 405 with the methods that the place has. The field is required (RFC 9110 §15.5.6); nginx leaves it out.
pub fn not_allowed(exchange: &mut Exchange<'_>, methods: &str) -> Next {
    exchange.response.fields.replace(b"Allow", methods.as_bytes(), Known::Allow);
    Next::Status(405)
}

/// The methods of a place that only shows something.
pub const READS: &str = "GET, HEAD";

/// Whether the location's `error_page` names this status, for `proxy_intercept_errors`.
pub fn is_intercepted(exchange: &Exchange<'_>, status: u16) -> bool {
    exchange.location.values.error_page.pages.iter().any(|page| page.status == status)
}

/// Goes to the target of an `error_page`: a URI of this server, a named location, or another server.
fn follow(exchange: &mut Exchange<'_>, page: &Page, target: &[u8]) -> Outcome {
    match target.first() {
        Some(b'/') => {
            if !exchange.request.is_head() {
                exchange.request.method_override = Some(b"GET");
            }
            let (uri, args) = split_args(target);
            walk::redirect(exchange, uri.to_vec(), Some(args.to_vec()))
        }
        Some(b'@') => {
            let name = String::from_utf8_lossy(target.get(1..).unwrap_or_default()).into_owned();
            walk::walk(exchange, From::Named(name))
        }
        Some(_) | None => {
            exchange.response.fields.replace(b"Location", target, Known::Location);
            exchange.response.own_location = false;
            let status = page.shown.filter(|shown| matches!(shown, 301 | 302 | 303 | 307 | 308)).unwrap_or(302);
            self::page(exchange, status);
            Outcome::Respond
        }
    }
}

/// A URI, and the text after its first `?`.
pub fn split_args(target: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'?', target) {
        Some(at) => (target.get(..at).unwrap_or_default(), target.get(at + 1..).unwrap_or_default()),
        None => (target, &[]),
    }
}

/// The decoded path and the query string of a URI that an answer names. `None`, and a line in the log, if the path is
/// empty, leaves the root or contains a NUL (nginx: `ngx_http_parse_unsafe_uri`).
pub fn inner_uri(exchange: &mut Exchange<'_>, uri: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (path, args) = split_args(uri);
    let mut decoded = Vec::new();
    unescape_uri(path, Unescape::All, &mut decoded);
    if is_unsafe(path) || is_unsafe(&decoded) {
        let shown = String::from_utf8_lossy(uri).into_owned();
        exchange.log(Level::Error, format_args!("unsafe URI \"{shown}\" was detected"));
        return None;
    }
    Some((decoded, args.to_vec()))
}

fn is_unsafe(path: &[u8]) -> bool {
    path.is_empty() || path.contains(&0) || path.split(|byte| *byte == b'/').any(|part| part == b"..")
}

/// Puts nginx's page for `status` in place of the body that the response had; other fields stay.
pub fn page(exchange: &mut Exchange<'_>, status: u16) {
    let shown = if matches!(status, 494..=497) { 400 } else { status };
    let tokens = exchange.location.values.core.server_tokens;
    exchange.own.remove::<Composed>();
    let response = &mut exchange.response;
    response.status.fix(shown);
    response.status_line.clear();
    response.content_type.clear();
    response.last_modified = None;
    response.allows_ranges = false;
    response.header_only = false;
    response.body_filters.clear();
    for cleared in [Known::ContentLength, Known::AcceptRanges, Known::LastModified, Known::Etag] {
        response.fields.remove(cleared);
    }
    let html = html(status, tokens);
    response.content_length = Some(html.len() as u64);
    if html.is_empty() {
        response.body = Body::Empty;
    } else {
        response.content_type.extend_from_slice(b"text/html");
        response.body = Body::Bytes(html);
    }
}

/// The page's text; empty for statuses nginx has no page for.
fn html(status: u16, tokens: Tokens) -> Vec<u8> {
    let Some((title, heading, detail)) = page_texts(status) else { return Vec::new() };
    let mut html = Vec::with_capacity(256);
    let product = tokens.product();
    let written = write!(
        html,
        "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{heading}</h1></center>\r\n{}\
         <hr><center>{product}</center>\r\n</body>\r\n</html>\r\n",
        detail.map(|detail| format!("<center>{detail}</center>\r\n")).unwrap_or_default(),
    );
    debug_assert!(written.is_ok());
    html
}

/// Title, heading and a further line of the page of a status.
fn page_texts(status: u16) -> Option<(String, String, Option<&'static str>)> {
    let bad_request =
        |detail: &'static str| Some((format!("400 {detail}"), "400 Bad Request".to_owned(), Some(detail)));
    let phrase = match status {
        494 => return bad_request("Request Header Or Cookie Too Large"),
        495 => return bad_request("The SSL certificate error"),
        496 => return bad_request("No required SSL certificate was sent"),
        497 => return bad_request("The plain HTTP request was sent to HTTPS port"),
        // nginx's pages and status lines differ for these two, and 498 has the page of 404.
        302 => "Found",
        401 => "Authorization Required",
        498 => return Some(("404 Not Found".to_owned(), "404 Not Found".to_owned(), None)),
        301 | 303 | 307 | 308 | 400..=599 => status::reason(status)?,
        _ => return None,
    };
    Some((format!("{status} {phrase}"), format!("{status} {phrase}"), None))
}

/// Appends the rest of a status line after the version; a status without a phrase is its number and a space.
pub fn status_line(status: u16, out: &mut Vec<u8>) {
    let written = match status::reason(status) {
        Some(phrase) => write!(out, "{status} {phrase}"),
        None => write!(out, "{status:03} "),
    };
    debug_assert!(written.is_ok());
}

/// Appends a `Location` of this server, made absolute if `absolute_redirect` is on.
pub fn absolute(exchange: &Exchange<'_>, location: &[u8], out: &mut Vec<u8>) {
    let values = &exchange.location.values;
    if location.first() != Some(&b'/') || !values.core.absolute_redirect {
        out.extend_from_slice(location);
        return;
    }
    out.extend_from_slice(exchange.client.scheme());
    out.extend_from_slice(b"://");
    let local = exchange.client.local();
    if values.server.name_in_redirect {
        out.extend_from_slice(exchange.server.name.as_bytes());
    } else if !exchange.request.host.is_empty() {
        out.extend_from_slice(&exchange.request.host);
    } else {
        address_text(local, out);
    }
    if values.core.port_in_redirect
        && let SocketAddress::Tcp(local) = local
        && local.port() != if exchange.client.facts().is_some() { 443 } else { 80 }
    {
        out.push(b':');
        weir_wire::encode::push_decimal(out, u64::from(local.port()));
    }
    out.extend_from_slice(location);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn line(status: u16) -> String {
        let mut out = Vec::new();
        status_line(status, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn status_lines_are_nginx_s() {
        for (status, expected) in [
            (200, "200 OK"),
            (302, "302 Moved Temporarily"),
            (405, "405 Not Allowed"),
            (408, "408 Request Time-out"),
            (414, "414 Request-URI Too Large"),
            (503, "503 Service Temporarily Unavailable"),
            (203, "203 "),
            (599, "599 "),
        ] {
            assert_eq!(line(status), expected);
        }
    }

    #[test]
    fn pages_are_nginx_s() {
        assert_eq!(
            String::from_utf8(html(502, Tokens::On)).unwrap(),
            format!(
                "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n\
                 <center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>weir/{}</center>\r\n</body>\r\n</html>\r\n",
                env!("CARGO_PKG_VERSION")
            )
        );
        let too_large = String::from_utf8(html(494, Tokens::Off)).unwrap();
        assert!(too_large.contains("<title>400 Request Header Or Cookie Too Large</title>"), "{too_large}");
        assert!(too_large.contains("<h1>400 Bad Request</h1></center>\r\n<center>Request Header"), "{too_large}");
        assert!(too_large.contains("<hr><center>weir</center>"), "{too_large}");
        assert!(String::from_utf8(html(302, Tokens::On)).unwrap().contains("302 Found"));
        for without_page in [200, 204, 304, 305, 418, 444, 599] {
            assert!(html(without_page, Tokens::On).is_empty(), "{without_page}");
        }
    }

    #[test]
    fn arguments_begin_after_the_first_question_mark() {
        assert_eq!(split_args(b"/a?b?c"), (&b"/a"[..], &b"b?c"[..]));
        assert_eq!(split_args(b"/a"), (&b"/a"[..], &b""[..]));
    }

    #[test]
    fn a_uri_that_an_answer_names_must_stay_below_the_root() {
        use crate::tests::{Site, on_worker, whole};
        for (uri, expected) in [
            ("/a?b", Some(("/a", "b"))),
            ("/a%20b?c%20d", Some(("/a b", "c%20d"))),
            ("/a..b/..c", Some(("/a..b/..c", ""))),
            ("/a?../x", Some(("/a", "../x"))),
            ("", None),
            ("?x", None),
            ("/../a", None),
            ("/a/..", None),
            ("..", None),
            ("/%2e%2e/a", None),
            ("/a%00b", None),
        ] {
            let found = on_worker(async move {
                let (site, _conn, _client) = Site::open("server { listen 127.0.0.1:1; }");
                inner_uri(&mut site.exchange(&whole("GET /")), uri.as_bytes())
            });
            let expected = expected.map(|(path, args)| (path.as_bytes().to_vec(), args.as_bytes().to_vec()));
            assert_eq!(found, expected, "{uri}");
        }
    }

    #[test]
    fn allow_goes_only_with_405() {
        use crate::tests::{Site, follow, on_worker, whole};
        let http = "server { listen 127.0.0.1:1; error_page 404 /own; location /own { return 200 own; } }";
        for (status, has_allow) in [(405, true), (404, false), (403, false)] {
            let found = on_worker(async move {
                let (site, _conn, _client) = Site::open(http);
                let mut exchange = site.exchange(&whole("GET /"));
                let next = not_allowed(&mut exchange, READS);
                assert!(matches!(next, Next::Status(405)));
                follow(&mut exchange, Outcome::Status(status));
                exchange.response.fields.has(Known::Allow)
            });
            assert_eq!(found, has_allow, "{status}");
        }
    }
}
