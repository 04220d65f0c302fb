//! The client's side of a session: timeouts, the preread buffer, small packets.
//!
//! <https://nginx.org/en/docs/stream/ngx_stream_core_module.html>

use std::time::Duration;

use weir_http::read::directive::{Arity, Directive, ONE, SS, STREAM};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;

weir_http::settings! {
    /// `tcp_nodelay`.
    nodelay: bool = true,
    /// `preread_buffer_size`.
    preread_buffer: usize = 16 << 10,
    /// `preread_timeout`.
    preread_timeout: Duration = Duration::from_secs(30),
    /// `proxy_protocol_timeout`.
    proxy_protocol_timeout: Duration = Duration::from_secs(30),
}

/// Nothing is declared for all of `stream`.
pub type Declared = ();

/// The largest preread buffer: every client that sends too little holds one (nginx has no limit).
const PREREAD_BYTES_MAX: u64 = 1 << 20;

/// The family.
pub static FAMILY: Family = Family::new(
    "stream_core",
    &[
        Directive::new("tcp_nodelay", SS, Arity::Flag, "Sends small packets at once.", |b, s| {
            crate::settings(b).core.nodelay = Some(value::flag(s)?);
            Ok(())
        })
        .default("on"),
        Directive::new(
            "preread_buffer_size",
            SS,
            ONE,
            "The most bytes that weir looks at before it chooses a peer.",
            |b, s| {
                let size = value::size(s)?;
                if !(1..=PREREAD_BYTES_MAX).contains(&size) {
                    return Err(Refusal::directive("invalid value").weirs_own().todo("write a size from 1 to 1m"));
                }
                crate::settings(b).core.preread_buffer = Some(size as usize);
                Ok(())
            },
        )
        .default("16k"),
        Directive::new(
            "preread_timeout",
            SS,
            ONE,
            "How long weir waits for the bytes that it looks at before it chooses a peer.",
            |b, s| {
                crate::settings(b).core.preread_timeout = Some(value::time(s)?);
                Ok(())
            },
        )
        .default("30s"),
        Directive::new(
            "proxy_protocol_timeout",
            SS,
            ONE,
            "How long weir waits for the PROXY protocol header of a client.",
            |b, s| {
                crate::settings(b).core.proxy_protocol_timeout = Some(value::time(s)?);
                Ok(())
            },
        )
        .default("30s"),
        Directive::new("variables_hash_max_size", STREAM, ONE, "No effect: weir sizes its tables itself.", |_, s| {
            value::first_number(s).map(drop)
        }),
        Directive::new(
            "variables_hash_bucket_size",
            STREAM,
            ONE,
            "No effect: weir sizes its tables itself.",
            |_, s| value::first_number(s).map(drop),
        ),
    ],
);
