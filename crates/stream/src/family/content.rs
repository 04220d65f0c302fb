//! `return`: a server that sends a text.
//!
//! <https://nginx.org/en/docs/stream/ngx_stream_return_module.html>

use weir_http::read::directive::{Directive, ONE, STREAM_SERVER};
use weir_http::read::families::Family;

use super::server::{Written, serve_by};

weir_http::settings! {}

/// Nothing is declared for all of `stream`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "stream_return",
    &[Directive::new("return", STREAM_SERVER, ONE, "Sends a text to the client and closes the connection.", |b, s| {
        let text = b.template(s.text(0))?;
        serve_by(b, Written::Return(text));
        Ok(())
    })],
);
