//! `http2`: whether a server speaks HTTP/2 with clients that offer it.
//!
//! <https://nginx.org/en/docs/http/ngx_http_v2_module.html>

use crate::directive::{Arity, Directive, HTTP, SERVER};
use crate::family::Family;
use crate::value;

crate::settings! {
    /// `http2`.
    on: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
#[rustfmt::skip]
pub static FAMILY: Family = Family::new("http2", &[
    Directive::new("http2", HTTP.or(SERVER), Arity::Flag, "Speaks HTTP/2 with clients that offer it.",
        |b, s| { b.settings().http2.on = Some(value::flag(s)?); Ok(()) }).default("off"),
]);
