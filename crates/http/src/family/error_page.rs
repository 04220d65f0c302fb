//! `error_page` and `recursive_error_pages`: the answer in place of a status.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#error_page>. This file has only the table; `special` uses
//! it.

use weir_conf::Statement;

use crate::read::build::Build;
use crate::read::directive::{Arity, Directive, HSL, LOCATION_IF};
use crate::read::families::Family;
use crate::text::refusal::Refusal;
use crate::text::template::Template;
use crate::text::value;

crate::settings! {
    /// The page for each status; the first row of a status counts.
    pages: Vec<Page> = Vec::new(),
    /// `recursive_error_pages`: errors of an error page have error pages too.
    recursive: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// One status and its page.
#[derive(Clone, Debug)]
pub struct Page {
    /// The status that this row handles, 300 to 599.
    pub status: u16,
    /// The status shown: `=code` gives this code, `=` gives 0 for the status of the new place; without `=`, the status
    /// does not change.
    pub shown: Option<u16>,
    /// A URI of this server with or without arguments, `@name`, or a URL.
    pub target: Template,
}

/// The family.
pub static FAMILY: Family = Family::new(
    "error_page",
    &[
        Directive::new(
            "error_page",
            HSL.or(LOCATION_IF),
            Arity::AtLeast(2),
            "Names the URI, named location or URL that answers in place of the given statuses.",
            error_page,
        )
        .many(),
        Directive::new(
            "recursive_error_pages",
            HSL.or(LOCATION_IF),
            Arity::Flag,
            "Lets error pages have error pages of their own.",
            |b, s| {
                b.settings().error_page.recursive = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
    ],
);

fn error_page(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut words: Vec<&str> = statement.args.iter().map(|word| word.text.as_str()).collect();
    let target = words.pop().unwrap_or_default();
    let invalid = |word: &str| Refusal::whole(format!("invalid value \"{word}\""));
    let mut shown = None;
    if let Some(word) = words.last().copied()
        && let Some(code) = word.strip_prefix('=')
    {
        words.pop();
        if words.is_empty() {
            return Err(invalid(word));
        }
        shown = Some(match code {
            "" => 0,
            _ => value::number(code).and_then(|code| u16::try_from(code).ok()).ok_or_else(|| invalid(word))?,
        });
    }
    let target = b.template(target)?;
    for word in words {
        let status = value::number(word).filter(|status| *status != 499).ok_or_else(|| invalid(word))?;
        if !(300..=599).contains(&status) {
            return Err(Refusal::whole(format!("value \"{word}\" must be between 300 and 599")));
        }
        // nginx: its own statuses for refused TLS and oversized heads are shown as 400 unless `=` sets another.
        let shown = shown.or(matches!(status, 494..=497).then_some(400));
        let page = Page { status: status as u16, shown, target: target.clone() };
        b.settings().error_page.pages.get_or_insert_default().push(page);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use crate::of_text;

    #[test]
    fn rows_keep_what_is_shown() {
        let (conf, problems) = of_text(
            "events {} http { error_page 502 504 =503 /sorry.html?a; error_page 404 = @found; error_page 497 /tls;
             server { location /own { error_page 403 http://example.com/; } location / { } } }",
        );
        assert_eq!(problems, [""; 0]);
        let conf = conf.unwrap();
        let rows = |name: &str| {
            let location = conf.locations.iter().find(|location| location.name == name).unwrap();
            location.values.error_page.pages.iter().map(|page| (page.status, page.shown)).collect::<Vec<_>>()
        };
        assert_eq!(rows("/"), [(502, Some(503)), (504, Some(503)), (404, Some(0)), (497, Some(400))]);
        assert_eq!(rows("/own"), [(403, None)]);
    }

    #[test]
    fn refusals_are_nginx_words() {
        for (arguments, expected) in [
            ("404 /x", None),
            ("=200 /x", Some("invalid value \"=200\"")),
            ("404 =abc /x", Some("invalid value \"=abc\"")),
            ("499 /x", Some("invalid value \"499\"")),
            ("4x4 /x", Some("invalid value \"4x4\"")),
            ("200 /x", Some("value \"200\" must be between 300 and 599")),
            ("600 /x", Some("value \"600\" must be between 300 and 599")),
            ("/x", Some("invalid number of arguments in \"error_page\" directive")),
        ] {
            let (_, problems) = of_text(&format!("events {{}} http {{ error_page {arguments}; }}"));
            assert_eq!(problems.first().map(String::as_str), expected, "{arguments}");
        }
    }
}
