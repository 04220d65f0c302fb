//! `rewrite`, `return`, `set`, `if`, `break`: nginx's small imperative language.
//!
//! This file turns the statements into rules; `run` executes them. An `if` inside a location also has settings of its
//! own, which stay in force once its condition held. <https://nginx.org/en/docs/http/ngx_http_rewrite_module.html>

pub mod run;

use std::sync::Arc;

use weir_conf::Statement;
use weir_net::log::Level;

use crate::exchange::Exchange;
use crate::exchange::Get;
use crate::exchange::conf::{Compute, Condition, FileTest, Rewrite, Rule, Settable, Target};
use crate::exchange::variable::Variable;
use crate::read::build::{Build, Kind, Scope};
use crate::read::directive::{Arity, Contexts, Directive, HTTP, LOCATION, LOCATION_IF, NONE, SERVER, SERVER_IF, TWO};
use crate::read::families::Family;
use crate::read::known::Known;
use crate::text::refusal::Refusal;
use crate::text::regex::Regex;
use crate::text::slots::VariableId;
use crate::text::template::{Argument, Definition};
use crate::text::value;

crate::settings! {
    /// `rewrite_log`.
    log: bool = false,
    /// `uninitialized_variable_warn`.
    warn_uninitialized: bool = true,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

const RULES: Contexts = SERVER.or(SERVER_IF).or(LOCATION).or(LOCATION_IF);

/// The family.
pub static FAMILY: Family = Family::new(
    "rewrite",
    &[
        Directive::new(
            "rewrite",
            RULES,
            Arity::Between(2, 3),
            "Changes a URI that matches a regular expression.",
            rewrite,
        )
        .many(),
        Directive::new(
            "return",
            RULES,
            Arity::Between(1, 2),
            "Stops processing and answers with a code, a text or a redirect.",
            return_,
        )
        .many(),
        Directive::new("break", RULES, NONE, "Stops processing the current set of rewrite rules.", |b, _| {
            b.scope().rules.push(Rule::Break);
            Ok(())
        })
        .many(),
        Directive::new(
            "if",
            SERVER.or(LOCATION),
            Arity::AtLeast(1),
            "If a condition holds, runs the rules inside, and in a location also applies its settings.",
            if_,
        )
        .many()
        .block(),
        Directive::new("set", RULES, TWO, "Sets a variable.", set).many(),
        Directive::new(
            "rewrite_log",
            RULES.or(HTTP),
            Arity::Flag,
            "Logs the results of rewrites at level notice.",
            |b, s| {
                b.settings().rewrite.log = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
        Directive::new(
            "uninitialized_variable_warn",
            RULES.or(HTTP),
            Arity::Flag,
            "Logs the use of variables that were never set.",
            |b, s| {
                b.settings().rewrite.warn_uninitialized = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("on"),
    ],
);

fn rewrite(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let (pattern, replacement) = (statement.text(0), statement.text(1));
    if replacement.is_empty() {
        return Err(Refusal::whole("empty replacement"));
    }
    let regex = regex(b, pattern, false)?;
    let (replacement, keeps_args) = match replacement.strip_suffix('?') {
        Some(shorter) => (shorter, false),
        None => (replacement, true),
    };
    let mut redirect = is_address(replacement).then_some(302);
    let mut ends = redirect.is_some();
    let mut stays = false;
    if let Some(flag) = statement.arg(2) {
        ends = true;
        match flag.text.as_str() {
            "last" => {}
            "break" => stays = true,
            "redirect" => redirect = Some(302),
            "permanent" => redirect = Some(301),
            other => {
                return Err(Refusal::whole(format!("invalid parameter \"{other}\""))
                    .todo("write one of the flags: last, break, redirect, permanent"));
            }
        }
    }
    let target = match redirect {
        Some(status) => {
            Target::Redirect { status, location: b.template(replacement)?, has_args: replacement.contains('?') }
        }
        None => {
            let (path, args) = match replacement.split_once('?') {
                Some((path, args)) => (path, Some(b.template(args)?)),
                None => (replacement, None),
            };
            Target::Uri { path: b.template(path)?, args, stays }
        }
    };
    b.scope().rules.push(Rule::Rewrite(Box::new(Rewrite { regex, target, keeps_args, ends })));
    Ok(())
}

/// nginx: a replacement that begins like this makes a redirect.
fn is_address(text: &str) -> bool {
    ["http://", "https://", "$scheme"].iter().any(|beginning| text.starts_with(beginning))
}

fn regex(b: &mut Build<'_>, pattern: &str, caseless: bool) -> Result<Arc<Regex>, Refusal> {
    let regex = b.regex(pattern, caseless).map_err(Refusal::whole)?;
    Ok(Arc::new(regex))
}

fn return_(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let word = statement.text(0);
    let (status, text) = match value::number(word) {
        Some(status @ 0..=999) => (status as u16, statement.text(1)),
        None if statement.args.len() == 1 && is_address(word) => (302, word),
        Some(_) | None => return Err(Refusal::whole(format!("invalid return code \"{word}\""))),
    };
    let text = b.template(text)?;
    b.scope().rules.push(Rule::Return(status, text));
    Ok(())
}

fn set(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let place = settable(b, statement.text(0), own)?;
    let value = b.template(statement.text(1))?;
    b.scope().rules.push(match place {
        Settable::BuiltIn(set) => Rule::SetBuiltIn(set, value),
        Settable::Slot(id) => Rule::Set(id, value),
    });
    Ok(())
}

/// Adds a rule that sets a variable, written `$name`, to the text that `make` makes of the values of other texts.
pub fn compute(
    b: &mut Build<'_>,
    word: &str,
    of: &[&str],
    make: impl Fn(&mut Exchange<'_>, &[Vec<u8>], &mut Vec<u8>) -> Result<(), String> + Send + Sync + 'static,
) -> Result<(), Refusal> {
    let place = settable(b, word, own)?;
    let of = of.iter().map(|text| b.template(text)).collect::<Result<_, _>>()?;
    b.scope().rules.push(Rule::Compute(Box::new(Compute { place, of, make: Box::new(make) })));
    Ok(())
}

/// A variable of the file's own.
fn own(b: &mut Build<'_>, name: &str) -> VariableId {
    let unset: Definition<Get> = match b.known.built_in(name) {
        // A request that does not set `$http_name` reads the field of that name.
        Some(Definition::Computed(get, argument) | Definition::Cached(get, argument)) => {
            Definition::Cached(get, argument)
        }
        // A variable that is read before it is set is empty, and weir logs that once.
        _ => Definition::<Get>::Cached(uninitialized, Argument { name: name.to_owned(), index: 0 }),
    };
    b.names.define_weak(name, unset)
}

/// The variable in `$name`, for a directive that sets it; `define` defines it unless it is built in.
pub fn settable(
    b: &mut Build<'_>,
    word: &str,
    define: impl FnOnce(&mut Build<'_>, &str) -> VariableId,
) -> Result<Settable, Refusal> {
    let name = declarable(b, word)?;
    Ok(match built_in(b.known, &name).and_then(|variable| variable.set) {
        Some(set) => {
            b.names.give(&name);
            Settable::BuiltIn(set)
        }
        None => Settable::Slot(define(b, &name)),
    })
}

/// The name in `$name`, in lower case, if a file may define it: it is not a fixed built-in variable.
pub fn declarable(b: &Build<'_>, word: &str) -> Result<String, Refusal> {
    let name = match word.strip_prefix('$') {
        Some(name) if !name.is_empty() => name.to_ascii_lowercase(),
        Some(_) | None => return Err(Refusal::whole(format!("invalid variable name \"{word}\""))),
    };
    if b.is_in_stream() {
        return match b.known.session_variables().contains(&name.as_str()) {
            true => Err(Refusal::whole(format!("the duplicate \"{name}\" variable"))),
            false => Ok(name),
        };
    }
    match built_in(b.known, &name) {
        Some(Variable { set: None, is_kept: false, .. }) => {
            Err(Refusal::whole(format!("the duplicate \"{name}\" variable")))
        }
        Some(_) | None => Ok(name),
    }
}

/// A variable of a family by its whole name; variables with a prefix (`http_`) may be set, as in nginx.
fn built_in(known: &Known, name: &str) -> Option<&'static Variable> {
    known.variables().find(|variable| variable.name == name && !name.ends_with('_'))
}

fn uninitialized(exchange: &mut Exchange<'_>, argument: &Argument, _out: &mut Vec<u8>) -> bool {
    if exchange.location.values.rewrite.warn_uninitialized {
        exchange.log(Level::Warn, format_args!("using uninitialized \"{}\" variable", argument.name));
    }
    true
}

fn if_(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let context = if b.context() == SERVER { SERVER_IF } else { LOCATION_IF };
    let condition = condition(b, statement)?;
    let scope = Scope::new(Kind::If, context, b.at());
    let mut scope = b.block(scope, statement)?;
    let inner = std::mem::take(&mut scope.rules);
    let around = b.scope();
    let child = around.children.len();
    around.children.push(scope);
    around.rules.push(Rule::If { condition, inner, child, place: None });
    Ok(())
}

fn condition(b: &mut Build<'_>, statement: &Statement) -> Result<Condition, Refusal> {
    let mut words: Vec<&str> = statement.args.iter().map(|word| word.text.as_str()).collect();
    strip_parentheses(&mut words)?;
    match words.as_slice() {
        [variable] if is_variable(variable) => Ok(Condition::True(b.names.read(&variable[1..]))),
        [variable, operator, operand] if is_variable(variable) => {
            let id = b.names.read(&variable[1..]);
            match *operator {
                "=" => Ok(Condition::Equals(id, b.template(operand)?, true)),
                "!=" => Ok(Condition::Equals(id, b.template(operand)?, false)),
                "~" | "~*" | "!~" | "!~*" => {
                    let regex = regex(b, operand, operator.ends_with('*'))?;
                    Ok(Condition::Matches(id, regex, !operator.starts_with('!')))
                }
                other => Err(Refusal::whole(format!("unexpected \"{other}\" in condition")).todo(
                    "write one of the operators: =, !=, ~, ~*, !~, !~*, -f, -d, -e, -x, or ! and one of the last four",
                )),
            }
        }
        [operator, file] => {
            let test = match operator.trim_start_matches('!') {
                "-f" => FileTest::Plain,
                "-d" => FileTest::Directory,
                "-e" => FileTest::Exists,
                "-x" => FileTest::Executable,
                _ => return Err(invalid_condition(operator)),
            };
            Ok(Condition::File(test, b.template(file)?, !operator.starts_with('!')))
        }
        [] => Err(invalid_condition(statement.text(0))),
        [first, ..] => Err(invalid_condition(first)),
    }
}

/// Removes the `(` of the first word and the `)` of the last; each may be a word of its own.
fn strip_parentheses(words: &mut Vec<&str>) -> Result<(), Refusal> {
    let opens_alone = words.first() == Some(&"(");
    if let Some(first) = words.first_mut().filter(|_| !opens_alone) {
        *first = first.strip_prefix('(').ok_or_else(|| invalid_condition(first))?;
    }
    match words.last_mut() {
        Some(last) => *last = last.strip_suffix(')').ok_or_else(|| invalid_condition(last))?,
        None => return Err(invalid_condition("")),
    }
    if words.last().is_some_and(|last| last.is_empty()) {
        words.pop();
    }
    if opens_alone {
        words.remove(0);
    }
    if words.is_empty() { Err(invalid_condition(")")) } else { Ok(()) }
}

fn is_variable(word: &str) -> bool {
    word.len() > 1 && word.starts_with('$')
}

fn invalid_condition(word: &str) -> Refusal {
    Refusal::whole(format!("invalid condition \"{word}\""))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn parentheses_may_stand_alone_or_touch_their_words() {
        for (written, left) in [
            (&["($x)"][..], Ok(&["$x"][..])),
            (&["(", "$x", ")"], Ok(&["$x"])),
            (&["($x", "=", "1)"], Ok(&["$x", "=", "1"])),
            (&["(", "$x", "=", "1", ")"], Ok(&["$x", "=", "1"])),
            (&["()"], Err("invalid condition \")\"")),
            (&["(", ")"], Err("invalid condition \")\"")),
            (&["("], Err("invalid condition \"(\"")),
            (&["$x)"], Err("invalid condition \"$x)\"")),
            (&["($x"], Err("invalid condition \"$x\"")),
        ] {
            let mut words = written.to_vec();
            let result = strip_parentheses(&mut words);
            assert_eq!(result.map(|()| words.as_slice()).map_err(|refusal| refusal.what), left.map_err(str::to_owned));
        }
    }

    #[test]
    fn addresses_make_redirects() {
        for (text, is) in
            [("http://a", true), ("https://a", true), ("$scheme://a", true), ("/http://", false), ("$scheme", true)]
        {
            assert_eq!(is_address(text), is, "{text}");
        }
    }
}
