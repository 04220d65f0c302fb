//! `ssl_preread`: the host and the protocols that a client of TLS asks for, without decrypting anything.
//!
//! <https://nginx.org/en/docs/stream/ngx_stream_ssl_preread_module.html>

use weir_http::read::directive::{Arity, Directive, SS};
use weir_http::read::families::Family;
use weir_http::text::texts::text;
use weir_http::text::value;
use weir_wire::client_hello::{self, Opening};

use crate::session::Session;
use crate::variable::Variable;

weir_http::settings! {
    /// `ssl_preread`.
    enabled: bool = false,
}

/// Nothing is declared for all of `stream`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "stream_ssl_preread",
    &[Directive::new(
        "ssl_preread",
        SS,
        Arity::Flag,
        "Reads the host and the protocols from a client's first TLS message, without decrypting it.",
        |b, s| {
            crate::settings(b).preread.enabled = Some(value::flag(s)?);
            Ok(())
        },
    )
    .default("off")],
);

/// Its variables.
pub static VARIABLES: &[Variable] = &[
    Variable::new("ssl_preread_protocol", |session, _, out| {
        session.preread.as_ref().is_some_and(|known| text(out, known.version_name().as_bytes()))
    }),
    Variable::new("ssl_preread_server_name", |session, _, out| {
        session.preread.as_ref().is_some_and(|known| text(out, &known.host))
    }),
    Variable::new("ssl_preread_alpn_protocols", |session, _, out| {
        session.preread.as_ref().is_some_and(|known| text(out, &known.protocols))
    }),
];

/// Looks at the bytes that have arrived; `false` if more are needed.
pub fn look(session: &mut Session<'_>, bytes: &[u8]) -> bool {
    match client_hello::read(bytes) {
        Opening::Partial => false,
        Opening::Foreign => true,
        Opening::Hello(known) => {
            session.serve_host(&known.host);
            session.preread = Some(Box::new(known));
            true
        }
    }
}
