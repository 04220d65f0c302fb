//! `try_files`: the first of several files that exists, or else another URI or status.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#try_files>. Unlike other settings it is not inherited: an
//! inner location or `if` does not have it, as in nginx.

use weir_conf::{At, Statement};
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::Location;
use weir_http::exchange::file_path::{Alias, alias, errno, path};
use weir_http::exchange::phase::{Next, Phase};
use weir_http::exchange::special;
use weir_http::family::open_file_cache::{self, OpenFailed};
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, LOCATION, SERVER};
use weir_http::read::families::{Family, VariablesRead};
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;
use weir_net::log::{Level, Os};

weir_http::settings! {
    /// The names to try.
    tries: Option<Tries> = None,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// One `try_files`.
#[derive(Clone, Debug)]
pub struct Tries {
    names: Vec<Name>,
    last: Last,
    /// The block of the directive: it shows whether a copy was inherited.
    block: At,
}

#[derive(Clone, Debug)]
struct Name {
    text: Template,
    is_directory: bool,
}

#[derive(Clone, Debug)]
enum Last {
    Code(u16),
    Place(Template),
}

/// The family.
pub static FAMILY: Family = Family::new(
    "try_files",
    &[Directive::new(
        "try_files",
        SERVER.or(LOCATION),
        Arity::AtLeast(2),
        "Serves the first file that exists; if none exists, uses the last parameter: a URI, a named location or =code.",
        try_files,
    )],
)
.phase(Phase::Precontent, |location| crate::values(location).try_files.tries.is_some(), answer)
.finish(finish)
.judge(judge);

/// Marks the places whose names are made of the request's body.
fn judge(locations: &mut [Location], reading: &VariablesRead<'_>) {
    reading.read_first(locations, |location, text| {
        let Some(tries) = &crate::values(location).try_files.tries else { return };
        let last = match &tries.last {
            Last::Place(place) => Some(place),
            Last::Code(_) => None,
        };
        tries.names.iter().map(|name| &name.text).chain(last).for_each(text);
    });
}

fn try_files(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut names = Vec::new();
    let (last, words) = match statement.args.split_last() {
        Some((last, words)) => (last.text.as_str(), words),
        None => return Err(Refusal::directive("is empty")),
    };
    for word in words {
        let name = word.text.strip_suffix('/');
        let text = b.template(name.unwrap_or(&word.text))?;
        names.push(Name { text, is_directory: name.is_some() });
    }
    let last = match last.strip_prefix('=') {
        Some(code) => match value::number(code) {
            Some(code) if code <= 999 => Last::Code(code as u16),
            Some(_) | None => return Err(Refusal::whole(format!("invalid code \"{last}\""))),
        },
        None => Last::Place(b.template(last)?),
    };
    let block = b.scope().at;
    crate::settings(b).try_files.tries = Some(Some(Tries { names, last, block }));
    Ok(())
}

fn finish(_: &mut Build<'_>, scope: &mut Scope) {
    let block = scope.at;
    let tries = &mut crate::written_mut(scope).try_files.tries;
    if tries.as_ref().and_then(Option::as_ref).is_some_and(|tries| tries.block != block) {
        *tries = None;
    }
}

fn answer(exchange: &mut Exchange<'_>) -> Next {
    let location = exchange.location;
    let Some(tries) = &crate::values(location).try_files.tries else { return Next::Continue };
    let alias = alias(exchange);
    let Some((mut file, root)) = path(exchange) else { return Next::Status(500) };
    for name in &tries.names {
        let text = evaluate(exchange, &name.text, alias);
        file.truncate(root);
        file.extend_from_slice(&text);
        match open_file_cache::metadata(exchange, &file) {
            Ok(facts) if facts.is_dir() == name.is_directory => {
                take(exchange, text, alias, name.is_directory);
                return Next::Continue;
            }
            Ok(_) => {}
            Err(OpenFailed { call, error }) => {
                if !matches!(error.raw_os_error(), Some(errno::ENOENT | errno::ENOTDIR | errno::ENAMETOOLONG)) {
                    let shown = String::from_utf8_lossy(&file);
                    exchange.log(Level::Crit, format_args!("{call} \"{shown}\" failed {}", Os(&error)));
                }
            }
        }
    }
    match &tries.last {
        Last::Code(code) => Next::Status(*code),
        Last::Place(place) => {
            let target = evaluate(exchange, place, alias);
            if target.first() == Some(&b'@') {
                return Next::Named(String::from_utf8_lossy(&target).into_owned());
            }
            let (uri, args) = special::split_args(&target);
            Next::Redirect { uri: uri.to_vec(), args: Some(args.to_vec()) }
        }
    }
}

/// The name to append to the directory. nginx: under a prefix `alias`, a name with variables that begins like the URI
/// loses the location's name; this includes the last parameter.
fn evaluate(exchange: &mut Exchange<'_>, name: &Template, alias: Alias) -> Vec<u8> {
    let mut text = name.text(exchange);
    if let Alias::Prefix(length) = alias
        && name.literal().is_none()
        && let (Some(begins), Some(prefix)) = (text.get(..length), exchange.uri.get(..length))
        && begins == prefix
    {
        text.drain(..length);
    }
    text
}

/// Sets the URI to the file that was found.
fn take(exchange: &mut Exchange<'_>, name: Vec<u8>, alias: Alias, is_directory: bool) {
    match alias {
        Alias::Off => *exchange.uri = name,
        Alias::Prefix(length) => {
            exchange.uri.truncate(length);
            exchange.uri.extend_from_slice(&name);
        }
        Alias::Whole if is_directory => {}
        Alias::Whole => {
            *exchange.uri = name;
            exchange.flags.alias_takes_uri = true;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use crate::of_text;
    use weir_http::exchange::conf::Conf;

    fn tries_in(conf: &Conf, name: &str) -> bool {
        crate::values(conf.locations.iter().find(|location| location.name == name).unwrap()).try_files.tries.is_some()
    }

    #[test]
    fn a_location_inside_does_without() {
        let (conf, problems) = of_text(
            "events {} http { server { try_files /s =404;
                location /outer { try_files $uri/ @n; location /outer/inner { } }
                location /none { } location @n { } } }",
        );
        assert_eq!(problems, [""; 0]);
        let conf = conf.unwrap();
        assert!(tries_in(&conf, "/outer"));
        assert!(!tries_in(&conf, "/outer/inner"));
        assert!(!tries_in(&conf, "/none"));
        let root = conf.location(conf.servers[0].root);
        assert!(crate::values(root).try_files.tries.is_some());
    }

    #[test]
    fn codes_are_numbers_of_three_digits() {
        for (last, expected) in
            [("=404", None), ("=1000", Some("invalid code \"=1000\"")), ("=", Some("invalid code \"=\""))]
        {
            let (_, problems) = of_text(&format!("events {{}} http {{ server {{ try_files $uri {last}; }} }}"));
            assert_eq!(problems.first().map(String::as_str), expected, "{last}");
        }
    }
}
