//! `http3`, `quic_*`: HTTP/3 and QUIC for clients of `listen … quic`.
//!
//! <https://nginx.org/en/docs/http/ngx_http_v3_module.html>. The settings of QUIC are those of the default server of an
//! address, as in nginx. The connection itself is in `h3`.

use std::sync::Arc;

use weir_conf::Statement;
use weir_quic::settings::IDS_MAX;

use crate::exchange::Exchange;
use crate::exchange::variable::Variable;
use crate::family::certificates;
use crate::read::build::Build;
use crate::read::directive::{Arity, Directive, HTTP, MAIN, ONE, SERVER};
use crate::read::families::Family;
use crate::text::refusal::Refusal;
use crate::text::template::Argument;
use crate::text::value;

crate::settings! {
    /// `http3`.
    is_on: bool = true,
    /// `http3_hq`.
    is_hq: bool = false,
    /// `quic_active_connection_id_limit`: ids that a client may give at the same time.
    ids: u8 = 2,
    /// `http3_max_concurrent_streams`.
    streams_max: u32 = 128,
    /// `http3_stream_buffer_size`: bytes of a stream that a client may send before weir reads them.
    stream_buffer: u32 = 64 << 10,
    /// `quic_gso`: the kernel cuts messages into datagrams.
    gso: bool = true,
    /// `quic_host_key`: the content of the file.
    host_key: Option<Arc<[u8]>> = None,
    /// `quic_retry`.
    retry: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

const HS: crate::read::directive::Contexts = HTTP.or(SERVER);

/// More streams than a client needs at once.
const STREAMS_MAX: u64 = 65_535;
/// The largest window of a stream.
const STREAM_BUFFER_MAX: u64 = 1 << 30;

/// The family.
pub static FAMILY: Family = Family::new(
    "http3",
    &[
        Directive::new("http3", HS, Arity::Flag, "Lets clients of a \"listen … quic\" use HTTP/3.", |b, s| {
            b.settings().http3.is_on = Some(value::flag(s)?);
            Ok(())
        })
        .default("on"),
        Directive::new(
            "http3_hq",
            HS,
            Arity::Flag,
            "Lets clients of a \"listen … quic\" use HTTP/0.9 (hq-interop), a protocol for tests of QUIC.",
            |b, s| {
                b.settings().http3.is_hq = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
        Directive::new(
            "http3_max_concurrent_streams",
            HS,
            ONE,
            "Sets the largest number of open requests on a connection.",
            |b, s| {
                b.settings().http3.streams_max = Some(value::at_most(s, STREAMS_MAX)?.max(1) as u32);
                Ok(())
            },
        )
        .default("128"),
        Directive::new(
            "http3_stream_buffer_size",
            HS,
            ONE,
            "Sets how much of each stream a client may send before weir reads it.",
            |b, s| {
                let size = value::size(s)?.clamp(1, STREAM_BUFFER_MAX);
                b.settings().http3.stream_buffer = Some(size as u32);
                Ok(())
            },
        )
        .default("64k"),
        Directive::new(
            "quic_active_connection_id_limit",
            HS,
            ONE,
            "Sets how many connection ids a client may give at the same time; weir keeps five at most.",
            |b, s| match value::at_most(s, IDS_MAX.into())? {
                ids @ 2.. => {
                    b.settings().http3.ids = Some(ids as u8);
                    Ok(())
                }
                _ => Err(Refusal::directive("value must be at least 2 (RFC 9000, section 18.2)")),
            },
        )
        .default("2"),
        Directive::idle(
            "quic_bpf",
            MAIN,
            Arity::Flag,
            "off",
            "weir's workers pass each datagram to the worker of its connection, without eBPF",
            |_, s| value::flag(s).map(drop),
        )
        .default("off"),
        Directive::new("quic_gso", HS, Arity::Flag, "Lets the kernel cut messages into datagrams (GSO).", |b, s| {
            b.settings().http3.gso = Some(value::flag(s)?);
            Ok(())
        })
        .default("on (nginx: off)"),
        Directive::new(
            "quic_host_key",
            HS,
            ONE,
            "A file with the secret from which weir makes the keys for connection ids, tokens and stateless resets. \
             Without a file, weir makes a secret at its start.",
            host_key,
        ),
        Directive::new(
            "quic_retry",
            HS,
            Arity::Flag,
            "Lets clients prove their address with a Retry packet before weir makes a connection.",
            |b, s| {
                b.settings().http3.retry = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
    ],
)
.variables(&[Variable::without_answer("http3", protocol)]);

fn host_key(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let bytes = certificates::read(b, statement.text(0))
        .map_err(|(path, error)| Refusal::whole(format!("open() \"{path}\" failed {error}")))?;
    if bytes.is_empty() {
        let path = certificates::full_name(b, statement.text(0));
        return Err(Refusal::whole(format!("\"{path}\" zero key size")).todo("make the file with: openssl rand 32"));
    }
    b.settings().http3.host_key = Some(Some(bytes.to_vec().into()));
    Ok(())
}

/// Empty for a request of another protocol, as in nginx.
fn protocol(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    if exchange.request.version() == weir_wire::Version::Http3 {
        out.extend_from_slice(if exchange.client.speaks_hq() { b"hq" } else { b"h3" });
    }
    true
}
