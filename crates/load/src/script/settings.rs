//! `config.http`, `ws`, `tls` and `plugins` (artillery.md §1.7, §2.4, §5), with the legacy places of their keys.

use std::time::Duration;

use weir_words::say;

use super::build::Builder;
use super::keys;
use super::node::{Node, NodeValue};
use super::source::SourcePlace;
use crate::client::Proxies;
use crate::cookie::{Prefixes, Rules};
use crate::plan::{HttpConfig, Plugins, WsConfig};
use crate::publish::{Reporter, ReporterRefused};
use crate::texts::script as texts;
use crate::value::{Map, Value};

/// Largest `pool` and `maxSockets`.
const SOCKETS_MAX: usize = 1_000_000;

/// Most reporters of `publish-metrics`.
const REPORTERS_MAX: usize = 16;

/// Default threshold of `apdex`, in ms.
const APDEX_MS: f64 = 500.0;

impl Builder<'_> {
    /// `config.http`.
    pub fn http(&mut self, config: &Node) -> HttpConfig {
        let nothing = Node::empty(config.at);
        let http = config.get("http").unwrap_or(&nothing);
        keys::HTTP.check(http, self.notes);
        for place in [http.get("defaults"), config.get("defaults")].into_iter().flatten() {
            keys::DEFAULTS.check(place, self.notes);
        }
        let default = |key: &str| {
            let places = [http.get("defaults"), config.get("defaults")];
            places.into_iter().flatten().find_map(|place| place.get(key).filter(|node| node.kind != NodeValue::Null))
        };
        HttpConfig {
            timeout: self.seconds(http.get("timeout")),
            pool: self.count(http.get("pool")),
            protocol: self.protocol(http),
            sockets_max: self.count(http.get("maxSockets")),
            extended_metrics: http.get("extendedMetrics").is_some_and(Node::is_yes),
            headers: default("headers").map(|headers| self.headers(Some(headers))),
            cookies: self.texts(default("cookie")),
            strict_capture: default("strictCapture").and_then(|strict| match strict {
                strict if strict.is_no() => Some(false),
                strict if strict.is_yes() => Some(true),
                _ => None,
            }),
            tracing: http.get("distributedTracing").and_then(|node| self.tracing(node)),
            cookie_rules: http.get("cookieJarOptions").map(|node| self.cookie_rules(node)).unwrap_or_default(),
        }
    }

    fn cookie_rules(&mut self, node: &Node) -> Rules {
        keys::COOKIE_JAR.check(node, self.notes);
        let prefixes = match node.get("prefixSecurity").map(Node::shown).as_deref() {
            None | Some("silent") => Prefixes::Silent,
            Some("strict") => Prefixes::Strict,
            Some("unsafe-disabled") => Prefixes::Unsafe,
            Some(_) => {
                self.notes.warn(node.at, texts::PREFIX_SECURITY);
                Prefixes::Silent
            }
        };
        Rules {
            is_loose: node.get("looseMode").is_some_and(Node::is_truthy),
            rejects_public: node.get("rejectPublicSuffixes").is_none_or(Node::is_truthy),
            prefixes,
        }
    }

    /// `defaults.think.jitter`; flows of other engines read its legacy place only.
    pub fn read_jitter(&mut self, config: &Node) {
        let mut read = |path: &[&str]| {
            let think = config.dig(path)?;
            keys::DEFAULTS_THINK.check(think, self.notes);
            self.jitter(think.get("jitter")?)
        };
        let http = read(&["http", "defaults", "think"]);
        let others = read(&["defaults", "think"]);
        self.jitter_http = http.or(others);
        self.jitter_others = others;
    }

    fn tracing(&mut self, node: &Node) -> Option<(bool, String)> {
        if node.map().is_some() {
            keys::DISTRIBUTED_TRACING.check(node, self.notes);
        }
        let is_off =
            !node.is_truthy() || node.is_no() || node.get("enabled").is_some_and(|on| !on.is_truthy() || on.is_no());
        if is_off {
            return None;
        }
        let prefix = node.get("traceIdPrefix").map(Node::shown).unwrap_or_default().to_lowercase();
        let prefix: String = prefix.chars().filter(char::is_ascii_hexdigit).take(8).collect();
        let prefix = if prefix.is_empty() { "a9".to_owned() } else { prefix };
        Some((!node.get("sampled").is_some_and(|sampled| !sampled.is_truthy() || sampled.is_no()), prefix))
    }

    /// `config.ws`.
    pub fn ws(&mut self, config: &Node) -> WsConfig {
        let nothing = Node::empty(config.at);
        let ws = config.get("ws").unwrap_or(&nothing);
        keys::WS.check(ws, self.notes);
        let protocols = ws.get("subprotocols").map_or(&[][..], Node::one_or_more);
        let own = ["headers", "subprotocols", "timeout"];
        WsConfig {
            headers: self.texts(ws.get("headers")),
            subprotocols: protocols.iter().map(Node::shown).collect(),
            timeout: self.seconds(ws.get("timeout")),
            options: ws.value_map().into_iter().filter(|(key, _)| !own.contains(&&**key)).collect(),
        }
    }

    /// `config.tls`.
    pub fn tls(&mut self, config: &Node) -> Map {
        let Some(tls) = config.get("tls") else { return Map::default() };
        keys::TLS.check(tls, self.notes);
        tls.value_map()
    }

    /// The proxies in the environment.
    pub fn proxies(&mut self, at: SourcePlace, globals: &[(String, Value)]) -> Proxies {
        let environment = globals.iter().find(|(name, _)| name == "$env").map(|(_, value)| value);
        let variable = |name: &str| match environment {
            Some(Value::Map(map)) => map.get(name).map(|value| value.to_text().into_owned()),
            _ => None,
        };
        let proxies = Proxies::read(&variable).unwrap_or_else(|why| {
            self.notes.refuse(at, why);
            Proxies::default()
        });
        if !proxies.named().is_empty() {
            self.notes.say(say!(texts::THROUGH_PROXY, proxies.named().join(", ")));
        }
        proxies
    }

    /// A number of seconds.
    pub fn seconds(&mut self, node: Option<&Node>) -> Option<Duration> {
        let node = node.filter(|node| node.is_truthy())?;
        let time = crate::duration::phase(&node.value()).map(|time| time.time);
        if time.is_none() {
            self.notes.refuse(node.at, say!(texts::NOT_SECONDS, node.shown()));
        }
        time
    }

    fn count(&mut self, node: Option<&Node>) -> Option<usize> {
        let node = node.filter(|node| node.is_truthy())?;
        let number = node.number();
        if number >= 1.0 {
            return Some((number as usize).min(SOCKETS_MAX));
        }
        self.notes.refuse(node.at, say!(texts::NOT_CONNECTIONS, node.shown()));
        None
    }

    /// `config.plugins`.
    pub fn plugins(&mut self, config: &Node) -> Plugins {
        let nothing = Node::empty(config.at);
        let listed = config.get("plugins").unwrap_or(&nothing);
        keys::PLUGINS.check(listed, self.notes);
        // Options at `config.NAME` win over options under `plugins`.
        let options = |name: &str| {
            let under = listed.map()?.get(name)?;
            let own = if name == "expect" { None } else { config.get(name) };
            Some(own.filter(|own| own.is_truthy()).unwrap_or(&under.value))
        };
        let mut plugins = Plugins::default();
        for name in ["ensure", "expect", "apdex", "fake-data"] {
            if let (Some(node), None) = (config.get(name), listed.map().and_then(|map| map.get(name))) {
                self.notes.warn(node.at, say!(texts::PLUGIN_NOT_LISTED, name));
            }
        }
        for (name, object) in [
            ("ensure", &keys::ENSURE),
            ("expect", &keys::EXPECT_OPTIONS),
            ("apdex", &keys::APDEX),
            ("metrics-by-endpoint", &keys::BY_ENDPOINT),
        ] {
            if let Some(node) = options(name) {
                object.check(node, self.notes);
            }
        }
        for condition in
            options("ensure").and_then(|ensure| ensure.get("conditions")).map_or(&[][..], Node::one_or_more)
        {
            keys::ENSURE_CONDITION.check(condition, self.notes);
        }
        let value = |node: &Node| if node.is_truthy() { node.value() } else { Value::Map(Map::default().into()) };
        plugins.ensure = options("ensure").map(value);
        plugins.expect = options("expect").map(value);
        plugins.by_endpoint = options("metrics-by-endpoint").filter(|node| node.is_truthy()).map(value);
        plugins.fake_data = options("fake-data").map(value);
        plugins.apdex = options("apdex").map(|node| {
            let threshold = node.get("threshold").map_or(APDEX_MS, Node::number);
            if threshold > 0.0 { threshold } else { APDEX_MS }
        });
        plugins.publish = self.reporters(options("publish-metrics"));
        for (name, member) in listed.map().into_iter().flatten() {
            let is_known = keys::PLUGINS.key(name).is_some_and(|key| key.does != keys::Does::No);
            if is_known {
                continue;
            }
            if keys::PLUGINS.key(name).is_none() {
                self.notes.warn(member.at, say!(texts::NO_PLUGIN, name.as_ref()));
            }
            plugins.others.push((name.to_string(), member.value.value()));
        }
        plugins
    }

    fn reporters(&mut self, node: Option<&Node>) -> Vec<Reporter> {
        let mut reporters = Vec::new();
        for reporter in node.filter(|node| node.is_truthy()).map_or(&[][..], Node::one_or_more) {
            match Reporter::read(&reporter.value()) {
                Ok(read) => {
                    keys::PUBLISH.check(reporter, self.notes);
                    reporters.push(read);
                }
                Err(ReporterRefused::Unsent(what)) => self.notes.warn(reporter.at, what),
                Err(ReporterRefused::Wrong(what)) => self.notes.refuse(reporter.at, what),
            }
        }
        if reporters.len() > REPORTERS_MAX {
            self.notes.say(say!(texts::TOO_MANY_REPORTERS, reporters.len(), REPORTERS_MAX));
            reporters.truncate(REPORTERS_MAX);
        }
        reporters
    }
}
