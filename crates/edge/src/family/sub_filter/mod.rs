//! `sub_filter`: replaces texts in bodies.
//!
//! <https://nginx.org/en/docs/http/ngx_http_sub_module.html>. `find` finds the texts, `replace` is the filter of a body.
//! Invariant: a filter holds at most one byte less than the longest text, or the rest of one piece of the body.

mod find;
mod replace;

use std::sync::{Arc, OnceLock};

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, HSL, TWO};
use weir_http::read::families::Family;
use weir_http::read::media_types;
use weir_http::send::altered;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;

use find::Patterns;
use replace::Replace;

weir_http::settings! {
    /// `sub_filter`.
    pairs: Arc<Substitutions> = Arc::default(),
    /// `sub_filter_once`.
    once: bool = true,
    /// `sub_filter_types`, lower case; empty for all.
    types: Arc<Vec<String>> = Arc::new(vec![media_types::HTML.to_owned()]),
    /// `sub_filter_last_modified`.
    last_modified: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The most texts of one place.
const PAIRS_MAX: usize = 255;

/// The texts of one place, in the order of the file.
#[derive(Clone, Default)]
pub struct Substitutions {
    all: Vec<Pair>,
    /// The search, if no text to find has variables.
    fixed: OnceLock<Option<Arc<Patterns>>>,
}

/// A text to find, and the text that replaces it.
#[derive(Clone)]
struct Pair {
    find: Template,
    replace: Template,
}

impl Substitutions {
    fn is_fixed(&self) -> bool {
        self.all.iter().all(|pair| pair.find.literal().is_some())
    }

    /// The search for the texts of this exchange; `None` if all of them are empty.
    fn patterns(&self, exchange: &mut Exchange<'_>) -> Option<Arc<Patterns>> {
        if !self.is_fixed() {
            let texts: Vec<Vec<u8>> = self.all.iter().map(|pair| pair.find.text(exchange)).collect();
            return Patterns::new(texts.iter().map(Vec::as_slice)).map(Arc::new);
        }
        let fixed = || Patterns::new(self.all.iter().filter_map(|pair| pair.find.literal())).map(Arc::new);
        self.fixed.get_or_init(fixed).clone()
    }
}

/// The family.
pub static FAMILY: Family = Family::new(
    "sub_filter",
    &[
        Directive::new("sub_filter", HSL, TWO, "Replaces a text in bodies; the case of letters does not matter.", pair)
            .many(),
        Directive::new(
            "sub_filter_types",
            HSL,
            Arity::AtLeast(1),
            "The media types besides text/html in which weir replaces texts; * for all.",
            types,
        )
        .default("text/html")
        .many(),
        Directive::new(
            "sub_filter_once",
            HSL,
            Arity::Flag,
            "Replaces only the first occurrence of each text.",
            |b, s| {
                crate::settings(b).sub_filter.once = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("on"),
        Directive::new(
            "sub_filter_last_modified",
            HSL,
            Arity::Flag,
            "Keeps Last-Modified, and makes the ETag weak; otherwise weir removes both.",
            |b, s| {
                crate::settings(b).sub_filter.last_modified = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
    ],
)
.filter(|location| !crate::values(location).sub_filter.pairs.all.is_empty(), filter)
.fixed(|location, _| crate::values(location).sub_filter.pairs.is_fixed())
.inner();

fn pair(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let (find, replace) = (statement.text(0), statement.text(1));
    if find.is_empty() {
        return Err(Refusal::whole("empty search pattern"));
    }
    let pair = Pair { find: b.template(find)?, replace: b.template(replace)? };
    let pairs = Arc::make_mut(crate::settings(b).sub_filter.pairs.get_or_insert_default());
    if pairs.all.len() == PAIRS_MAX {
        return Err(Refusal::whole(format!("number of search patterns exceeds {PAIRS_MAX}")));
    }
    pairs.all.push(pair);
    Ok(())
}

fn types(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let earlier = crate::settings(b).sub_filter.types.clone();
    crate::settings(b).sub_filter.types = Some(media_types::read(b, statement, earlier));
    Ok(())
}

fn filter(exchange: &mut Exchange<'_>) {
    let settings = &crate::values(exchange.location).sub_filter;
    let response = &exchange.response;
    if response.has_no_bytes() || !media_types::is_listed(&settings.types, &response.content_type) {
        return;
    }
    let Some(patterns) = settings.pairs.patterns(exchange) else { return };
    // nginx reads the variables of a replacement when it is needed first.
    let replacements = settings.pairs.all.iter().map(|pair| match pair.replace.literal() {
        Some(text) => text.to_vec(),
        None => pair.replace.text(exchange),
    });
    let replacements: Vec<Vec<u8>> = replacements.collect();
    let response = &mut exchange.response;
    altered::forget_length(response);
    if settings.last_modified {
        altered::weaken_etag(response);
    } else {
        altered::forget_validators(response);
    }
    response.body_filters.push(Box::new(Replace::new(patterns, replacements, settings.once)));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use crate::of_text;

    #[test]
    fn bad_texts_are_refused_in_nginx_s_words() {
        let many = |count| (0..count).map(|n| format!("sub_filter a{n} b;")).collect::<String>();
        for (http, words) in [
            ("sub_filter '' b;".to_owned(), "empty search pattern"),
            ("sub_filter a $;".to_owned(), "invalid variable name"),
            ("sub_filter_once maybe;".to_owned(), "it must be \"on\" or \"off\""),
            (many(256), "number of search patterns exceeds 255"),
            (many(255), ""),
        ] {
            let said = of_text(&format!("events {{}} http {{ {http} }}")).1;
            assert_eq!(said.is_empty(), words.is_empty(), "{http}: {said:?}");
            assert!(said.iter().all(|one| one.contains(words)), "{http}: {said:?}");
        }
    }
}
