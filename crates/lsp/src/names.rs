//! The names that a configuration defines and uses: which argument of which directive has a name of which kind.
//!
//! One table ([`ROWS`]) says it for all directives; variables in texts (`$name`, `${name}`) and named groups of patterns
//! (`(?<name>…)`) may stand in any argument. `mentions` finds them in a tree.
//!
//! nginx's documentation of each directive decides; weir's own directives are in `docs/reference/directives.md`.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use weir_words::{Words, words};

/// The kind of a name. Names of different kinds never meet, but for zones (see [`NamedKind::is_zone`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NamedKind {
    /// `upstream NAME`.
    Upstream,
    /// `$name`.
    Variable,
    /// `location @name`.
    NamedLocation,
    /// `log_format NAME`.
    LogFormat,
    /// `match NAME`, tests of health checks.
    HealthMatch,
    /// The zone of `limit_req_zone`.
    RequestZone,
    /// The zone of `limit_conn_zone`.
    ConnectionZone,
    /// The zone of `proxy_cache_path`.
    ProxyCache,
    /// The zone of `fastcgi_cache_path`.
    FastcgiCache,
    /// The zone of `uwsgi_cache_path`.
    UwsgiCache,
    /// The zone of `scgi_cache_path`.
    ScgiCache,
    /// The zone of `keyval_zone`.
    KeyvalZone,
    /// The `zone` of an upstream.
    GroupZone,
    /// A `status_zone`.
    StatusZone,
    /// The zone of `ssl_session_cache` or `ssl_ocsp_cache`.
    SessionZone,
    /// The zone of `sticky learn`.
    StickyZone,
    /// The zone of `lua_shared_dict` or `js_shared_dict_zone`.
    SharedDict,
    /// `thread_pool NAME`.
    ThreadPool,
    /// `acme_issuer NAME`.
    AcmeIssuer,
    /// `oidc_provider NAME`.
    OidcProvider,
}

impl NamedKind {
    /// Its noun in a sentence.
    pub fn noun(self) -> Words {
        match self {
            NamedKind::Upstream => words("upstream", "upstream"),
            NamedKind::Variable => words("variable", "변수"),
            NamedKind::NamedLocation => words("named location", "이름 있는 location"),
            NamedKind::LogFormat => words("log format", "로그 형식"),
            NamedKind::HealthMatch => words("match block", "match 블록"),
            NamedKind::ThreadPool => words("thread pool", "스레드 풀"),
            NamedKind::AcmeIssuer => words("ACME issuer", "ACME 발급자"),
            NamedKind::OidcProvider => words("OpenID Connect provider", "OpenID Connect 제공자"),
            NamedKind::ProxyCache | NamedKind::FastcgiCache | NamedKind::UwsgiCache | NamedKind::ScgiCache => {
                words("cache zone", "캐시 존")
            }
            _ => words("zone", "존"),
        }
    }

    /// Whether it is shared memory. nginx refuses two zones of different kinds with one name.
    pub fn is_zone(self) -> bool {
        ZONES.contains(&self)
    }

    /// Whether nginx ignores the case of letters in such a name.
    pub fn ignores_case(self) -> bool {
        matches!(self, NamedKind::Upstream | NamedKind::Variable)
    }
}

/// The kinds of shared memory.
pub const ZONES: [NamedKind; 11] = [
    NamedKind::RequestZone,
    NamedKind::ConnectionZone,
    NamedKind::ProxyCache,
    NamedKind::FastcgiCache,
    NamedKind::UwsgiCache,
    NamedKind::ScgiCache,
    NamedKind::KeyvalZone,
    NamedKind::GroupZone,
    NamedKind::SessionZone,
    NamedKind::StickyZone,
    NamedKind::SharedDict,
];

/// The role of a name where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MentionRole {
    /// Defines it.
    Defines,
    /// Uses it.
    Uses,
    /// Both: blocks that say the same name share one thing. The first of them counts as the definition.
    Shares,
}

/// The argument that has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameArgument {
    /// The argument with this index.
    At(usize),
    /// The last argument.
    Last,
    /// The rest of an argument that begins with this.
    After(&'static str),
    /// The first of exactly two arguments, of which the second has a variable.
    BeforeKey,
}

/// How the name stands in its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameForm {
    /// It is the argument. A word with `$` or `=`, and `off`, is no name.
    Whole,
    /// It ends at a `:` (`NAME:10m`).
    BeforeColon,
    /// It is the host of a URL or address (`http://NAME:80/x`).
    Host,
    /// It follows a `$`.
    Dollar,
    /// It follows an `@`.
    Sign,
}

/// One row: a directive, the argument with the name, its form, the kind and the role.
#[derive(Clone, Copy, Debug)]
pub struct NameRow {
    /// The directive.
    pub directive: &'static str,
    /// The argument.
    pub argument: NameArgument,
    /// Its form.
    pub form: NameForm,
    /// The kind.
    pub kind: NamedKind,
    /// The role.
    pub role: MentionRole,
}

const fn row(
    directive: &'static str,
    argument: NameArgument,
    form: NameForm,
    kind: NamedKind,
    role: MentionRole,
) -> NameRow {
    NameRow { directive, argument, form, kind, role }
}

use MentionRole::{Defines, Shares, Uses};
use NameArgument::{After, At, BeforeKey, Last};
use NameForm::{BeforeColon, Dollar, Host, Sign, Whole};

/// All rows.
#[rustfmt::skip]
pub static ROWS: &[NameRow] = &[
    row("upstream", At(0), Whole, NamedKind::Upstream, Defines),
    row("proxy_pass", At(0), Host, NamedKind::Upstream, Uses),
    row("fastcgi_pass", At(0), Host, NamedKind::Upstream, Uses),
    row("uwsgi_pass", At(0), Host, NamedKind::Upstream, Uses),
    row("scgi_pass", At(0), Host, NamedKind::Upstream, Uses),
    row("memcached_pass", At(0), Host, NamedKind::Upstream, Uses),
    row("grpc_pass", At(0), Host, NamedKind::Upstream, Uses),
    row("tunnel_pass", At(0), Host, NamedKind::Upstream, Uses),
    row("redis_pass", At(0), Host, NamedKind::Upstream, Uses),
    row("redis2_pass", At(0), Host, NamedKind::Upstream, Uses),
    row("postgres_pass", At(0), Host, NamedKind::Upstream, Uses),
    row("ajp_pass", At(0), Host, NamedKind::Upstream, Uses),
    row("dashboard_upstream_log", After("upstream="), Host, NamedKind::Upstream, Uses),

    row("location", At(0), Sign, NamedKind::NamedLocation, Defines),
    row("error_page", Last, Sign, NamedKind::NamedLocation, Uses),
    row("try_files", Last, Sign, NamedKind::NamedLocation, Uses),
    row("post_action", At(0), Sign, NamedKind::NamedLocation, Uses),
    row("internal_redirect", At(0), Sign, NamedKind::NamedLocation, Uses),
    row("echo_exec", At(0), Sign, NamedKind::NamedLocation, Uses),

    row("log_format", At(0), Whole, NamedKind::LogFormat, Defines),
    row("access_log", At(1), Whole, NamedKind::LogFormat, Uses),
    row("match", At(0), Whole, NamedKind::HealthMatch, Defines),
    row("health_check", After("match="), Whole, NamedKind::HealthMatch, Uses),
    row("thread_pool", At(0), Whole, NamedKind::ThreadPool, Defines),
    row("aio", After("threads="), Whole, NamedKind::ThreadPool, Uses),
    row("acme_issuer", At(0), Whole, NamedKind::AcmeIssuer, Defines),
    row("acme_certificate", At(0), Whole, NamedKind::AcmeIssuer, Uses),
    row("oidc_provider", At(0), Whole, NamedKind::OidcProvider, Defines),
    row("auth_oidc", At(0), Whole, NamedKind::OidcProvider, Uses),

    row("limit_req_zone", After("zone="), BeforeColon, NamedKind::RequestZone, Defines),
    row("limit_req", After("zone="), Whole, NamedKind::RequestZone, Uses),
    row("limit_conn_zone", After("zone="), BeforeColon, NamedKind::ConnectionZone, Defines),
    row("limit_conn", At(0), Whole, NamedKind::ConnectionZone, Uses),
    row("proxy_cache_path", After("keys_zone="), BeforeColon, NamedKind::ProxyCache, Defines),
    row("proxy_cache", At(0), Whole, NamedKind::ProxyCache, Uses),
    row("proxy_cache_purge", BeforeKey, Whole, NamedKind::ProxyCache, Uses),
    row("fastcgi_cache_path", After("keys_zone="), BeforeColon, NamedKind::FastcgiCache, Defines),
    row("fastcgi_cache", At(0), Whole, NamedKind::FastcgiCache, Uses),
    row("fastcgi_cache_purge", BeforeKey, Whole, NamedKind::FastcgiCache, Uses),
    row("uwsgi_cache_path", After("keys_zone="), BeforeColon, NamedKind::UwsgiCache, Defines),
    row("uwsgi_cache", At(0), Whole, NamedKind::UwsgiCache, Uses),
    row("uwsgi_cache_purge", BeforeKey, Whole, NamedKind::UwsgiCache, Uses),
    row("scgi_cache_path", After("keys_zone="), BeforeColon, NamedKind::ScgiCache, Defines),
    row("scgi_cache", At(0), Whole, NamedKind::ScgiCache, Uses),
    row("scgi_cache_purge", BeforeKey, Whole, NamedKind::ScgiCache, Uses),
    row("keyval_zone", After("zone="), BeforeColon, NamedKind::KeyvalZone, Defines),
    row("keyval", After("zone="), Whole, NamedKind::KeyvalZone, Uses),
    row("lua_shared_dict", At(0), Whole, NamedKind::SharedDict, Defines),
    row("js_shared_dict_zone", After("zone="), BeforeColon, NamedKind::SharedDict, Defines),
    row("zone", At(0), Whole, NamedKind::GroupZone, Shares),
    row("status_zone", At(0), Whole, NamedKind::StatusZone, Shares),
    row("resolver", After("status_zone="), Whole, NamedKind::StatusZone, Shares),
    row("ssl_session_cache", After("shared:"), BeforeColon, NamedKind::SessionZone, Shares),
    row("ssl_ocsp_cache", After("shared:"), BeforeColon, NamedKind::SessionZone, Shares),
    row("sticky", After("zone="), BeforeColon, NamedKind::StickyZone, Shares),

    row("set", At(0), Dollar, NamedKind::Variable, Defines),
    row("map", At(1), Dollar, NamedKind::Variable, Defines),
    row("geo", Last, Dollar, NamedKind::Variable, Defines),
    row("split_clients", At(1), Dollar, NamedKind::Variable, Defines),
    row("keyval", At(1), Dollar, NamedKind::Variable, Defines),
    row("auth_request_set", At(0), Dollar, NamedKind::Variable, Defines),
    row("auth_jwt_claim_set", At(0), Dollar, NamedKind::Variable, Defines),
    row("auth_jwt_header_set", At(0), Dollar, NamedKind::Variable, Defines),
    row("js_set", At(0), Dollar, NamedKind::Variable, Defines),
    row("js_var", At(0), Dollar, NamedKind::Variable, Defines),
    row("perl_set", At(0), Dollar, NamedKind::Variable, Defines),
];

static BY_DIRECTIVE: LazyLock<HashMap<&'static str, Vec<&'static NameRow>>> = LazyLock::new(|| {
    let mut rows: HashMap<&'static str, Vec<&'static NameRow>> = HashMap::new();
    for row in ROWS {
        rows.entry(row.directive).or_default().push(row);
    }
    rows
});

/// `set_by_lua`, `set_md5` and their like: each directive of this form whose first argument is a variable defines it.
static SETS: NameRow = row("set_", At(0), Dollar, NamedKind::Variable, Defines);

/// The rows of a directive.
pub fn rows_of(directive: &str) -> impl Iterator<Item = &'static NameRow> {
    let rows = BY_DIRECTIVE.get(directive).map_or(&[][..], Vec::as_slice);
    rows.iter().copied().chain(directive.starts_with("set_").then_some(&SETS))
}

impl NameRow {
    /// The place of the name in an argument: the argument's index, the number of arguments, its text, and the text of the
    /// argument behind it. `None` if the argument has no name of this row.
    pub fn find(&self, index: usize, count: usize, text: &[u8], next: Option<&[u8]>) -> Option<Range<usize>> {
        let from = match self.argument {
            At(at) => (at == index).then_some(0),
            Last => (index + 1 == count).then_some(0),
            After(before) => text.starts_with(before.as_bytes()).then_some(before.len()),
            BeforeKey => (index == 0 && count == 2 && next.is_some_and(|key| key.contains(&b'$'))).then_some(0),
        }?;
        let found = self.form.find(text.get(from..)?)?;
        Some(from + found.start..from + found.end)
    }
}

impl NameForm {
    /// The place of the name in the text of an argument, without what introduces it.
    pub fn find(self, text: &[u8]) -> Option<Range<usize>> {
        let found = match self {
            Whole => 0..text.len(),
            BeforeColon => 0..text.iter().position(|byte| *byte == b':').unwrap_or(text.len()),
            Host => host(text)?,
            Dollar => text.strip_prefix(b"$").map(|name| 1..name.len() + 1)?,
            Sign => text.strip_prefix(b"@").map(|name| 1..name.len() + 1)?,
        };
        let name = text.get(found.clone())?;
        let is_name = match self {
            Dollar => !name.is_empty() && name.iter().all(is_variable_byte),
            Whole => !name.iter().any(|byte| matches!(byte, b'$' | b'=')) && name != b"off",
            BeforeColon | Host | Sign => !name.contains(&b'$'),
        };
        (is_name && !name.is_empty() && std::str::from_utf8(name).is_ok()).then_some(found)
    }
}

/// The host of a URL or an address; `None` for a socket of the system.
fn host(text: &[u8]) -> Option<Range<usize>> {
    let start = text.windows(3).position(|window| window == b"://").map_or(0, |at| at + 3);
    let rest = text.get(start..)?;
    if rest.starts_with(b"unix:") || rest.starts_with(b"[") {
        return None;
    }
    let end = rest.iter().position(|byte| matches!(byte, b':' | b'/' | b'?' | b'$')).unwrap_or(rest.len());
    // `http://$name` is a variable, and `http://name$x` no name.
    (rest.get(end) != Some(&b'$')).then_some(start..start + end)
}

/// The variable that alone is the host of a URL, or the whole text: `http://$name/x`, `$name`.
pub fn carrier(text: &[u8]) -> Option<Range<usize>> {
    let start = text.windows(3).position(|window| window == b"://").map_or(0, |at| at + 3);
    let found = variables(text.get(start..)?).into_iter().next()?;
    let end = start + found.end + usize::from(found.is_braced);
    let is_alone = found.lead == 0 && text.get(end).is_none_or(|byte| matches!(byte, b':' | b'/' | b'?'));
    is_alone.then_some(start + found.start..start + found.end)
}

/// Whether a byte may stand in the name of a variable.
pub fn is_variable_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// A variable in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextVariable {
    /// The `$`.
    pub lead: usize,
    /// First byte of its name.
    pub start: usize,
    /// One past the last byte of its name.
    pub end: usize,
    /// Whether it is in braces, `${name}`.
    pub is_braced: bool,
}

/// The variables of a text, in order. The groups of patterns (`$1`) are none.
pub fn variables(text: &[u8]) -> Vec<TextVariable> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(lead) = text.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'$')).map(|n| at + n) {
        let is_braced = text.get(lead + 1) == Some(&b'{');
        let start = lead + 1 + usize::from(is_braced);
        let rest = text.get(start..).unwrap_or_default();
        let end = start + rest.iter().position(|byte| !is_variable_byte(byte)).unwrap_or(rest.len());
        at = end.max(lead + 1);
        let is_closed = !is_braced || text.get(end) == Some(&b'}');
        let is_group = text.get(start).is_some_and(u8::is_ascii_digit);
        if end > start && is_closed && !is_group {
            found.push(TextVariable { lead, start, end, is_braced });
        }
    }
    found
}

/// The named groups of a pattern: `(?<name>…)`, `(?P<name>…)`, `(?'name'…)`.
pub fn groups(pattern: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = pattern.get(at..).and_then(|rest| rest.windows(2).position(|two| two == b"(?")) {
        let open = at + open;
        at = open + 2;
        let is_hidden =
            pattern.get(..open).unwrap_or_default().iter().rev().take_while(|b| **b == b'\\').count() % 2 == 1;
        let rest = pattern.get(at..).unwrap_or_default();
        let (lead, close) = match rest {
            [b'P', b'<', ..] => (2, b'>'),
            [b'<', ..] => (1, b'>'),
            [b'\'', ..] => (1, b'\''),
            _ => continue,
        };
        let name = rest.get(lead..).unwrap_or_default();
        let length = name.iter().position(|byte| !is_variable_byte(byte)).unwrap_or(name.len());
        let starts_well = name.first().is_some_and(|byte| !byte.is_ascii_digit());
        if !is_hidden && length > 0 && starts_well && name.get(length) == Some(&close) {
            found.push(at + lead..at + lead + length);
        }
    }
    found
}

/// Where a pattern begins in an argument: of this directive in this block, with these decoded arguments. `None` if the
/// argument is no pattern.
pub fn pattern_in<'w>(
    directive: &str,
    block: &str,
    index: usize,
    word: impl Fn(usize) -> Option<&'w [u8]>,
) -> Option<usize> {
    let text = word(index)?;
    let after_tilde = || {
        let rest = text.strip_prefix(b"~")?;
        Some(if rest.starts_with(b"*") { 2 } else { 1 })
    };
    let follows = |operators: &[&[u8]]| {
        let before = index.checked_sub(1).and_then(&word);
        before.is_some_and(|before| operators.contains(&before)).then_some(0)
    };
    match directive {
        "location" if index == 0 => after_tilde(),
        "location" => follows(&[b"~", b"~*"]),
        "server_name" | "valid_referers" => after_tilde(),
        "proxy_redirect" | "proxy_cookie_domain" | "proxy_cookie_path" | "proxy_cookie_flags" if index == 0 => {
            after_tilde()
        }
        "rewrite" | "fastcgi_split_path_info" if index == 0 => Some(0),
        "gzip_disable" => Some(0),
        "if" => follows(&[b"~", b"~*", b"!~", b"!~*"]),
        "body" | "header" | "expect" if block == "match" => follows(&[b"~", b"!~"]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn name(form: NameForm, text: &str) -> Option<&str> {
        form.find(text.as_bytes()).map(|range| &text[range])
    }

    #[test]
    fn a_name_stands_in_its_form() {
        for (form, text, expected) in [
            (Host, "http://app:80/x", Some("app")),
            (Host, "app", Some("app")),
            (Host, "grpc://app", Some("app")),
            (Host, "$scheme://app/x", Some("app")),
            (Host, "http://$app", None),
            (Host, "http://app$x", None),
            (Host, "unix:/run/x", None),
            (Host, "http://unix:/run/x:/", None),
            (Host, "http://[::1]:80", None),
            (BeforeColon, "one:10m", Some("one")),
            (Whole, "off", None),
            (Whole, "buffer=1k", None),
            (Whole, "$zone", None),
            (Dollar, "$a_1", Some("a_1")),
            (Dollar, "$a-b", None),
            (Sign, "@a", Some("a")),
            (Sign, "/a", None),
        ] {
            assert_eq!(name(form, text), expected, "{text}");
        }
    }

    #[test]
    fn the_rows_of_a_directive_find_its_names() {
        let found = |directive: &str, args: &[&str]| -> Vec<String> {
            let bytes = |index: usize| args.get(index).map(|arg| arg.as_bytes());
            let rows = rows_of(directive);
            rows.flat_map(|row| (0..args.len()).map(move |index| (row, index)))
                .filter_map(|(row, index)| {
                    let range = row.find(index, args.len(), bytes(index)?, bytes(index + 1))?;
                    Some(format!("{:?} {}", row.kind, args[index].get(range)?))
                })
                .collect()
        };
        assert_eq!(found("keyval", &["$a", "$b", "zone=one"]), ["KeyvalZone one", "Variable b"]);
        assert_eq!(found("set_md5", &["$a", "$b"]), ["Variable a"]);
        assert_eq!(found("set_real_ip_from", &["10.0.0.0/8"]), Vec::<String>::new());
        assert_eq!(found("proxy_cache_purge", &["one", "$uri"]), ["ProxyCache one"]);
        assert_eq!(found("proxy_cache_purge", &["PURGE", "from", "all"]), Vec::<String>::new());
        assert_eq!(found("proxy_cache_purge", &["$a", "$b"]), Vec::<String>::new());
        assert_eq!(found("error_page", &["404", "=", "@a"]), ["NamedLocation a"]);
        assert_eq!(found("access_log", &["/l", "main"]), ["LogFormat main"]);
        assert_eq!(found("ssl_session_cache", &["builtin", "shared:SSL:1m"]), ["SessionZone SSL"]);
    }

    #[test]
    fn variables_are_cut_out_of_texts() {
        let found = |text: &str| -> Vec<String> {
            variables(text.as_bytes()).iter().map(|one| text[one.start..one.end].to_owned()).collect()
        };
        assert_eq!(found("$a$b/${c}d$1-$-${e"), ["a", "b", "c"]);
        assert_eq!(found("a$"), Vec::<String>::new());
        let text = b"http://$up:80/x";
        assert_eq!(carrier(text).map(|range| &text[range]), Some(&b"up"[..]));
        assert_eq!(carrier(b"http://$up.x"), None);
        assert_eq!(carrier(b"http://a$up"), None);
    }

    #[test]
    fn named_groups_are_found_in_patterns() {
        let found = |text: &str| -> Vec<String> {
            groups(text.as_bytes()).into_iter().map(|range| text[range].to_owned()).collect()
        };
        assert_eq!(found(r"^(?<a>x)(?P<b>y)(?'c'z)(?<=d)(?<!e)(?:f)\(?<g>(?<1>h)"), ["a", "b", "c"]);
    }

    #[test]
    fn patterns_are_told_from_texts() {
        let found = |directive: &str, args: &[&str], index| {
            pattern_in(directive, "", index, |index| args.get(index).map(|arg| arg.as_bytes()))
        };
        assert_eq!(found("location", &["~", "^/a$"], 1), Some(0));
        assert_eq!(found("location", &["~*^/a$"], 0), Some(2));
        assert_eq!(found("location", &["=", "/a"], 1), None);
        assert_eq!(found("if", &["($a", "!~*", "b$)"], 2), Some(0));
        assert_eq!(found("if", &["($a", "=", "b)"], 2), None);
        assert_eq!(found("rewrite", &["^/a$", "/b$c"], 0), Some(0));
        assert_eq!(found("rewrite", &["^/a$", "/b$c"], 1), None);
        assert_eq!(found("server_name", &["a", "~^(?<x>b)"], 1), Some(1));
    }
}
