//! The ways of special requests through a configuration: WebSockets, streams, cached answers and HTTP/2. A fix must
//! not close or change one.

use std::time::Duration;

use crate::caches::FAMILIES;
use crate::facts::Facts;
use crate::possible::PossibleRequest;
use crate::reach::{self, ArgumentPiece};
use crate::target::Target;
use crate::upgrade;
use crate::version::Version;
use crate::view::{Spot, View};
use weir_words::{Said, said};

/// The directives that send a request to an origin, by family.
const PASSES: [(&str, &str, &str); 5] = [
    ("proxy", "proxy_pass", "proxy_read_timeout"),
    ("fastcgi", "fastcgi_pass", "fastcgi_read_timeout"),
    ("uwsgi", "uwsgi_pass", "uwsgi_read_timeout"),
    ("scgi", "scgi_pass", "scgi_read_timeout"),
    ("grpc", "grpc_pass", "grpc_read_timeout"),
];

/// The timeout between two reads if none is written.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// The first way that a change closes or changes, as a sentence. `None` if every request goes as before.
pub fn harm(before: &View<'_>, after: &View<'_>, target: Target, facts: &Facts) -> Option<Said> {
    let is_new = target == Target::Weir || facts.version_is_told.is_some() && target.version() >= Version(1, 29, 7);
    for (family, pass, read_timeout) in PASSES {
        let of = |view| Way::all(view, family, pass, read_timeout, is_new, target);
        let (old, new) = (of(before), of(after));
        if old.len() != new.len() {
            return Some(said!("it would add or remove a {pass}", "{pass} 줄이 늘거나 줄어듭니다"));
        }
        if let Some(harm) = old.iter().zip(&new).find_map(|(old, new)| old.harm(new)) {
            return Some(harm);
        }
    }
    let (old, new) = (http2(before), http2(after));
    let lost = old.iter().zip(&new).find(|(old, new)| old.1 && !new.1);
    lost.map(|((listen, _), _)| {
        said!(
            "the server on {listen} would no longer speak HTTP/2",
            "{listen}의 서버가 더는 HTTP/2를 지원하지 않습니다"
        )
    })
}

/// The way of the requests of one `proxy_pass`, `fastcgi_pass` and so on.
struct Way {
    /// The block of the directive, for a sentence.
    place: String,
    /// Whether the origin can get a WebSocket handshake, and whether it always gets it.
    websocket: (bool, bool),
    is_buffered: bool,
    read_timeout: Option<Duration>,
    /// The zone of the cache, if it stores something, and the texts and variables of its key.
    cache: Option<(String, Vec<String>)>,
}

impl Way {
    fn all<'v>(
        view: &'v View<'v>,
        family: &'static str,
        pass: &'static str,
        read_timeout: &'static str,
        is_new: bool,
        target: Target,
    ) -> Vec<Way> {
        let names = FAMILIES.iter().find(|names| names.family == family);
        let of = |spot: Spot<'v>| {
            let scope = spot.scope();
            let buffering = names.and_then(|names| scope.effective(names.buffering));
            let is_buffered = buffering.is_none_or(|spot| spot.arg(0) != "off");
            let zone = names.and_then(|names| scope.effective(names.cache)).map_or("off", |spot| spot.arg(0));
            let key = names.and_then(|names| scope.effective(names.key)).map_or("", |spot| spot.arg(0));
            let written = scope.effective(read_timeout);
            Way {
                place: scope.opener().map(Spot::line).unwrap_or_default(),
                websocket: if family == "proxy" { websocket(spot, is_new, target) } else { (false, false) },
                is_buffered,
                read_timeout: written.map_or(Some(READ_TIMEOUT), |spot| weir_http::text::value::time_of(spot.arg(0))),
                cache: (zone != "off" && is_buffered).then(|| (zone.to_owned(), words(key))),
            }
        };
        view.named(pass).filter(|spot| !spot.is_in("stream")).map(of).collect()
    }

    /// The difference of a later way of the same directive, if it is harm.
    fn harm(&self, later: &Way) -> Option<Said> {
        let place = &self.place;
        let closes = self.websocket.0 && !later.websocket.0 || self.websocket.1 && !later.websocket.1;
        if closes {
            return Some(said!(
                "WebSockets would no longer get through \"{place}\"",
                "WebSocket이 더는 통과하지 못합니다: \"{place}\""
            ));
        }
        if !self.is_buffered && later.is_buffered {
            return Some(said!(
                "answers that now stream through \"{place}\" would be buffered",
                "지금 스트리밍으로 통과하는 응답이 버퍼링됩니다: \"{place}\""
            ));
        }
        if later.read_timeout < self.read_timeout {
            return Some(said!(
                "WebSockets and streams of \"{place}\" would be closed sooner",
                "\"{place}\"의 WebSocket과 스트림이 더 일찍 닫힙니다"
            ));
        }
        let cache = |way: &Way| way.cache.clone().unwrap_or_default();
        let ((zone, key), (later_zone, later_key)) = (cache(self), cache(later));
        let is_other = zone != later_zone || key.iter().any(|word| !later_key.contains(word));
        is_other.then(|| {
            said!("the cache of \"{place}\" would have other answers", "\"{place}\"의 캐시가 다른 응답을 저장합니다")
        })
    }
}

/// The texts and variables of a cache key.
fn words(key: &str) -> Vec<String> {
    let word = |piece| match piece {
        ArgumentPiece::Text(text) => text.to_owned(),
        ArgumentPiece::Variable(name) => format!("${name}"),
    };
    reach::pieces(key).into_iter().map(word).collect()
}

/// Whether an origin can get a WebSocket handshake from this `proxy_pass`, and whether it always gets it.
fn websocket(pass: Spot<'_>, is_new: bool, target: Target) -> (bool, bool) {
    let scope = pass.scope();
    let is_one = scope.effective("proxy_http_version").map_or(is_new, |spot| spot.arg(0) == "1.1");
    let headers = scope.effective_all("proxy_set_header");
    let sent = headers.iter().find(|spot| spot.arg(0).eq_ignore_ascii_case("upgrade"));
    let connection = upgrade::connection(pass);
    // weir forwards the handshake if the file says nothing.
    if target == Target::Weir && sent.is_none() && connection.is_none() {
        return (is_one, is_one);
    }
    let (Some(sent), Some(connection)) = (sent, connection) else { return (false, false) };
    let sent = upgrade::values(*sent, pass, PossibleRequest::WebSocket);
    let connection = upgrade::values(connection, pass, PossibleRequest::WebSocket);
    let names = |value: &str| upgrade::has_option(value, "upgrade");
    let never = sent.always(str::is_empty) || connection.always(|value| !names(value));
    let always = sent.always(|value| !value.is_empty()) && connection.always(names);
    (is_one && !never, is_one && always)
}

/// Each `listen` of each server, and whether the server speaks HTTP/2 there.
fn http2<'v>(view: &'v View<'v>) -> Vec<(&'v str, bool)> {
    let listens = view.servers().flat_map(|server| server.named("listen").map(move |listen| (server, listen)));
    let speaks = |server: crate::view::Scope<'v>| server.effective("http2").is_some_and(|spot| spot.arg(0) == "on");
    listens.map(|(server, listen)| (listen.arg(0), listen.says("http2") || speaks(server))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn harm_of(before: &str, after: &str) -> Option<String> {
        let tree = |lines: &str| {
            let conf = format!(
                "http {{ map $http_upgrade $c {{ websocket upgrade; default ''; }} server {{ listen 80; {lines} }} }}"
            );
            crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/").0
        };
        let (before, after) = (tree(before), tree(after));
        let facts = Facts { version_is_told: Some(Version(1, 22, 1)), ..Facts::default() };
        harm(&View::new(&before), &View::new(&after), Version(1, 22, 1).into(), &facts).map(|said| said.en().to_owned())
    }

    #[test]
    fn a_way_that_closes_or_changes_is_harm() {
        let location = |lines: &str| format!("location / {{ {lines} proxy_pass http://a; }}");
        let upgrade = "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection";
        let rows = [
            (format!("{upgrade} upgrade;"), format!("{upgrade} $c;"), ""),
            (format!("{upgrade} $c;"), format!("{upgrade} '';"), "WebSockets would no longer get through"),
            (format!("{upgrade} $c;"), upgrade.replacen("1.1", "1.0", 1) + " $c;", "WebSockets would no longer"),
            (String::new(), format!("{upgrade} '';"), ""),
            ("proxy_buffering off;".into(), String::new(), "would be buffered"),
            (String::new(), "proxy_buffering off;".into(), ""),
            ("proxy_read_timeout 1h;".into(), String::new(), "closed sooner"),
            (String::new(), "proxy_read_timeout 1h;".into(), ""),
            ("proxy_cache c;".into(), "proxy_cache d;".into(), "other answers"),
            (
                "proxy_cache c; proxy_cache_key $uri$arg_a;".into(),
                "proxy_cache c; proxy_cache_key $uri;".into(),
                "other answers",
            ),
            ("proxy_cache c; proxy_cache_key $uri;".into(), "proxy_cache c; proxy_cache_key $host$uri;".into(), ""),
        ];
        for (before, after, expected) in rows {
            let said = harm_of(&location(&before), &location(&after)).unwrap_or_default();
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{before} {after}: {said}");
        }
        assert!(harm_of(&location(""), "location / { return 200; }").unwrap().contains("proxy_pass"));
        assert!(harm_of("listen 443 ssl http2;", "listen 443 ssl;").unwrap().contains("no longer speak HTTP/2"));
        assert_eq!(harm_of("listen 443 ssl http2;", "listen 443 ssl; http2 on;"), None);
    }
}
