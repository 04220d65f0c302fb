//! `mirror`, `mirror_request_body`: copies of a request to other locations, whose answers are ignored.
//!
//! <https://nginx.org/en/docs/http/ngx_http_mirror_module.html>. Each copy is an exchange in the background. Unlike in
//! nginx, a copy does not delay the next request of the client's connection, and a copy without the body has no
//! `Content-Length`.

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::phase::{Next, Phase};
use weir_http::exchange::request_body::RequestBody;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, HSL, ONE};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;

weir_http::settings! {
    /// `mirror`: the paths of the copies; none for `off`.
    paths: Arc<[Box<str>]> = Arc::default(),
    /// `mirror_request_body`.
    with_body: bool = true,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The most copies of one request in one place (nginx: `NGX_HTTP_MAX_SUBREQUESTS`).
pub const MIRRORS_MAX: usize = 50;

/// The family.
pub static FAMILY: Family = Family::new(
    "mirror",
    &[
        Directive::new("mirror", HSL, ONE, "Sends a copy of each request to this path and ignores the answer.", mirror)
            .many()
            .default("off"),
        Directive::new(
            "mirror_request_body",
            HSL,
            Arity::Flag,
            "Reads the request's body before weir passes the request on, so that the copies have the body.",
            |b, s| {
                crate::settings(b).mirror.with_body = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("on"),
    ],
)
.phase(Phase::Precontent, |location| !crate::values(location).mirror.paths.is_empty(), enter);

fn mirror(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let path = statement.text(0);
    let paths = &mut crate::settings(b).mirror.paths;
    *paths = Some(match (path, &*paths) {
        ("off", None) => Arc::default(),
        ("off", Some(_)) => return Err(Refusal::directive("is duplicate")),
        (_, None) => Arc::new([path.into()]),
        (_, Some(before)) if before.is_empty() => return Err(Refusal::directive("is duplicate")),
        (_, Some(before)) if before.len() >= MIRRORS_MAX => {
            return Err(
                Refusal::whole(format!("more than {MIRRORS_MAX} \"mirror\" directives in one block")).weirs_own()
            );
        }
        (_, Some(before)) => before.iter().cloned().chain([path.into()]).collect(),
    });
    Ok(())
}

fn enter(exchange: &mut Exchange<'_>) -> Next {
    // Only the client's own request is copied.
    if exchange.flags.is_subrequest {
        return Next::Continue;
    }
    let settings = &crate::values(exchange.location).mirror;
    if settings.with_body && matches!(exchange.body, RequestBody::Unread) {
        return Next::ReadBody;
    }
    Next::Background(settings.paths.iter().map(|path| path.as_bytes().to_vec()).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::MIRRORS_MAX;
    use crate::of_text;

    #[test]
    fn a_place_takes_all_mirrors_of_the_place_around_it_or_none() {
        let (conf, problems) = of_text(
            "events {} http { mirror /a; mirror /b; server { location /inherits { }
                location /own { mirror /c; mirror_request_body off; location /own/off { mirror off; } } } }",
        );
        assert_eq!(problems, [""; 0]);
        let conf = conf.unwrap();
        for (name, paths, with_body) in
            [("/inherits", &["/a", "/b"][..], true), ("/own", &["/c"], false), ("/own/off", &[], false)]
        {
            let values = &crate::values(conf.locations.iter().find(|location| location.name == name).unwrap()).mirror;
            let read: Vec<&str> = values.paths.iter().map(|path| &**path).collect();
            assert_eq!((read.as_slice(), values.with_body), (paths, with_body), "{name}");
        }
    }

    #[test]
    fn off_stands_alone() {
        for body in ["mirror off; mirror /a;", "mirror /a; mirror off;", "mirror off; mirror off;"] {
            let (_, problems) = of_text(&format!("events {{}} http {{ server {{ {body} }} }}"));
            assert_eq!(problems, ["\"mirror\" directive is duplicate"], "{body}");
        }
    }

    #[test]
    fn mirrors_are_bounded() {
        for (count, expected) in [(MIRRORS_MAX, None), (MIRRORS_MAX + 1, Some("more than 50 \"mirror\""))] {
            let (_, problems) =
                of_text(&format!("events {{}} http {{ server {{ {} }} }}", "mirror /a; ".repeat(count)));
            let first = problems.first().map(|problem| problem.get(.."more than 50 \"mirror\"".len()).unwrap());
            assert_eq!(first, expected, "{count}");
        }
    }
}
