//! `cache_purge_api` and `cache_purge_log`: purges over HTTP, applied on all edges. weir's own.
//!
//! The work is in `crate::purge`; `docs/guide/purge.md` explains it to users.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use weir_conf::{At, Statement};
use weir_http::exchange::conf::Conf;
use weir_http::exchange::phase::Next;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, HTTP, LOCATION, NONE};
use weir_http::read::families::{Answering, Family};
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::log::{self, Level};

use crate::guard::{self, Deed};
use crate::purge::bus::{Bus, Settings as LogSettings};

weir_http::settings! {
    /// The place of `cache_purge_api`, until its access rules have been checked.
    api: Option<At> = None,
}

/// The purge log of a configuration.
#[derive(Default)]
pub struct Declared {
    /// `cache_purge_log`.
    pub log: Option<LogSettings>,
    bus: OnceLock<Arc<Bus>>,
}

/// The family.
pub static FAMILY: Family = Family::new("purge", &[
    Directive::new("cache_purge_api", LOCATION, NONE,
        "weir's own: an API that purges caches: POST {\"key\"|\"prefix\"|\"tag\": TEXT or \"all\": true, \"zone\": \
         NAME, \
         \"soft\": BOOL, \"local\": BOOL}; GET reports the progress of all edges.",
        |b, _| {
            let at = b.at();
            crate::settings(b).purge.api = Some(Some(at));
            b.scope().handler = Some(|_| Next::Answer(FAMILY.name));
            Ok(())
        }),
    Directive::new("cache_purge_log", HTTP, Arity::AtLeast(1),
        "weir's own: edges share purges through a stream in Redis: redis://[user:password@]HOST:PORT[/DB], or env:NAME \
         or file:PATH with this URL; \
         [stream=weir:purges] [edge=HOSTNAME] [state=FILE] [timeout=1s] [maxlen=100000] [trusted_certificate=FILE].", log),
])
.answer(Answering { answer: |exchange, conn| Box::pin(crate::purge::api::answer(exchange, conn)), is_inner: true })
.adopt(|new, old| { crate::declared_mut(new).purge.adopt(&crate::declared(old).purge); Ok(()) })
.finish(finish);

/// The approximate number of entries in a stream without `maxlen=`: an edge that was away for longer starts over.
const LENGTH_DEFAULT: u64 = 100_000;

/// The longest `timeout=`: a client waits for it.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// The longest name of a stream or an edge, in bytes.
const NAME_BYTES_MAX: usize = 200;

impl Declared {
    /// The log, once the configuration is in force and names one.
    pub fn bus(&self) -> Option<&Arc<Bus>> {
        self.bus.get()
    }

    fn adopt(&mut self, old: &Declared) {
        if let Some(bus) = old.bus().filter(|bus| Some(bus.settings()) == self.log.as_ref()) {
            self.bus = OnceLock::from(bus.clone());
        }
    }
}

/// Starts to follow the log when the configuration is in force and its caches are open. If the log cannot start, the
/// edge serves without it.
pub fn open(conf: &Conf) {
    let (declared, zones) = (&crate::declared(conf).purge, weir_proxy::declared(conf).cache.all());
    match (&declared.log, declared.bus()) {
        (None, _) => {}
        (Some(_), Some(bus)) => bus.zones().replace(zones),
        (Some(settings), None) => {
            let identity = crate::load::identity(conf);
            let bus = identity.and_then(|identity| {
                Bus::start(settings, zones, identity)
                    .map_err(|error| format!("its thread could not be started {}", log::Os(&error)))
            });
            match bus {
                // Nothing else opens this configuration.
                Ok(bus) => drop(declared.bus.set(bus)),
                Err(message) => log::global(Level::Emerg, format_args!("purge log: {message}")),
            }
        }
    }
}

/// Ends the log of a configuration that `new` replaced, or that has no successor.
pub fn close(old: &Conf, new: Option<&Conf>) {
    let Some(bus) = crate::declared(old).purge.bus() else { return };
    let next = new.and_then(|new| crate::declared(new).purge.bus());
    if next.is_some_and(|next| Arc::ptr_eq(next, bus)) {
        return;
    }
    let (own, goes_on) = (bus.settings(), next.map(|next| next.settings()));
    let is_same_edge =
        goes_on.is_some_and(|next| (&next.server, &next.stream, &next.edge) == (&own.server, &own.stream, &own.edge));
    bus.leave(!is_same_edge);
}

fn log(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let words = || statement.args.iter().skip(1).map(|word| word.text.as_str());
    let trusted = words().find_map(|word| word.strip_prefix("trusted_certificate=")).unwrap_or_default();
    let server = crate::redis::server(b, statement.text(0), trusted)?;
    let mut settings = LogSettings {
        server,
        stream: "weir:purges".to_owned(),
        edge: log::hostname().to_owned(),
        state: None,
        timeout: Duration::from_secs(1),
        length_max: LENGTH_DEFAULT,
    };
    for word in words() {
        parameter(b, &mut settings, word)?;
    }
    crate::declaring(b).purge.log = Some(settings);
    Ok(())
}

fn parameter(b: &mut Build<'_>, settings: &mut LogSettings, word: &str) -> Result<(), Refusal> {
    let bad = || Refusal::whole(format!("invalid parameter \"{word}\""));
    let name_of = |text: &str| match text.len() {
        1..=NAME_BYTES_MAX if !text.bytes().any(|byte| byte.is_ascii_control()) => Ok(text.to_owned()),
        _ => Err(bad().todo(format!("write a name of 1 to {NAME_BYTES_MAX} bytes"))),
    };
    match word.split_once('=') {
        // The server was read with it.
        Some(("trusted_certificate", file)) if !file.is_empty() => {}
        Some(("stream", text)) => settings.stream = name_of(text)?,
        Some(("edge", text)) => settings.edge = name_of(text)?,
        Some(("state", text)) if !text.is_empty() => {
            let path = PathBuf::from(b.path(text));
            b.reach.write_file(&path);
            settings.state = Some(path);
        }
        Some(("timeout", text)) => {
            let time = value::long_time_of(text).filter(|time| !time.is_zero() && *time <= TIMEOUT_MAX);
            settings.timeout = time.ok_or_else(|| bad().todo("write a time from 1ms to 60s"))?;
        }
        Some(("maxlen", text)) => {
            settings.length_max = value::number(text).filter(|number| *number > 0).ok_or_else(bad)?;
        }
        _ => {
            return Err(
                bad().todo("the parameters are stream=, edge=, state=, timeout=, maxlen= and trusted_certificate=")
            );
        }
    }
    Ok(())
}

/// Warns of a purge API without access control: emptying a cache puts load on the origin.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    // Takes the place out, so that inner blocks do not repeat the warning.
    let Some(Some(at)) = crate::written_mut(scope).purge.api.replace(None) else { return };
    guard::warn(b, scope, Deed::Purge, at);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::of_text;

    fn read(http: &str) -> (Option<Conf>, Vec<String>) {
        of_text(&format!("events {{}} http {{ {http} }}"))
    }

    #[test]
    fn an_api_for_everybody_is_warned_of_once() {
        for (location, warns) in [
            ("location /p { cache_purge_api; }", 1),
            ("location /p { cache_purge_api; location /p/q { return 200; } if ($arg_a) { return 200; } }", 1),
            ("location /p { cache_purge_api; allow 127.0.0.1; deny all; }", 0),
            ("deny all; location /p { cache_purge_api; }", 0),
            ("location /p { cache_purge_api; auth_basic x; }", 1),
            ("location /p { cache_purge_api; auth_basic x; auth_basic_user_file f; }", 0),
            ("auth_basic x; auth_basic_user_file f; location /p { cache_purge_api; auth_basic off; }", 1),
            ("location /p { cache_purge_api; internal; }", 0),
        ] {
            let (_, said) = read(&format!("server {{ listen 1; {location} }}"));
            let count = said.iter().filter(|what| what.contains("has no access control")).count();
            assert_eq!((count, said.len()), (warns, warns), "{location}: {said:?}");
        }
    }

    #[test]
    fn a_log_is_read_word_by_word() {
        let (conf, said) = read("cache_purge_log redis://u:p@h:1/2 stream=s edge=e state=f timeout=2s maxlen=7;");
        assert!(said.is_empty(), "{said:?}");
        let log = crate::declared(&conf.unwrap()).purge.log.clone().unwrap();
        assert_eq!((log.stream.as_str(), log.edge.as_str(), log.length_max), ("s", "e", 7));
        assert_eq!((log.timeout, log.state), (Duration::from_secs(2), Some(PathBuf::from("/p/f"))));
        for (words, said_of) in [
            ("redis://h edge=", "invalid parameter \"edge=\""),
            ("redis://h maxlen=0", "invalid parameter \"maxlen=0\""),
            ("redis://h timeout=61s", "invalid parameter \"timeout=61s\""),
            ("redis://h timeout=0", "invalid parameter \"timeout=0\""),
            ("redis://h x=1", "invalid parameter \"x=1\""),
            ("redis://h trusted_certificate=f", "trusted_certificate= is for TLS"),
            ("rediss://h trusted_certificate=no-such-file", "no-such-file"),
            ("env:WEIR_NO_SUCH_URL", "no variable \"WEIR_NO_SUCH_URL\""),
            ("file:no-such-file", "/p/no-such-file: No such file"),
            ("redis://u:s3cret@h:x", "redis://[user:password@]HOST:PORT[/DB]"),
        ] {
            let (_, said) = read(&format!("cache_purge_log {words};"));
            let said = said.join("\n");
            assert!(said.contains(said_of) && !said.contains("s3cret"), "{words}: {said}");
        }
    }
}
