//! `zstd`: compresses responses with Zstandard (RFC 8878).
//!
//! The directives of <https://github.com/tokers/zstd-nginx-module>, without `zstd_dict_file`: HTTP cannot say which
//! dictionary a body needs. `compression` chooses between codings.

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Contexts, Directive, HSL, LOCATION_IF, ONE, TWO};
use weir_http::read::families::Family;
use weir_http::read::media_types;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;

weir_http::settings! {
    /// `zstd`.
    enabled: bool = false,
    /// `zstd_types`, lower case; `text/html` is always among them; empty for all.
    types: Arc<Vec<String>> = Arc::new(vec![media_types::HTML.to_owned()]),
    /// `zstd_min_length`.
    min_length: u64 = 20,
    /// `zstd_comp_level`.
    level: i32 = 1,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The lowest level.
const LEVEL_MIN: i32 = -131_072;

/// The highest level.
const LEVEL_MAX: i32 = 22;

const HSLI: Contexts = HSL.or(LOCATION_IF);

/// The family.
pub static FAMILY: Family = Family::new(
    "zstd",
    &[
        Directive::new("zstd", HSLI, Arity::Flag, "Compresses responses with Zstandard.", |b, s| {
            crate::settings(b).zstd.enabled = Some(value::flag(s)?);
            Ok(())
        })
        .default("off"),
        Directive::new(
            "zstd_types",
            HSL,
            Arity::AtLeast(1),
            "The media types besides text/html that weir compresses with Zstandard; * for all.",
            types,
        )
        .default("text/html")
        .many(),
        Directive::new(
            "zstd_min_length",
            HSL,
            ONE,
            "weir does not compress a body with a shorter Content-Length.",
            |b, s| {
                crate::settings(b).zstd.min_length = Some(value::size(s)?);
                Ok(())
            },
        )
        .default("20"),
        Directive::new("zstd_comp_level", HSL, ONE, "From 1, fast, to 22, small; below 0 even faster.", level)
            .default("1"),
        Directive::idle("zstd_buffers", HSL, TWO, "", "weir manages this memory itself", |_, s| {
            value::buffers(s).map(drop)
        }),
    ],
);

fn types(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let earlier = crate::settings(b).zstd.types.clone();
    crate::settings(b).zstd.types = Some(media_types::read(b, statement, earlier));
    Ok(())
}

fn level(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let word = statement.text(0);
    let (digits, is_negative) = word.strip_prefix('-').map_or((word, false), |digits| (digits, true));
    let number = value::number(digits).ok_or_else(|| Refusal::directive("invalid number"))?;
    let number = i32::try_from(number).ok().map(|number| if is_negative { -number } else { number });
    let level = number.filter(|level| *level != 0 && (LEVEL_MIN..=LEVEL_MAX).contains(level)).ok_or_else(|| {
        Refusal::whole(format!("zstd compress level must between {LEVEL_MIN} and {LEVEL_MAX} excluding 0"))
    })?;
    crate::settings(b).zstd.level = Some(level);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    #[test]
    fn bad_values_are_refused_by_name() {
        for (http, words) in [
            ("zstd maybe;", "it must be \"on\" or \"off\""),
            ("zstd_comp_level 0;", "zstd compress level must between -131072 and 22 excluding 0"),
            ("zstd_comp_level 23;", "zstd compress level must between -131072 and 22 excluding 0"),
            ("zstd_comp_level x;", "\"zstd_comp_level\" directive invalid number"),
            ("zstd_comp_level -7; zstd on;", ""),
        ] {
            let said = crate::of_text(&format!("events {{}} http {{ {http} }}")).1;
            assert_eq!(said.is_empty(), words.is_empty(), "{http}: {said:?}");
            assert!(said.iter().all(|one| one.contains(words)), "{http}: {said:?}");
        }
    }

    #[test]
    fn the_bounds_are_those_of_the_library() {
        assert_eq!((super::LEVEL_MIN, super::LEVEL_MAX), (zstd_safe::min_c_level(), zstd_safe::max_c_level()));
    }
}
