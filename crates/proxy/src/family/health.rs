//! `health_check` and `match`: checks each server of a group periodically, and defines which answers pass.
//!
//! ```text
//!  watch: one task a check, in one worker ─ every interval ─► ask: one exchange with one peer ─► matching: is it well?
//!  all workers' selection ◄─ state: may it serve? ◄───────────────────────────────────────────────────┘
//! ```
//!
//! A check sends the request that its location would send: the same fields, timeouts, TLS. A group without a check
//! costs nothing: it has no health state. NGINX Plus:
//! <https://nginx.org/en/docs/http/ngx_http_upstream_hc_module.html>

mod ask;
mod grpc;
pub mod matching;
mod watch;

pub use watch::watch;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use grpc::Call;
use matching::{Match, Test};
use weir_conf::{At, Statement};
use weir_groups::Live;
use weir_http::read::build::{Build, Kind, Scope};
use weir_http::exchange::conf::{Location, Server};
use weir_http::read::directive::{Arity, Directive, HTTP, LOCATION, MATCH, ONE, TWO};
use weir_http::read::families::Family;
use weir_http::read::found::Found;
use weir_http::text::refusal::Refusal;
use weir_http::exchange::route::{LocationId, ServerId};
use weir_http::text::value;
use weir_peers::health::Rule;

use crate::family::proxy::pass::Scheme;
use crate::family::upstream::HttpParts;

weir_http::settings! {
    /// The numbers of the checks written in this block or around it.
    checks: Vec<usize> = Vec::new(),
    /// The tests of a `match` block.
    tests: Vec<Arc<Test>> = Vec::new(),
}

/// The checks and the tests of a configuration.
#[derive(Default)]
pub struct Declared {
    /// By number.
    pub checks: Vec<Arc<Check>>,
    matches: Vec<(String, Arc<Match>)>,
}

impl Declared {
    /// The tests of that name.
    pub fn found(&self, name: &str) -> Option<Arc<Match>> {
        self.matches.iter().find(|(known, _)| known == name).map(|(_, tests)| tests.clone())
    }
}

/// One `health_check`.
pub struct Check {
    /// The time between the starts of two rounds.
    pub interval: Duration,
    /// The longest random delay of each check in a round.
    pub jitter: Duration,
    /// Failures in a row that make a peer unhealthy.
    fails: u32,
    /// Passes in a row that make a peer healthy.
    passes: u32,
    /// The URI of the check.
    pub uri: String,
    /// The port, if not the server's port.
    pub port: Option<u16>,
    /// `type=grpc`: a call of gRPC's health checking in place of the URI.
    grpc: Option<Call>,
    /// The name of the tests.
    pub match_name: Option<String>,
    mandatory: bool,
    persistent: bool,
    /// How long a connection is reused; `None` opens one for each check.
    pub keepalive_time: Option<Duration>,
    at: At,
    /// The place of the check, once all blocks are read.
    pub placed: OnceLock<Placed>,
    /// A worker runs this check; no other worker of the process does.
    pub is_watched: AtomicBool,
}

/// The place of a check.
pub struct Placed {
    /// The location of the check.
    pub location: LocationId,
    /// The server around the location.
    pub server: ServerId,
    /// The number of the group to check.
    pub group: usize,
    /// The group.
    pub live: Arc<Live<HttpParts>>,
    /// The check's number among the checks of the group.
    pub number: usize,
    /// The tests for an answer; without them 2xx and 3xx pass.
    pub tests: Option<Arc<Match>>,
}

/// The URI of a check without `uri=`.
const URI: &str = "/";
/// The shortest interval: a task that never sleeps would occupy its worker.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// The family.
pub static FAMILY: Family = Family::new("health", &[
    Directive::new("health_check", LOCATION, Arity::AtLeast(0),
        "Checks each server of the group behind proxy_pass periodically, and sends no requests to a server that fails: \
         interval= jitter= fails= passes= uri= port= match= mandatory [persistent] keepalive_time= type=grpc \
         [grpc_service=] [grpc_status=].",
        health_check).many().default("interval=5s jitter=0 fails=1 passes=1 uri=/"),
    Directive::new("match", HTTP, ONE, "Names a set of tests; the answer to a health check must pass all of them.", tests).many().block(),
    Directive::new("status", MATCH, Arity::AtLeast(1), "The answer must have one of these statuses (200, 301-303); after \"!\", none of them.",
        |b, s| { let test = Test::status(s)?; add(b, test) }).many(),
    Directive::new("header", MATCH, Arity::Between(1, 3), "The answer must have this field; after \"!\", it must not have it. A value follows =, !=, ~ or !~.",
        |b, s| { let test = Test::header(b, s)?; add(b, test) }).many(),
    Directive::new("body", MATCH, TWO, "The first 256k of the answer's body must match (~) or must not match (!~) a regular expression.",
        |b, s| { let test = Test::body(b, s)?; add(b, test) }).many(),
    Directive::new("require", MATCH, Arity::AtLeast(1), "None of these variables may be empty or \"0\".", |b, s| {
        for word in &s.args {
            let test = Test::require(b, &word.text)?;
            add(b, test)?;
        }
        Ok(())
    }).many(),
])
.check(settle)
.watch(watch);

fn add(b: &mut Build<'_>, test: Test) -> Result<(), Refusal> {
    crate::settings(b).health.tests.get_or_insert_default().push(Arc::new(test));
    Ok(())
}

fn tests(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let name = statement.text(0).to_owned();
    if crate::declaring(b).health.found(&name).is_some() {
        return Err(Refusal::whole(format!("duplicate match \"{name}\"")));
    }
    let mut scope = b.block(Scope::new(Kind::Plain, MATCH, b.at()), statement)?;
    let tests = Match(std::mem::take(&mut crate::written_mut(&mut scope).health.tests).unwrap_or_default());
    crate::declaring(b).health.matches.push((name, Arc::new(tests)));
    Ok(())
}

fn health_check(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut check = Check {
        interval: Duration::from_secs(5),
        jitter: Duration::ZERO,
        fails: 1,
        passes: 1,
        uri: URI.to_owned(),
        port: None,
        grpc: None,
        match_name: None,
        mandatory: false,
        persistent: false,
        keepalive_time: None,
        at: b.at(),
        placed: OnceLock::new(),
        is_watched: AtomicBool::new(false),
    };
    for word in &statement.args {
        check.parameter(&word.text)?;
    }
    if check.grpc.is_some() && (check.uri != URI || check.match_name.is_some()) {
        return Err(Refusal::whole("\"type=grpc\" is incompatible with \"uri\" and \"match\"")
            .todo("remove \"uri\" and \"match\": a gRPC check has its own call and its own answer"));
    }
    if check.persistent && !check.mandatory {
        return Err(Refusal::whole("\"persistent\" requires \"mandatory\"").todo("write: mandatory persistent"));
    }
    let number = crate::declaring(b).health.checks.len();
    crate::declaring(b).health.checks.push(Arc::new(check));
    crate::settings(b).health.checks.get_or_insert_default().push(number);
    Ok(())
}

impl Check {
    fn parameter(&mut self, text: &str) -> Result<(), Refusal> {
        let invalid = || Refusal::whole(format!("invalid parameter \"{text}\""));
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let time = || value::long_time_of(value).ok_or_else(invalid);
        let count = || value::number(value).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0).ok_or_else(invalid);
        let call = &mut self.grpc;
        match name {
            "type" if value == "grpc" && call.is_none() => *call = Some(Call::default()),
            "grpc_service" | "grpc_status" if call.is_none() => {
                return Err(invalid().todo("write type=grpc before this parameter"));
            }
            "grpc_service" if !value.is_empty() => call.get_or_insert_default().service = value.to_owned(),
            "grpc_status" => call.get_or_insert_default().status = count()?.try_into().map_err(|_| invalid())?,
            _ if call.is_some() => {
                return Err(
                    invalid().todo("write type=grpc after all other parameters, then grpc_service= and grpc_status=")
                );
            }
            "mandatory" if name == text => self.mandatory = true,
            "persistent" if name == text => self.persistent = true,
            "interval" => {
                self.interval = time()?;
                if self.interval < INTERVAL_MIN {
                    return Err(invalid().todo("write an interval of at least 1ms"));
                }
            }
            "jitter" => self.jitter = time()?,
            "fails" => self.fails = count()?,
            "passes" => self.passes = count()?,
            "uri" if value.starts_with('/') && value.bytes().all(|byte| byte.is_ascii_graphic()) => {
                self.uri = value.to_owned()
            }
            "uri" => return Err(invalid().todo("begin the URI with \"/\", and write a space as %20")),
            "port" => self.port = Some(count()?.try_into().map_err(|_| invalid())?),
            "match" if !value.is_empty() => self.match_name = Some(value.to_owned()),
            "keepalive_time" => self.keepalive_time = Some(time()?),
            _ => return Err(invalid()),
        }
        Ok(())
    }

    /// The URI that the check requests.
    fn asked(&self) -> &str {
        if self.grpc.is_some() { grpc::PATH } else { &self.uri }
    }

    /// The check's name in the log.
    pub fn name(&self) -> &str {
        self.match_name.as_deref().unwrap_or_default()
    }

    fn rule(&self) -> Rule {
        Rule {
            asks: format!("{} {:?} {:?} {:?}", self.uri, self.port, self.match_name, self.grpc),
            fails: self.fails,
            passes: self.passes,
            mandatory: self.mandatory,
            persistent: self.persistent,
        }
    }
}

/// Runs after all blocks are read: each check finds its location and its group, each group its checks.
fn settle(b: &mut Build<'_>, found: &Found<'_>) {
    let checks = crate::declaring(b).health.checks.clone();
    let mut seen = vec![false; checks.len()];
    let mut rules: BTreeMap<usize, (Arc<Live<HttpParts>>, Vec<Rule>)> = BTreeMap::new();
    // A location comes before the locations inside it, which inherit its checks.
    for location in found.locations {
        for number in &crate::values(location).health.checks {
            let (Some(check), Some(is_seen)) = (checks.get(*number), seen.get_mut(*number)) else { continue };
            if std::mem::replace(is_seen, true) {
                continue;
            }
            match place(b, check, location, found.servers) {
                Ok(Some(mut placed)) => {
                    let (_, rules) = rules.entry(placed.group).or_insert_with(|| (placed.live.clone(), Vec::new()));
                    placed.number = rules.len();
                    rules.push(check.rule());
                    let _ = check.placed.set(placed);
                }
                Ok(None) => {}
                Err(refusal) => b.refuse_at("health_check", refusal, check.at),
            }
        }
    }
    for (live, rules) in rules.into_values() {
        live.guard(rules.into());
    }
}

/// The place of a check; `None` if an error of `proxy_pass` was already reported.
fn place(b: &Build<'_>, check: &Check, location: &Location, servers: &[Server]) -> Result<Option<Placed>, Refusal> {
    let pass = crate::values(location).proxy.pass.as_ref().filter(|_| location.handler.is_some());
    let Some(pass) = pass else {
        return Err(Refusal::directive("needs \"proxy_pass\" or \"grpc_pass\" in the same location")
            .todo("add to the location: proxy_pass http://GROUP; where GROUP is an upstream with a zone")
            .needs(if check.grpc.is_some() { "grpc_pass" } else { "proxy_pass" }, ""));
    };
    if check.grpc.is_some() && pass.scheme != Scheme::Grpc {
        return Err(Refusal::whole("\"type=grpc\" requires \"grpc_pass\"")
            .todo("write grpc_pass in place of proxy_pass, or remove type=grpc"));
    }
    if !pass.scheme.has_uri() {
        return Err(Refusal::directive(format!(
            "is not supported with \"{}\": weir checks servers by HTTP and gRPC requests",
            pass.scheme.directive()
        ))
        .weirs_own()
        .todo("remove the line: max_fails and fail_timeout of the upstream's servers still apply"));
    }
    if pass.template.is_some() {
        return Err(Refusal::directive(
            "needs a \"proxy_pass\" without variables, because it checks the servers of one group",
        )
        .todo("add to the location: proxy_pass http://GROUP; where GROUP is an upstream with a zone"));
    }
    let Some(group) = pass.group else { return Ok(None) };
    let Some(upstream) = crate::declared_so_far(b).upstream.groups.get(group) else { return Ok(None) };
    let Some(live) = &upstream.live else {
        let refusal = Refusal::directive(format!("requires upstream \"{}\" to be in shared memory", upstream.name))
            .needs("upstream", &upstream.name);
        return Err(refusal.todo(if upstream.is_implicit {
            "write upstream GROUP { zone GROUP 64k; server …; } and proxy_pass http://GROUP;"
        } else {
            "add to the upstream: zone NAME 64k;"
        }));
    };
    let tests = match &check.match_name {
        None => None,
        Some(name) => match crate::declared_so_far(b).health.found(name) {
            Some(tests) => Some(tests),
            None => {
                return Err(Refusal::whole(format!("match \"{name}\" is not found"))
                    .todo(format!("add in http: match {name} {{ status 200; }}"))
                    .needs("match", name));
            }
        },
    };
    // The numbers of a server's locations start at the number of the server's own level.
    let around = servers.iter().filter(|server| server.root.0 <= location.id.0).max_by_key(|server| server.root.0);
    let Some(server) = around.map(|server| server.id) else { return Ok(None) };
    Ok(Some(Placed { location: location.id, server, group, live: live.clone(), number: 0, tests }))
}

#[cfg(test)]
mod tests_of_reading {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use crate::of_text;
    use weir_http::exchange::conf::Conf;
    use weir_peers::health::State;

    fn read(upstream: &str, location: &str) -> (Option<Conf>, Vec<String>) {
        of_text(&format!(
            "events {{}}\nhttp {{ upstream u {{ {upstream} }} server {{ listen 80; location / {{ {location} }} }} match m {{ status 200; }} }}"
        ))
    }

    const ZONE: &str = "zone u 64k; server 10.0.0.1:80; server 10.0.0.2:80 backup;";

    #[test]
    fn a_check_finds_its_group_and_stays_in_its_location() {
        let inner = "proxy_pass http://u; health_check mandatory match=m; location /in { proxy_pass http://u; health_check uri=/b; }";
        let (conf, problems) = read(ZONE, inner);
        assert!(problems.is_empty(), "{problems:?}");
        let conf = conf.unwrap();
        let placed: Vec<_> =
            crate::declared(&conf).health.checks.iter().filter_map(|check| check.placed.get()).collect();
        let found: Vec<_> =
            placed.iter().map(|placed| (conf.location(placed.location).name.as_str(), placed.number)).collect();
        assert_eq!(found, [("/", 0), ("/in", 1)]);
        assert_eq!(placed.iter().map(|placed| placed.tests.is_some()).collect::<Vec<_>>(), [true, false]);
        let views = placed[0].live.current().group.view(0);
        assert!(views.iter().all(|view| view.health.is_some_and(|shown| shown.state == State::Checking)), "{views:?}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let bare = "server 10.0.0.1:80;";
        for (upstream, location, problem) in [
            (
                bare,
                "proxy_pass http://u; health_check;",
                "\"health_check\" directive requires upstream \"u\" to be in shared memory",
            ),
            (
                bare,
                "proxy_pass http://10.0.0.1; health_check;",
                "\"health_check\" directive requires upstream \"10.0.0.1\" to be in shared memory",
            ),
            (
                ZONE,
                "health_check;",
                "\"health_check\" directive needs \"proxy_pass\" or \"grpc_pass\" in the same location",
            ),
            (
                ZONE,
                "proxy_pass http://u; location /a { health_check; }",
                "\"health_check\" directive needs \"proxy_pass\" or \"grpc_pass\" in the same location",
            ),
            (
                ZONE,
                "proxy_pass http://$host; health_check;",
                "\"health_check\" directive needs a \"proxy_pass\" without variables, because it checks the servers of \
                 one group",
            ),
            (ZONE, "proxy_pass http://u; health_check match=n;", "match \"n\" is not found"),
            (ZONE, "proxy_pass http://u; health_check persistent;", "\"persistent\" requires \"mandatory\""),
            (ZONE, "proxy_pass http://u; health_check interval=0;", "invalid parameter \"interval=0\""),
            (ZONE, "proxy_pass http://u; health_check fails=0;", "invalid parameter \"fails=0\""),
            (ZONE, "proxy_pass http://u; health_check passes=x;", "invalid parameter \"passes=x\""),
            (ZONE, "proxy_pass http://u; health_check port=65536;", "invalid parameter \"port=65536\""),
            (ZONE, "proxy_pass http://u; health_check uri=a;", "invalid parameter \"uri=a\""),
            (ZONE, "proxy_pass http://u; health_check mandatory=1;", "invalid parameter \"mandatory=1\""),
            (ZONE, "proxy_pass http://u; health_check type=grpc;", "\"type=grpc\" requires \"grpc_pass\""),
            (ZONE, "grpc_pass u; health_check type=grpc fails=2;", "invalid parameter \"fails=2\""),
            (ZONE, "grpc_pass u; health_check grpc_status=12;", "invalid parameter \"grpc_status=12\""),
            (
                ZONE,
                "grpc_pass u; health_check match=m type=grpc;",
                "\"type=grpc\" is incompatible with \"uri\" and \"match\"",
            ),
            (ZONE, "proxy_pass http://u; health_check colour=1;", "invalid parameter \"colour=1\""),
        ] {
            assert_eq!(read(upstream, location).1, [problem], "{location}");
        }
    }
}
