//! The settings of a family that passes requests on in another protocol than HTTP: those of `proxy`, `cache`, `store` and
//! `proxy_ssl` under the family's own names, and a few of its own.
//!
//! Where the family's `…_pass` answers, its settings replace those of `proxy` and the others, so the code that talks to
//! upstreams reads one set of settings. `family::fastcgi`, `uwsgi`, `scgi` and `memcached` have the directives.

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::read::build::{Build, Scope};
use weir_http::text::refusal::Refusal;
use weir_http::text::regex::SharedRegex;
use weir_peers::retry::Conditions;
use weir_wire::Version;

use crate::family::cache::facts::Use;
use crate::family::proxy::buffers;
use crate::family::proxy::pass::{Pass, Scheme};
use crate::family::{cache, proxy, proxy_ssl, store};
use crate::protocol::Protocol;
use crate::protocol::params::{Param, Params, Push};

/// The settings that only families of this kind have.
pub mod own {
    use super::{Param, SharedRegex};

    weir_http::settings! {
        /// `…_param`.
        params: Vec<Param> = Vec::new(),
        /// `fastcgi_index`.
        index: String = String::new(),
        /// `fastcgi_split_path_info`.
        split: Option<SharedRegex> = None,
        /// `fastcgi_catch_stderr`.
        catch_stderr: Vec<String> = Vec::new(),
        /// `fastcgi_keep_conn`.
        keep_conn: bool = false,
        /// `uwsgi_modifier1`.
        modifier1: u8 = 0,
        /// `uwsgi_modifier2`.
        modifier2: u8 = 0,
        /// `uwsgi_string`.
        string: String = String::new(),
        /// `memcached_gzip_flag`.
        gzip_flag: u64 = 0,
    }
}

/// How a path becomes the name of a script and the rest.
pub struct Split {
    /// `fastcgi_index`.
    pub index: String,
    /// `fastcgi_split_path_info`.
    pub regex: Option<SharedRegex>,
}

/// The settings of one block, as written.
#[derive(Clone, Default)]
pub struct Settings {
    /// Those of `proxy`.
    pub proxy: proxy::Settings,
    /// Those of `cache`.
    pub cache: cache::Settings,
    /// Those of `store`.
    pub store: store::Settings,
    /// Those of `proxy_ssl`.
    pub ssl: proxy_ssl::Settings,
    /// Those that only these families have.
    pub own: own::Settings,
}

impl Settings {
    /// Takes from the enclosing block the settings that this block does not set.
    pub fn inherit(&mut self, outer: &Settings) {
        self.proxy.inherit(&outer.proxy);
        self.cache.inherit(&outer.cache);
        self.store.inherit(&outer.store);
        self.ssl.inherit(&outer.ssl);
        self.own.inherit(&outer.own);
    }

    /// The values in force, defaults filled in.
    pub fn values(self) -> Values {
        let is_used = matches!(self.proxy.pass, Some(Some(_)));
        let (index, regex) = (self.own.index.clone(), self.own.split.clone().flatten());
        let is_split = index.is_some() || regex.is_some();
        let split = is_split.then(|| Arc::new(Split { index: index.unwrap_or_default(), regex }));
        let passing = is_used.then(|| {
            let Settings { proxy, cache, store, ssl, own: _ } = self;
            Box::new(Passing { proxy: proxy.values(), cache: cache.values(), store: store.values(), ssl: ssl.values() })
        });
        Values { split, passing }
    }
}

/// The settings in force in one place.
#[derive(Clone)]
pub struct Values {
    /// `fastcgi_index` and `fastcgi_split_path_info`, where one of them is set.
    pub split: Option<Arc<Split>>,
    /// The settings for upstreams, until they replace those of `proxy`; `None` where the family does not answer.
    passing: Option<Box<Passing>>,
}

#[derive(Clone)]
struct Passing {
    proxy: proxy::Values,
    cache: cache::Values,
    store: store::Values,
    ssl: proxy_ssl::Values,
}

/// Puts the settings of a family in the place of those of `proxy`, which nothing in this location reads, if the family
/// answers there. `of` selects the family's values.
pub fn settle(values: &mut crate::family::Values, of: fn(&mut crate::family::Values) -> &mut Values) {
    let Some(passing) = of(values).passing.take() else { return };
    let Passing { proxy, cache, store, ssl } = *passing;
    values.proxy = proxy::Values { redirect: proxy::rewrite::Redirects::Off, ..proxy };
    values.proxy_ssl = ssl;
    values.cache = cache::Values { convert_head: false, ..cache };
    values.store = store;
}

/// The names that a family gives to settings of `cache`.
pub struct Names {
    /// The scheme.
    pub scheme: Scheme,
    /// `…_cache` and `…_cache_key`.
    pub cache: (&'static str, &'static str),
    /// The directory for answers if `…_temp_path` is not set.
    pub temporary: &'static str,
}

/// The key of a cache without `…_cache_key`. nginx has an empty key, under which all requests get the same answer.
const KEY_DEFAULT: &str = "$scheme$request_method$host$request_uri";

/// Compiles a block once its inherited settings are known. `protocol` makes the protocol of a block that answers.
pub fn finish(
    b: &mut Build<'_>,
    scope: &Scope,
    settings: &mut Settings,
    names: &Names,
    protocol: fn(&mut Build<'_>, own::Values) -> Result<Protocol, Refusal>,
) {
    let (prefix, directive) = (names.scheme.family(), names.scheme.directive());
    let (cache, cache_key) = names.cache;
    if let Some(zone) = &mut settings.cache.zone {
        cache::find_zone(b, scope, zone, (prefix, cache));
    }
    buffers::check(b, scope, &settings.proxy, prefix);
    let Some(Some(_)) = &settings.proxy.pass else { return };
    let at = scope.place(directive, 0);
    proxy::compile(b, &mut settings.proxy, names.scheme, at);
    match protocol(b, settings.own.clone().values()) {
        Ok(protocol) => settings.proxy.protocol = Some(protocol),
        Err(refusal) => b.refuse_at(directive, refusal, at),
    }
    if names.scheme == Scheme::Uwsgi
        && let Some(Some(pass)) = settings.proxy.pass.clone()
    {
        proxy_ssl::compile_block(b, &mut settings.ssl, (&pass, false), scope);
    }
    // nginx reads a chunked body before it asks such an origin.
    let version = if matches!(names.scheme, Scheme::FastCgi) { Version::Http11 } else { Version::Http10 };
    settings.proxy.version = Some(version);
    settings.proxy.temp_path.get_or_insert_with(|| Some(b.paths.temporary(None, names.temporary)));
    let keeps = settings.cache.zone.as_ref().is_some_and(|zone| !matches!(zone, Use::Off));
    if keeps && matches!(settings.cache.key, None | Some(None)) {
        let todo = format!("weir uses the key {KEY_DEFAULT}; write it, or another, as {cache_key}");
        b.warn(format!("no \"{cache_key}\" for \"{cache}\""), Some(todo));
        match b.template(KEY_DEFAULT) {
            Ok(key) => settings.cache.key = Some(Some(key)),
            Err(refusal) => b.refuse_at(directive, refusal, at),
        }
        settings.cache.told_apart = Some(weir_cache::personal::ToldApart::by_key(KEY_DEFAULT));
    }
}

/// Compiles the parameters of a block.
pub fn params(b: &mut Build<'_>, written: &[Param], push: Push) -> Result<Params, Refusal> {
    let host = b.template("$host$is_request_port$request_port")?;
    Ok(Params::compile(written, host, push))
}

/// `…_pass`: an address, or a text with variables.
pub fn pass(b: &mut Build<'_>, statement: &Statement, scheme: Scheme, of: proxy::Of) -> Result<(), Refusal> {
    let url = statement.text(0);
    let pass =
        if url.contains('$') { Pass::computed(url, b.template(url)?, scheme) } else { Pass::parse(scheme, url)? };
    b.scope().pass(proxy::enter);
    proxy::claim(b, of, pass);
    Ok(())
}

/// Selects a family's settings in a block.
pub type BundleOf = fn(&mut crate::family::Settings) -> &mut Settings;

/// `…_param`.
pub fn param(b: &mut Build<'_>, statement: &Statement, of: BundleOf) -> Result<(), Refusal> {
    let if_not_empty = match statement.args.get(2).map(|word| word.text.as_str()) {
        None => false,
        Some("if_not_empty") => true,
        Some(other) => return Err(Refusal::whole(format!("invalid parameter \"{other}\""))),
    };
    let value = b.inherited_template(statement.text(1))?;
    let param = Param { name: statement.text(0).to_owned(), value, if_not_empty };
    of(crate::settings(b)).own.params.get_or_insert_default().push(param);
    Ok(())
}

/// Whether `…_next_upstream` of CGI's families has this condition: nginx names no 502 and no 504 there.
pub fn has_condition(condition: Conditions) -> bool {
    condition != Conditions::HTTP_502 && condition != Conditions::HTTP_504
}

/// Whether `…_cache_use_stale` of these families has this word.
pub fn has_word(word: &str) -> bool {
    !matches!(word, "http_502" | "http_504")
}

/// The directives of a family that passes requests on as CGI does; its own directives follow. `$family` is the family
/// below `Settings`.
macro_rules! cgi_tables {
    ($prefix:literal, $family:ident) => {
        const TALKING: &[Directive] = $crate::family::proxy::shared::talking!($prefix, $family.proxy);
        const HEADS: &[Directive] =
            $crate::family::proxy::shared::heads!($prefix, $crate::bundle::has_condition, $family.proxy);
        const PASSING: &[Directive] = $crate::family::proxy::shared::passing!($prefix, $family.proxy);
        const CACHING: &[Directive] = $crate::family::cache::table::caching!(
            $prefix,
            "$scheme$request_method$host$request_uri (nginx: empty)",
            $crate::bundle::has_word,
            ($family.store),
            ($family.cache)
        );
        const STORING: &[Directive] = $crate::family::store::storing!($prefix, ($family.cache), ($family.store));
        const PARAM: &[Directive] = &[Directive::new(
            concat!($prefix, "_param"),
            HSL,
            Arity::Between(2, 3),
            "Sets a parameter of the request; with if_not_empty, only if the value is not empty.",
            |b, s| bundle::param(b, s, |all| &mut all.$family),
        )
        .many()
        .default("HTTP_HOST $host$is_request_port$request_port")];
    };
}

pub(crate) use cgi_tables;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::of_text;

    /// The protocol of each location with an origin, and its `…_read_timeout` in seconds.
    fn passes(server: &str) -> Vec<(&'static str, u64)> {
        let (conf, said) = of_text(&format!(
            "events {{}} http {{ proxy_read_timeout 1s; fastcgi_read_timeout 2s; uwsgi_read_timeout 3s; scgi_read_timeout 4s; \
             memcached_read_timeout 5s; grpc_read_timeout 6s; server {{ listen 127.0.0.1:1; {server} }} }}"
        ));
        assert_eq!(said, [""; 0], "{server}");
        let conf = conf.expect("there is no problem");
        let values = conf.locations.iter().filter(|location| location.handler.is_some()).map(crate::values);
        let named = |protocol: &Protocol| match protocol {
            Protocol::Http1 => "http",
            Protocol::Http2 => "http2",
            Protocol::FastCgi(_) => "fastcgi",
            Protocol::Uwsgi(_) => "uwsgi",
            Protocol::Scgi(_) => "scgi",
            Protocol::Memcached(_) => "memcached",
            Protocol::Tunnel => "tunnel",
        };
        values.map(|values| (named(&values.proxy.protocol), values.proxy.read_timeout.as_secs())).collect()
    }

    #[test]
    fn the_last_pass_of_a_block_decides_the_protocol_and_the_settings() {
        for (server, expected) in [
            ("location / { fastcgi_pass 127.0.0.1:2; }", &[("fastcgi", 2)][..]),
            ("location / { uwsgi_pass 127.0.0.1:2; }", &[("uwsgi", 3)]),
            ("location / { scgi_pass 127.0.0.1:2; scgi_read_timeout 9s; }", &[("scgi", 9)]),
            ("location / { set $memcached_key a; memcached_pass 127.0.0.1:2; }", &[("memcached", 5)]),
            ("location / { grpc_pass 127.0.0.1:2; }", &[("http2", 6)]),
            ("location / { proxy_pass http://127.0.0.1:2; }", &[("http", 1)]),
            ("location / { proxy_pass http://127.0.0.1:2; proxy_http_version 2; }", &[("http2", 1)]),
            ("location / { proxy_pass http://127.0.0.1:2; fastcgi_pass 127.0.0.1:2; }", &[("fastcgi", 2)]),
            ("location / { fastcgi_pass 127.0.0.1:2; proxy_pass http://127.0.0.1:2; }", &[("http", 1)]),
            (
                "location / { fastcgi_pass 127.0.0.1:2; location /a { uwsgi_pass 127.0.0.1:2; } }",
                &[("fastcgi", 2), ("uwsgi", 3)],
            ),
            (
                "location / { grpc_pass 127.0.0.1:2; location /a { scgi_pass 127.0.0.1:2; } }",
                &[("http2", 6), ("scgi", 4)],
            ),
        ] {
            assert_eq!(passes(server), expected, "{server}");
        }
    }

    #[test]
    fn a_cache_without_a_key_gets_one() {
        let (conf, said) = of_text(
            "events {} http { fastcgi_cache_path /c keys_zone=a:1m; server { listen 127.0.0.1:1; fastcgi_cache a; \
             location / { fastcgi_pass 127.0.0.1:2; } location /own { fastcgi_pass 127.0.0.1:2; fastcgi_cache_key $uri; } } }",
        );
        assert!(said.iter().any(|one| one.contains("no \"fastcgi_cache_key\" for \"fastcgi_cache\"")), "{said:?}");
        let conf = conf.expect("a warning is no error");
        let locations = conf.locations.iter().filter(|location| location.handler.is_some());
        let told: Vec<_> = locations.map(|location| crate::values(location).cache.told_apart.methods).collect();
        assert_eq!(told, [true, false]);
    }
}
