//! `disable_symlinks`: whether weir follows links on the way to a file. `open_file_cache` opens the files.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#disable_symlinks>. As in nginx, weir then opens a file
//! even to check only its existence, and the directive does not apply to lists of `autoindex` and password files.

use std::fs::File;
use std::io;

use weir_conf::Statement;
use weir_net::log::file;
use weir_net::opening;
use weir_net::path::as_path;
use weir_net::path::{self, Links};

use crate::exchange::Exchange;
use crate::read::build::Build;
use crate::read::directive::{Arity, Directive, HSL};
use crate::read::families::Family;
use crate::text::refusal::Refusal;
use crate::text::template::Template;

crate::settings! {
    /// `disable_symlinks`; `None` for off.
    guard: Option<Guard> = None,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// One `disable_symlinks`.
#[derive(Clone, Debug)]
pub struct Guard {
    links: Links,
    from: Option<Template>,
}

/// The family.
pub static FAMILY: Family = Family::new(
    "disable_symlinks",
    &[Directive::new(
        "disable_symlinks",
        HSL,
        Arity::Between(1, 2),
        "Refuses files behind symbolic links: on, or if_not_owner; from= names the first part of the path, which weir \
         does not check.",
        disable_symlinks,
    )
    .default("off")],
);

/// Which links on the way to a path are refused, and how many bytes of the path are trusted; `None` to follow all
/// links.
pub type Guarded = opening::Guard;

/// Opens a log for appending; creates it if needed. It never waits for the reader of a pipe.
pub fn append(guard: Guarded, path: &[u8]) -> io::Result<File> {
    match guard {
        Some((links, trusted)) => path::append(path, trusted, links),
        None => file::append_at_once(as_path(path)),
    }
}

/// The check of links that this location applies to a path.
pub fn guard(exchange: &mut Exchange<'_>, path: &[u8]) -> Guarded {
    let guard = exchange.location.values.disable_symlinks.guard.as_ref()?;
    let Some(from) = &guard.from else { return Some((guard.links, 0)) };
    let from = from.text(exchange);
    trusted(&from, path).map(|trusted| (guard.links, trusted))
}

/// How many bytes of a path `from=` trusts, whole components only; `None` if it is the path itself (nginx:
/// `ngx_http_set_disable_symlinks`).
fn trusted(from: &[u8], path: &[u8]) -> Option<usize> {
    let Some(rest) = path.strip_prefix(from) else { return Some(0) };
    Some(match (from.last(), rest.first()) {
        (None, _) => 0,
        (Some(_), None) => return None,
        (Some(_), Some(b'/')) => from.len(),
        (Some(b'/'), Some(_)) => from.len() - 1,
        (Some(_), Some(_)) => 0,
    })
}

fn disable_symlinks(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut choice = None;
    let mut from = None;
    for word in statement.args.iter().map(|word| word.text.as_str()) {
        match word {
            "off" => choice = Some(None),
            "on" => choice = Some(Some(Links::Refused)),
            "if_not_owner" => choice = Some(Some(Links::OfOwner)),
            _ => match word.strip_prefix("from=") {
                Some(directory) => from = Some(b.template(directory)?),
                None => return Err(Refusal::whole(format!("invalid parameter \"{word}\""))),
            },
        }
    }
    let Some(choice) = choice else {
        let what = "\"disable_symlinks\" must have \"off\", \"on\" or \"if_not_owner\" parameter";
        return Err(Refusal::whole(what));
    };
    if from.is_none() && statement.args.len() > 1 {
        let (first, second) = (statement.text(0), statement.text(1));
        return Err(Refusal::whole(format!("duplicate parameters \"{first} {second}\"")));
    }
    b.settings().disable_symlinks.guard = Some(choice.map(|links| Guard { links, from }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of_text;

    #[test]
    fn from_trusts_whole_components_of_what_begins_so() {
        for (from, path, expected) in [
            ("/a", "/a/b", Some(2)),
            ("/a/", "/a/b", Some(2)),
            ("/a", "/ab/c", Some(0)),
            ("/a/b", "/a/b", None),
            ("/a/b/c", "/a/b", Some(0)),
            ("/", "/a", Some(0)),
            ("", "/a", Some(0)),
            ("", "", Some(0)),
        ] {
            assert_eq!(trusted(from.as_bytes(), path.as_bytes()), expected, "{from} {path}");
        }
    }

    #[test]
    fn parameters_are_read_in_nginx_words() {
        for (statement, expected) in [
            ("disable_symlinks on from=$document_root;", None),
            ("disable_symlinks from=/a if_not_owner;", None),
            ("disable_symlinks off;", None),
            ("disable_symlinks yes;", Some("invalid parameter \"yes\"")),
            ("disable_symlinks on off;", Some("duplicate parameters \"on off\"")),
            (
                "disable_symlinks from=/a;",
                Some("\"disable_symlinks\" must have \"off\", \"on\" or \"if_not_owner\" parameter"),
            ),
        ] {
            let (_, problems) = of_text(&format!("events {{}} http {{ {statement} server {{ }} }}"));
            assert_eq!(problems.first().map(String::as_str), expected, "{statement}");
        }
    }
}
