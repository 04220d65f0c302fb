//! `resolver` and `resolver_timeout` of `http`, `upstream` and their servers and locations.
//!
//! `dns` sends the queries; `upstream::forward` resolves names in `proxy_pass`, and `weir_groups` resolves names of
//! upstreams' servers.

use weir_groups::resolver::directives;
use weir_http::read::directive::{Directive, HSL, UPSTREAM};
use weir_http::read::families::Family;

pub use weir_groups::resolver::{Declared, Settings, Values};

use crate::family::upstream::HttpParts;

const ALL: [Directive; 2] = directives::<HttpParts>(HSL.or(UPSTREAM));

/// The family.
pub static FAMILY: Family = Family::new("resolver", &ALL).adopt(|new, old| {
    crate::declared(new).resolver.adopt(&crate::declared(old).resolver);
    Ok(())
});
