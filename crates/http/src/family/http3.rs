//! `http3` and `quic_*`: weir does not speak HTTP/3, so these directives have no effect.
//!
//! Clients use HTTP/3 only if they can, and HTTP/2 or HTTP/1.1 otherwise. A `listen … quic` (`server`) is accepted for
//! the same reason, if the server has another listener. <https://nginx.org/en/docs/http/ngx_http_v3_module.html>

use crate::exchange::variable::Variable;
use crate::read::directive::{Arity, Directive, HTTP, MAIN, ONE, SERVER};
use crate::read::families::Family;
use crate::text::value;

crate::settings! {}

/// Nothing is declared for all of `http`.
pub type Declared = ();

const HS: crate::read::directive::Contexts = HTTP.or(SERVER);

const WHY: &str = "weir does not speak HTTP/3: clients use HTTP/2 or HTTP/1.1 over TCP";

/// The family.
pub static FAMILY: Family = Family::new(
    "http3",
    &[
        Directive::idle("http3", HS, Arity::Flag, "off", WHY, |_, s| value::flag(s).map(drop))
            .default("off (nginx: on)"),
        Directive::idle("http3_hq", HS, Arity::Flag, "off", WHY, |_, s| value::flag(s).map(drop)).default("off"),
        Directive::idle("http3_max_concurrent_streams", HS, ONE, "", WHY, |_, s| value::first_number(s).map(drop)),
        Directive::idle("http3_stream_buffer_size", HS, ONE, "", WHY, |_, s| value::size(s).map(drop)),
        Directive::idle("quic_active_connection_id_limit", HS, ONE, "", WHY, |_, s| value::first_number(s).map(drop)),
        Directive::idle("quic_bpf", MAIN, Arity::Flag, "off", WHY, |_, s| value::flag(s).map(drop)).default("off"),
        Directive::idle("quic_gso", HS, Arity::Flag, "off", WHY, |_, s| value::flag(s).map(drop)).default("off"),
        Directive::idle("quic_host_key", HS, ONE, "", WHY, |_, _| Ok(())),
        Directive::idle("quic_retry", HS, Arity::Flag, "off", WHY, |_, s| value::flag(s).map(drop)).default("off"),
    ],
)
// nginx: empty for a request of another protocol.
.variables(&[Variable::without_answer("http3", |_, _, _| false)]);
