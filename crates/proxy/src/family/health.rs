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

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use grpc::Call;
use matching::{Match, Test};
use weir_groups::checks::{self, Asked, Asks, Ended, Parameter};
use weir_groups::rounds;
use weir_http::exchange::conf::{Conf, Location, Server};
use weir_http::exchange::route::{LocationId, ServerId};
use weir_http::hold::worker::Generation;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Contexts, Directive, HTTP, LOCATION, MATCH, ONE, TWO};
use weir_http::read::families::Family;
use weir_http::read::found::Found;
use weir_http::text::refusal::Refusal;

use crate::family::proxy::pass::Scheme;
use crate::family::upstream::HttpParts;
use crate::family::upstream::pool::Link;

weir_http::settings! {
    /// The numbers of the checks written in this block or around it.
    checks: Vec<usize> = Vec::new(),
    /// The tests of a `match` block.
    tests: Vec<Arc<Test>> = Vec::new(),
}

/// The checks and the tests of `http`.
pub type Declared = checks::Declared<HttpCheck>;

/// The parameters of a check that only `http` has.
pub struct HttpCheck {
    /// The URI of the check.
    pub uri: String,
    /// `type=grpc`: a call of gRPC's health checking in place of the URI.
    grpc: Option<Call>,
    /// How long a connection is reused; `None` opens one for each check.
    pub keepalive_time: Option<Duration>,
}

/// The place of a check.
pub struct CheckPlace {
    /// The location of the check.
    pub location: LocationId,
    /// The server around the location.
    pub server: ServerId,
}

/// The values that last from one check of a peer to the next.
#[derive(Default)]
pub struct CheckTarget {
    /// The connection kept for the next check (`keepalive_time`).
    kept: Cell<Option<Box<Link>>>,
}

/// The URI of a check without `uri=`.
const URI: &str = "/";

/// The family.
pub static FAMILY: Family = Family::new("health", &[
    Directive::new("health_check", LOCATION, Arity::AtLeast(0),
        "Checks each server of the group behind proxy_pass periodically, and sends no requests to a server that fails: \
         interval= jitter= fails= passes= uri= port= match= mandatory [persistent] keepalive_time= type=grpc \
         [grpc_service=] [grpc_status=].",
        checks::health_check::<HttpCheck>).many().default("interval=5s jitter=0 fails=1 passes=1 uri=/"),
    Directive::new("match", HTTP, ONE, "Names a set of tests; the answer to a health check must pass all of them.", checks::tests::<HttpCheck>).many().block(),
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
.watch(rounds::watch::<HttpCheck>);

fn add(b: &mut Build<'_>, test: Test) -> Result<(), Refusal> {
    crate::settings(b).health.tests.get_or_insert_default().push(Arc::new(test));
    Ok(())
}

impl Default for HttpCheck {
    fn default() -> HttpCheck {
        HttpCheck { uri: URI.to_owned(), grpc: None, keepalive_time: None }
    }
}

impl HttpCheck {
    /// The URI that the check requests.
    fn asked(&self) -> &str {
        if self.grpc.is_some() { grpc::PATH } else { &self.uri }
    }
}

impl Asks for HttpCheck {
    type Parts = HttpParts;
    type Tests = Match;
    type Place = CheckPlace;
    type Kept = CheckTarget;
    const INSIDE: Contexts = MATCH;
    const EXAMPLE: &'static str = "status 200;";
    const ZONELESS: [&'static str; 2] = [
        "write upstream GROUP { zone GROUP 64k; server …; } and proxy_pass http://GROUP;",
        "add to the upstream: zone NAME 64k;",
    ];

    fn declaring<'b>(b: &'b mut Build<'_>) -> &'b mut Declared {
        &mut crate::declaring(b).health
    }

    fn declared(conf: &Conf) -> &Declared {
        &crate::declared(conf).health
    }

    fn numbers(scope: &mut Scope) -> &mut Vec<usize> {
        crate::written_mut(scope).health.checks.get_or_insert_default()
    }

    fn tests(scope: &mut Scope) -> Match {
        Match(std::mem::take(&mut crate::written_mut(scope).health.tests).unwrap_or_default())
    }

    fn parameter(&mut self, word: Parameter<'_>) -> Result<bool, Refusal> {
        let (call, value) = (&mut self.grpc, word.value);
        match word.name {
            "type" if value == "grpc" && call.is_none() => *call = Some(Call::default()),
            "grpc_service" | "grpc_status" if call.is_none() => {
                return Err(word.invalid().todo("write type=grpc before this parameter"));
            }
            "grpc_service" if !value.is_empty() => call.get_or_insert_default().service = value.to_owned(),
            "grpc_status" => call.get_or_insert_default().status = word.count()?,
            _ if call.is_some() => {
                return Err(word
                    .invalid()
                    .todo("write type=grpc after all other parameters, then grpc_service= and grpc_status="));
            }
            "uri" if value.starts_with('/') && value.bytes().all(|byte| byte.is_ascii_graphic()) => {
                self.uri = value.to_owned()
            }
            "uri" => return Err(word.invalid().todo("begin the URI with \"/\", and write a space as %20")),
            "keepalive_time" => self.keepalive_time = Some(word.time()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn fits(&self, has_match: bool) -> Result<(), Refusal> {
        if self.grpc.is_some() && (self.uri != URI || has_match) {
            return Err(Refusal::whole("\"type=grpc\" is incompatible with \"uri\" and \"match\"")
                .todo("remove \"uri\" and \"match\": a gRPC check has its own call and its own answer"));
        }
        Ok(())
    }

    fn asks(&self) -> String {
        format!("{} {:?}", self.uri, self.grpc)
    }

    fn location<'g>(generation: &'g Generation, place: &CheckPlace) -> Option<&'g Location> {
        Some(generation.conf.location(place.location))
    }

    async fn ask(asked: &Asked<'_, HttpCheck>) -> Ended {
        ask::ask(asked).await
    }
}

/// Runs after all blocks are read: each check finds its location and its group.
fn settle(b: &mut Build<'_>, found: &Found<'_>) {
    let places = found.locations.iter().map(|location| (&crate::values(location).health.checks, location));
    checks::settle(b, places, |check: &HttpCheck, location| place(check, location, found.servers));
}

/// The group of a check and its place; `None` if an error of `proxy_pass` was already reported.
fn place(check: &HttpCheck, location: &Location, servers: &[Server]) -> Result<Option<(usize, CheckPlace)>, Refusal> {
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
    // The numbers of a server's locations start at the number of the server's own level.
    let around = servers.iter().filter(|server| server.root.0 <= location.id.0).max_by_key(|server| server.root.0);
    Ok(around.map(|server| (group, CheckPlace { location: location.id, server: server.id })))
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
            placed.iter().map(|placed| (conf.location(placed.place.location).name.as_str(), placed.number)).collect();
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
            (ZONE, "proxy_pass http://u; health_check uri=a;", "invalid parameter \"uri=a\""),
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
