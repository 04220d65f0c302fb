//! `valid_referers` and `$invalid_referer`.
//!
//! <https://nginx.org/en/docs/http/ngx_http_referer_module.html>

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::route::NameKind;
use weir_http::exchange::variable::Variable;
use weir_http::hold::host_table::HostTable;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, LOCATION, ONE, SERVER};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::regex::{MatchFailed, Regex, SharedRegex};
use weir_http::text::template::Argument;
use weir_http::text::value;
use weir_wire::Known;

weir_http::settings! {
    /// `valid_referers` as written.
    written: WrittenReferers = WrittenReferers::default(),
    /// The regular expressions among them. As in nginx, a block without one has those of the block around it, beside its own hosts.
    regexes: Vec<SharedRegex> = Vec::new(),
    /// The compiled form; `None` lets everything pass.
    valid: Option<Arc<Valid>> = None,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "referer",
    &[
        Directive::new(
            "valid_referers",
            SERVER.or(LOCATION),
            Arity::AtLeast(1),
            "Names the Referer fields for which $invalid_referer is empty.",
            valid_referers,
        )
        .many(),
        Directive::new(
            "referer_hash_max_size",
            SERVER.or(LOCATION),
            ONE,
            "No effect: weir sizes its tables itself.",
            |_, s| value::first_number(s).map(drop),
        )
        .default("2048"),
        Directive::new(
            "referer_hash_bucket_size",
            SERVER.or(LOCATION),
            ONE,
            "No effect: weir sizes its tables itself.",
            |_, s| value::first_number(s).map(drop),
        )
        .default("64"),
    ],
)
.variables(&[Variable::kept("invalid_referer", invalid_referer)])
.finish(finish);

/// The arguments of the `valid_referers` of one block.
#[derive(Clone, Default)]
pub struct WrittenReferers {
    none: bool,
    blocked: bool,
    server_names: bool,
    hosts: Vec<(String, String)>,
    done: bool,
}

/// The compiled referers.
pub struct Valid {
    none: bool,
    blocked: bool,
    /// Hosts, each with the prefix that the path must have.
    hosts: HostTable<Box<[u8]>>,
    /// The names of the server count too.
    server_names: bool,
    /// Matched against the text after the scheme.
    regexes: Vec<SharedRegex>,
}

/// nginx: the longest host in bytes.
const HOST_BYTES_MAX: usize = 256;

fn valid_referers(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    for word in &statement.args {
        let word = word.text.as_str();
        let regex = match word.strip_prefix('~') {
            Some("") => return Err(Refusal::whole(format!("empty regex in \"{word}\""))),
            Some(pattern) => {
                Some(Regex::new(pattern, true, b.jit, |group| b.names.intern(group)).map_err(Refusal::whole)?)
            }
            None => None,
        };
        let settings = &mut crate::settings(b).referer;
        let written = settings.written.get_or_insert_default();
        match (word, regex) {
            (_, Some(regex)) => settings.regexes.get_or_insert_default().push(Arc::new(regex)),
            ("", None) => return Err(Refusal::whole("invalid referer \"\"")),
            ("none", None) => written.none = true,
            ("blocked", None) => written.blocked = true,
            ("server_names", None) => written.server_names = true,
            (_, None) => {
                let at = word.find('/').unwrap_or(word.len());
                let (host, path) = word.split_at(at);
                written.hosts.push((host.to_owned(), path.to_owned()));
            }
        }
    }
    Ok(())
}

/// Compiles the block's own statements; inherited ones are compiled already.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let settings = &mut crate::written_mut(scope).referer;
    let Some(written) = settings.written.as_mut().filter(|written| !written.done) else { return };
    written.done = true;
    let mut valid = Valid {
        none: written.none,
        blocked: written.blocked,
        server_names: written.server_names,
        hosts: HostTable::default(),
        regexes: settings.regexes.clone().unwrap_or_default(),
    };
    let mut refusal = None;
    for (host, path) in &written.hosts {
        if let Err(misfit) = valid.hosts.add(host.as_bytes(), true, path.as_bytes().into()) {
            refusal = Some(misfit.words(host));
        }
    }
    if (valid.none || valid.blocked) && !valid.server_names && valid.hosts.is_empty() {
        refusal = Some(
            "the \"none\" or \"blocked\" referers are specified in the \"valid_referers\" directive without any valid referer"
                .to_owned(),
        );
    }
    settings.valid = Some(Some(Arc::new(valid)));
    if let Some(words) = refusal {
        b.refuse_in(scope, "valid_referers", Refusal::whole(words).about("valid_referers", 0));
    }
}

fn invalid_referer(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let location = exchange.location;
    let Some(valid) = &crate::values(location).referer.valid else { return true };
    match valid.admits(exchange) {
        Ok(true) => {}
        Ok(false) => out.push(b'1'),
        Err(failed) => {
            exchange.match_failed(&failed);
            out.push(b'1');
        }
    }
    true
}

impl Valid {
    fn admits(&self, exchange: &Exchange<'_>) -> Result<bool, MatchFailed> {
        if self.hosts.is_empty() && self.regexes.is_empty() && !self.server_names {
            return Ok(true);
        }
        let Some(referer) = exchange.request.field(Known::Referer) else { return Ok(self.none) };
        let Some(rest) = after_scheme(referer) else { return Ok(self.blocked) };
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b':')).unwrap_or(rest.len());
        let (host, after) = rest.split_at(end);
        if host.len() > HOST_BYTES_MAX {
            return Ok(false);
        }
        let mut space = [0; HOST_BYTES_MAX];
        let host = match space.get_mut(..host.len()) {
            Some(lower) => {
                lower.copy_from_slice(host);
                lower.make_ascii_lowercase();
                &*lower
            }
            None => return Ok(false),
        };
        if let Some(path) = self.hosts.find(host) {
            let start = after.iter().position(|byte| *byte == b'/').unwrap_or(after.len());
            return Ok(after.get(start..).is_some_and(|rest| rest.starts_with(path)));
        }
        let names = if self.server_names { exchange.server.names.as_slice() } else { &[] };
        for kind in names.iter().flat_map(|name| &name.kinds) {
            if matches(kind, host)? {
                return Ok(true);
            }
        }
        for regex in &self.regexes {
            if regex.is_match(rest)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The text after `http://` or `https://`; an address has at least the length of `http://i.ru`.
fn after_scheme(referer: &[u8]) -> Option<&[u8]> {
    if referer.len() < b"http://i.ru".len() {
        return None;
    }
    [&b"http://"[..], b"https://"].iter().find_map(|scheme| {
        let (beginning, rest) = referer.split_at_checked(scheme.len())?;
        beginning.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

fn matches(kind: &NameKind, host: &[u8]) -> Result<bool, MatchFailed> {
    Ok(match kind {
        NameKind::Exact(name) => !name.is_empty() && name.as_bytes() == host,
        NameKind::Suffix(dotted) => host.len() > dotted.len() && host.ends_with(dotted.as_bytes()),
        NameKind::Prefix(dotted) => host.len() > dotted.len() && host.starts_with(dotted.as_bytes()),
        NameKind::Regex(regex) => regex.is_match(host)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_and_other_schemes_are_no_addresses() {
        for (referer, rest) in [
            ("http://www.example.org/a", Some("www.example.org/a")),
            ("HTTPS://a.example", Some("a.example")),
            ("http://su", None),
            ("ftp://example.org", None),
            ("", None),
        ] {
            assert_eq!(after_scheme(referer.as_bytes()), rest.map(str::as_bytes), "{referer}");
        }
    }
}
