//! `health_check`, `health_check_timeout` and `match` of `stream`: checks each server of a group periodically.
//!
//! `weir_groups` makes the rounds, `drive/check` one check. NGINX Plus:
//! <https://nginx.org/en/docs/stream/ngx_stream_upstream_hc_module.html>

use std::sync::Arc;
use std::time::Duration;

use weir_conf::Statement;
use weir_groups::checks::{self, Asked, Asks, Ended, Parameter};
use weir_groups::rounds;
use weir_http::exchange::conf::{Conf, Location};
use weir_http::exchange::route::ServerId;
use weir_http::hold::worker::Generation;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Contexts, Directive, ONE, SS, STREAM, STREAM_MATCH, STREAM_SERVER};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;

use super::checking::{Expect, Match, StreamCheck};
use super::upstream::StreamParts;
use crate::conf::{self, Content, ProxyTarget, Server};
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
pub type Declared = checks::Declared<StreamCheck>;

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
            checks::health_check::<StreamCheck>,
        )
        .many()
        .default("interval=5s jitter=0 fails=1 passes=1"),
        Directive::new("health_check_timeout", SS, ONE, "The longest time of a check after its connection is made.", |b, s| {
            crate::settings(b).health.timeout = Some(value::time(s)?);
            Ok(())
        })
        .default("5s"),
        Directive::new("match", STREAM, ONE, "Names the bytes of a health check and the test for the answer.", checks::tests::<StreamCheck>)
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
.watch(rounds::watch::<StreamCheck>);

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

impl Asks for StreamCheck {
    type Parts = StreamParts;
    type Tests = Match;
    type Place = ServerId;
    type Kept = ();
    const INSIDE: Contexts = STREAM_MATCH;
    const EXAMPLE: &'static str = "send \"…\"; expect \"…\";";
    const ZONELESS: [&'static str; 2] = ["write upstream GROUP { zone GROUP 64k; server …; } and proxy_pass GROUP;"; 2];

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
        let written = std::mem::take(&mut crate::written_mut(scope).health);
        Match { send: written.send.flatten().unwrap_or_default(), expect: written.expect.flatten() }
    }

    fn parameter(&mut self, word: Parameter<'_>) -> Result<bool, Refusal> {
        let is_udp = word.name == "udp" && word.is_bare();
        self.is_udp |= is_udp;
        Ok(is_udp)
    }

    fn asks(&self) -> String {
        self.is_udp.to_string()
    }

    fn location<'g>(generation: &'g Generation, place: &ServerId) -> Option<&'g Location> {
        conf::of(&generation.conf).server(*place).map(|server| &server.place)
    }

    async fn ask(asked: &Asked<'_, StreamCheck>) -> Ended {
        check::ask(asked).await
    }
}

/// Runs after all servers are read: each check finds its group.
pub fn settle(b: &mut Build<'_>, servers: &[Server]) {
    let places = servers.iter().map(|server| (&crate::values(&server.place).health.checks, server));
    checks::settle(b, places, |_: &StreamCheck, server| match &server.content {
        Content::Proxy(ProxyTarget::Group(group)) => Ok(Some((*group, server.id))),
        _ => Err(Refusal::directive("needs a \"proxy_pass\" without variables in the same server")
            .todo("add to the server: proxy_pass GROUP; where GROUP is an upstream with a zone")
            .needs("proxy_pass", "")),
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::of_text;

    const ZONE: &str = "upstream u { zone u 64k; server 127.0.0.1:1; }";

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
            ("server { listen 1; proxy_pass u; health_check udp=on; }", Some("invalid parameter \"udp=on\"")),
            ("match m { expect = a; }", Some("invalid operator \"=\"")),
            (r#"match m { send "\\x1"; }"#, Some(r#"invalid value "\x1""#)),
        ] {
            let found = of_text(&format!("events {{}}\nstream {{ {ZONE} {text} }}")).1;
            assert_eq!(found, words.into_iter().collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn a_check_by_udp_asks_something_else() {
        let check = |words: &str| {
            let text = format!("{ZONE} server {{ listen 1; proxy_pass u; health_check {words}; }}");
            let (conf, told) = of_text(&format!("events {{}}\nstream {{ {text} }}"));
            assert_eq!(told, [""; 0], "{words}");
            crate::declared(&conf.unwrap()).health.checks[0].clone()
        };
        let (tcp, udp) = (check("port=81"), check("port=81 udp"));
        assert_eq!((tcp.own.is_udp, udp.own.is_udp), (false, true));
        assert_ne!(tcp.rule().asks, udp.rule().asks);
    }
}
