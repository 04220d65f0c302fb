//! `proxy_redirect` and `proxy_cookie_*`: replace an upstream's addresses by weir's before the client sees them.
//!
//! Setters compile the directives; `fields` changes the fields of a response. Of several changes only the first
//! match applies. A change matches text or a regular expression, never a parsed URL: a prefix is a prefix of bytes.
//! <https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_redirect>

mod cookie;

use std::borrow::Cow;
use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::read::build::{Build, Kind};
use weir_http::text::refusal::Refusal;
use weir_http::text::regex::{Regex, SharedRegex};
use weir_http::text::slots::Captures;
use weir_http::text::template::Template;
use weir_wire::fields::FieldRef;
use weir_wire::{Known, KnownSet};

use self::cookie::{Cookie, FLAG_WORDS, Flags};
use super::Values;
use super::pass::Pass;

/// `proxy_redirect`: how Location and Refresh change.
#[derive(Clone)]
pub enum Redirects {
    /// `off`: the fields do not change.
    Off,
    /// No `proxy_redirect`, and no fixed `proxy_pass` that implies a change: the fields do not change.
    Default,
    /// The changes written in the file, in order; if there are none, the one that `proxy_pass` implies.
    List(Vec<Change>),
}

/// One replacement of a prefix, of a cookie's domain, or of a value that a regular expression matches.
#[derive(Clone)]
pub struct Change {
    what: What,
    to: Template,
}

/// The text that a change replaces.
#[derive(Clone)]
enum What {
    /// The prefix; the rest stays.
    Prefix(Template),
    /// The whole value except a leading dot, in any case.
    Domain(Template),
    /// The whole value, if the pattern matches in it.
    Regex(SharedRegex),
}

/// The flags that one `proxy_cookie_flags` sets on its cookies.
#[derive(Clone)]
pub struct CookieFlags {
    cookie: CookieName,
    fixed: Flags,
    computed: Vec<Template>,
}

/// The cookies that an entry selects.
#[derive(Clone)]
enum CookieName {
    /// The cookie of this name, in any case.
    Text(Template),
    /// Cookies whose name matches the pattern.
    Regex(SharedRegex),
}

/// Sets `proxy_redirect`.
pub fn redirect(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let so_far = match &crate::settings(b).proxy.redirect {
        Some(Redirects::Off) => Written::Off,
        Some(Redirects::List(_)) => Written::Some,
        Some(Redirects::Default) | None => Written::Nothing,
    };
    let change = match form(statement, so_far, &["default"])? {
        Form::Off => {
            crate::settings(b).proxy.redirect = Some(Redirects::Off);
            return Ok(());
        }
        Form::Word => written_default(b)?,
        Form::Full => prefix_change(b, statement)?,
    };
    match &mut crate::settings(b).proxy.redirect {
        Some(Redirects::List(list)) => list.push(change),
        redirect => *redirect = Some(Redirects::List(vec![change])),
    }
    Ok(())
}

/// Sets `proxy_cookie_domain`.
pub fn cookie_domain(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let so_far = Written::of(crate::settings(b).proxy.cookie_domain.as_deref());
    if let Form::Off = form(statement, so_far, &[])? {
        crate::settings(b).proxy.cookie_domain = Some(Vec::new());
        return Ok(());
    }
    let (from, to) = (statement.text(0), statement.text(1));
    // nginx compares domains without regard to case, so there is no `~*` beside `~`.
    let change = match from.strip_prefix('~') {
        Some(pattern) => Change { what: What::Regex(regex(b, pattern, true)?), to: b.template(to)? },
        None => {
            let from = b.template(from.strip_prefix('.').unwrap_or(from))?;
            Change { what: What::Domain(from), to: b.template(to.strip_prefix('.').unwrap_or(to))? }
        }
    };
    crate::settings(b).proxy.cookie_domain.get_or_insert_default().push(change);
    Ok(())
}

/// Sets `proxy_cookie_path`.
pub fn cookie_path(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let so_far = Written::of(crate::settings(b).proxy.cookie_path.as_deref());
    if let Form::Off = form(statement, so_far, &[])? {
        crate::settings(b).proxy.cookie_path = Some(Vec::new());
        return Ok(());
    }
    let change = prefix_change(b, statement)?;
    crate::settings(b).proxy.cookie_path.get_or_insert_default().push(change);
    Ok(())
}

/// Sets `proxy_cookie_flags`. An unknown flag has no effect in nginx; weir also warns of it.
pub fn cookie_flags(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let so_far = Written::of(crate::settings(b).proxy.cookie_flags.as_deref());
    if let Form::Off = form(statement, so_far, &[])? {
        crate::settings(b).proxy.cookie_flags = Some(Vec::new());
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
    crate::settings(b).proxy.cookie_flags.get_or_insert_default().push(flags);
    Ok(())
}

/// The text that `proxy_redirect default` replaces in this block, and its replacement, from `url` as written and the
/// location's name.
pub fn default_redirect(b: &Build<'_>, url: &str, has_uri: bool) -> (String, String) {
    match b.scopes().last().map(|scope| &scope.kind) {
        Some(Kind::Location(pattern)) if has_uri => (url.to_owned(), pattern.text()),
        // nginx: without a URI the text ends in a slash, so that `http://a` does not match `http://a.example`.
        _ => (format!("{url}/"), "/".to_owned()),
    }
}

/// The change if no `proxy_redirect` is set here or in a block around: `default`, if `proxy_pass` has no variables.
///
/// Applied once per block after inheritance, so a nested location keeps the change that the outer `proxy_pass`
/// implies, as in nginx.
pub fn implied(pass: &Pass) -> Option<Redirects> {
    default_change(pass).map(|change| Redirects::List(vec![change]))
}

/// Whether the settings may change a field of an answer with these names.
pub fn concerns(proxy: &Values, names: KnownSet) -> bool {
    let has_address = names.contains(Known::Location) || names.contains(Known::Refresh);
    has_address && !redirects(proxy).is_empty() || names.contains(Known::SetCookie) && changes_cookies(proxy)
}

fn redirects(proxy: &Values) -> &[Change] {
    match &proxy.redirect {
        Redirects::Off | Redirects::Default => &[],
        Redirects::List(changes) => changes,
    }
}

fn changes_cookies(proxy: &Values) -> bool {
    !(proxy.cookie_domain.is_empty() && proxy.cookie_path.is_empty() && proxy.cookie_flags.is_empty())
}

/// Changes the addresses in the response's fields from this place on. The upstream's answer is in the exchange: the
/// replacements may be made of it.
pub fn fields(exchange: &mut Exchange<'_>, first: usize) {
    let proxy = &crate::values(exchange.location).proxy;
    let (redirects, changes_cookies) = (redirects(proxy), changes_cookies(proxy));
    for place in first..exchange.response.fields.places() {
        let Some(FieldRef { known: Some(known), value, .. }) = exchange.response.fields.at(place) else { continue };
        let changed = match known {
            Known::Location | Known::Refresh if !redirects.is_empty() => {
                let value = value.to_vec();
                location(exchange, redirects, known, &value)
            }
            Known::SetCookie if changes_cookies => {
                let value = value.to_vec();
                cookie(exchange, proxy, &value)
            }
            _ => None,
        };
        if let Some(changed) = changed {
            exchange.response.fields.set(place, &changed);
        }
    }
}

/// The changed value of Location, or of Refresh (the part after `url=`); `None` if it stays.
fn location(exchange: &mut Exchange<'_>, changes: &[Change], known: Known, value: &[u8]) -> Option<Vec<u8>> {
    let start = if known == Known::Refresh { url_in_refresh(value)? } else { 0 };
    let changed = first_change(exchange, changes, value, start)?;
    if known == Known::Location {
        // nginx: a Location changed to a path becomes absolute; one that came as a path stays a path.
        exchange.response.own_location = true;
    }
    Some(changed)
}

/// The value of Set-Cookie with changed domain, path and flags; `None` if it stays.
fn cookie(exchange: &mut Exchange<'_>, proxy: &Values, value: &[u8]) -> Option<Vec<u8>> {
    let mut cookie = Cookie::parse(value)?;
    let mut changed = false;
    for attribute in &mut cookie.attributes {
        let Some(text) = &attribute.value else {
            continue;
        };
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

/// The statements of a directive in a block before the current one.
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

/// The form of a statement.
enum Form {
    /// `off`.
    Off,
    /// One of the other single words the directive takes.
    Word,
    /// The text to replace and its replacement.
    Full,
}

/// Finds the form; `off` must be alone in its block.
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

/// `proxy_redirect default`: the change that this block's `proxy_pass` implies.
fn written_default(b: &mut Build<'_>) -> Result<Change, Refusal> {
    let Some(Some(pass)) = &crate::settings(b).proxy.pass else {
        return Err(Refusal::whole("\"proxy_redirect default\" should be placed after the \"proxy_pass\" directive"));
    };
    default_change(pass).ok_or_else(|| {
        Refusal::whole("\"proxy_redirect default\" cannot be used with \"proxy_pass\" directive with variables")
    })
}

fn default_change(pass: &Pass) -> Option<Change> {
    let (from, to) = pass.default_redirect.as_ref()?;
    Some(Change { what: What::Prefix(Template::fixed(from.as_str())), to: Template::fixed(to.as_str()) })
}

fn regex(b: &mut Build<'_>, pattern: &str, caseless: bool) -> Result<SharedRegex, Refusal> {
    let regex = b.regex(pattern, caseless).map_err(Refusal::whole)?;
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

/// The start of the URL in a Refresh: after the first `url=`.
fn url_in_refresh(value: &[u8]) -> Option<usize> {
    const MARK: &[u8] = b"url=";
    value.windows(MARK.len()).position(|window| window.eq_ignore_ascii_case(MARK)).map(|at| at + MARK.len())
}

/// Applies the first change that matches `value` from `start` on; returns the whole value.
fn first_change(exchange: &mut Exchange<'_>, changes: &[Change], value: &[u8], start: usize) -> Option<Vec<u8>> {
    let (before, subject) = value.split_at_checked(start)?;
    changes.iter().find_map(|change| {
        let Fit { kept, rest, before: captures } = change.what.fits(exchange, subject)?;
        let mut out = Vec::with_capacity(value.len());
        out.extend_from_slice(before);
        out.extend_from_slice(kept);
        change.to.eval(exchange, &mut out);
        out.extend_from_slice(rest);
        exchange.slots.restore(captures);
        Some(out)
    })
}

/// A match of a change.
struct Fit<'v> {
    /// The part before the text to replace.
    kept: &'v [u8],
    /// The part behind it.
    rest: &'v [u8],
    /// The captures before the match: `$1` of the location.
    before: Captures,
}

impl What {
    /// The match; `None` if there is none. A regex sets the captures.
    fn fits<'v>(&self, exchange: &mut Exchange<'_>, subject: &'v [u8]) -> Option<Fit<'v>> {
        let (kept, rest, before): (&[u8], &[u8], _) = match self {
            What::Prefix(from) => {
                let from = text_of(from, exchange);
                (&[], subject.strip_prefix(&*from)?, Captures::default())
            }
            What::Domain(from) => {
                let from = text_of(from, exchange);
                (domain_fits(subject, &from)?, &[], Captures::default())
            }
            What::Regex(regex) => (&[], &[], captures(exchange, regex, subject)?),
        };
        Some(Fit { kept, rest, before })
    }
}

/// The leading dot or nothing, if the rest equals `domain`.
fn domain_fits<'v>(subject: &'v [u8], domain: &[u8]) -> Option<&'v [u8]> {
    let (dot, name) = subject.split_at_checked(usize::from(subject.starts_with(b".")))?;
    name.eq_ignore_ascii_case(domain).then_some(dot)
}

/// Matches; returns the captures before the match, `None` without one.
fn captures(exchange: &mut Exchange<'_>, regex: &Regex, subject: &[u8]) -> Option<Captures> {
    exchange.slots.capture_within(regex, subject).unwrap_or_else(|failed| {
        exchange.match_failed(&failed);
        None
    })
}

fn text_of<'t>(template: &'t Template, exchange: &mut Exchange<'_>) -> Cow<'t, [u8]> {
    match template.literal() {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(template.text(exchange)),
    }
}

/// The flags of the first entry that selects the cookie; none without one.
fn flags_for(exchange: &mut Exchange<'_>, entries: &[CookieFlags], name: &[u8]) -> Flags {
    let found = entries.iter().find_map(|entry| Some((entry, entry.cookie.fits(exchange, name)?)));
    let Some((entry, captures)) = found else { return Flags::default() };
    let mut flags = entry.fixed;
    for template in &entry.computed {
        let word = template.text(exchange);
        if let Some(flag) = Flags::of_word(&word) {
            flags.add(flag);
        }
    }
    exchange.slots.restore(captures);
    flags
}

impl CookieName {
    /// Whether it is this name: the captures before the match, `None` without one.
    fn fits(&self, exchange: &mut Exchange<'_>, name: &[u8]) -> Option<Captures> {
        match self {
            CookieName::Text(text) => text_of(text, exchange).eq_ignore_ascii_case(name).then(Captures::default),
            CookieName::Regex(regex) => captures(exchange, regex, name),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use weir_conf::MemoryFiles;

    use super::*;
    use weir_http::hold::paths::Paths;
    use weir_http::read::build::Scope;

    fn read(text: &str) -> (Vec<String>, Scope) {
        let files = MemoryFiles::new().with("/nginx.conf", text);
        let (tree, problems) = weir_conf::load(&files, "/nginx.conf", "/", &|_| false);
        assert_eq!(problems, []);
        let (paths, families) = (Paths::default(), crate::families());
        let build = Build::new(paths, &|_| Ok(Vec::new()), &families.known, families.declared());
        let (build, root) = build.read(&tree.root);
        let problems = build.problems.into_iter().map(|problem| problem.what);
        (problems.collect(), root)
    }

    /// The problems of a location with these statements.
    fn problems(statements: &str) -> Vec<String> {
        read(&format!("http {{ server {{ location /a/ {{ {statements} }} }} }}")).0
    }

    #[test]
    fn statements_are_refused_in_nginx_words() {
        // Statements, and their problems; `|` stands for `directive is duplicate`.
        const TABLE: [&str; 16] = [
            "proxy_pass http://[::1]; proxy_redirect default; proxy_redirect /x /y; proxy_redirect ~(.) $1; => ",
            "proxy_redirect off; => ",
            "proxy_redirect on; => invalid parameter \"on\"",
            "proxy_redirect off; proxy_redirect off; => \"proxy_redirect\" |",
            "proxy_redirect off; proxy_redirect /x /y; => \"proxy_redirect\" |",
            "proxy_redirect /x /y; proxy_redirect off; => \"proxy_redirect\" |",
            "proxy_redirect default; => \"proxy_redirect default\" should be placed after the \"proxy_pass\" directive",
            "proxy_pass http://$host; proxy_redirect default; => \
             \"proxy_redirect default\" cannot be used with \"proxy_pass\" directive with variables",
            "proxy_cookie_path off; => ",
            "proxy_cookie_path /a /b; proxy_cookie_path ~*^/c /d; => ",
            "proxy_cookie_path default; => invalid parameter \"default\"",
            "proxy_cookie_path off; proxy_cookie_path /a /b; => \"proxy_cookie_path\" |",
            "proxy_cookie_domain .a .b; proxy_cookie_domain off; => \"proxy_cookie_domain\" |",
            "proxy_cookie_flags one secure $arg_x; => ",
            "proxy_cookie_flags one; => invalid parameter \"one\"",
            "proxy_cookie_flags one secur; => flag \"secur\" in \"proxy_cookie_flags\" has no effect",
        ];
        for row in TABLE {
            let (statements, expected) = row.split_once(" => ").unwrap();
            let expected = expected.replace('|', "directive is duplicate");
            assert_eq!(problems(statements).join("\n"), expected, "{statements}");
        }
        assert!(problems("proxy_redirect ~( /;").concat().starts_with("pcre2_compile() failed: "));
    }

    /// The default redirect of a location's `proxy_pass`.
    fn default_of(location: &str, url: &str) -> (String, String) {
        let text = format!("http {{ server {{ location {location} {{ proxy_pass {url}; }} }} }}");
        let (_, root) = read(&text);
        let location = &root.children[0].children[0].children[0];
        let pass = crate::written(location).proxy.pass.clone().flatten().unwrap();
        pass.default_redirect.clone().unwrap()
    }

    #[test]
    fn proxy_pass_implies_a_redirect() {
        for (location, url, from, to) in [
            ("/out/", "http://[::1]:81/in/", "http://[::1]:81/in/", "/out/"),
            ("= /out", "HTTP://[::1]/", "HTTP://[::1]/", "/out"),
            ("/out/", "http://[::1]:81", "http://[::1]:81/", "/"),
            ("~ ^/out", "http://[::1]:81", "http://[::1]:81/", "/"),
            ("/out/", "http://unix:/s:/in/", "http://unix:/s:/in/", "/out/"),
            ("/out/", "http://unix:/s", "http://unix:/s/", "/"),
        ] {
            let expected = (from.to_owned(), to.to_owned());
            assert_eq!(default_of(location, url), expected, "{location} {url}");
        }
    }

    /// The replacements in force, in every location with a list of literal prefixes.
    fn redirects_in_force(server: &str) -> Vec<(String, String, String)> {
        let text = format!("events {{ }} http {{ server {{ {server} }} }}");
        let files = MemoryFiles::new().with("/nginx.conf", text);
        let (tree, _) = weir_conf::load(&files, "/nginx.conf", "/", &|_| false);
        let (conf, problems) =
            weir_http::read::compile::compile(&tree, Paths::default(), &|_| Ok(Vec::new()), 1, crate::families());
        let utf8 = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
        let conf = conf.unwrap_or_else(|| panic!("{problems:?}"));
        let mut found = Vec::new();
        for location in &conf.locations {
            let Redirects::List(changes) = &crate::values(location).proxy.redirect else {
                continue;
            };
            for Change { what, to } in changes {
                let What::Prefix(from) = what else { continue };
                found.push((location.name.clone(), utf8(from.literal()), utf8(to.literal())));
            }
        }
        found.sort();
        found
    }

    #[test]
    fn a_location_in_a_location_keeps_what_the_outer_one_implies() {
        let entry = |name: &str, from: &str, to: &str| (name.to_owned(), from.to_owned(), to.to_owned());
        let found = redirects_in_force(
            "location /a/ { proxy_pass http://127.0.0.1:1/x/; location /a/b/ { proxy_pass http://127.0.0.1:2/y/; } }
             location /c/ { proxy_pass http://127.0.0.1:$server_port; location /c/d/ { proxy_pass http://127.0.0.1:2/y/; } }
             location /e/ { proxy_redirect off; proxy_pass http://127.0.0.1:1; }",
        );
        let expected = [
            entry("/a/", "http://127.0.0.1:1/x/", "/a/"),
            entry("/a/b/", "http://127.0.0.1:1/x/", "/a/"),
            entry("/c/d/", "http://127.0.0.1:2/y/", "/c/d/"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_refresh_is_changed_behind_its_url() {
        assert_eq!(url_in_refresh(b"7; URL=http://a/url=x"), Some(7));
        assert_eq!(url_in_refresh(b"7"), None);
        assert_eq!(url_in_refresh(b"7; url"), None);
        assert_eq!(url_in_refresh(b"url="), Some(4));
    }

    #[test]
    fn domains_are_compared_without_dot_and_case() {
        assert_eq!(domain_fits(b"WWW.a", b"www.A"), Some(&b""[..]));
        assert_eq!(domain_fits(b".www.a", b"www.a"), Some(&b"."[..]));
        assert_eq!(domain_fits(b"..www.a", b"www.a"), None);
        assert_eq!(domain_fits(b"a", b"www.a"), None);
        assert_eq!(domain_fits(b"", b"a"), None);
        assert_eq!(domain_fits(b".", b""), Some(&b"."[..]));
    }
}
