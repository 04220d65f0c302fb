//! `health_check`, `health_check_timeout` and `match` of `stream`: checks each server of a group periodically.
//!
//! `weir_groups` makes the rounds, `drive/check` one check. NGINX Plus:
//! <https://nginx.org/en/docs/stream/ngx_stream_upstream_hc_module.html>

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use weir_conf::Statement;
use weir_groups::Live;
use weir_groups::rounds::{self, Asked};
use weir_http::hold::worker::{Generation, Worker};
use weir_http::read::build::{Build, Kind, Scope};
use weir_http::read::directive::{Arity, Directive, ONE, SS, STREAM, STREAM_MATCH, STREAM_SERVER};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::log::Level;
use weir_peers::group::Group;
use weir_peers::health::Rule;

use super::checking::{Check, Expect, Match, Placed};
use super::group::{StreamParts, Upstream};
use crate::conf::{Content, Server, Target};
use crate::drive::check;

weir_http::settings! {
    /// The numbers of the checks of this server.
    checks: Vec<usize> = Vec::new(),
    /// `health_check_timeout`.
    timeout: Duration = Duration::from_secs(5),
    /// The bytes of a `match` block.
    send: Option<Vec<u8>> = None,
    /// The test of a `match` block.
    expect: Option<Arc<Expect>> = None,
}

/// The checks and the tests of `stream`.
#[derive(Default)]
pub struct Declared {
    /// By number.
    pub checks: Vec<Arc<Check>>,
    matches: Vec<(String, Arc<Match>)>,
}

/// The shortest interval: a task that never sleeps would occupy its worker.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// The family.
pub static FAMILY: Family = Family::new(
    "stream_health",
    &[
        Directive::new(
            "health_check",
            STREAM_SERVER,
            Arity::AtLeast(0),
            "Checks each server of the group behind proxy_pass periodically, and sends no sessions to a server that fails: \
             interval= jitter= fails= passes= port= match= mandatory [persistent] udp.",
            health_check,
        )
        .many()
        .default("interval=5s jitter=0 fails=1 passes=1"),
        Directive::new("health_check_timeout", SS, ONE, "The longest time of a check after its connection is made.", |b, s| {
            crate::settings(b).health.timeout = Some(value::time(s)?);
            Ok(())
        })
        .default("5s"),
        Directive::new("match", STREAM, ONE, "Names the bytes of a health check and the test for the answer.", tests)
            .many()
            .block(),
        Directive::new("send", STREAM_MATCH, ONE, "The bytes that the check sends; \\x and two digits write any byte.", |b, s| {
            crate::settings(b).health.send = Some(Some(bytes(s.text(0)).ok_or_else(|| invalid(s.text(0)))?));
            Ok(())
        }),
        Directive::new(
            "expect",
            STREAM_MATCH,
            Arity::Between(1, 2),
            "The bytes that the server must send, or after ~ a regular expression.",
            expect,
        ),
    ],
)
.watch(watch);

fn invalid(text: &str) -> Refusal {
    Refusal::whole(format!("invalid value \"{text}\"")).todo("write two hexadecimal digits after \\x")
}

/// A text with `\xHH`.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\x") {
        out.extend_from_slice(before.as_bytes());
        let digits = after.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after.get(2..)?;
    }
    out.extend_from_slice(rest.as_bytes());
    Some(out)
}

fn expect(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let expect = match (statement.text(0), statement.args.get(1)) {
        ("~", Some(pattern)) => Expect::Regex(b.regex(&pattern.text, false).map_err(Refusal::whole)?),
        (text, None) => Expect::Text(bytes(text).ok_or_else(|| invalid(text))?),
        (other, Some(_)) => {
            return Err(Refusal::whole(format!("invalid operator \"{other}\"")).todo("write: expect ~ REGEX;"));
        }
    };
    crate::settings(b).health.expect = Some(Some(Arc::new(expect)));
    Ok(())
}

fn tests(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let name = statement.text(0).to_owned();
    if crate::declaring(b).health.matches.iter().any(|(known, _)| *known == name) {
        return Err(Refusal::whole(format!("duplicate match \"{name}\"")));
    }
    let mut scope = b.block(Scope::new(Kind::Plain, STREAM_MATCH, b.at()), statement)?;
    let written = std::mem::take(&mut crate::written_mut(&mut scope).health);
    let found = Match { send: written.send.flatten().unwrap_or_default(), expect: written.expect.flatten() };
    crate::declaring(b).health.matches.push((name, Arc::new(found)));
    Ok(())
}

fn health_check(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut check = Check {
        interval: Duration::from_secs(5),
        jitter: Duration::ZERO,
        fails: 1,
        passes: 1,
        port: None,
        is_udp: false,
        match_name: None,
        mandatory: false,
        persistent: false,
        at: b.at(),
        placed: OnceLock::new(),
        is_watched: AtomicBool::new(false),
    };
    for word in &statement.args {
        check.parameter(&word.text)?;
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
        match name {
            "mandatory" if name == text => self.mandatory = true,
            "persistent" if name == text => self.persistent = true,
            "udp" if name == text => self.is_udp = true,
            "interval" => {
                self.interval = time()?;
                if self.interval < INTERVAL_MIN {
                    return Err(invalid().todo("write an interval of at least 1ms"));
                }
            }
            "jitter" => self.jitter = time()?,
            "fails" => self.fails = count()?,
            "passes" => self.passes = count()?,
            "port" => self.port = Some(count()?.try_into().map_err(|_| invalid())?),
            "match" if !value.is_empty() => self.match_name = Some(value.to_owned()),
            _ => return Err(invalid()),
        }
        Ok(())
    }

    fn name(&self) -> &str {
        self.match_name.as_deref().unwrap_or_default()
    }

    fn rule(&self) -> Rule {
        Rule {
            asks: format!("{:?} {:?} {}", self.port, self.match_name, self.is_udp),
            fails: self.fails,
            passes: self.passes,
            mandatory: self.mandatory,
            persistent: self.persistent,
        }
    }
}

/// Runs after all servers are read: each check finds its group, each group its checks.
pub fn settle(b: &mut Build<'_>, servers: &[Server]) {
    let checks = crate::declaring(b).health.checks.clone();
    let mut rules: BTreeMap<usize, (Arc<Live<StreamParts>>, Vec<Rule>)> = BTreeMap::new();
    for server in servers {
        for check in crate::values(&server.place).health.checks.iter().filter_map(|number| checks.get(*number)) {
            match place(b, check, server) {
                Ok((group, mut placed)) => {
                    let (_, rules) = rules.entry(group).or_insert_with(|| (placed.live.clone(), Vec::new()));
                    placed.number = rules.len();
                    rules.push(check.rule());
                    let _ = check.placed.set(placed);
                }
                Err(refusal) => b.refuse_at("health_check", refusal, check.at),
            }
        }
    }
    for (live, rules) in rules.into_values() {
        live.guard(rules.into());
    }
}

/// The group of a check, and its place.
fn place(b: &Build<'_>, check: &Check, server: &Server) -> Result<(usize, Placed), Refusal> {
    let Content::Proxy(Target::Group(group)) = &server.content else {
        return Err(Refusal::directive("needs a \"proxy_pass\" without variables in the same server")
            .todo("add to the server: proxy_pass GROUP; where GROUP is an upstream with a zone")
            .needs("proxy_pass", ""));
    };
    let declared = crate::declared_so_far(b);
    let upstream = declared.upstream.groups.get(*group);
    let Some(live) = upstream.and_then(|upstream| upstream.live.clone()) else {
        let name = upstream.map_or("", |upstream| &upstream.name);
        return Err(Refusal::directive(format!("requires upstream \"{name}\" to be in shared memory"))
            .todo("write upstream GROUP { zone GROUP 64k; server …; } and proxy_pass GROUP;")
            .needs("upstream", name));
    };
    let found = |name: &String| declared.health.matches.iter().find(|(known, _)| known == name);
    let tests = match &check.match_name {
        None => None,
        Some(name) => Some(found(name).map(|(_, tests)| tests.clone()).ok_or_else(|| {
            Refusal::whole(format!("match \"{name}\" is not found"))
                .todo(format!("add in stream: match {name} {{ send \"…\"; expect \"…\"; }}"))
                .needs("match", name)
        })?),
    };
    Ok((*group, Placed { server: server.id, live, number: 0, tests }))
}

/// Starts all checks of the configuration in force that no other worker runs.
fn watch(worker: &Rc<Worker>) {
    let generation = worker.generation();
    for check in &crate::declared(&generation.conf).health.checks {
        let Some(placed) = check.placed.get() else { continue };
        if !check.is_watched.swap(true, Ordering::Relaxed) {
            rounds::run(worker, &generation, Running { check: check.clone(), live: placed.live.clone() });
        }
    }
}

/// One running `health_check`.
struct Running {
    check: Arc<Check>,
    live: Arc<Live<StreamParts>>,
}

impl rounds::Check for Running {
    type Parts = StreamParts;
    type Seen = Arc<Upstream>;
    type Kept = ();

    fn interval(&self) -> Duration {
        self.check.interval
    }

    fn jitter(&self) -> Duration {
        self.check.jitter
    }

    fn live(&self) -> &Live<StreamParts> {
        &self.live
    }

    fn look(&self, _: &Rc<Generation>) -> Option<Arc<Upstream>> {
        Some(self.live.current())
    }

    fn group(seen: &Arc<Upstream>) -> &Group {
        &seen.group
    }

    async fn ask(&self, Asked { worker, generation, seen, peer, .. }: Asked<'_, Self>) {
        let Some(placed) = self.check.placed.get() else { return };
        let Some(server) = crate::conf::of(&generation.conf).server(placed.server) else { return };
        let ended = check::ask(worker, generation, (&self.check, placed, server), seen, peer).await;
        let sinks = &server.place.values.error_log.sinks;
        let say = |level: Level, what: std::fmt::Arguments<'_>| {
            if sinks.takes(level) {
                weir_net::log::compose(level, |line| {
                    weir_net::log::push(line, what);
                    sinks.write(level, line);
                });
            }
        };
        rounds::note(&seen.group, peer, (placed.number, self.check.name()), &ended, &say);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::of_text;
    use crate::tests::problems;

    #[test]
    fn any_byte_can_be_written() {
        for (text, expected) in
            [("abc", Some(&b"abc"[..])), (r"\x00a\xfF", Some(&[0, b'a', 255])), (r"\x0", None), (r"a\xzz", None)]
        {
            assert_eq!(bytes(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        let zone = "upstream u { zone u 64k; server 127.0.0.1:1; }";
        for (text, words) in [
            (
                "server { listen 1; proxy_pass u; health_check interval=1s match=m; } match m { send a; expect ~ b; }",
                None,
            ),
            (
                "server { listen 1; proxy_pass 127.0.0.1:1; health_check; }",
                Some("\"health_check\" directive requires upstream \"127.0.0.1:1\" to be in shared memory"),
            ),
            (
                "server { listen 1; return a; health_check; }",
                Some("\"health_check\" directive needs a \"proxy_pass\" without variables in the same server"),
            ),
            ("server { listen 1; proxy_pass u; health_check match=x; }", Some("match \"x\" is not found")),
            ("server { listen 1; proxy_pass u; health_check uri=/; }", Some("invalid parameter \"uri=/\"")),
            ("match m { expect = a; }", Some("invalid operator \"=\"")),
            (r#"match m { send "\\x1"; }"#, Some(r#"invalid value "\x1""#)),
        ] {
            let found = of_text(&format!("events {{}}\nstream {{ {zone} {text} }}")).1;
            assert_eq!(found, words.into_iter().collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn parameters_of_a_check_are_read_or_refused() {
        let server = |words: &str| {
            format!(
                "upstream u {{ zone u 64k; server 127.0.0.1:1; }} server {{ listen 1; proxy_pass u; health_check {words}; }}"
            )
        };
        for words in [
            "interval=x",
            "interval=0",
            "jitter=1x",
            "fails=0",
            "passes=-1",
            "port=0",
            "port=65536",
            "match=",
            "mandatory=1",
            "udp=on",
            "persistent=x",
            "nothing",
        ] {
            assert_eq!(problems(&server(words)), [format!("invalid parameter \"{words}\"")], "{words}");
        }
        assert_eq!(problems(&server("persistent")), ["\"persistent\" requires \"mandatory\""]);
        let text = server("interval=7s jitter=20ms fails=3 passes=4 port=81 udp mandatory persistent");
        let (conf, told) = of_text(&format!("events {{}}\nstream {{ {text} }}"));
        assert_eq!(told, [""; 0]);
        let conf = conf.unwrap();
        let check = &crate::declared(&conf).health.checks[0];
        assert_eq!((check.interval.as_millis(), check.jitter.as_millis(), check.port), (7000, 20, Some(81)));
        let rule = check.rule();
        assert_eq!((rule.fails, rule.passes, rule.mandatory, rule.persistent, check.is_udp), (3, 4, true, true, true));
    }

    #[test]
    fn a_check_is_the_same_after_a_reload_if_it_asks_the_same() {
        let asks = |words: &str| {
            let text = format!(
                "events {{}}\nstream {{ upstream u {{ zone u 64k; server 127.0.0.1:1; }} match m {{ send a; }} match n {{ send a; }}                  server {{ listen 1; proxy_pass u; health_check {words}; }} }}"
            );
            let conf = of_text(&text).0.unwrap();
            crate::declared(&conf).health.checks[0].rule().asks
        };
        let same = asks("match=m");
        for (words, is_same) in [
            ("match=m fails=9 passes=9 interval=1s mandatory", true),
            ("match=n", false),
            ("", false),
            ("match=m port=1", false),
            ("match=m udp", false),
        ] {
            assert_eq!(asks(words) == same, is_same, "{words}");
        }
    }
}
