//! `modern_browser`, `ancient_browser`: sorts clients by the browser that `User-Agent` names.
//!
//! <https://nginx.org/en/docs/http/ngx_http_browser_module.html>

use std::sync::Arc;

use memchr::memmem;
use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::variable::Variable;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, HSL, ONE};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Argument;
use weir_wire::Known;

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family's settings of one block, as written. Hand-written, because two lists are inherited with their flags.
#[derive(Clone, Default)]
pub struct Settings {
    modern: Modern,
    ancient: Ancient,
    modern_value: Option<Vec<u8>>,
    ancient_value: Option<Vec<u8>>,
}

/// The family's settings in force in one place.
pub type Values = Arc<Settings>;

/// The `modern_browser` of a block.
#[derive(Clone, Default, PartialEq, Eq)]
struct Modern {
    versions: Vec<(usize, u64)>,
    unlisted: bool,
}

/// The `ancient_browser` of a block.
#[derive(Clone, Default, PartialEq, Eq)]
struct Ancient {
    parts: Vec<Vec<u8>>,
    netscape4: bool,
}

impl Settings {
    /// Takes over from the enclosing block.
    pub fn inherit(&mut self, outer: &Settings) {
        if self.modern == Modern::default() {
            self.modern = outer.modern.clone();
        }
        if self.ancient == Ancient::default() {
            self.ancient = outer.ancient.clone();
        }
        self.modern_value = self.modern_value.take().or_else(|| outer.modern_value.clone());
        self.ancient_value = self.ancient_value.take().or_else(|| outer.ancient_value.clone());
    }

    /// The values in force.
    pub fn values(self) -> Values {
        Arc::new(self)
    }
}

/// The family.
pub static FAMILY: Family = Family::new(
    "browser",
    &[
        Directive::new(
            "modern_browser",
            HSL,
            Arity::Between(1, 2),
            "The version from which a browser is modern (msie, gecko, opera, safari, konqueror); unlisted: all others are.",
            modern_browser,
        )
        .many(),
        Directive::new(
            "ancient_browser",
            HSL,
            Arity::AtLeast(1),
            "Texts in User-Agent that make a browser ancient; netscape4 for all versions of Netscape before 5.",
            ancient_browser,
        )
        .many(),
        Directive::new("modern_browser_value", HSL, ONE, "The value of $modern_browser for a modern browser.", |b, s| {
            crate::settings(b).browser.modern_value = Some(s.text(0).as_bytes().to_vec());
            Ok(())
        })
        .many()
        .default("1"),
        Directive::new(
            "ancient_browser_value",
            HSL,
            ONE,
            "The value of $ancient_browser for an ancient browser.",
            |b, s| {
                crate::settings(b).browser.ancient_value = Some(s.text(0).as_bytes().to_vec());
                Ok(())
            },
        )
        .many()
        .default("1"),
    ],
)
.variables(&[
    Variable::kept("msie", msie),
    Variable::kept("modern_browser", |exchange, _, out| put(exchange, true, out)),
    Variable::kept("ancient_browser", |exchange, _, out| put(exchange, false, out)),
])
.finish(finish);

/// A browser that `modern_browser` may name.
struct Kind {
    name: &'static str,
    /// Bytes at the beginning of `User-Agent` that are before the text of every such browser.
    skipped: usize,
    /// The text before the version.
    text: &'static [u8],
}

/// Opera is first: its `User-Agent` may contain `MSIE`.
const KINDS: &[Kind] = &[
    Kind { name: "opera", skipped: 0, text: b"Opera" },
    Kind { name: "msie", skipped: b"Mozilla/4.0 (compatible; ".len(), text: b"MSIE " },
    Kind { name: "gecko", skipped: b"Mozilla/5.0 (".len(), text: b"rv:" },
    Kind { name: "safari", skipped: b"Mozilla/5.0 (".len(), text: b"Safari/" },
    Kind { name: "konqueror", skipped: b"Mozilla/5.0 (compatible; ".len(), text: b"Konqueror/" },
];

const OPERA: usize = 0;

/// A version that no browser reaches.
const NEVER: u64 = 4_001_000_000;

/// The weight of a version's first number; the next ones weigh a hundredth of the number before.
const FIRST_WEIGHT: u64 = 1_000_000;

fn modern_browser(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let (name, version) = (statement.text(0), statement.arg(1));
    let Some(version) = version.map(|word| word.text.as_str()) else {
        if name != "unlisted" {
            return Err(Refusal::directive("needs the version of a browser")
                .todo("write a browser and its version, or unlisted"));
        }
        crate::settings(b).browser.modern.unlisted = true;
        return Ok(());
    };
    let Some(kind) = KINDS.iter().position(|kind| kind.name.eq_ignore_ascii_case(name)) else {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        return Err(Refusal::whole(format!("unknown browser name \"{name}\""))
            .todo(format!("write one of: {}", names.join(", "))));
    };
    if !version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(Refusal::whole(format!("invalid browser version \"{version}\"")));
    }
    let version = read_version(version.as_bytes());
    crate::settings(b).browser.modern.versions.push((kind, version));
    Ok(())
}

fn ancient_browser(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let ancient = &mut crate::settings(b).browser.ancient;
    for word in statement.args.iter().map(|word| word.text.as_str()) {
        match word {
            "netscape4" => ancient.netscape4 = true,
            part => ancient.parts.push(part.as_bytes().to_vec()),
        }
    }
    Ok(())
}

/// Brings the list of a block in the order of `KINDS`, with an entry for Opera in front: a `User-Agent` of Opera is no
/// other browser's.
fn finish(_: &mut Build<'_>, scope: &mut Scope) {
    let versions = &mut crate::written_mut(scope).browser.modern.versions;
    if versions.is_empty() {
        return;
    }
    if !versions.iter().any(|(kind, _)| *kind == OPERA) {
        versions.push((OPERA, NEVER));
    }
    versions.sort_by_key(|(kind, _)| *kind);
}

fn put(exchange: &mut Exchange<'_>, modern: bool, out: &mut Vec<u8>) -> bool {
    let settings = &crate::values(exchange.location).browser;
    let is_modern = settings.is_modern(exchange.request.field(Known::UserAgent));
    if is_modern == modern {
        let value = if modern { &settings.modern_value } else { &settings.ancient_value };
        out.extend_from_slice(value.as_deref().unwrap_or(b"1"));
    }
    true
}

/// `$msie`: `1` for a `User-Agent` of Internet Explorer.
fn msie(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    if exchange.request.field(Known::UserAgent).is_some_and(is_msie) {
        out.push(b'1');
    }
    true
}

/// nginx: at least three bytes follow `MSIE `. Opera names MSIE too.
fn is_msie(agent: &[u8]) -> bool {
    memmem::find(agent, b"MSIE ").is_some_and(|at| at + 7 < agent.len()) && memmem::find(agent, b"Opera").is_none()
}

impl Settings {
    fn is_modern(&self, agent: Option<&[u8]>) -> bool {
        let Some(agent) = agent else { return self.modern.unlisted };
        if !self.modern.versions.is_empty() {
            for (kind, least) in &self.modern.versions {
                if let Some(version) = version_of(agent, *kind) {
                    return version >= *least;
                }
            }
            if !self.modern.unlisted {
                return false;
            }
        }
        let is_netscape4 = self.ancient.netscape4 && is_netscape4(agent);
        let is_ancient = |part: &Vec<u8>| memmem::find(agent, part).is_some();
        !is_netscape4 && !self.ancient.parts.iter().any(is_ancient) && self.modern.unlisted
    }
}

/// The version of a browser of this kind; `None` if `User-Agent` names no such browser.
fn version_of(agent: &[u8], kind: usize) -> Option<u64> {
    let kind = KINDS.get(kind)?;
    let rest = agent.get(kind.skipped..)?;
    let at = memmem::find(rest, kind.text)? + kind.text.len();
    // One byte, ` ` or `/`, is between Opera and its version.
    let at = if kind.text == b"Opera" { at + 1 } else { at };
    let rest = rest.get(at..).filter(|rest| !rest.is_empty())?;
    let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.').unwrap_or(rest.len());
    Some(read_version(rest.get(..end).unwrap_or_default()))
}

/// Up to four numbers with dots between them, as one number.
fn read_version(text: &[u8]) -> u64 {
    let (mut version, mut weight): (u64, u64) = (0, FIRST_WEIGHT);
    for part in text.split(|byte| *byte == b'.') {
        let digits = part
            .iter()
            .fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit.saturating_sub(b'0'))));
        version = version.saturating_add(digits.saturating_mul(weight));
        weight /= 100;
    }
    version
}

fn is_netscape4(agent: &[u8]) -> bool {
    agent.len() > b"Mozilla/4.72 ".len()
        && agent.strip_prefix(b"Mozilla/").and_then(<[u8]>::first).is_some_and(|digit| (b'1'..=b'4').contains(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_nginx_reads_them() {
        for (text, version) in
            [("7", 7_000_000), ("7.50", 7_500_000), ("1.5.0.5", 1_050_005), ("", 0), ("1.2.3.4.5", 1_020_304)]
        {
            assert_eq!(read_version(text.as_bytes()), version, "{text}");
        }
        assert_eq!(read_version(&[b'9'; 100]), u64::MAX, "no overflow");
    }

    #[test]
    fn a_browser_is_modern_from_its_version_on() {
        let mut settings = Settings::default();
        settings.modern.versions = vec![(OPERA, NEVER), (1, 5_500_000), (2, 1_000_000)];
        settings.ancient.parts = vec![b"Links".to_vec()];
        settings.ancient.netscape4 = true;
        for (agent, modern, with_unlisted) in [
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", true, true),
            ("Mozilla/4.0 (compatible; MSIE 5.01; Windows 98)", false, false),
            ("Mozilla/4.0 (compatible; MSIE 6.0; X11) Opera 7.50  [en]", false, false),
            ("Mozilla/5.0 (X11; U; Linux i686; en-US; rv:1.0.0) Gecko/20020610", true, true),
            ("Links (2.2; Linux)", false, false),
            ("Mozilla/4.72 [en] (X11; U)", false, false),
            ("curl/8.0", false, true),
            ("", false, true),
        ] {
            settings.modern.unlisted = false;
            assert_eq!(settings.is_modern(Some(agent.as_bytes())), modern, "{agent}");
            settings.modern.unlisted = true;
            assert_eq!(settings.is_modern(Some(agent.as_bytes())), with_unlisted, "{agent}");
        }
    }

    #[test]
    fn names_and_versions_are_refused_in_nginx_words() {
        for (statement, problem) in [
            ("modern_browser msie 5.5; modern_browser unlisted;", None),
            ("modern_browser lynx 2;", Some("unknown browser name \"lynx\"")),
            ("modern_browser msie 5x;", Some("invalid browser version \"5x\"")),
            ("modern_browser msie;", Some("\"modern_browser\" directive needs the version of a browser")),
        ] {
            let (_, problems) = crate::of_text(&format!("events {{}} http {{ {statement} server {{ }} }}"));
            assert_eq!(problems.first().map(String::as_str), problem, "{statement}");
        }
    }

    mod mutate {
        use super::*;
        /// A version is a number, whatever follows a browser's name.
        #[test]
        fn agents() {
            let seeds = [
                "Mozilla/5.0 (compatible; MSIE 10.6; Windows)",
                "Opera/9.80 Version/12.16",
                "Mozilla/4.72 Gecko/20100101",
            ];
            let words = ["MSIE ", "Opera", "Gecko/", "Safari/", "99999999999999999999", ".", " ", "\0"];
            weir_mutate::mutate(&seeds, &words, |agent| {
                for kind in 0..=KINDS.len() {
                    let _ = version_of(agent, kind);
                }
                let _ = (is_netscape4(agent), is_msie(agent), read_version(agent));
            });
        }
    }
}
