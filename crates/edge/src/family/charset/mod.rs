//! `charset`: names the character set in `Content-Type`, and converts bodies from another one.
//!
//! <https://nginx.org/en/docs/http/ngx_http_charset_module.html>. `map` has the tables of `charset_map`, `recode` the
//! filters of bodies. As in nginx, an answer with a content coding is not converted.

mod map;
mod recode;

use std::borrow::Cow;
use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::subrequest;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Contexts, Directive, HSL, HTTP, LOCATION_IF, ONE, TWO};
use weir_http::read::families::{Family, VariablesRead};
use weir_http::read::media_types;
use weir_http::send::altered;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;
use weir_net::log::Level;
use weir_wire::Known;

pub use map::Declared;

weir_http::settings! {
    /// `charset`.
    name: Choice = Choice::Off,
    /// `source_charset`.
    source: Choice = Choice::Off,
    /// `override_charset`.
    overrides: bool = false,
    /// `charset_types`, lower case; empty for all.
    types: Arc<Vec<String>> = Arc::new(TYPES.iter().map(|kind| (*kind).to_owned()).collect()),
    /// Whether the file names any character set: then an upstream may choose one (`X-Accel-Charset`).
    any: bool = false,
}

/// The character set of a directive.
#[derive(Clone, Debug)]
pub enum Choice {
    /// None.
    Off,
    /// The name with this number.
    Named(usize),
    /// The value of a variable.
    Variable(Template),
}

const TYPES: &[&str] =
    &["text/html", "text/xml", "text/plain", "text/vnd.wap.wml", "application/javascript", "application/rss+xml"];

const HSLI: Contexts = HSL.or(LOCATION_IF);

/// The family.
pub static FAMILY: Family = Family::new(
    "charset",
    &[
        Directive::new("charset", HSLI, ONE, "The character set that Content-Type names; off names none.", charset)
            .default("off"),
        Directive::new(
            "source_charset",
            HSLI,
            ONE,
            "The character set of answers that name none; weir converts from it to `charset`.",
            source_charset,
        ),
        Directive::new(
            "override_charset",
            HSLI,
            Arity::Flag,
            "Converts answers of an upstream that name a character set, too.",
            |b, s| {
                crate::settings(b).charset.overrides = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
        Directive::new(
            "charset_types",
            HSL,
            Arity::AtLeast(1),
            "The media types besides text/html that get the charset; * for all.",
            types,
        )
        .default("text/html text/xml text/plain text/vnd.wap.wml application/javascript application/rss+xml")
        .many(),
        Directive::new("charset_map", HTTP, TWO, "A table between two character sets, in both directions.", map::block)
            .many()
            .block(),
    ],
)
.finish(finish)
.filter(|location| crate::values(location).charset.any, filter)
.inner()
.fixed(|location, reading| {
    let settings = &crate::values(location).charset;
    is_fixed(&settings.name, reading) && is_fixed(&settings.source, reading)
});

fn is_fixed(choice: &Choice, reading: &VariablesRead<'_>) -> bool {
    match choice {
        Choice::Off | Choice::Named(_) => true,
        Choice::Variable(template) => reading.is_same_for_hits(template),
    }
}

fn charset(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let choice = if statement.text(0) == "off" { Choice::Off } else { choice(b, statement) };
    crate::settings(b).charset.name = Some(choice);
    Ok(())
}

fn source_charset(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let choice = choice(b, statement);
    crate::settings(b).charset.source = Some(choice);
    Ok(())
}

/// nginx: an argument that begins with `$` is the name of one variable.
fn choice(b: &mut Build<'_>, statement: &Statement) -> Choice {
    let word = statement.text(0);
    match word.strip_prefix('$') {
        Some(name) => Choice::Variable(Template::of_variable(name, &mut b.names)),
        None => Choice::Named(crate::declaring(b).charset.number(word)),
    }
}

fn types(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let earlier = crate::settings(b).charset.types.clone();
    crate::settings(b).charset.types = Some(media_types::read(b, statement, earlier));
    Ok(())
}

/// Refuses a place whose two character sets have no table. As nginx, weir does not look at `http` itself, but at each server that inherits from it.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let declared = &crate::declaring(b).charset;
    let any = declared.has_any();
    let is_http = scope.context == HTTP;
    let settings = &mut crate::written_mut(scope).charset;
    settings.any = Some(any);
    if is_http {
        return;
    }
    let (Some(Choice::Named(target)), Some(Choice::Named(source))) = (&settings.name, &settings.source) else { return };
    if target != source && declared.recoding(*source, *target).is_none() {
        let words = without_table(declared.name(*source), declared.name(*target));
        let refusal = Refusal::whole(words).todo("declare the table in http: charset_map").about("source_charset", 0);
        b.refuse_in(scope, "charset", refusal);
    }
}

fn without_table(source: &str, target: &str) -> String {
    format!("no \"charset_map\" between the charsets \"{source}\" and \"{target}\"")
}

/// The character set that `Content-Type` names.
struct Told {
    /// The length of the value before the parameter.
    bare: usize,
    /// The name; `None` if the value names none.
    name: Option<Vec<u8>>,
}

/// nginx: the parameter reaches to the end of the value.
fn told(content_type: &[u8]) -> Told {
    for at in memchr::memchr_iter(b';', content_type) {
        let parameter = content_type.get(at + 1..).unwrap_or_default();
        let spaces = parameter.iter().take_while(|b| **b == b' ').count();
        let parameter = parameter.get(spaces..).unwrap_or_default();
        if let Some((name, text)) = parameter.split_at_checked(8)
            && name.eq_ignore_ascii_case(b"charset=")
        {
            let text = text.strip_prefix(b"\"").unwrap_or(text);
            return Told { bare: at, name: Some(text.strip_suffix(b"\"").unwrap_or(text).to_vec()) };
        }
    }
    Told { bare: content_type.len(), name: None }
}

fn filter(exchange: &mut Exchange<'_>) {
    let told = told(&exchange.response.content_type);
    let target = if exchange.flags.is_subrequest {
        // A part of a page comes in the character set of the page.
        self::told(subrequest::page_type(exchange)).name.map(Cow::Owned)
    } else {
        target(exchange, &told)
    };
    let Some(target) = target else { return };
    let source = match told.name {
        Some(name) => Cow::Owned(name),
        None => match named(exchange, &crate::values(exchange.location).charset.source) {
            Some(name) => name,
            None => return name_it(exchange, told.bare, &target),
        },
    };
    let declared = &crate::declared(exchange.conf).charset;
    match (declared.find(&source), declared.find(&target)) {
        (Some(source), Some(number)) if source == number => name_it(exchange, told.bare, &target),
        (Some(source), Some(number)) => {
            if exchange.response.fields.get(Known::ContentEncoding).is_some_and(|coding| !coding.is_empty()) {
                return;
            }
            match declared.recoding(source, number) {
                None => complain(exchange, declared.name(source), declared.name(number)),
                Some(recoding) => {
                    name_it(exchange, told.bare, &target);
                    if !recoding.keeps_length() {
                        altered::forget_length(exchange.response);
                    }
                    exchange.response.body_filters.push(recode::filter(recoding));
                }
            }
        }
        (None, None) if source.eq_ignore_ascii_case(&target) => name_it(exchange, told.bare, &target),
        (None, _) | (_, None) => {
            complain(exchange, &String::from_utf8_lossy(&source), &String::from_utf8_lossy(&target));
        }
    }
}

fn complain(exchange: &mut Exchange<'_>, source: &str, target: &str) {
    exchange.log(Level::Error, format_args!("{}", without_table(source, target)));
}

/// The character set that the client is to get; `None` to leave the answer alone.
fn target<'c>(exchange: &mut Exchange<'c>, told: &Told) -> Option<Cow<'c, [u8]>> {
    if exchange.response.content_type.is_empty() {
        return None;
    }
    if !exchange.response.charset.is_empty() {
        let name = exchange.response.charset.clone();
        if crate::declared(exchange.conf).charset.find(&name).is_none() {
            let name = String::from_utf8_lossy(&name);
            exchange.log(Level::Error, format_args!("unknown charset \"{name}\" to override"));
            return None;
        }
        return Some(Cow::Owned(name));
    }
    let settings = &crate::values(exchange.location).charset;
    let is_for = match told.name {
        Some(_) => settings.overrides,
        None => media_types::is_listed(&settings.types, &exchange.response.content_type),
    };
    if !is_for {
        return None;
    }
    named(exchange, &settings.name).filter(|name| !name.is_empty())
}

fn named<'c>(exchange: &mut Exchange<'c>, choice: &Choice) -> Option<Cow<'c, [u8]>> {
    match choice {
        Choice::Off => None,
        Choice::Named(number) => Some(Cow::Borrowed(crate::declared(exchange.conf).charset.name(*number).as_bytes())),
        Choice::Variable(template) => Some(Cow::Owned(template.text(exchange))),
    }
}

/// Names the character set in `Content-Type`.
fn name_it(exchange: &mut Exchange<'_>, bare: usize, name: &[u8]) {
    let content_type = &mut exchange.response.content_type;
    content_type.truncate(bare);
    // nginx names none in redirects: some browsers used it for the next page. A part of a page has no head.
    if !exchange.flags.is_subrequest && !matches!(exchange.response.status.get(), 301 | 302) {
        content_type.extend_from_slice(b"; charset=");
        content_type.extend_from_slice(name);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn finds_the_charset_parameter() {
        let cases = [
            ("text/html", 9, None),
            ("text/html; charset=utf-8", 9, Some("utf-8")),
            ("text/html;CHARSET=\"utf-8\"", 9, Some("utf-8")),
            ("text/html; a=b; charset=utf-8", 14, Some("utf-8")),
            ("text/html;   charset=", 9, Some("")),
            ("multipart/form-data; boundary=charset=", 38, None),
            ("text/html;", 10, None),
        ];
        for (content_type, bare, name) in cases {
            let told = told(content_type.as_bytes());
            assert_eq!((told.bare, told.name.as_deref()), (bare, name.map(str::as_bytes)), "{content_type}");
        }
    }

    #[test]
    fn bad_tables_are_refused_in_nginx_s_words() {
        for (http, words) in [
            ("charset_map a A { 58 59; }", "\"charset_map\" between the same charsets \"a\" and \"A\""),
            (
                "charset_map utf-8 a { 58 59; }",
                "\"charset_map\" with \"utf-8\" charset should be given in the second column",
            ),
            ("charset_map a b { } charset_map B A { }", "duplicate \"charset_map\" between \"B\" and \"A\""),
            ("charset_map a b { 58; }", "invalid parameters number"),
            ("charset_map a b { 58 59 60; }", "invalid parameters number"),
            ("charset_map a b { 100 59; }", "invalid value \"100\""),
            ("charset_map a b { x 59; }", "invalid value \"x\""),
            ("charset_map a b { 58 5g; }", "invalid value \"5g\""),
            ("charset_map a utf-8 { 80 E282AC41; }", "invalid value \"E282AC41\""),
            ("charset_map a utf-8 { 80 E28; }", "invalid value \"E28\""),
            ("charset_map a utf-8 { 80 E282; }", "invalid value \"E282\""),
            ("charset_map a utf-8 { 80 41; }", "invalid value \"41\""),
            ("charset_map a utf-8 { 80 E282AC; C1 D0B0; }", ""),
            ("charset a; source_charset b; server { }", "no \"charset_map\" between the charsets \"b\" and \"a\""),
            ("charset a; source_charset b; charset_map c d { 58 59; } server { charset d; source_charset c; }", ""),
            ("charset a; source_charset b; charset_map a b { 58 59; }", ""),
            ("charset a; source_charset A;", ""),
            ("charset $arg_a; source_charset b;", ""),
            ("charset a; charset b;", "\"charset\" directive is duplicate"),
        ] {
            let said = crate::of_text(&format!("events {{}} http {{ {http} }}")).1;
            assert_eq!(said.is_empty(), words.is_empty(), "{http}: {said:?}");
            assert!(said.iter().all(|one| one.contains(words)), "{http}: {said:?}");
        }
    }
}
