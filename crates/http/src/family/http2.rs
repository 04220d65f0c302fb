//! `http2` and its limits: whether clients may use HTTP/2, and the resources of one connection.
//!
//! <https://nginx.org/en/docs/http/ngx_http_v2_module.html>. The connection itself is in `h2`.

use weir_conf::Statement;

use crate::exchange::Exchange;
use crate::exchange::variable::Variable;
use crate::read::build::Build;
use crate::read::directive::{Arity, Directive, HSL, HTTP, ONE, SERVER};
use crate::read::families::Family;
use crate::text::refusal::Refusal;
use crate::text::template::Argument;
use crate::text::value;

crate::settings! {
    /// `http2`.
    is_on: bool = false,
    /// `http2_max_concurrent_streams`.
    streams_max: u32 = 128,
    /// `http2_body_preread_size`: how much of each body a client may send before weir reads it.
    preread: u32 = 64 << 10,
    /// `http2_chunk_size`: bytes of a body in one frame.
    chunk: usize = 16 << 10,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

const HS: crate::read::directive::Contexts = HTTP.or(SERVER);

/// nginx's limit of a window is the RFC's.
const WINDOW_MAX: u64 = (1 << 31) - 1;
/// The largest frame payload that HTTP/2 allows.
const CHUNK_MAX: u64 = (1 << 24) - 1;

/// The family.
pub static FAMILY: Family = Family::new(
    "http2",
    &[
        Directive::new(
            "http2",
            HS,
            Arity::Flag,
            "Lets clients use HTTP/2, by ALPN or by its connection preface.",
            |b, s| {
                b.settings().http2.is_on = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
        Directive::new(
            "http2_max_concurrent_streams",
            HS,
            ONE,
            "Sets the largest number of open streams on a connection.",
            |b, s| {
                b.settings().http2.streams_max = Some(value::at_most(s, 65_535)?.max(1) as u32);
                Ok(())
            },
        )
        .default("128"),
        Directive::new(
            "http2_body_preread_size",
            HS,
            ONE,
            "Sets how much of each request body a client may send before weir reads the body.",
            preread,
        )
        .default("64k"),
        Directive::new(
            "http2_chunk_size",
            HSL,
            ONE,
            "Sets the largest piece of a body in one frame; weir sends 16k where nginx sends 8k.",
            chunk,
        )
        .default("16k"),
        Directive::idle("http2_recv_buffer_size", HTTP, ONE, "", "weir reads into buffers of the worker", |_, s| {
            receive_buffer(s)
        }),
        Directive::idle("http2_pool_size", HS, ONE, "", "weir has no pools", |_, s| value::pool(s).map(drop)),
        Directive::idle("http2_streams_index_size", HS, ONE, "", "weir uses another table of streams", |_, s| {
            match value::first_number(s)?.is_power_of_two() {
                true => Ok(()),
                false => Err(Refusal::directive("must be a power of two")),
            }
        }),
        Directive::new("http2_max_requests", HS, ONE, "Obsolete in nginx: keepalive_requests.", |b, s| {
            obsolete(b, s, "keepalive_requests")
        })
        .many(),
        Directive::new("http2_max_field_size", HS, ONE, "Obsolete in nginx: large_client_header_buffers.", |b, s| {
            obsolete(b, s, "large_client_header_buffers")
        })
        .many(),
        Directive::new("http2_max_header_size", HS, ONE, "Obsolete in nginx: large_client_header_buffers.", |b, s| {
            obsolete(b, s, "large_client_header_buffers")
        })
        .many(),
        Directive::new("http2_recv_timeout", HS, ONE, "Obsolete in nginx: client_header_timeout.", |b, s| {
            obsolete(b, s, "client_header_timeout")
        })
        .many(),
        Directive::new("http2_idle_timeout", HS, ONE, "Obsolete in nginx: keepalive_timeout.", |b, s| {
            obsolete(b, s, "keepalive_timeout")
        })
        .many(),
        Directive::new("http2_max_concurrent_pushes", HS, ONE, "Obsolete in nginx, which ignores it.", ignored).many(),
        Directive::new("http2_push", HSL, ONE, "Obsolete in nginx, which ignores it.", ignored).many(),
        Directive::new("http2_push_preload", HSL, Arity::Flag, "Obsolete in nginx, which ignores it.", ignored).many(),
    ],
)
.variables(&[Variable::without_answer("http2", protocol)]);

fn preread(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let size = value::size(statement)?;
    if size > WINDOW_MAX {
        return Err(Refusal::whole("the maximum body preread buffer size is 2147483647".to_owned()));
    }
    b.settings().http2.preread = Some(size as u32);
    Ok(())
}

/// Checks the size of a buffer, which is larger than the part of a frame that nginx keeps in it.
fn receive_buffer(statement: &Statement) -> Result<(), Refusal> {
    const KEPT_BYTES: u64 = 16;
    if value::size(statement)? > KEPT_BYTES { Ok(()) } else { Err(Refusal::directive("value is too small")) }
}

fn chunk(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let size = value::size(statement)?;
    if size == 0 {
        return Err(Refusal::whole("the http2 chunk size cannot be zero".to_owned()));
    }
    b.settings().http2.chunk = Some(size.min(CHUNK_MAX) as usize);
    Ok(())
}

fn obsolete(b: &mut Build<'_>, statement: &Statement, instead: &str) -> Result<(), Refusal> {
    b.warn(
        format!("the \"{}\" directive is obsolete, use the \"{instead}\" directive instead", statement.name.text),
        None,
    );
    Ok(())
}

fn ignored(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    b.warn(format!("the \"{}\" directive is obsolete, ignored", statement.name.text), None);
    Ok(())
}

fn protocol(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    if exchange.request.version() == weir_wire::Version::Http2 {
        out.extend_from_slice(match exchange.client.shared.is_secure() {
            true => b"h2",
            false => b"h2c",
        });
    }
    true
}
