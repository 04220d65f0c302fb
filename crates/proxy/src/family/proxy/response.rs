//! Reads an upstream's head into the response: the fields to pass on, to obey and to hide.

use weir_http::exchange::message::Origin;
use weir_http::exchange::phase::{From, Outcome};
use weir_http::exchange::response_body::Body;
use weir_http::exchange::{Exchange, WithoutOwn};
use weir_http::exchange::{special, walk};
use weir_http::text::value;
use weir_net::log::Level;
use weir_wire::fields::Fields;
use weir_wire::{BodyLength, Known, KnownSet, Version};

use super::hidden::Named;
use super::pass::Scheme;
use super::rewrite;
use crate::family::Values;
use crate::protocol::Protocol;

/// The target of `X-Accel-Redirect`.
pub enum Elsewhere {
    /// A path, normalised, and its arguments.
    Uri(Vec<u8>, Vec<u8>),
    /// A named location, without `@`.
    Named(String),
    /// No target: the path is unsafe.
    Nowhere,
}

impl Elsewhere {
    /// Sends the exchange there.
    pub fn enter(self, exchange: &mut Exchange<'_>) -> Outcome {
        match self {
            Elsewhere::Uri(path, args) => walk::redirect(exchange, path, Some(args)),
            Elsewhere::Named(name) => walk::walk(exchange, From::Named(name)),
            Elsewhere::Nowhere => Outcome::Status(404),
        }
    }
}

/// Whether weir buffers the answer with the head in the exchange; see [`buffers`].
pub fn is_buffered(exchange: &Exchange<'_>) -> bool {
    let values = crate::values(exchange.location);
    exchange.origin.as_ref().map_or(values.proxy.buffering, |origin| buffers(values, origin))
}

/// Whether weir buffers an answer with this head: `proxy_buffering`, unless `X-Accel-Buffering` says `yes` or `no`. An
/// answer that is not buffered is not kept either, by the cache or by `proxy_store` (nginx:
/// `ngx_http_upstream_send_response`).
pub fn buffers(values: &Values, origin: &Origin) -> bool {
    // nginx never buffers these two.
    let is_fixed =
        values.proxy.pass.as_ref().is_some_and(|pass| matches!(pass.scheme, Scheme::Grpc | Scheme::Memcached));
    let is_obeyed = !is_fixed && !values.proxy.ignore.has("X-Accel-Buffering");
    match origin.field(Known::XAccelBuffering).filter(|_| is_obeyed) {
        Some(word) if word.eq_ignore_ascii_case(b"no") => false,
        Some(word) if word.eq_ignore_ascii_case(b"yes") => true,
        Some(_) | None => values.proxy.buffering,
    }
}

/// Whether `error_page` answers in the place of an upstream's answer of this status (`proxy_intercept_errors`).
pub fn is_intercepted(exchange: &Exchange<'_>, status: u16) -> bool {
    crate::values(exchange.location).proxy.intercept_errors
        && status >= 300
        && special::is_intercepted(exchange, status)
}

/// Passes `WWW-Authenticate` of an intercepted 401 on to the client.
pub fn pass_authentication(exchange: &mut Exchange<'_>) {
    let Some(origin) = exchange.origin.as_ref().filter(|origin| origin.head.status == 401) else { return };
    let known = Some(Known::WwwAuthenticate);
    for field in origin.head.fields.iter().filter(|field| field.known == known) {
        exchange.response.fields.push_known(b"WWW-Authenticate", field.value.of(&origin.bytes), known);
    }
}

/// Fills the response from the head of the upstream's answer, which is in the exchange; `Some` if it redirects to another
/// location. `values` are the settings of the location.
pub fn accept(exchange: &mut Exchange<'_>, values: &Values, length: BodyLength) -> Option<Elsewhere> {
    // Out of the exchange while its fields are copied.
    let origin = exchange.origin.take()?;
    let proxy = &values.proxy;
    let target = origin.field(Known::XAccelRedirect).filter(|_| !proxy.ignore.has("X-Accel-Redirect"));
    let target = target.map(<[u8]>::to_vec);
    let first = exchange.response.fields.places();
    let seen = copy_fields(exchange, values, &origin, target.is_some());
    if target.is_none() {
        exchange.response.status.answer(origin.head.status);
        exchange.response.status_line.clear();
        // HTTP/2 has no reason phrase: weir uses its own.
        if origin.head.version != Version::Http2 {
            exchange.response.status_line.extend_from_slice(origin.head.status_line.of(&origin.bytes));
        }
        exchange.response.content_length = match length {
            BodyLength::Exact(length) => Some(length),
            // RFC 9110 §8.6: in an answer to HEAD or in a 304, the length describes a body that does not follow.
            BodyLength::None => origin.field(Known::ContentLength).and_then(weir_wire::framing::content_length),
            BodyLength::Chunked | BodyLength::UntilClose => None,
        };
    }
    let known = origin.head.known();
    exchange.origin = Some(origin);
    if rewrite::concerns(proxy, known) {
        rewrite::fields(exchange, first);
    }
    if let Some(target) = target {
        return Some(elsewhere(exchange, &target));
    }
    let passed = |known: Known| proxy.hidden.without_own.contains(known) && !seen.contains(known);
    exchange.response.without_own = WithoutOwn { date: passed(Known::Date), server: passed(Known::Server) };
    exchange.response.allows_ranges = proxy.force_ranges || exchange.cache.holds_conditions_back();
    exchange.response.body = Body::Origin;
    None
}

/// Copies the fields of the upstream's answer into the response, and obeys those that are for weir. Returns the names that
/// it met. If the answer redirects, nginx keeps a few fields; all others come from the new location.
fn copy_fields(exchange: &mut Exchange<'_>, values: &Values, origin: &Origin, redirects: bool) -> KnownSet {
    let proxy = &values.proxy;
    let mut seen = KnownSet::default();
    let named = Named::of(&origin.head, &origin.bytes);
    let (mut adopted, head) = (None, origin.bytes.get(..origin.head.len).unwrap_or_default());
    for field in &origin.head.fields {
        let (name, value) = (|| field.name.of(&origin.bytes), || field.value.of(&origin.bytes));
        if let Some(known) = field.known.filter(|known| known.is_first_in_response()) {
            if seen.contains(known) {
                let (name, value) = (String::from_utf8_lossy(name()), String::from_utf8_lossy(value()));
                exchange.log(
                    Level::Warn,
                    format_args!("upstream sent duplicate header line: \"{name}: {value}\", ignored"),
                );
                continue;
            }
            seen.insert(known);
        }
        match field.known {
            Some(Known::ContentType) if redirects || !proxy.hidden.hides_type => {
                exchange.response.content_type.clear();
                exchange.response.content_type.extend_from_slice(value());
            }
            Some(Known::LastModified) if !redirects && !proxy.hidden.hides(field.known, name) => {
                exchange.response.last_modified = weir_wire::date::parse_http_date(value());
            }
            Some(Known::XAccelLimitRate) if !proxy.ignore.has("X-Accel-Limit-Rate") => {
                exchange.facts.limit_rate = std::str::from_utf8(value()).ok().and_then(value::number);
            }
            Some(Known::XAccelCharset) if !proxy.ignore.has("X-Accel-Charset") => {
                exchange.response.charset.clear();
                exchange.response.charset.extend_from_slice(value());
            }
            Some(_) | None => {}
        }
        let passes = match redirects {
            true => outlives_redirect(exchange, values, field.known, name()),
            false => !proxy.hidden.hides(field.known, name) && !named.has(field),
        };
        let fields = &mut exchange.response.fields;
        if passes && origin.head.version == Version::Http2 {
            // Not the parser, but the sender of frames is the judge of these values.
            fields.push_known(name(), value(), field.known);
        } else if passes {
            let adopted = *adopted.get_or_insert_with(|| fields.adopt(head));
            fields.push_adopted(adopted, field);
        }
    }
    seen
}

/// Whether a field of an answer with `X-Accel-Redirect` is for the client (nginx: `redirect` of
/// `ngx_http_upstream_headers_in`). `Content-Type` has a place of its own.
fn outlives_redirect(exchange: &Exchange<'_>, values: &Values, known: Option<Known>, name: &[u8]) -> bool {
    match known {
        Some(Known::SetCookie | Known::CacheControl | Known::Expires) => true,
        // nginx: where weir itself answers ranges, the upstream's word about them does not matter.
        Some(Known::AcceptRanges) => !values.proxy.force_ranges && !exchange.cache.holds_conditions_back(),
        Some(_) | None => name.eq_ignore_ascii_case(b"Content-Disposition"),
    }
}

/// Takes the fields after the body. They pass to the client if `proxy_pass_trailers` is on, except fields that are not
/// allowed in trailers (RFC 9110 §6.5.1). As in nginx, `$upstream_trailer_NAME` knows those of HTTP/2 also if they do
/// not pass; behind a body of a known length weir does not wait for them then.
pub fn take_trailers(exchange: &mut Exchange<'_>, trailers: Fields) {
    let proxy = &crate::values(exchange.location).proxy;
    if !proxy.pass_trailers {
        if matches!(proxy.protocol, Protocol::Http2) {
            keep_trailers(exchange, trailers);
        }
        return;
    }
    for field in trailers.iter() {
        let may_trail = field.known.is_none_or(|known| !known.is_forbidden_in_trailer());
        if may_trail && !proxy.hidden.hides(field.known, || field.name) {
            exchange.response.trailers.push_known(field.name, field.value, field.known);
        }
    }
    keep_trailers(exchange, trailers);
}

/// Keeps the fields after the body for texts.
fn keep_trailers(exchange: &mut Exchange<'_>, trailers: Fields) {
    if let Some(origin) = &mut exchange.origin {
        origin.trailers = trailers;
    }
}

/// The location of this server that answers instead, as `X-Accel-Redirect` names it.
fn elsewhere(exchange: &mut Exchange<'_>, target: &[u8]) -> Elsewhere {
    // nginx: a named location gets the request as it is.
    if let Some(name) = target.strip_prefix(b"@") {
        return Elsewhere::Named(String::from_utf8_lossy(name).into_owned());
    }
    if exchange.request.method() != b"HEAD" {
        exchange.request.method_override = Some(b"GET");
    }
    match special::inner_uri(exchange, target) {
        Some((path, args)) => Elsewhere::Uri(path, args),
        None => Elsewhere::Nowhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Site, on_worker, origin, proxied, whole};

    /// The response that a location makes of an answer: status, type, length, and the other fields.
    fn accepted(settings: &str, answer: &str, length: BodyLength) -> (u16, String, Option<u64>, String) {
        let (http, head) = (proxied(settings), answer.replace('|', "\r\n") + "\r\n\r\n");
        on_worker(async move {
            let (site, _conn, _client) = Site::open(&http);
            let mut exchange = site.exchange(&whole("GET /"));
            exchange.origin = Some(origin(&head));
            let values = crate::values(exchange.location);
            let elsewhere = accept(&mut exchange, values, length);
            let response = &exchange.response;
            let line = |field: weir_wire::fields::FieldRef<'_>| {
                format!("{}={}", String::from_utf8_lossy(field.name), String::from_utf8_lossy(field.value))
            };
            let mut fields: Vec<String> = response.fields.iter().map(line).collect();
            fields.extend(elsewhere.map(|to| match to {
                Elsewhere::Uri(path, args) => {
                    format!("TO {}?{}", String::from_utf8_lossy(&path), String::from_utf8_lossy(&args))
                }
                Elsewhere::Named(name) => format!("TO @{name}"),
                Elsewhere::Nowhere => "NOWHERE".to_owned(),
            }));
            let kind = String::from_utf8_lossy(&response.content_type).into_owned();
            (response.status.get(), kind, response.content_length, fields.join(" "))
        })
    }

    #[test]
    fn fields_of_the_answer_are_passed_hidden_or_obeyed() {
        let answer = "HTTP/1.1 201 Made|Date: d|Server: s|X-Pad: p|Content-Type: text/x|Content-Length: 5|Connection: X-Hop, close\
                      |X-Hop: h|Keep-Alive: k|Transfer-Encoding: x|ETag: \"e\"|Set-Cookie: a=b|Set-Cookie: c=d\
                      |X-Accel-Buffering: no|X-Accel-Expires: 5|X-Accel-Charset: utf-8|X-Own: o";
        let rest = "ETag=\"e\" Set-Cookie=a=b Set-Cookie=c=d";
        for (settings, fields) in [
            ("", format!("{rest} X-Own=o")),
            ("proxy_hide_header X-Own; proxy_hide_header set-cookie;", "ETag=\"e\"".to_owned()),
            (
                "proxy_pass_header Server; proxy_pass_header X-Accel-Expires;",
                format!("Server=s {rest} X-Accel-Expires=5 X-Own=o"),
            ),
            ("proxy_pass_header X-Own; proxy_hide_header X-Own;", format!("{rest} X-Own=o")),
        ] {
            let found = accepted(settings, answer, BodyLength::Exact(5));
            assert_eq!(found, (201, "text/x".to_owned(), Some(5), fields), "{settings}");
        }
        let hidden = accepted("proxy_hide_header Content-Type;", answer, BodyLength::Exact(5));
        assert_eq!(hidden.1, "");
    }

    #[test]
    fn of_a_field_that_may_stand_once_the_first_counts() {
        let answer = "HTTP/1.1 200 OK|ETag: one|ETag: two|Content-Type: a|Content-Type: b|X-A: 1|X-A: 2";
        let found = accepted("", answer, BodyLength::UntilClose);
        assert_eq!(found, (200, "a".to_owned(), None, "ETag=one X-A=1 X-A=2".to_owned()));
    }

    #[test]
    fn the_length_is_that_of_the_body_that_follows_or_would_follow() {
        let answer = "HTTP/1.1 200 OK|Content-Length: 9";
        for (length, told) in [
            (BodyLength::Exact(5), Some(5)),
            (BodyLength::Chunked, None),
            (BodyLength::UntilClose, None),
            (BodyLength::None, Some(9)),
        ] {
            assert_eq!(accepted("", answer, length).2, told, "{length:?}");
        }
    }

    #[test]
    fn an_answer_may_send_the_request_elsewhere_with_a_few_fields() {
        let answer = |to: &str| {
            format!(
                "HTTP/1.1 200 OK|X-Accel-Redirect: {to}|Content-Type: t|Content-Disposition: d|Set-Cookie: a=b\
                 |Cache-Control: c|Expires: e|Accept-Ranges: r|X-A: x|Content-Length: 5"
            )
        };
        let kept = "Content-Disposition=d Set-Cookie=a=b Cache-Control=c Expires=e Accept-Ranges=r";
        for (settings, to, expected) in [
            ("", "/x%20y?z", format!("{kept} TO /x y?z")),
            ("", "@named", format!("{kept} TO @named")),
            ("", "/../x", format!("{kept} NOWHERE")),
            ("proxy_force_ranges on;", "/x", format!("{} TO /x?", kept.replace(" Accept-Ranges=r", ""))),
        ] {
            let found = accepted(settings, &answer(to), BodyLength::Exact(5));
            assert_eq!((found.0, found.1.as_str(), found.3), (0, "t", expected), "{settings} {to}");
        }
        let ignored = accepted("proxy_ignore_headers X-Accel-Redirect;", &answer("/x"), BodyLength::Exact(5));
        assert_eq!((ignored.0, ignored.3.contains("TO"), ignored.3.contains("X-A=x")), (200, false, true));
    }

    #[test]
    fn buffering_is_the_directive_s_unless_the_answer_says_another_word() {
        for (settings, field, buffers_it) in [
            ("", "X-A: 1", true),
            ("", "X-Accel-Buffering: no", false),
            ("", "X-Accel-Buffering: NO", false),
            ("", "X-Accel-Buffering: maybe", true),
            ("proxy_buffering off;", "X-A: 1", false),
            ("proxy_buffering off;", "X-Accel-Buffering: yes", true),
            ("proxy_buffering off; proxy_ignore_headers X-Accel-Buffering;", "X-Accel-Buffering: yes", false),
        ] {
            let (http, head) = (proxied(settings), format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\n"));
            let found = on_worker(async move {
                let (site, _conn, _client) = Site::open(&http);
                let mut exchange = site.exchange(&whole("GET /"));
                let before = is_buffered(&exchange);
                exchange.origin = Some(origin(&head));
                (before, is_buffered(&exchange))
            });
            assert_eq!(found, (!settings.contains("proxy_buffering off"), buffers_it), "{settings} {field}");
        }
    }

    #[test]
    fn addresses_of_the_upstream_become_weirs_own() {
        for (settings, field, expected) in [
            ("", "Location: http://u/x", "Location=/x"),
            ("", "Location: http://ux/x", "Location=http://ux/x"),
            ("", "Location: /x", "Location=/x"),
            ("proxy_redirect off;", "Location: http://u/x", "Location=http://u/x"),
            ("proxy_redirect http://b/ /c/;", "Location: http://b/x", "Location=/c/x"),
            ("proxy_redirect http://b/ http://$host/;", "Location: http://b/x", "Location=http://a.test/x"),
            ("proxy_redirect ~^http://(.*)/(.*)$ /$1/$2;", "Location: http://b/x", "Location=/b/x"),
            ("proxy_redirect ~*B /$0;", "Location: http://b/x", "Location=/b"),
            (
                "proxy_redirect http://a/ /1/; proxy_redirect http://b/ /2/; proxy_redirect http:// /3/;",
                "Location: http://b/x",
                "Location=/2/x",
            ),
            ("proxy_redirect http://b/ /c/;", "Refresh: 5; url=http://b/x", "Refresh=5; url=/c/x"),
            ("proxy_redirect http://b/ /c/;", "Refresh: 5", "Refresh=5"),
            ("proxy_redirect http://b/ /$upstream_http_x_a/;", "Location: http://b/|X-A: v", "Location=/v/ X-A=v"),
            (
                "proxy_cookie_domain b.test $host;",
                "Set-Cookie: a=b; Domain=.B.test; Path=/",
                "Set-Cookie=a=b; Domain=.a.test; Path=/",
            ),
            ("proxy_cookie_domain b.test c;", "Set-Cookie: a=b; Domain=x.b.test", "Set-Cookie=a=b; Domain=x.b.test"),
            (
                "proxy_cookie_path /in/ /out/;",
                "Set-Cookie: a=b; path=/in/x; Secure",
                "Set-Cookie=a=b; path=/out/x; Secure",
            ),
            (
                "proxy_cookie_flags a secure;",
                "Set-Cookie: a=b|Set-Cookie: c=d",
                "Set-Cookie=a=b; Secure Set-Cookie=c=d",
            ),
        ] {
            let found = accepted(settings, &format!("HTTP/1.1 302 Found|{field}"), BodyLength::Exact(0));
            assert_eq!(found.3, expected, "{settings} {field}");
        }
    }
}
