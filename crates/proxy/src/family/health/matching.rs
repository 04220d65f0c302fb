//! `match`: the tests for an answer to a health check. Pure, except `require`, which reads variables.

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::message::Origin;
use weir_http::read::build::Build;
use weir_http::text::refusal::Refusal;
use weir_http::text::regex::Regex;
use weir_http::text::template::Template;
use weir_http::text::value;

/// The tests of a `match` block; an answer has to pass them all.
#[derive(Default)]
pub struct Match(pub Vec<Arc<Test>>);

/// One test.
pub struct Test(Kind);

enum Kind {
    Status(StatusTest),
    Header(HeaderTest),
    Body(BodyTest),
    /// A text that must be neither empty nor `0`.
    Require(Template),
}

/// The part of an answer that failed a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The status.
    Status,
    /// A field of the head.
    Header,
    /// The body.
    Body,
    /// A variable of `require`.
    Require,
}

/// `[!] CODE|CODE-CODE …`.
struct StatusTest {
    is_negated: bool,
    ranges: Vec<(u16, u16)>,
}

/// `[!] NAME` or `NAME OPERATOR VALUE`.
struct HeaderTest {
    name: Box<[u8]>,
    wants: Wanted,
}

enum Wanted {
    Present,
    Absent,
    Value(Box<[u8]>),
    OtherValue(Box<[u8]>),
    Matching(Regex),
    NotMatching(Regex),
}

/// `~ REGEX` or `!~ REGEX`.
struct BodyTest {
    is_negated: bool,
    regex: Regex,
}

/// The test without `match`: 2xx or 3xx.
pub fn is_usual(status: u16) -> bool {
    (200..400).contains(&status)
}

impl Match {
    /// Whether a test looks at the body.
    pub fn looks_at_body(&self) -> bool {
        self.0.iter().any(|test| matches!(test.0, Kind::Body(_)))
    }

    /// Whether an answer passes, or the part that failed. `body` is the part of the body that the tests see.
    pub fn judge(&self, exchange: &mut Exchange<'_>, body: &[u8]) -> Result<(), Failed> {
        for test in &self.0 {
            let origin = exchange.origin.as_deref();
            let (is_met, failed) = match &test.0 {
                Kind::Status(test) => (origin.is_some_and(|origin| test.is_met(origin.head.status)), Failed::Status),
                Kind::Header(test) => (origin.is_some_and(|origin| test.is_met(origin)), Failed::Header),
                Kind::Body(test) => (test.is_met(body), Failed::Body),
                Kind::Require(template) => {
                    let text = template.text(exchange);
                    (!text.is_empty() && text != b"0", Failed::Require)
                }
            };
            if !is_met {
                return Err(failed);
            }
        }
        Ok(())
    }
}

impl Test {
    /// Reads a `status` line.
    pub fn status(statement: &Statement) -> Result<Test, Refusal> {
        let words: Vec<&str> = statement.args.iter().map(|word| word.text.as_str()).collect();
        let (is_negated, codes) = match words.as_slice() {
            ["!"] => return Err(Refusal::whole("no status is given").todo("name a status: status ! 500;")),
            ["!", codes @ ..] => (true, codes),
            codes => (false, codes),
        };
        let ranges = codes.iter().map(|code| range(code)).collect::<Result<_, _>>()?;
        Ok(Test(Kind::Status(StatusTest { is_negated, ranges })))
    }

    /// Reads a `header` line.
    pub fn header(b: &mut Build<'_>, statement: &Statement) -> Result<Test, Refusal> {
        let words: Vec<&str> = statement.args.iter().map(|word| word.text.as_str()).collect();
        let (name, wants) = match words.as_slice() {
            ["!", name] => (*name, Wanted::Absent),
            [name] => (*name, Wanted::Present),
            [name, "=", value] => (*name, Wanted::Value(value.as_bytes().into())),
            [name, "!=", value] => (*name, Wanted::OtherValue(value.as_bytes().into())),
            [name, "~", pattern] => (*name, Wanted::Matching(regex(b, pattern)?)),
            [name, "!~", pattern] => (*name, Wanted::NotMatching(regex(b, pattern)?)),
            _ => {
                return Err(Refusal::whole("invalid test of a header")
                    .todo("write: header NAME; header ! NAME; header NAME = VALUE; with !=, ~ and !~ likewise"));
            }
        };
        Ok(Test(Kind::Header(HeaderTest { name: name.as_bytes().into(), wants })))
    }

    /// Reads a `body` line.
    pub fn body(b: &mut Build<'_>, statement: &Statement) -> Result<Test, Refusal> {
        let is_negated = match statement.text(0) {
            "~" => false,
            "!~" => true,
            other => {
                return Err(Refusal::whole(format!("invalid operator \"{other}\""))
                    .todo("write: body ~ REGEX; or body !~ REGEX;"));
            }
        };
        Ok(Test(Kind::Body(BodyTest { is_negated, regex: regex(b, statement.text(1))? })))
    }

    /// Reads a variable of a `require` line.
    pub fn require(b: &mut Build<'_>, text: &str) -> Result<Test, Refusal> {
        if !text.starts_with('$') {
            return Err(Refusal::whole(format!("invalid variable name \"{text}\""))
                .todo("write \"$\" before the name of the variable"));
        }
        Ok(Test(Kind::Require(b.template(text)?)))
    }
}

impl StatusTest {
    fn is_met(&self, status: u16) -> bool {
        self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&status)) != self.is_negated
    }
}

impl BodyTest {
    fn is_met(&self, body: &[u8]) -> bool {
        self.regex.is_match(body).is_ok_and(|matches| matches != self.is_negated)
    }
}

impl HeaderTest {
    /// If a field occurs several times, `=` matches if any line matches, and `!=` only if none does.
    fn is_met(&self, origin: &Origin) -> bool {
        let bytes = &origin.bytes;
        let fields = origin.head.fields.iter().filter(|field| field.name.of(bytes).eq_ignore_ascii_case(&self.name));
        let mut values = fields.map(|field| field.value.of(bytes)).peekable();
        let is_there = values.peek().is_some();
        match &self.wants {
            Wanted::Present => is_there,
            Wanted::Absent => !is_there,
            Wanted::Value(wanted) => values.any(|value| value == &**wanted),
            Wanted::OtherValue(unwanted) => is_there && values.all(|value| value != &**unwanted),
            Wanted::Matching(regex) => values.any(|value| regex.is_match(value).unwrap_or(false)),
            Wanted::NotMatching(regex) => {
                is_there && values.all(|value| regex.is_match(value).is_ok_and(|matches| !matches))
            }
        }
    }
}

fn range(text: &str) -> Result<(u16, u16), Refusal> {
    let code = |text: &str| value::number(text).filter(|code| (100..=599).contains(code)).map(|code| code as u16);
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (code(low), code(high)) {
        (Some(low), Some(high)) if low <= high => Ok((low, high)),
        _ => Err(Refusal::whole(format!("invalid status \"{text}\""))
            .todo("write a code from 100 to 599, or a range such as 200-399")),
    }
}

fn regex(b: &mut Build<'_>, pattern: &str) -> Result<Regex, Refusal> {
    b.regex(pattern, false).map_err(Refusal::whole)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::of_text;

    fn read(lines: &str) -> Result<Arc<Match>, Vec<String>> {
        let (conf, problems) = of_text(&format!("events {{}}\nhttp {{ match m {{ {lines} }} }}"));
        conf.map(|conf| crate::declared(&conf).health.found("m").unwrap()).ok_or(problems)
    }

    fn answer(head: &str) -> Origin {
        let mut origin = Origin { bytes: weir_net::buffer::lease(head.len()), ..Origin::default() };
        origin.bytes.extend_from_slice(head.as_bytes());
        origin.parser.response(&origin.bytes, &mut origin.head).unwrap();
        origin
    }

    #[test]
    fn statuses() {
        for (line, met, unmet) in [
            ("status 200;", &[200][..], &[204, 500][..]),
            ("status ! 500;", &[200, 501], &[500]),
            ("status 200 204;", &[200, 204], &[201]),
            ("status ! 301 302;", &[200, 303], &[301, 302]),
            ("status 200-399;", &[200, 399], &[199, 400]),
            ("status ! 400-599;", &[200, 399], &[400, 599]),
            ("status 301-303 307;", &[301, 302, 303, 307], &[300, 304, 308]),
        ] {
            let read = read(line).unwrap();
            let is_met = |status: &u16| matches!(&read.0[0].0, Kind::Status(test) if test.is_met(*status));
            assert!(met.iter().all(is_met), "{line}");
            assert!(!unmet.iter().any(is_met), "{line}");
        }
    }

    #[test]
    fn headers() {
        let html = answer("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nX-A: one\r\nX-A: two\r\n\r\n");
        for (line, expected) in [
            ("header Content-Type = text/html;", true),
            ("header Content-Type = text/plain;", false),
            ("header Content-Type != text/plain;", true),
            ("header Content-Type != text/html;", false),
            ("header Content-Type ~ ht.l;", true),
            ("header Content-Type ~ HTML;", false),
            ("header Content-Type !~ plain;", true),
            ("header Content-Type !~ html;", false),
            ("header Content-Type;", true),
            ("header Refresh;", false),
            ("header ! Refresh;", true),
            ("header ! content-type;", false),
            ("header X-A = two;", true),
            ("header X-A != two;", false),
            ("header X-A !~ two;", false),
            ("header Refresh != a;", false),
            ("header Refresh !~ a;", false),
        ] {
            let read = read(line).unwrap();
            let is_met = matches!(&read.0[0].0, Kind::Header(test) if test.is_met(&html));
            assert_eq!(is_met, expected, "{line}");
        }
    }

    #[test]
    fn bodies() {
        for (line, expected) in [
            ("body ~ \"Welcome .*!\";", true),
            ("body !~ maintenance;", true),
            ("body ~ bye;", false),
            ("body !~ ^Welcome;", false),
        ] {
            let read = read(line).unwrap();
            let is_met = matches!(&read.0[0].0, Kind::Body(test) if test.is_met(b"Welcome to nginx!"));
            assert_eq!((read.looks_at_body(), is_met), (true, expected), "{line}");
        }
        assert!(!read("status 200; header A;").unwrap().looks_at_body());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, problem) in [
            ("status 99;", "invalid status \"99\""),
            ("status 399-200;", "invalid status \"399-200\""),
            ("status 2xx;", "invalid status \"2xx\""),
            ("status !;", "no status is given"),
            ("header A == b;", "invalid test of a header"),
            ("body = x;", "invalid operator \"=\""),
            ("body ~ [;", "pcre2_compile() failed: missing terminating ] for character class in \"[\""),
            ("require one;", "invalid variable name \"one\""),
            ("require $nobody_defines_it;", "unknown \"nobody_defines_it\" variable"),
            ("listen 80;", "\"listen\" directive is not allowed here"),
        ] {
            assert_eq!(read(line).err(), Some(vec![problem.to_owned()]), "{line}");
        }
    }
}
