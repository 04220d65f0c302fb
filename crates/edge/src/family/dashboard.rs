//! `dashboard`, `dashboard_token`, `dashboard_history`, `dashboard_upstream_log`, `dashboard_lab`, `dashboard_alert`: the
//! page that shows the limits of the edge. weir's own.
//!
//! The work is in `crate::dash`; `docs/guide/dashboard.md` explains it to users.

mod alert;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use weir_conf::{At, Statement, Tree};
use weir_dash::configuration::{Configuration, File};
use weir_http::exchange::conf::Conf;
use weir_http::exchange::phase::Next;
use weir_http::exchange::route::Pattern;
use weir_http::read::build::{Build, Kind, Scope};
use weir_http::read::directive::{Arity, Directive, HTTP, LOCATION, MAIN, ONE, SERVER};
use weir_http::read::families::{Answering, Family};
use weir_http::text::refusal::Refusal;
use weir_meter::live::Snapshot;
use weir_net::clock;
use weir_net::log;
use weir_net::process::Identity;

use crate::dash::alert::receiver::Receiver;
use crate::dash::hall::{self, Hall};
use crate::dash::host::{LogPlace, ProgramOutput as Output};
use crate::dash::place;
use crate::dash::token::{Token, TokenSource};
use crate::load;

weir_http::settings! {
    /// `dashboard_token`: the source of the token.
    token: Option<TokenSource> = None,
    /// Whether `dashboard` is written here.
    is_on: bool = false,
}

/// The settings that all dashboards of a configuration share.
#[derive(Default)]
pub struct Declared {
    /// `dashboard_history`.
    pub history: Option<PathBuf>,
    /// `dashboard_lab`: the folder of the lab's runs.
    pub lab: Option<PathBuf>,
    /// `dashboard_upstream_log`, in the order of the file.
    pub logs: Vec<UpstreamLog>,
    /// `dashboard_alert`, in the order of the file.
    alerts: Vec<alert::WantedAlert>,
    receivers: OnceLock<Vec<Arc<Receiver>>>,
    hall: OnceLock<Arc<Hall>>,
    tokens: OnceLock<HashMap<String, Token>>,
}

/// The most logs of upstreams: weir searches all of them when a viewer opens a class of errors.
pub const LOGS_MAX: usize = 8;

/// A log of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamLog {
    /// Where its lines are.
    pub place: LogPlace,
    /// The group's name or the peer's address; `None` for all.
    pub upstream: Option<String>,
    at: At,
}

impl UpstreamLog {
    /// Whether the log may contain lines about a request whose last try went to that peer.
    pub fn is_of(&self, peer: &str, snapshot: &Snapshot) -> bool {
        let has_peer = |name: &str| {
            let group = snapshot.http.upstreams.get(name);
            group.is_some_and(|group| group.peers.iter().any(|known| known.server == peer))
        };
        let is_it = |name: &String| name == peer || has_peer(name);
        !peer.is_empty() && self.upstream.as_ref().is_none_or(is_it)
    }
}

/// The family.
pub static FAMILY: Family = Family::new("dashboard", &[
    Directive::new("dashboard", MAIN.or(LOCATION), Arity::Between(0, 1),
        "weir's own: in a location, serves the dashboard. At the top of the file, on|off|ADDR:PORT decides whether and \
         where the dashboard has its own server; weir edge uses 127.0.0.1:9144 or the next free port.",
        dashboard).default("on for weir edge, off when called as nginx"),
    Directive::new("dashboard_token", MAIN.or(HTTP).or(SERVER).or(LOCATION), ONE,
        "weir's own: the token that opens the dashboard: the first line of a FILE, or env:VARIABLE. Without a token, \
         only clients on loopback may open it.",
        token),
    Directive::new("dashboard_history", MAIN.or(HTTP), ONE,
        "weir's own: keeps 30 days of history in a FILE of 1.3 megabytes: the last day in steps of ten seconds, the last \
         week of two minutes, the month of ten minutes.",
        |b, s| { let path = b.path(s.text(0)); b.reach.write(&path); crate::declaring(b).dashboard.history = Some(PathBuf::from(path)); Ok(()) }),
    Directive::new("dashboard_upstream_log", MAIN.or(HTTP), Arity::Between(1, 2),
        "weir's own: FILE|journald:UNIT|docker:NAME|podman:NAME [upstream=NAME|ADDRESS:PORT], a log that an upstream \
         writes. The dashboard shows the log's lines about failed requests beside these requests.",
        upstream_log).many(),
    Directive::new("dashboard_lab", MAIN.or(HTTP), ONE,
        "weir's own: the DIRECTORY with the runs of weir lab (by default .weir/runs); the dashboard shows them.",
        |b, s| {
            if s.text(0).is_empty() {
                return Err(Refusal::directive("is empty").todo("name the directory of weir lab --store"));
            }
            let directory = b.path(s.text(0));
            b.reach.read(&directory);
            crate::declaring(b).dashboard.lab = Some(PathBuf::from(directory));
            Ok(())
        }),
    Directive::new("dashboard_alert", MAIN.or(HTTP), Arity::Between(1, 8),
        "weir's own: URL|env:VARIABLE|FILE [format=slack|discord|alertmanager|json] [after=30s] [interval=TIME] \
         [from=near|limited|failing] [name=TEXT] [lang=en|ko] [trusted_certificate=FILE]; sends each change of the \
         dashboard's verdict to a webhook, also without a dashboard.",
        alert::alert).many(),
])
.answer(Answering { answer: |exchange, conn| Box::pin(crate::dash::answer::answer(exchange, conn)), is_inner: false })
.finish(finish)
.adopt(|new, old| { crate::declared_mut(new).dashboard.adopt(&crate::declared(old).dashboard); Ok(()) });

impl Declared {
    /// The hall: the data that the dashboard shows, and the viewers.
    pub fn hall(&self) -> &Arc<Hall> {
        self.hall.get_or_init(Arc::default)
    }

    /// The token from that source, once the configuration is in force.
    pub fn token(&self, source: &TokenSource) -> Option<&Token> {
        self.tokens.get()?.get(&key(source))
    }

    /// The hall for the observer, if anything shows a dashboard or gets alerts.
    pub fn watched(&self) -> Option<&Arc<Hall>> {
        self.tokens.get().and(self.hall.get())
    }

    /// Whether the dashboard shows contents of files.
    fn reads_files(&self) -> bool {
        !self.logs.is_empty() || self.lab.is_some()
    }

    fn adopt(&mut self, old: &Declared) {
        if let Some(hall) = old.hall.get() {
            self.hall = OnceLock::from(hall.clone());
        }
    }
}

fn key(source: &TokenSource) -> String {
    match source {
        TokenSource::File(path) => path.clone(),
        TokenSource::Variable(name) => format!("env:{name}"),
    }
}

fn read_tokens(conf: &Conf) -> Result<HashMap<String, Token>, String> {
    let users =
        conf.locations.iter().map(crate::values).filter(|values| values.dashboard.is_on || values.live.may_write);
    users
        .filter_map(|values| values.dashboard.token.as_ref())
        .map(|source| Ok((key(source), Token::read(source)?)))
        .collect()
}

/// Reads the tokens and the URLs of alerts, and makes the file of the history for the user of the workers.
///
/// # Errors
/// A token or a URL cannot be read or is empty; the file cannot be made.
pub fn prepare(conf: &Conf, identity: Option<&Identity>) -> Result<(), String> {
    read_tokens(conf)?;
    let declared = &crate::declared(conf).dashboard;
    alert::read(&declared.alerts)?;
    let is_on = conf.locations.iter().map(crate::values).any(|values| values.dashboard.is_on);
    let Some(path) = declared.history.as_deref().filter(|_| is_on) else { return Ok(()) };
    let made = hall::make_history(path).and_then(|file| match identity {
        Some(identity) => std::os::unix::fs::fchown(file, Some(identity.uid), None),
        None => Ok(()),
    });
    made.map_err(|error| format!("open() \"{}\" failed {}", path.display(), log::Os(&error)))
}

/// Reads the tokens and the URLs of alerts of a configuration, before clients get it.
///
/// # Errors
/// A token or a URL cannot be read or is empty.
pub fn read(conf: &Conf) -> Result<(), String> {
    let declared = &crate::declared(conf).dashboard;
    let tokens = read_tokens(conf)?;
    // The configuration is opened once: a test of it opens it and ends.
    drop(declared.receivers.set(alert::read(&declared.alerts)?));
    drop(declared.tokens.set(tokens));
    Ok(())
}

/// Opens the process's history, before the configuration comes into force. Without a dashboard and without alerts, closes
/// it.
///
/// # Errors
/// The history cannot be opened.
pub fn keep(conf: &Conf) -> Result<(), String> {
    let declared = &crate::declared(conf).dashboard;
    let is_on = conf.locations.iter().map(crate::values).any(|values| values.dashboard.is_on);
    if !is_on && declared.alerts.is_empty() {
        // The configuration has no dashboard any more, so weir stops recording the history.
        if let Some(hall) = declared.hall.get() {
            drop(hall.keep_day(None));
            drop(hall.alerts.set(&[], None));
        }
        return Ok(());
    }
    let path = declared.history.as_deref();
    declared
        .hall()
        .keep_day(path)
        .map_err(|error| format!("open() \"{}\" failed {}", path.unwrap_or(Path::new("")).display(), log::Os(&error)))
}

/// Starts the threads of the dashboard: one for the files that the configuration names, as `identity`, one for the
/// machine, and one for each receiver of alerts.
///
/// # Errors
/// A thread cannot be started.
pub fn open_shelf(conf: &Conf, identity: Option<&Identity>) -> Result<(), String> {
    let declared = &crate::declared(conf).dashboard;
    let Some(hall) = declared.watched() else { return Ok(()) };
    let files = if declared.reads_files() { hall.shelf.open(identity) } else { Ok(()) };
    let receivers = declared.receivers.get().map_or(&[][..], Vec::as_slice);
    let opened = files.and_then(|()| hall.host.open()).and_then(|()| hall.alerts.set(receivers, identity));
    opened.map_err(|error| format!("thread could not be started {}", log::Os(&error)))
}

/// Shows the files of a configuration that has come into force.
pub fn show(conf: &Conf, tree: &Tree) {
    let Some(hall) = crate::declared(conf).dashboard.watched() else { return };
    let files = tree.files.iter().filter(|source| !source.is_command_line).map(|source| File {
        name: source.name.clone(),
        text: String::from_utf8_lossy(&source.bytes).into_owned(),
        is_public: load::is_public(&source.name),
    });
    hall.load(Configuration::new(conf.generation, clock::unix_ms(), files));
}

/// Shows that weir refused a reload, and why.
pub fn refuse(conf: &Conf, why: Vec<String>) {
    if let Some(hall) = crate::declared(conf).dashboard.watched() {
        hall.refuse(clock::unix_ms(), why);
    }
}

fn dashboard(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    if b.scope().context == MAIN {
        return match statement.text(0) {
            // Each request checks whether an address beyond loopback has a token.
            text if place::parse(text).is_some() => Ok(()),
            text => Err(Refusal::whole(format!("invalid value \"{text}\" in \"dashboard\" directive"))
                .todo("write on, off or ADDR:PORT")),
        };
    }
    if !statement.args.is_empty() {
        return Err(Refusal::directive("takes no argument in a location"));
    }
    match &b.scope().kind {
        Kind::Location(Pattern::Prefix { path, .. }) if path.ends_with('/') => {}
        _ => {
            return Err(Refusal::directive("needs a location that is a prefix and ends in \"/\"")
                .todo("location /weir/ { dashboard; }"));
        }
    }
    crate::settings(b).dashboard.is_on = Some(true);
    b.scope().handler = Some(|_| Next::Answer(FAMILY.name));
    Ok(())
}

fn token(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let source = match statement.text(0) {
        "" | "env:" => return Err(Refusal::directive("is empty").todo("name a file, or env:VARIABLE")),
        text => match text.strip_prefix("env:") {
            Some(name) => TokenSource::Variable(name.to_owned()),
            None => TokenSource::File(b.path(text)),
        },
    };
    crate::settings(b).dashboard.token = Some(Some(source));
    Ok(())
}

fn upstream_log(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let upstream = match statement.args.len() {
        2.. => match statement.text(1).strip_prefix("upstream=") {
            Some(name) if !name.is_empty() => Some(name.to_owned()),
            _ => {
                return Err(Refusal::whole(format!("invalid parameter \"{}\"", statement.text(1))).todo(
                    "write upstream=NAME (an upstream block, or a name in proxy_pass) or upstream=ADDRESS:PORT",
                ));
            }
        },
        _ => None,
    };
    if statement.text(0).is_empty() {
        return Err(Refusal::directive("is empty").todo("name a file, journald:UNIT, docker:NAME or podman:NAME"));
    }
    let place = match Output::parse(statement.text(0)) {
        None => {
            let path = PathBuf::from(b.path(statement.text(0)));
            // The log of yesterday is beside it.
            b.reach.read_beside(&path);
            LogPlace::File(path)
        }
        Some(Ok(output)) => LogPlace::Output(output),
        Some(Err(why)) => {
            return Err(Refusal::whole(format!("invalid parameter \"{}\"", statement.text(0))).todo(why));
        }
    };
    let log = UpstreamLog { place, upstream, at: b.at() };
    let logs = &mut crate::declaring(b).dashboard.logs;
    if logs.iter().any(|known| known.place == log.place && known.upstream == log.upstream) {
        return Err(Refusal::directive("is duplicate"));
    }
    if logs.len() >= LOGS_MAX {
        return Err(Refusal::directive(format!("is set more than {LOGS_MAX} times"))
            .todo("let the servers of one application write to one file"));
    }
    logs.push(log);
    Ok(())
}

/// Refuses a log whose upstream does not exist, once all upstreams are known.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    if scope.context != HTTP {
        return;
    }
    let groups = &weir_proxy::declared_so_far(b).upstream.groups;
    let is_known = |name: &str| {
        let is_address = name.parse::<SocketAddr>().is_ok() || name.starts_with("unix:");
        is_address || groups.iter().any(|group| group.name == name)
    };
    let strange =
        crate::declared_so_far(b).dashboard.logs.iter().filter_map(|log| Some((log.upstream.clone()?, log.at)));
    let strange: Vec<_> = strange.filter(|(name, _)| !is_known(name)).collect();
    for (name, at) in strange {
        let refusal = Refusal::whole(format!("upstream \"{name}\" not found in \"dashboard_upstream_log\" directive"))
            .todo("write the name of an upstream block, a name in proxy_pass, or ADDRESS:PORT of a server")
            .needs("upstream", &name);
        b.refuse_at("dashboard_upstream_log", refusal, at);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::of_text;

    #[test]
    fn a_dashboard_is_a_prefix_with_a_slash() {
        for (text, said_of) in [
            ("events {} http { server { listen 1; location /weir/ { dashboard; } } }", ""),
            ("events {} http { server { listen 1; location / { dashboard; } } }", ""),
            ("dashboard on; events {}", ""),
            ("dashboard 10.0.0.1:1; events {}", ""),
            ("dashboard off; events {}", ""),
            ("dashboard; events {}", "invalid value \"\""),
            ("dashboard 9144; events {}", "invalid value \"9144\""),
            ("events {} http { server { listen 1; location /weir { dashboard; } } }", "ends in \"/\""),
            ("events {} http { server { listen 1; location ~ /weir/ { dashboard; } } }", "ends in \"/\""),
            ("events {} http { server { listen 1; location /weir/ { dashboard on; } } }", "takes no argument"),
            ("events {} http { server { listen 1; dashboard; } }", "not allowed here"),
            ("dashboard_token \"\"; events {}", "is empty"),
        ] {
            let (_, said) = of_text(text);
            let said = said.join("\n");
            assert!(said.contains(said_of) && said.is_empty() == said_of.is_empty(), "{text}: {said}");
        }
    }

    #[test]
    fn a_log_belongs_to_an_upstream_that_is_there() {
        let with = |line: &str| {
            format!(
                "events {{}} http {{ {line} upstream app {{ server 127.0.0.1:1; }} server {{ listen 1; \
                 location / {{ proxy_pass http://127.0.0.1:9; }} }} }}"
            )
        };
        for (line, said_of) in [
            ("dashboard_upstream_log a.log;", ""),
            ("dashboard_upstream_log a.log upstream=app;", ""),
            ("dashboard_upstream_log a.log upstream=127.0.0.1:9; dashboard_upstream_log a.log upstream=app;", ""),
            ("dashboard_upstream_log a.log upstream=10.0.0.1:3000;", ""),
            ("dashboard_upstream_log a.log upstream=ap;", "upstream \"ap\" not found"),
            ("dashboard_upstream_log a.log app;", "invalid parameter \"app\""),
            ("dashboard_upstream_log a.log upstream=;", "invalid parameter"),
            ("dashboard_upstream_log \"\";", "is empty"),
            ("dashboard_lab runs;", ""),
            ("dashboard_lab \"\";", "is empty"),
            ("dashboard_upstream_log a.log; dashboard_upstream_log a.log;", "is duplicate"),
        ] {
            let (conf, said) = of_text(&with(line));
            let said = said.join("\n");
            assert!(said.contains(said_of) && said.is_empty() == said_of.is_empty(), "{line}: {said}");
            assert_eq!(conf.is_some(), said_of.is_empty(), "{line}");
        }
        let many: String = (0..=LOGS_MAX).map(|n| format!("dashboard_upstream_log {n}.log; ")).collect();
        assert!(of_text(&with(&many)).1.join("").contains("is set more than 8 times"));
    }

    #[test]
    fn a_log_is_asked_about_its_own_peers() {
        let snapshot = Snapshot::example();
        let log = |upstream: Option<&str>| UpstreamLog {
            place: LogPlace::File(PathBuf::from("/a.log")),
            upstream: upstream.map(str::to_owned),
            at: At::default(),
        };
        let (name, group) = snapshot.http.upstreams.iter().next().unwrap();
        let peer = group.peers[0].server.as_str();
        for (log, peer, is_of) in [
            (log(None), peer, true),
            (log(None), "", false),
            (log(Some(name)), peer, true),
            (log(Some(name)), name.as_str(), true),
            (log(Some(name)), "192.0.2.1:1", false),
            (log(Some(peer)), peer, true),
        ] {
            assert_eq!(log.is_of(peer, &snapshot), is_of, "{log:?} {peer}");
        }
    }

    fn opened(conf: &Conf) -> Result<(), String> {
        read(conf).and_then(|()| keep(conf))
    }

    #[test]
    fn tokens_are_read_when_it_is_put_in_force() {
        let (conf, _) = of_text(
            "events {} http { dashboard_token env:WEIR_NO_SUCH; server { listen 1; location /w/ { dashboard; } } }",
        );
        let conf = conf.unwrap();
        assert!(opened(&conf).unwrap_err().contains("WEIR_NO_SUCH"));
        assert!(crate::declared(&conf).dashboard.watched().is_none());
        let (conf, _) = of_text("events {} http { dashboard_token env:WEIR_NO_SUCH; server { listen 1; } }");
        let conf = conf.unwrap();
        assert!(opened(&conf).is_ok() && crate::declared(&conf).dashboard.watched().is_none());
        let (conf, _) = of_text("events {} http { server { listen 1; location /w/ { dashboard; } } }");
        let conf = conf.unwrap();
        assert!(opened(&conf).is_ok() && crate::declared(&conf).dashboard.watched().is_some());
    }

    #[test]
    fn a_history_is_closed_with_the_last_dashboard() {
        let directory = std::env::temp_dir().join(format!("weir-dashboard-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("day").display().to_string();
        let with = format!(
            "events {{}} http {{ dashboard_history {path}; server {{ listen 1; location /w/ {{ dashboard; }} }} }}"
        );
        let (before, _) = of_text(&with);
        let before = before.unwrap();
        assert!(opened(&before).is_ok() && crate::declared(&before).dashboard.hall().keeps_day());
        let (after, _) = of_text("events {} http { server { listen 1; } }");
        let mut after = after.unwrap();
        crate::declared_mut(&mut after).dashboard.adopt(&crate::declared(&before).dashboard);
        assert!(opened(&after).is_ok() && !crate::declared(&after).dashboard.hall().keeps_day());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
