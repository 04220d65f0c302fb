//! `config.http.http3`: what cannot go over HTTP/3 is refused at its place.

use weir_words::say;

use super::build::Builder;
use super::node::Node;
use crate::client::{Protocol, Proxies};
use crate::texts::script as texts;
use crate::url::Url;

impl Builder<'_> {
    /// The protocol of all requests, from `config.http`.
    pub fn protocol(&mut self, http: &Node) -> Option<Protocol> {
        let http2 = http.get("http2").filter(|node| node.is_yes());
        match http.get("http3").filter(|node| node.is_yes()) {
            Some(http3) if http2.is_some() => {
                self.notes.refuse(http3.at, texts::HTTP3_OR_HTTP2);
                None
            }
            Some(_) => Some(Protocol::Http3),
            None => http2.map(|_| Protocol::Http2),
        }
    }

    /// Checks the target, and the way to it.
    pub fn check_http3(&mut self, config: &Node, proxies: &Proxies) {
        let Some(target) = config.get("target").filter(|_| self.speaks_http3) else { return };
        self.check_http3_url(target);
        let proxy = Url::parse(&target.shown()).ok().and_then(|url| proxies.of(&url).map(Url::origin));
        if let Some(proxy) = proxy {
            self.notes.refuse(target.at, say!(texts::HTTP3_PROXY, proxy));
        }
    }

    /// Checks a URL; one with variables is checked when it is asked for.
    pub fn check_http3_url(&mut self, url: &Node) {
        if self.speaks_http3 && url.shown().trim_start().to_ascii_lowercase().starts_with("http://") {
            self.notes.refuse(url.at, texts::HTTP3_URL);
        }
    }

    /// Refuses an engine other than http.
    pub fn check_http3_engine(&mut self, engine: &Node) {
        if self.speaks_http3 {
            self.notes.refuse(engine.at, say!(texts::HTTP3_ENGINE, engine.shown()));
        }
    }
}
