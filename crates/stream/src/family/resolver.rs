//! `resolver` and `resolver_timeout` of `stream`.
//!
//! <https://nginx.org/en/docs/stream/ngx_stream_core_module.html#resolver>

use weir_groups::resolver::directives;
use weir_http::read::directive::{Directive, SS, STREAM_UPSTREAM};
use weir_http::read::families::Family;

pub use weir_groups::resolver::{Declared, Settings, Values};

use super::upstream::StreamParts;

const ALL: [Directive; 2] = directives::<StreamParts>(SS.or(STREAM_UPSTREAM));

/// The family.
pub static FAMILY: Family = Family::new("stream_resolver", &ALL).adopt(|new, old| {
    crate::declared(new).resolver.adopt(&crate::declared(old).resolver);
    Ok(())
});
