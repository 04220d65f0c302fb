//! `location`, `limit_except`, `internal`: the settings of a URI.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#location>

use std::sync::Arc;

use weir_conf::Statement;

use crate::exchange::route::{Methods, Pattern};
use crate::read::build::{Build, Kind, Scope};
use crate::read::directive::{Arity, Directive, LIMIT_EXCEPT, LOCATION, NONE, SERVER};
use crate::read::families::Family;
use crate::text::refusal::Refusal;

crate::settings! {
    /// Only internal redirects may come here.
    internal: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "location",
    &[
        Directive::new(
            "location",
            SERVER.or(LOCATION),
            Arity::Between(1, 2),
            "Sets configuration depending on a request URI.",
            location,
        )
        .many()
        .block(),
        Directive::new(
            "internal",
            LOCATION,
            NONE,
            "Only internal requests may use the location; other requests get 404.",
            |b, _| {
                b.settings().location.internal = Some(true);
                Ok(())
            },
        ),
        Directive::new(
            "limit_except",
            LOCATION,
            Arity::AtLeast(1),
            "Limits the methods allowed inside a location; allowing GET allows HEAD too.",
            limit_except,
        )
        .block(),
    ],
);

const METHODS: &[&str] = &[
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "MKCOL",
    "COPY",
    "MOVE",
    "OPTIONS",
    "PROPFIND",
    "PROPPATCH",
    "LOCK",
    "UNLOCK",
    "PATCH",
];

fn location(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let (modifier, name) = match statement.args.len() {
        1 => split_modifier(statement.text(0)),
        _ => (statement.text(0), statement.text(1)),
    };
    let pattern = match modifier {
        "=" => Pattern::Exact(name.to_owned()),
        "^~" => Pattern::Prefix { path: name.to_owned(), stops_regex: true },
        "~" | "~*" => {
            let regex = b.regex(name, modifier == "~*").map_err(Refusal::whole)?;
            Pattern::Regex(Arc::new(regex))
        }
        "" => match name.strip_prefix('@') {
            Some(named) => Pattern::Named(named.to_owned()),
            None => Pattern::Prefix { path: name.to_owned(), stops_regex: false },
        },
        other => {
            return Err(Refusal::whole(format!("invalid location modifier \"{other}\""))
                .todo("a location takes one of: =, ^~, ~, ~*, or no modifier"));
        }
    };
    nesting(b, &pattern)?;
    let scope = Scope::new(Kind::Location(pattern), LOCATION, b.at());
    let scope = b.block(scope, statement)?;
    b.scope().children.push(scope);
    Ok(())
}

/// nginx allows the modifier and the path in one word: `location =/path { }`.
fn split_modifier(word: &str) -> (&str, &str) {
    for modifier in ["=", "^~", "~*", "~"] {
        if let Some(rest) = word.strip_prefix(modifier) {
            return (modifier, rest);
        }
    }
    ("", word)
}

/// The rules for a location inside a location.
fn nesting(b: &Build<'_>, pattern: &Pattern) -> Result<(), Refusal> {
    let outer = b.scopes().iter().rev().find_map(|scope| match &scope.kind {
        Kind::Location(pattern) => Some(pattern),
        Kind::Plain | Kind::Server(_) | Kind::If | Kind::LimitExcept(_) | Kind::Other(_) => None,
    });
    let Some(outer) = outer else { return Ok(()) };
    let (inner, around) = (pattern.text(), outer.text());
    match (outer, pattern) {
        (Pattern::Exact(_), _) => {
            Err(Refusal::whole(format!("location \"{inner}\" cannot be inside the exact location \"{around}\"")))
        }
        (Pattern::Named(_), _) => {
            Err(Refusal::whole(format!("location \"{inner}\" cannot be inside the named location \"{around}\"")))
        }
        (_, Pattern::Named(_)) => {
            Err(Refusal::whole(format!("named location \"{inner}\" can be on the server level only")))
        }
        (Pattern::Prefix { path: outer, .. }, Pattern::Exact(path) | Pattern::Prefix { path, .. })
            if !path.starts_with(outer.as_str()) =>
        {
            Err(Refusal::whole(format!("location \"{inner}\" is outside location \"{around}\"")))
        }
        (
            Pattern::Prefix { .. } | Pattern::Regex(_),
            Pattern::Exact(_) | Pattern::Prefix { .. } | Pattern::Regex(_),
        ) => Ok(()),
    }
}

fn limit_except(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut methods = Vec::new();
    for word in &statement.args {
        // nginx takes a method in any case here.
        let word = word.text.to_ascii_uppercase();
        if !METHODS.contains(&word.as_str()) {
            return Err(Refusal::whole(format!("invalid method \"{word}\"")));
        }
        methods.push(word.clone());
        if word == "GET" {
            methods.push("HEAD".to_owned());
        }
    }
    let scope = Scope::new(Kind::LimitExcept(Methods(methods)), LIMIT_EXCEPT, b.at());
    let scope = b.block(scope, statement)?;
    b.scope().children.push(scope);
    Ok(())
}
