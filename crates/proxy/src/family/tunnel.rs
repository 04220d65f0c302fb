//! `tunnel_pass` and its family: joins a client that sends CONNECT with the server that it names (RFC 9110 §9.3.6).
//!
//! The settings are `bundle`'s. No head is exchanged: once the connection to the server is made, the client gets a 200, and
//! `edge::drive::tunnel` moves the bytes.
//! <https://nginx.org/en/docs/http/ngx_http_tunnel_module.html>

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::Location;
use weir_http::exchange::phase::Next;
use weir_http::exchange::special;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Directive, HSL, LOCATION, LOCATION_IF, ONE, SERVER, join};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_peers::retry::Conditions;

use crate::bundle::{self, Names};
use crate::family::cache::facts::Use;
use crate::family::proxy::pass::{Pass, Scheme};
use crate::family::proxy::shared::talking;
use crate::family::proxy::{self};
use crate::family::store::Store;
use crate::protocol::Protocol;

pub use crate::bundle::{Settings, Values};

/// Nothing is declared for all of `http`.
pub type Declared = ();

const TALKING: &[Directive] = talking!("tunnel", tunnel.proxy);

/// The target if the directive names none: the server that the client names.
const TARGET_DEFAULT: &str = "$host:$request_port";

const OWN: &[Directive] = &[
    Directive::new(
        "tunnel_pass",
        SERVER.or(LOCATION).or(LOCATION_IF),
        Arity::Between(0, 1),
        "Joins clients that send CONNECT with this server: HOST:PORT, unix:PATH or an upstream; without an argument, \
         with the server that the client names.",
        pass,
    ),
    Directive::new(
        "tunnel_next_upstream",
        HSL,
        Arity::AtLeast(1),
        "The failures after which weir tries another peer: error timeout off.",
        |b, s| proxy::next_upstream(b, s, |all| &mut all.tunnel.proxy, is_condition),
    )
    .many()
    .default("error timeout"),
    Directive::new("tunnel_socket_rcvbuf", HSL, ONE, "Receive buffer of upstream sockets.", |b, s| {
        crate::settings(b).tunnel.proxy.receive_buffer = Some(value::size(s)?);
        Ok(())
    }),
    Directive::new("tunnel_socket_sndbuf", HSL, ONE, "Send buffer of upstream sockets.", |b, s| {
        crate::settings(b).tunnel.proxy.send_buffer = Some(value::size(s)?);
        Ok(())
    }),
    Directive::idle("tunnel_buffer_size", HSL, ONE, "", "weir moves up to 16 KiB at a time", |_, s| {
        value::size(s).map(drop)
    }),
    Directive::idle("tunnel_send_lowat", HSL, ONE, "", "Linux has no SO_SNDLOWAT", |_, s| value::size(s).map(drop)),
];

static ALL: [Directive; TALKING.len() + OWN.len()] = join(&[TALKING, OWN]);

/// The family.
pub static FAMILY: Family = Family::new("tunnel", &ALL).finish(finish).settle(settle);

const NAMES: Names = Names {
    scheme: Scheme::Tunnel,
    // No directive sets a cache here.
    cache: ("tunnel_cache", "tunnel_cache_key"),
    temporary: "tunnel_temp",
};

fn is_condition(condition: Conditions) -> bool {
    [Conditions::ERROR, Conditions::TIMEOUT, Conditions::OFF].contains(&condition)
}

fn pass(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let target = statement.args.first().map_or(TARGET_DEFAULT, |word| &word.text);
    let pass = if target.contains('$') {
        Pass::computed(target, b.template(target)?, Scheme::Tunnel)
    } else {
        Pass::parse(Scheme::Tunnel, target)?
    };
    b.scope().handler = Some(enter);
    b.answer_connect();
    proxy::claim(b, |all| &mut all.tunnel.proxy, pass);
    Ok(())
}

fn enter(exchange: &mut Exchange<'_>) -> Next {
    if exchange.request.method() == b"CONNECT" { Next::Forward } else { special::not_allowed(exchange, "CONNECT") }
}

fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let mut settings = std::mem::take(&mut crate::written_mut(scope).tunnel);
    bundle::finish(b, scope, &mut settings, &NAMES, |_, _| Ok(Protocol::Tunnel));
    crate::written_mut(scope).tunnel = settings;
}

/// Where `tunnel_pass` answers, its settings replace those of `proxy`.
fn settle(location: &mut Location) {
    let values = crate::values_mut(location);
    bundle::settle(values, |values| &mut values.tunnel);
    if matches!(values.proxy.protocol, Protocol::Tunnel) {
        values.cache.zone = Use::Off;
        values.store.store = Store::Off;
        values.slice.size = 0;
    }
}
