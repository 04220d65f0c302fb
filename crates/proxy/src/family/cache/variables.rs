//! `$upstream_cache_…` and `$weir_cache_reason`.
//!
//! <https://nginx.org/en/docs/http/ngx_http_upstream_module.html#var_upstream_cache_status>; `_key`, `_age`,
//! `_last_modified` and `_etag` show values that nginx has only inside or does not document.

use weir_http::exchange::Exchange;
use weir_http::exchange::variable::Variable;
use weir_net::clock;
use weir_wire::{date, encode};

use super::facts;

/// The family's variables.
pub static VARIABLES: &[Variable] = &[
    Variable::without_answer("upstream_cache_status", |exchange, _, out| match exchange.cache.status {
        Some(status) => {
            out.extend_from_slice(status.as_str().as_bytes());
            true
        }
        None => false,
    })
    .same_for_hits(),
    Variable::without_answer("weir_cache_reason", |exchange, _, out| match exchange.cache.reason {
        Some(reason) => {
            out.extend_from_slice(reason.as_str().as_bytes());
            true
        }
        None => false,
    })
    .same_for_hits(),
    Variable::without_answer("upstream_cache_key", |exchange, _, out| {
        out.extend_from_slice(&exchange.cache.key.0);
        !exchange.cache.key.0.is_empty()
    }),
    Variable::without_answer("upstream_cache_age", |exchange, _, out| match &exchange.cache.shown {
        Some(object) => {
            encode::push_decimal(out, u64::from(facts::validity(&object.times).current_age_s(clock::unix_ms() as i64)));
            true
        }
        None => false,
    }),
    Variable::without_answer("upstream_cache_last_modified", |exchange, _, out| {
        let Some(seconds) = stored(exchange).and_then(|object| object.head.last_modified) else { return false };
        out.extend_from_slice(&date::http_date(seconds));
        true
    }),
    Variable::without_answer("upstream_cache_etag", |exchange, _, out| {
        let Some(object) = stored(exchange) else { return false };
        out.extend_from_slice(object.head.etag());
        !object.head.etag().is_empty()
    }),
];

fn stored<'e>(exchange: &'e Exchange<'_>) -> Option<&'e weir_cache::store::Object> {
    exchange.cache.old.as_ref().or(exchange.cache.shown.as_ref()).map(AsRef::as_ref)
}
