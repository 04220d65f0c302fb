//! `brotli`: compresses responses with brotli (RFC 7932).
//!
//! The directives of <https://github.com/google/ngx_brotli>. `compression` chooses between codings.

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Contexts, Directive, HSL, LOCATION_IF, ONE, TWO};
use weir_http::read::families::Family;
use weir_http::read::media_types;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;

weir_http::settings! {
    /// `brotli`.
    enabled: bool = false,
    /// `brotli_types`, lower case; `text/html` is always among them; empty for all.
    types: Arc<Vec<String>> = Arc::new(vec![media_types::HTML.to_owned()]),
    /// `brotli_min_length`.
    min_length: u64 = 20,
    /// `brotli_comp_level`.
    level: i32 = 6,
    /// `brotli_window`, as a power of two.
    window_bits: i32 = 19,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

const HSLI: Contexts = HSL.or(LOCATION_IF);

/// The family.
pub static FAMILY: Family = Family::new(
    "brotli",
    &[
        Directive::new("brotli", HSLI, Arity::Flag, "Compresses responses with brotli.", |b, s| {
            crate::settings(b).brotli.enabled = Some(value::flag(s)?);
            Ok(())
        })
        .default("off"),
        Directive::new(
            "brotli_types",
            HSL,
            Arity::AtLeast(1),
            "The media types besides text/html that weir compresses with brotli; * for all.",
            types,
        )
        .default("text/html")
        .many(),
        Directive::new(
            "brotli_min_length",
            HSL,
            ONE,
            "weir does not compress a body with a shorter Content-Length.",
            |b, s| {
                crate::settings(b).brotli.min_length = Some(value::size(s)?);
                Ok(())
            },
        )
        .default("20"),
        Directive::new("brotli_comp_level", HSL, ONE, "From 0, fast, to 11, small.", |b, s| {
            crate::settings(b).brotli.level = Some(value::bounded(s, 0, 11)? as i32);
            Ok(())
        })
        .default("6"),
        Directive::new("brotli_window", HSL, ONE, "How far back in a body brotli looks for repetitions.", window)
            .default("512k"),
        Directive::idle("brotli_buffers", HSL, TWO, "", "weir manages this memory itself", |_, s| {
            value::buffers(s).map(drop)
        }),
    ],
);

fn types(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let earlier = crate::settings(b).brotli.types.clone();
    crate::settings(b).brotli.types = Some(media_types::read(b, statement, earlier));
    Ok(())
}

fn window(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let size = value::size(statement)?;
    let bits = (10..=24).find(|bits| size == 1 << bits).ok_or_else(|| {
        Refusal::directive("must be 1k, 2k, 4k, 8k, 16k, 32k, 64k, 128k, 256k, 512k, 1m, 2m, 4m, 8m or 16m")
    })?;
    crate::settings(b).brotli.window_bits = Some(bits);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    #[test]
    fn bad_values_are_refused_by_name() {
        for (http, words) in [
            ("brotli maybe;", "it must be \"on\" or \"off\""),
            ("brotli_comp_level 12;", "value must be between 0 and 11"),
            ("brotli_window 3k;", "\"brotli_window\" directive must be 1k, 2k"),
            ("brotli_window 16m; brotli_comp_level 0; brotli on;", ""),
        ] {
            let said = crate::of_text(&format!("events {{}} http {{ {http} }}")).1;
            assert_eq!(said.is_empty(), words.is_empty(), "{http}: {said:?}");
            assert!(said.iter().all(|one| one.contains(words)), "{http}: {said:?}");
        }
    }
}
