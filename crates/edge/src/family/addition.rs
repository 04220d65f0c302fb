//! `add_before_body`, `add_after_body`, `addition_types`: the answers of other locations before and after a body.
//!
//! <https://nginx.org/en/docs/http/ngx_http_addition_module.html>

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::composing;
use weir_http::exchange::conf::Location;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, HSL, ONE};
use weir_http::read::families::Family;
use weir_http::read::media_types;
use weir_http::send::altered;
use weir_http::text::refusal::Refusal;

weir_http::settings! {
    /// `add_before_body`: the path; empty for none.
    before: Arc<str> = Arc::default(),
    /// `add_after_body`: the path; empty for none.
    after: Arc<str> = Arc::default(),
    /// `addition_types`, lower case; empty for all.
    types: Arc<Vec<String>> = Arc::new(vec![media_types::HTML.to_owned()]),
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "addition",
    &[
        Directive::new("add_before_body", HSL, ONE, "Sends the answer of this path before the body.", |b, s| {
            crate::settings(b).addition.before = Some(s.text(0).into());
            Ok(())
        }),
        Directive::new("add_after_body", HSL, ONE, "Sends the answer of this path after the body.", |b, s| {
            crate::settings(b).addition.after = Some(s.text(0).into());
            Ok(())
        }),
        Directive::new(
            "addition_types",
            HSL,
            Arity::AtLeast(1),
            "The media types besides text/html whose bodies get additions; * for all.",
            types,
        )
        .default("text/html")
        .many(),
    ],
)
.filter(is_active, filter);

fn types(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let earlier = crate::settings(b).addition.types.clone();
    crate::settings(b).addition.types = Some(media_types::read(b, statement, earlier));
    Ok(())
}

fn is_active(location: &Location) -> bool {
    let settings = &crate::values(location).addition;
    !settings.before.is_empty() || !settings.after.is_empty()
}

fn filter(exchange: &mut Exchange<'_>) {
    let settings = &crate::values(exchange.location).addition;
    let response = &exchange.response;
    let is_listed = media_types::is_listed(&settings.types, &response.content_type);
    if response.status.get() != 200 || !is_listed {
        return;
    }
    let path = |path: &str| (!path.is_empty()).then(|| path.as_bytes().to_vec());
    let is_composed = composing::compose(exchange, |composed| {
        (composed.before, composed.after) = (path(&settings.before), path(&settings.after));
    });
    if is_composed {
        altered::weaken_etag(exchange.response);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::of_text;

    #[test]
    fn an_empty_path_ends_the_inheritance() {
        let (conf, problems) = of_text(
            "events {} http { add_before_body /b; add_after_body /a; server { location /both { }
                location /none { add_before_body \"\"; add_after_body \"\"; } } }",
        );
        assert_eq!(problems, [""; 0]);
        let conf = conf.unwrap();
        for (name, is_active) in [("/both", true), ("/none", false)] {
            let location = conf.locations.iter().find(|location| location.name == name).unwrap();
            assert_eq!(super::is_active(location), is_active, "{name}");
        }
    }
}
