//! `proxy_cache` and its family: keeps answers of upstreams and serves them again.
//!
//! This file has the directives and settings; `path` reads `proxy_cache_path`. For an exchange, `ask` asks the cache,
//! `hit` answers from it, `keep` stores the upstream's answer, `refresh` asks the upstream again in the background,
//! `purge` removes answers. The rules and the storage are in `weir_cache`.
//! <https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_cache>, `docs/guide/cache.md`.

mod ask;
pub mod facts;
pub mod forward;
mod hit;
pub mod keep;
pub mod pack;
pub mod path;
pub mod plain;
mod purge;
pub mod purging;
mod refresh;
pub mod table;
mod variables;
mod watch;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use facts::Use;
use purging::Purging;
use table::caching;
use watch::OpenedZone;
use weir_cache::personal::ToldApart;
use weir_cache::policy::{UseStale, Valid};
use weir_cache::store::Zone;
use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::Location;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, HSL, join};
use weir_http::read::families::{Family, VariablesRead};
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;
use weir_net::log::Level;
use weir_net::process::Identity;

weir_http::settings! {
    /// `proxy_cache`.
    zone: Use = Use::Off,
    /// `proxy_cache_key`; `None` for scheme, host and URI as the upstream gets them.
    key: Option<Template> = None,
    /// `proxy_cache_valid`.
    valid: Arc<Vec<Valid>> = Arc::default(),
    /// `proxy_cache_methods`.
    methods: Methods = Methods::DEFAULT,
    /// `proxy_cache_min_uses`.
    min_uses: u64 = 1,
    /// `proxy_cache_bypass`.
    bypass: Arc<Vec<Template>> = Arc::default(),
    /// `proxy_no_cache`.
    no_cache: Arc<Vec<Template>> = Arc::default(),
    /// `proxy_cache_purge`.
    purge: Purging = Purging::Nobody,
    /// `proxy_cache_purge_tag`.
    purge_tag: Arc<Vec<Template>> = Arc::default(),
    /// `proxy_cache_lock`; `None` where it is not set.
    lock: Option<bool> = None,
    /// `proxy_cache_lock_timeout`.
    lock_timeout: Duration = Duration::from_secs(5),
    /// `proxy_cache_lock_age`.
    lock_age: Duration = Duration::from_secs(5),
    /// `proxy_cache_use_stale`.
    use_stale: Option<UseStale> = None,
    /// `proxy_cache_background_update`.
    background_update: bool = true,
    /// `proxy_cache_revalidate`.
    revalidate: bool = false,
    /// `proxy_cache_max_range_offset`.
    max_range_offset: Option<u64> = None,
    /// `proxy_cache_convert_head`.
    convert_head: bool = true,
    /// The kinds of clients that the key distinguishes.
    told_apart: ToldApart = ToldApart::default(),
    /// `proxy_cache_guard`.
    guard: bool = true,
    /// `proxy_cache_honor`.
    honor: Honors = Honors::default(),
    /// `proxy_cache_refresh_ahead`: the last part of an answer's life, in hundredths, in which a hit starts a refresh;
    /// 0 for never.
    refresh_ahead: u32 = 0,
    /// A text that decides about the cache is made of the request's body: weir reads the body first.
    reads_body: bool = false,
}

/// The declarations for all of `http`.
#[derive(Default)]
pub struct Declared {
    /// The caches, in the order of the file.
    pub paths: Vec<path::CachePath>,
    /// `proxy_cache_lock` is written somewhere: places without it then get nginx's default.
    pub lock_is_written: bool,
    /// The open caches, once the configuration is in force.
    zones: OnceLock<Vec<OpenedZone>>,
    /// The open caches taken over from the previous configuration, by number.
    inherited: Vec<Option<OpenedZone>>,
}

impl Declared {
    /// Opens the caches when the configuration comes into force. Caches taken over from the previous configuration
    /// stay open. `temporary` gives the directory where the cache of that number first writes its files.
    pub fn open(&self, temporary: impl Fn(usize) -> Option<String>, identity: Option<&Identity>) {
        self.zones.get_or_init(|| {
            let inherited = self.inherited.iter().cloned().chain(std::iter::repeat(None));
            let opened =
                self.paths.iter().zip(inherited).enumerate().map(|(number, (path, inherited))| match inherited {
                    Some(opened) => {
                        opened.zone.retune(path.tuning());
                        opened
                    }
                    None => OpenedZone::new(path.open(temporary(number), identity)),
                });
            opened.collect()
        });
    }

    /// Gives the open caches the times and sizes of this configuration again, after another one that shares them was opened.
    pub fn retune(&self) {
        for (path, opened) in self.paths.iter().zip(self.zones.get().into_iter().flatten()) {
            opened.zone.retune(path.tuning());
        }
    }

    /// Takes over the caches that the older configuration declares the same way. Fails if a cache of the same name has
    /// another directory or other levels there.
    fn adopt(&mut self, old: &Declared) -> Result<(), String> {
        let mut inherited = Vec::new();
        for path in &self.paths {
            let known = old.find(path.name.as_bytes());
            let before = known.and_then(|number| old.paths.get(number));
            if let Some(before) = before {
                path.continues(before)?;
            }
            let is_same = before.is_some_and(|before| path.is_as_large_as(before));
            inherited.push(known.filter(|_| is_same).and_then(|number| old.opened(number)).cloned());
        }
        self.inherited = inherited;
        Ok(())
    }

    /// All caches, once the configuration is in force.
    pub fn all(&self) -> Vec<Arc<Zone>> {
        self.zones.get().into_iter().flatten().map(|opened| opened.zone.clone()).collect()
    }

    /// The cache of that number.
    pub fn zone(&self, number: usize) -> Option<&Arc<Zone>> {
        self.opened(number).map(|opened| &opened.zone)
    }

    /// The cache of that number, with the record of the bodies that clients got.
    pub fn opened(&self, number: usize) -> Option<&OpenedZone> {
        self.zones.get()?.get(number)
    }

    /// The number of the zone of that name.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        self.paths.iter().position(|path| path.name.as_bytes() == name)
    }
}

/// Parts of the RFCs that weir obeys only where the configuration asks for it: `docs/why/007-cache-meaning.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Honors {
    /// `Cache-Control` and `Pragma` of requests (RFC 9111 §5.2.1).
    pub requests: bool,
    /// Lifetimes guessed from `Last-Modified` (RFC 9111 §4.2.2).
    pub guesses: bool,
    /// `stale-if-error` for statuses (RFC 5861 §4).
    pub errors: bool,
}

/// Methods whose answers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Methods(u8);

impl Methods {
    const GET: u8 = 1;
    const HEAD: u8 = 1 << 1;
    const POST: u8 = 1 << 2;
    /// GET and HEAD: nginx always includes them.
    pub const DEFAULT: Methods = Methods(Methods::GET | Methods::HEAD);

    /// Whether answers to this method are kept.
    pub fn has(self, method: &[u8]) -> bool {
        let bit = match method {
            b"GET" => Methods::GET,
            b"HEAD" => Methods::HEAD,
            b"POST" => Methods::POST,
            _ => 0,
        };
        self.0 & bit != 0
    }
}

const TABLE: &[Directive] = caching!("proxy", "$scheme://$proxy_host$request_uri", |_| true, (store), (cache));
const OWN: &[Directive] = &[Directive::new(
    "proxy_cache_convert_head",
    HSL,
    Arity::Flag,
    "Sends GET to the upstream if the client sent HEAD.",
    |b, s| {
        crate::settings(b).cache.convert_head = Some(value::flag(s)?);
        Ok(())
    },
)
.default("on")];
static ALL: [Directive; TABLE.len() + OWN.len()] = join(&[TABLE, OWN]);

/// The family.
pub static FAMILY: Family = Family::new("cache", &ALL)
    .variables(variables::VARIABLES)
    // The cache may have belonged to another location.
    .log(|conf, _| !crate::declared(conf).cache.paths.is_empty(), count)
    .adopt(|new, old| crate::declared_mut(new).cache.adopt(&crate::declared(old).cache))
    .finish(finish)
    .judge(judge);

/// Decides for each place whether the cache needs the request's body, and whether heads may be kept ready.
fn judge(locations: &mut [Location], reading: &VariablesRead<'_>) {
    plain::judge(locations, reading);
    for location in locations {
        let reads = crate::values(location).cache.texts().any(|text| reading.reads_body(text));
        if reads {
            crate::values_mut(location).cache.reads_body = true;
        }
    }
}

impl Values {
    /// The texts that decide whether the cache answers, and whether it keeps an answer.
    fn texts(&self) -> impl Iterator<Item = &Template> {
        let zone = match &self.zone {
            Use::Named(name) => Some(name),
            Use::Off | Use::Zone(..) => None,
        };
        let lists: [&[Template]; 4] = [&self.bypass, &self.no_cache, self.purge.values(), &self.purge_tag];
        zone.into_iter().chain(&self.key).chain(lists.into_iter().flat_map(|list| list.iter()))
    }
}

/// Selects a family's settings of the cache in a block.
pub type CacheOf = fn(&mut crate::family::Settings) -> &mut Settings;

/// `…_cache_path` of the family with this prefix.
pub fn declare(b: &mut Build<'_>, statement: &Statement, prefix: &'static str) -> Result<(), Refusal> {
    let path = path::CachePath { prefix, ..path::read(b, statement)? };
    if crate::declaring(b).cache.find(path.name.as_bytes()).is_some() {
        return Err(Refusal::whole(format!("duplicate zone \"{}\"", path.name)));
    }
    b.reach.make(&path.directory);
    crate::declaring(b).cache.paths.push(path);
    Ok(())
}

/// `…_cache_key`.
pub fn key(b: &mut Build<'_>, statement: &Statement, of: CacheOf) -> Result<(), Refusal> {
    let text = statement.text(0);
    let template = b.template(text)?;
    let settings = of(crate::settings(b));
    settings.told_apart = Some(ToldApart::by_key(text));
    settings.key = Some(Some(template));
    Ok(())
}

/// `…_cache_honor`.
pub fn honor(_: &mut Build<'_>, statement: &Statement) -> Result<Honors, Refusal> {
    let mut honors = Honors::default();
    for word in &statement.args {
        match word.text.as_str() {
            "requests" => honors.requests = true,
            "guesses" => honors.guesses = true,
            "errors" => honors.errors = true,
            "off" => {}
            other => {
                let refusal = Refusal::whole(format!("invalid value \"{other}\""));
                return Err(refusal.todo("write requests, guesses, errors or off"));
            }
        }
    }
    Ok(honors)
}

/// `…_cache`.
pub fn zone(b: &mut Build<'_>, statement: &Statement) -> Result<Use, Refusal> {
    let text = statement.text(0);
    if text == "off" {
        return Ok(Use::Off);
    }
    let template = b.template(text)?;
    match template.literal() {
        Some(_) => Ok(Use::Zone(text.to_owned(), None)),
        None => Ok(Use::Named(template)),
    }
}

impl Settings {
    /// Uses no cache of the blocks around this one, which stores files, as in nginx. Refuses a block that has both; `cache` is the name of the
    /// directive.
    pub fn give_way(&mut self, cache: &str) -> Result<(), Refusal> {
        if matches!(self.zone, Some(Use::Zone(..) | Use::Named(_))) {
            return Err(Refusal::directive(format!("is incompatible with \"{cache}\"")));
        }
        self.zone = Some(Use::Off);
        Ok(())
    }
}

/// `…_cache_valid`. nginx: one argument is a time for 200, 301 and 302; else statuses, then a time. Repeated lists add up.
pub fn valid(b: &mut Build<'_>, statement: &Statement, of: CacheOf) -> Result<(), Refusal> {
    let words: Vec<&str> = statement.args.iter().map(|word| word.text.as_str()).collect();
    let Some((time, statuses)) = words.split_last() else { return Ok(()) };
    let time = value::whole_seconds_of(time).ok_or_else(|| Refusal::whole(format!("invalid time value \"{time}\"")))?;
    let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    let mut rows = Vec::new();
    if statuses.is_empty() {
        rows.extend([200, 301, 302].map(|status| Valid { status: Some(status), seconds }));
    }
    for word in statuses {
        let status = match *word {
            "any" => None,
            number => {
                let status = value::number(number).filter(|status| (100..=599).contains(status));
                Some(status.ok_or_else(|| Refusal::whole(format!("invalid status \"{number}\"")))? as u16)
            }
        };
        rows.push(Valid { status, seconds });
    }
    Arc::make_mut(of(crate::settings(b)).valid.get_or_insert_default()).extend(rows);
    Ok(())
}

/// `…_cache_methods`.
pub fn methods(b: &mut Build<'_>, statement: &Statement, of: CacheOf) -> Result<(), Refusal> {
    // nginx: repeated in one block, the lists add up.
    let mut methods = of(crate::settings(b)).methods.unwrap_or(Methods::DEFAULT);
    for word in &statement.args {
        methods.0 |= match word.text.as_str() {
            "GET" => Methods::GET,
            "HEAD" => Methods::HEAD,
            "POST" => Methods::POST,
            other => return Err(Refusal::whole(format!("invalid value \"{other}\"")).todo("GET, HEAD or POST")),
        };
    }
    of(crate::settings(b)).methods = Some(methods);
    Ok(())
}

/// Texts with variables.
pub fn templates(b: &mut Build<'_>, statement: &Statement) -> Result<Arc<Vec<Template>>, Refusal> {
    let templates: Result<Vec<Template>, Refusal> = statement.args.iter().map(|word| b.template(&word.text)).collect();
    templates.map(Arc::new)
}

/// Adds texts with variables to those of the block (nginx: `ngx_http_set_predicate_slot`).
pub fn add(b: &mut Build<'_>, statement: &Statement, to: To) -> Result<(), Refusal> {
    let more = templates(b, statement)?;
    Arc::make_mut(to(crate::settings(b)).get_or_insert_default()).extend_from_slice(&more);
    Ok(())
}

/// Selects a list of texts with variables in a block.
pub type To = fn(&mut crate::family::Settings) -> &mut Option<Arc<Vec<Template>>>;

const USE_STALE: &[(&str, UseStale)] = &[
    ("error", UseStale::ERROR),
    ("timeout", UseStale::TIMEOUT),
    ("invalid_header", UseStale::INVALID_HEADER),
    ("updating", UseStale::UPDATING),
    ("http_500", UseStale::HTTP_500),
    ("http_502", UseStale::HTTP_502),
    ("http_503", UseStale::HTTP_503),
    ("http_504", UseStale::HTTP_504),
    ("http_403", UseStale::HTTP_403),
    ("http_404", UseStale::HTTP_404),
    ("http_429", UseStale::HTTP_429),
    // nginx takes it here too, because the directive shares its words with proxy_next_upstream.
    ("non_idempotent", UseStale::NOTHING),
    ("off", UseStale::NOTHING),
];

/// `…_cache_use_stale`; `has` says whether the family's directive has a word. nginx: with `off` in the list, the other
/// words have no effect.
pub fn use_stale(b: &mut Build<'_>, statement: &Statement, of: CacheOf, has: fn(&str) -> bool) -> Result<(), Refusal> {
    let mut set = of(crate::settings(b)).use_stale.flatten().unwrap_or(UseStale::NOTHING);
    for word in &statement.args {
        let bad = || Refusal::whole(format!("invalid value \"{}\"", word.text));
        set = set.with(value::choice_of(&word.text, USE_STALE).filter(|_| has(&word.text)).ok_or_else(bad)?);
    }
    let is_off = statement.args.iter().any(|word| word.text.eq_ignore_ascii_case("off"));
    of(crate::settings(b)).use_stale = Some(Some(if is_off { UseStale::NOTHING } else { set }));
    Ok(())
}

fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let Some(mut zone) = crate::written_mut(scope).cache.zone.take() else { return };
    find_zone(b, scope, &mut zone, ("proxy", "proxy_cache"));
    crate::written_mut(scope).cache.zone = Some(zone);
}

/// Finds the zone, which may be declared after its use; with the family's prefix and the directive that names the zone.
pub fn find_zone(b: &mut Build<'_>, scope: &Scope, zone: &mut Use, (prefix, cache): (&str, &'static str)) {
    let Use::Zone(name, number @ None) = zone else { return };
    let cache_path = &format!("{prefix}_cache_path");
    let declared = &crate::declaring(b).cache;
    *number = declared.find(name.as_bytes());
    let other = number.and_then(|number| declared.paths.get(number)).filter(|path| path.prefix != prefix);
    let refusal = match (&number, other) {
        (Some(_), None) => return,
        (Some(_), Some(other)) => {
            let what = format!("the shared memory zone \"{name}\" is already declared for a different use");
            Refusal::whole(what)
                .todo(format!("{cache} uses a zone of {cache_path}, not of {}_cache_path", other.prefix))
        }
        (None, _) => Refusal::whole(format!("\"{cache}\" zone \"{name}\" is unknown"))
            .todo(format!("declare the zone in http: {cache_path} PATH keys_zone={name}:10m;"))
            .needs(cache_path, name),
    };
    // nginx reports this at the end of the block; the number keeps a second place that inherits the name from
    // repeating it.
    *number = Some(usize::MAX);
    b.refuse_in(scope, cache, refusal.about(cache, 0));
}

/// The zone in which an exchange keeps its answers; `Err` is a status.
pub fn zone_of<'e>(exchange: &mut Exchange<'e>, zone: &Use) -> Result<Option<&'e Arc<Zone>>, u16> {
    let number = zone_number(exchange, zone)?;
    Ok(number.and_then(|number| crate::declared(exchange.conf).cache.zone(number)))
}

/// The number of the zone; `Err` is a status.
fn zone_number(exchange: &mut Exchange<'_>, zone: &Use) -> Result<Option<usize>, u16> {
    let conf = exchange.conf;
    match zone {
        Use::Off => Ok(None),
        Use::Zone(name, number) => Ok(number.or_else(|| crate::declared(conf).cache.find(name.as_bytes()))),
        Use::Named(template) => {
            let name = template.text(exchange);
            if name.is_empty() || name == b"off" {
                return Ok(None);
            }
            let number = crate::declared(conf).cache.find(&name);
            if number.is_none() {
                let name = String::from_utf8_lossy(&name);
                exchange.log(Level::Error, format_args!("cache \"{name}\" not found"));
            }
            number.map(Some).ok_or(500)
        }
    }
}

/// Counts the answer under its status.
fn count(exchange: &mut Exchange<'_>) {
    let (Some(number), Some(status)) = (exchange.cache.zone, exchange.cache.status) else { return };
    let Some(zone) = crate::declared(exchange.conf).cache.zone(number) else { return };
    // The cache did not serve a client that left before the first byte; `family::live` counts this request with the
    // errors.
    if exchange.bytes.sent > 0 {
        zone.counters().served(status, exchange.bytes.body_sent);
    }
    if let Some(bytes) = exchange.cache.written.take() {
        zone.counters().written(status, bytes);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use crate::of_text;

    fn said(http: &str) -> Vec<String> {
        of_text(&format!("events {{}} http {{ {http} }}")).1
    }

    #[test]
    fn a_cache_or_a_rule_that_reads_the_body_waits_for_it() {
        for (location, cache, rules) in [
            ("proxy_cache_key $uri;", false, false),
            ("proxy_cache_key $request_body;", true, false),
            ("proxy_cache_key $uri; proxy_cache_bypass $request_body;", true, false),
            ("proxy_cache_key $uri; proxy_no_cache a$request_body_file;", true, false),
            ("proxy_cache_key $uri; proxy_cache_purge $request_body;", true, false),
            ("proxy_cache_key $uri; proxy_set_header X-Body $request_body;", false, false),
            ("set $key $request_body; proxy_cache_key $key;", true, true),
            ("set $one $request_body; set $two $one; proxy_cache_key $two;", true, true),
            ("set $one $request_body; proxy_cache_key $uri;", false, true),
            ("if ($request_body ~ (?<part>a)) { set $one a; } proxy_cache_key $part;", true, true),
            ("rewrite ^ /$request_body break; proxy_cache_key $uri;", false, true),
            ("set $one $uri; proxy_cache_key $one;", false, false),
            ("client_max_body_size 1; set $one a; proxy_cache_key $one;", false, false),
        ] {
            let text = format!(
                "events {{}} http {{ proxy_cache_path /c keys_zone=a:1m; server {{ listen 127.0.0.1:1; location / {{ \
                 proxy_cache a; proxy_pass http://127.0.0.1:2; {location} }} }} }}"
            );
            let (conf, said) = of_text(&text);
            assert_eq!(said, [""; 0], "{location}");
            let conf = conf.expect("there is no problem");
            let place = conf.locations.iter().find(|place| place.name == "/").expect("the location");
            assert_eq!(crate::values(place).cache.reads_body, cache, "{location}");
            let waits = matches!(place.rules.first(), Some(weir_http::exchange::conf::Rule::ReadBody(_)));
            assert_eq!(waits, rules, "{location}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_nginx_s_words() {
        for (http, words) in [
            ("proxy_cache_path /c keys_zone=a:1m; proxy_cache a;", ""),
            ("proxy_cache a; proxy_cache_path /c keys_zone=a:1m;", ""),
            ("proxy_cache_path /c levels=1:2;", "\"proxy_cache_path\" must have \"keys_zone\" parameter"),
            ("proxy_cache_path /c keys_zone=a:1k;", "keys zone \"keys_zone=a:1k\" is too small"),
            ("proxy_cache_path /c keys_zone=a;", "invalid keys zone size \"keys_zone=a\""),
            ("proxy_cache_path /c levels=3 keys_zone=a:1m;", "invalid \"levels\" \"levels=3\""),
            ("proxy_cache_path /c keys_zone=a:1m inactive=x;", "invalid inactive value \"inactive=x\""),
            ("proxy_cache_path /c keys_zone=a:1m max_size=x;", "invalid max_size value \"max_size=x\""),
            ("proxy_cache_path /c keys_zone=a:1m min_free=x;", "invalid min_free value \"min_free=x\""),
            ("proxy_cache_path /c keys_zone=a:1m loader_files=x;", "invalid loader_files value \"loader_files=x\""),
            (
                "proxy_cache_path /c keys_zone=a:1m use_temp_path=x;",
                "invalid use_temp_path value \"use_temp_path=x\", it must be \"on\" or \"off\"",
            ),
            ("proxy_cache_path /c keys_zone=a:1m x=1;", "invalid parameter \"x=1\""),
            ("proxy_cache_path /c keys_zone=a:1m; proxy_cache_path /d keys_zone=a:1m;", "duplicate zone \"a\""),
            ("proxy_cache b;", "\"proxy_cache\" zone \"b\" is unknown"),
            ("proxy_cache_valid 200 x;", "invalid time value \"x\""),
            ("proxy_cache_valid 99 1s;", "invalid status \"99\""),
            ("proxy_cache_methods PUT;", "invalid value \"PUT\""),
            ("proxy_cache_use_stale non_idempotent;", ""),
            ("proxy_cache_use_stale http_501;", "invalid value \"http_501\""),
            ("proxy_cache_min_uses x;", "invalid number"),
        ] {
            let said = said(http);
            assert_eq!(said.is_empty(), words.is_empty(), "{http}: {said:?}");
            assert!(said.iter().all(|one| one.contains(words)), "{http}: {said:?}");
        }
    }
}
