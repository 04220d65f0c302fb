//! `msie_refresh`: Internet Explorer gets a page that refreshes itself in place of a redirect of weir's own.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#msie_refresh>

use weir_http::exchange::Exchange;
use weir_http::exchange::response_body::Body;
use weir_http::read::directive::{Arity, Directive, HSL};
use weir_http::read::families::Family;
use weir_http::text::value;
use weir_wire::Known;
use weir_wire::escape::{REFRESH, escape};

weir_http::settings! {
    /// `msie_refresh`.
    enabled: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "msie_refresh",
    &[Directive::new(
        "msie_refresh",
        HSL,
        Arity::Flag,
        "Answers Internet Explorer with a page that refreshes itself in place of a redirect.",
        |b, s| {
            crate::settings(b).msie_refresh.enabled = Some(value::flag(s)?);
            Ok(())
        },
    )
    .default("off")],
)
.filter(|location| crate::values(location).msie_refresh.enabled, filter);

/// nginx looks for this text in `User-Agent`, and for two more bytes behind it.
const MSIE: &[u8] = b"MSIE ";

fn filter(exchange: &mut Exchange<'_>) {
    let agent = exchange.request.field(Known::UserAgent).unwrap_or_default();
    let is_msie = memchr::memmem::find(agent, MSIE).is_some_and(|at| at + MSIE.len() + 2 < agent.len());
    let response = &mut exchange.response;
    // Only a redirect of weir's own has its page in memory.
    if !is_msie || !matches!(response.status.get(), 301 | 302) || !matches!(response.body, Body::Bytes(_)) {
        return;
    }
    let Some(location) = response.fields.get(Known::Location) else { return };
    let mut page = b"<html><head><meta http-equiv=\"Refresh\" content=\"0; URL=".to_vec();
    escape(location, &REFRESH, &mut page);
    page.extend_from_slice(b"\"></head><body></body></html>\r\n");
    response.fields.remove(Known::Location);
    response.own_location = false;
    response.status.turn(200);
    response.status_line.clear();
    response.content_type = b"text/html".to_vec();
    response.content_length = Some(page.len() as u64);
    response.body = Body::Bytes(page);
}
