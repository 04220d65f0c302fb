//! `proxy_redirect` and `proxy_cookie_*`: an upstream's own addresses, told to the client as ours.
//!
//! Setters compile the directives; `location` and `cookie` change one field value each, and answer `None`
//! where it may be passed on as it came. Of several changes the first that fits is made, and only that one.
//! What a change matches is text or a regular expression, never a parsed URL: a prefix is a prefix of bytes.
//! <https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_redirect>

use std::borrow::Cow;
use std::sync::Arc;

use weir_conf::Statement;
use weir_wire::Known;

use super::Pass;
use crate::build::{Build, Kind};
use crate::conf::SharedRegex;
use crate::directive::Refusal;
use crate::exchange::Exchange;
use crate::regex::Regex;
use crate::variable::Template;

/// `proxy_redirect`: what becomes of Location and Refresh.
#[derive(Clone)]
pub enum Redirects {
    /// `off`: they stay as they are.
    Off,
    /// Nothing is written: the text of `proxy_pass` becomes the location's name.
    Default,
    /// What is written, in order; a written `default` is one of them.
    List(Vec<Change>),
}

/// One replacement: of a prefix, of a cookie's domain, or of what a regular expression matches.
#[derive(Clone)]
pub struct Change {
    what: What,
    to: Template,
}

/// What a change takes the place of.
#[derive(Clone)]
enum What {
    /// The beginning; the rest stays.
    Prefix(Template),
    /// All of it, whatever the case, but for a leading dot.
    Domain(Template),
    /// All of it, when the pattern is found in it.
    Regex(SharedRegex),
}

/// The flags one `proxy_cookie_flags` sets on the cookies it names.
#[derive(Clone)]
pub struct CookieFlags {
    cookie: CookieName,
    fixed: Flags,
    computed: Vec<Template>,
}

/// Which cookies.
#[derive(Clone)]
enum CookieName {
    /// The one of this name, whatever the case.
    Text(Template),
    /// Those in whose name the pattern is found.
    Regex(SharedRegex),
}

/// Sets `proxy_redirect`.
pub fn redirect(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let so_far = match &b.settings().proxy.redirect {
        Some(Redirects::Off) => Written::Off,
        Some(Redirects::List(_)) => Written::Some,
        Some(Redirects::Default) | None => Written::Nothing,
    };
    let change = match form(statement, so_far, &["default"])? {
        Form::Off => {
            b.settings().proxy.redirect = Some(Redirects::Off);
            return Ok(());
        }
        Form::Word => written_default(b)?,
        Form::Full => prefix_change(b, statement)?,
    };
    match &mut b.settings().proxy.redirect {
        Some(Redirects::List(list)) => list.push(change),
        redirect => *redirect = Some(Redirects::List(vec![change])),
    }
    Ok(())
}

/// Sets `proxy_cookie_domain`.
pub fn cookie_domain(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let so_far = Written::of(b.settings().proxy.cookie_domain.as_deref());
    if let Form::Off = form(statement, so_far, &[])? {
        b.settings().proxy.cookie_domain = Some(Vec::new());
        return Ok(());
    }
    let (from, to) = (statement.text(0), statement.text(1));
    // nginx: domains are compared without regard to case, whether the pattern is `~` or `~*`.
    let change = match from.strip_prefix('~') {
        Some(pattern) => Change { what: What::Regex(regex(b, pattern, true)?), to: b.template(to)? },
        None => {
            let from = b.template(from.strip_prefix('.').unwrap_or(from))?;
            Change { what: What::Domain(from), to: b.template(to.strip_prefix('.').unwrap_or(to))? }
        }
    };
    b.settings().proxy.cookie_domain.get_or_insert_default().push(change);
    Ok(())
}

/// Sets `proxy_cookie_path`.
pub fn cookie_path(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let so_far = Written::of(b.settings().proxy.cookie_path.as_deref());
    if let Form::Off = form(statement, so_far, &[])? {
        b.settings().proxy.cookie_path = Some(Vec::new());
        return Ok(());
    }
    let change = prefix_change(b, statement)?;
    b.settings().proxy.cookie_path.get_or_insert_default().push(change);
    Ok(())
}

/// Sets `proxy_cookie_flags`. A flag that nginx does not know has no effect there; here it is warned of too.
pub fn cookie_flags(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let so_far = Written::of(b.settings().proxy.cookie_flags.as_deref());
    if let Form::Off = form(statement, so_far, &[])? {
        b.settings().proxy.cookie_flags = Some(Vec::new());
        return Ok(());
    }
    let name = statement.text(0);
    let cookie = match name.strip_prefix('~') {
        Some(pattern) => CookieName::Regex(regex(b, pattern, true)?),
        None => CookieName::Text(b.template(name)?),
    };
    let mut flags = CookieFlags { cookie, fixed: Flags::default(), computed: Vec::new() };
    for word in statement.args.iter().skip(1) {
        let template = b.template(&word.text)?;
        match template.literal() {
            Some(text) => match Flags::of_word(text) {
                Some(flag) => flags.fixed.add(flag),
                None => warn_of_flag(b, &word.text),
            },
            None => flags.computed.push(template),
        }
    }
    b.settings().proxy.cookie_flags.get_or_insert_default().push(flags);
    Ok(())
}

/// The value of Location, or of Refresh (what follows its `url=`), changed; `None` when it stays as it is.
///
/// Allocates only when something changes or the configuration's pattern holds variables.
pub fn location(exchange: &mut Exchange<'_>, known: Option<Known>, value: &[u8]) -> Option<Vec<u8>> {
    let place = exchange.location;
    let proxy = &place.values.proxy;
    let start = match known {
        Some(Known::Refresh) => url_in_refresh(value)?,
        Some(_) | None => 0,
    };
    let changed = match &proxy.redirect {
        Redirects::Off => None,
        Redirects::Default => implied(proxy.pass.as_deref()?, &place.name, value, start),
        Redirects::List(changes) => first_change(exchange, changes, value, start),
    }?;
    if known == Some(Known::Location) {
        // nginx: a Location changed to a path becomes absolute, one that came as a path stays one.
        exchange.response.own_location = true;
    }
    Some(changed)
}

/// The value of Set-Cookie with domain, path and flags changed; `None` when it stays as it is.
pub fn cookie(exchange: &mut Exchange<'_>, value: &[u8]) -> Option<Vec<u8>> {
    let proxy = &exchange.location.values.proxy;
    if proxy.cookie_domain.is_empty() && proxy.cookie_path.is_empty() && proxy.cookie_flags.is_empty() {
        return None;
    }
    let mut cookie = Cookie::parse(value)?;
    let mut changed = false;
    for attribute in &mut cookie.attributes {
        let Some(text) = &attribute.value else { continue };
        let changes = if attribute.name.eq_ignore_ascii_case(b"domain") {
            &proxy.cookie_domain
        } else if attribute.name.eq_ignore_ascii_case(b"path") {
            &proxy.cookie_path
        } else {
            continue;
        };
        if let Some(text) = first_change(exchange, changes, text, 0) {
            attribute.value = Some(Cow::Owned(text));
            changed = true;
        }
    }
    let flags = flags_for(exchange, &proxy.cookie_flags, cookie.pair.name);
    if flags != Flags::default() {
        cookie.edit(flags);
        changed = true;
    }
    changed.then(|| cookie.text(value.len()))
}

/// How much of a directive a block holds before the statement being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Nothing,
    Off,
    Some,
}

impl Written {
    /// For the settings that keep `off` as an empty list.
    fn of<T>(list: Option<&[T]>) -> Written {
        match list {
            None => Written::Nothing,
            Some([]) => Written::Off,
            Some([_, ..]) => Written::Some,
        }
    }
}

/// What a statement says.
enum Form {
    /// `off`.
    Off,
    /// One of the other single words the directive takes.
    Word,
    /// What to change, and to what.
    Full,
}

/// Tells the forms apart; `off` must be alone in its block.
fn form(statement: &Statement, so_far: Written, words: &[&str]) -> Result<Form, Refusal> {
    if so_far == Written::Off {
        return Err(Refusal::directive("is duplicate"));
    }
    match (statement.args.len(), statement.text(0)) {
        (1, "off") if so_far == Written::Some => Err(Refusal::directive("is duplicate")),
        (1, "off") => Ok(Form::Off),
        (1, word) if words.contains(&word) => Ok(Form::Word),
        (1, word) => Err(Refusal::whole(format!("invalid parameter \"{word}\""))),
        _ => Ok(Form::Full),
    }
}

/// `FROM TO`, where FROM is a prefix, `~regex` or `~*regex`.
fn prefix_change(b: &mut Build<'_>, statement: &Statement) -> Result<Change, Refusal> {
    let from = statement.text(0);
    let what = match (from.strip_prefix("~*"), from.strip_prefix('~')) {
        (Some(pattern), _) => What::Regex(regex(b, pattern, true)?),
        (None, Some(pattern)) => What::Regex(regex(b, pattern, false)?),
        (None, None) => What::Prefix(b.template(from)?),
    };
    Ok(Change { what, to: b.template(statement.text(1))? })
}

/// `proxy_redirect default`: the change that `Redirects::Default` implies, for this block's `proxy_pass`.
fn written_default(b: &mut Build<'_>) -> Result<Change, Refusal> {
    let name = match b.scopes().last().map(|scope| &scope.kind) {
        Some(Kind::Location(pattern)) => pattern.text(),
        _ => String::new(),
    };
    let Some(Some(pass)) = &b.settings().proxy.pass else {
        return Err(Refusal::whole("\"proxy_redirect default\" should be placed after the \"proxy_pass\" directive"));
    };
    if pass.template.is_some() {
        return Err(Refusal::whole(
            "\"proxy_redirect default\" cannot be used with \"proxy_pass\" directive with variables",
        ));
    }
    let from = pass_text(pass).concat();
    Ok(Change { what: What::Prefix(Template::fixed(from)), to: Template::fixed(implied_to(pass, &name)) })
}

fn regex(b: &mut Build<'_>, pattern: &str, caseless: bool) -> Result<SharedRegex, Refusal> {
    let regex = Regex::new(pattern, caseless, |group| b.names.define_slot(group)).map_err(Refusal::whole)?;
    Ok(Arc::new(regex))
}

fn warn_of_flag(b: &mut Build<'_>, word: &str) {
    if word.is_empty() {
        return;
    }
    let words: Vec<&str> = FLAG_WORDS.iter().map(|(word, _)| *word).collect();
    b.warn(
        format!("flag \"{word}\" in \"proxy_cookie_flags\" has no effect"),
        Some(format!("the flags are: {}", words.join(", "))),
    );
}

/// Where the URL of a Refresh begins: after the first `url=`.
fn url_in_refresh(value: &[u8]) -> Option<usize> {
    const MARK: &[u8] = b"url=";
    value.windows(MARK.len()).position(|window| window.eq_ignore_ascii_case(MARK)).map(|at| at + MARK.len())
}

/// The text of a `proxy_pass` without variables, in the pieces it is kept in.
fn pass_text(pass: &Pass) -> [&[u8]; 4] {
    let colon: &[u8] = if pass.uri.is_some() && pass.url.starts_with("unix:") { b":" } else { b"" };
    // nginx: without a URI the pattern ends in a slash, lest `http://a` fit `http://a.example`.
    let uri = pass.uri.as_deref().unwrap_or("/");
    [b"http://", pass.url.as_bytes(), colon, uri.as_bytes()]
}

/// What takes that text's place.
fn implied_to<'t>(pass: &Pass, location_name: &'t str) -> &'t str {
    if pass.uri.is_some() { location_name } else { "/" }
}

/// The change made where no `proxy_redirect` is written.
fn implied(pass: &Pass, location_name: &str, value: &[u8], start: usize) -> Option<Vec<u8>> {
    if pass.template.is_some() {
        return None;
    }
    let (before, subject) = value.split_at_checked(start)?;
    let rest = pass_text(pass).iter().try_fold(subject, |rest, piece| rest.strip_prefix(*piece))?;
    Some([before, implied_to(pass, location_name).as_bytes(), rest].concat())
}

/// Makes the first change that fits `value` from `start` on; the whole value comes back.
fn first_change(exchange: &mut Exchange<'_>, changes: &[Change], value: &[u8], start: usize) -> Option<Vec<u8>> {
    let (before, subject) = value.split_at_checked(start)?;
    changes.iter().find_map(|change| {
        let (kept, rest) = change.what.fits(exchange, subject)?;
        let mut out = Vec::with_capacity(value.len());
        out.extend_from_slice(before);
        out.extend_from_slice(kept);
        change.to.eval(exchange, &mut out);
        out.extend_from_slice(rest);
        Some(out)
    })
}

impl What {
    /// What stays before and after the part to replace; `None` when there is none. A regex sets the captures.
    fn fits<'v>(&self, exchange: &mut Exchange<'_>, subject: &'v [u8]) -> Option<(&'v [u8], &'v [u8])> {
        match self {
            What::Prefix(from) => {
                let from = text_of(from, exchange);
                subject.strip_prefix(&*from).map(|rest| (&[][..], rest))
            }
            What::Domain(from) => {
                let from = text_of(from, exchange);
                domain_fits(subject, &from).map(|dot| (dot, &[][..]))
            }
            What::Regex(regex) => exchange.slots.capture(regex, subject).then_some((&[][..], &[][..])),
        }
    }
}

/// The dot, or nothing, before a domain that is `domain`.
fn domain_fits<'v>(subject: &'v [u8], domain: &[u8]) -> Option<&'v [u8]> {
    let (dot, name) = subject.split_at_checked(usize::from(subject.starts_with(b".")))?;
    name.eq_ignore_ascii_case(domain).then_some(dot)
}

fn text_of<'t>(template: &'t Template, exchange: &mut Exchange<'_>) -> Cow<'t, [u8]> {
    match template.literal() {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(template.text(exchange)),
    }
}

/// The flags of the first entry that names the cookie; none without one.
fn flags_for(exchange: &mut Exchange<'_>, entries: &[CookieFlags], name: &[u8]) -> Flags {
    let Some(entry) = entries.iter().find(|entry| entry.cookie.is(exchange, name)) else {
        return Flags::default();
    };
    let mut flags = entry.fixed;
    for template in &entry.computed {
        let word = template.text(exchange);
        if let Some(flag) = Flags::of_word(&word) {
            flags.add(flag);
        }
    }
    flags
}

impl CookieName {
    fn is(&self, exchange: &mut Exchange<'_>, name: &[u8]) -> bool {
        match self {
            CookieName::Text(text) => text_of(text, exchange).eq_ignore_ascii_case(name),
            CookieName::Regex(regex) => exchange.slots.capture(regex, name),
        }
    }
}

/// A set of flags to put on a cookie or to take off it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flags(u8);

const SECURE: Flags = Flags(1);
const NO_SECURE: Flags = Flags(1 << 1);
const HTTP_ONLY: Flags = Flags(1 << 2);
const NO_HTTP_ONLY: Flags = Flags(1 << 3);
const STRICT: Flags = Flags(1 << 4);
const LAX: Flags = Flags(1 << 5);
const NONE: Flags = Flags(1 << 6);
const NO_SAME_SITE: Flags = Flags(1 << 7);

const FLAG_WORDS: [(&str, Flags); 8] = [
    ("secure", SECURE),
    ("nosecure", NO_SECURE),
    ("httponly", HTTP_ONLY),
    ("nohttponly", NO_HTTP_ONLY),
    ("samesite=strict", STRICT),
    ("samesite=lax", LAX),
    ("samesite=none", NONE),
    ("nosamesite", NO_SAME_SITE),
];

/// Of several, the first is set, as in nginx.
const SAME_SITE: [(Flags, &[u8]); 3] = [(STRICT, b"Strict"), (LAX, b"Lax"), (NONE, b"None")];

impl Flags {
    fn of_word(word: &[u8]) -> Option<Flags> {
        FLAG_WORDS.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(word)).map(|(_, flag)| *flag)
    }

    fn add(&mut self, flag: Flags) {
        self.0 |= flag.0;
    }

    fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    /// Whether the flag was there; it is not any more.
    fn take(&mut self, flag: Flags) -> bool {
        let had = self.has(flag);
        self.0 &= !flag.0;
        had
    }

    fn take_same_site(&mut self) -> Option<&'static [u8]> {
        SAME_SITE.iter().find(|(flag, _)| self.take(*flag)).map(|(_, value)| *value)
    }
}

/// A Set-Cookie value in its parts (RFC 6265 §4.1.1), spaces around them dropped.
struct Cookie<'v> {
    /// The cookie itself.
    pair: Attribute<'v>,
    attributes: Vec<Attribute<'v>>,
}

/// `name` or `name=value`.
struct Attribute<'v> {
    name: &'v [u8],
    value: Option<Cow<'v, [u8]>>,
}

impl<'v> Attribute<'v> {
    fn parse(text: &'v [u8]) -> Attribute<'v> {
        match memchr::memchr(b'=', text).and_then(|at| text.split_at_checked(at)) {
            Some((name, value)) => {
                let value = value.get(1..).unwrap_or_default();
                Attribute { name: trim(name), value: Some(Cow::Borrowed(trim(value))) }
            }
            None => Attribute { name: trim(text), value: None },
        }
    }

    fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.name);
        if let Some(value) = &self.value {
            out.push(b'=');
            out.extend_from_slice(value);
        }
    }
}

impl<'v> Cookie<'v> {
    /// `None` where the cookie itself has no `=`; such a field nginx leaves alone.
    fn parse(value: &'v [u8]) -> Option<Cookie<'v>> {
        let mut parts = value.split(|byte| *byte == b';').map(Attribute::parse);
        let pair = parts.next().filter(|pair| pair.value.is_some())?;
        Some(Cookie { pair, attributes: parts.collect() })
    }

    /// Puts flags on and takes others off. A flag that stands there already stays where and as it is.
    fn edit(&mut self, mut flags: Flags) {
        self.attributes.retain_mut(|attribute| {
            if attribute.name.eq_ignore_ascii_case(b"secure") {
                flags.take(SECURE) || !flags.has(NO_SECURE)
            } else if attribute.name.eq_ignore_ascii_case(b"httponly") {
                flags.take(HTTP_ONLY) || !flags.has(NO_HTTP_ONLY)
            } else if attribute.name.eq_ignore_ascii_case(b"samesite") {
                let Some(wanted) = flags.take_same_site() else { return !flags.has(NO_SAME_SITE) };
                if !attribute.value.as_ref().is_some_and(|value| value.eq_ignore_ascii_case(wanted)) {
                    *attribute = Attribute { name: b"SameSite", value: Some(Cow::Borrowed(wanted)) };
                }
                true
            } else {
                true
            }
        });
        if flags.take(SECURE) {
            self.attributes.push(Attribute { name: b"Secure", value: None });
        }
        if flags.take(HTTP_ONLY) {
            self.attributes.push(Attribute { name: b"HttpOnly", value: None });
        }
        if let Some(value) = flags.take_same_site() {
            self.attributes.push(Attribute { name: b"SameSite", value: Some(Cow::Borrowed(value)) });
        }
    }

    /// The parts joined by `; `.
    fn text(&self, expected: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(expected);
        self.pair.append(&mut out);
        for attribute in &self.attributes {
            out.extend_from_slice(b"; ");
            attribute.append(&mut out);
        }
        out
    }
}

/// nginx drops spaces only, not tabs.
fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| *byte != b' ').unwrap_or(text.len());
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(start, |last| last + 1);
    text.get(start..end).unwrap_or_default()
}
