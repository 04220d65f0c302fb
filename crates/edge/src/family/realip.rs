//! `set_real_ip_from`: the client's address as a trusted proxy reports it.
//!
//! Runs twice, as in nginx: at the start with the server's settings, and in the location. Once an address is set, it
//! stays for the exchange. <https://nginx.org/en/docs/http/ngx_http_realip_module.html>

use std::net::SocketAddr;
use std::sync::Arc;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::phase::{Next, Phase};
use weir_http::exchange::variable::Variable;
use weir_http::family::server;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, HSL, ONE, SS};
use weir_http::read::families::Family;
use weir_http::text::cidr::{self, Cidr, Peer};
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::SocketAddress;
use weir_stream::part::{self, Part};
use weir_stream::session::Session;
use weir_stream::variable as of_session;
use weir_wire::{Known, encode};

weir_http::settings! {
    /// `set_real_ip_from`: the trusted proxies.
    from: Arc<Vec<Cidr>> = Arc::default(),
    /// `real_ip_header`.
    header: Header = Header::Named("x-real-ip".into()),
    /// `real_ip_recursive`.
    recursive: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The source of the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// `X-Forwarded-For`: the last address over all fields of this name.
    ForwardedFor,
    /// The header of the PROXY protocol.
    ProxyProtocol,
    /// Another field, in lower case; the first field of this name counts.
    Named(Box<str>),
}

/// The family.
pub static FAMILY: Family = Family::new(
    "realip",
    &[
        Directive::new(
            "set_real_ip_from",
            HSL.or(SS),
            ONE,
            "Trusts an address, a network, a host or unix sockets to name the client's address.",
            from,
        )
        .many(),
        Directive::new(
            "real_ip_header",
            HSL,
            ONE,
            "The field in which a trusted proxy names the client's address.",
            |b, s| {
                let header = match s.text(0) {
                    "X-Forwarded-For" => Header::ForwardedFor,
                    "proxy_protocol" => Header::ProxyProtocol,
                    name => Header::Named(name.to_ascii_lowercase().into()),
                };
                crate::settings(b).realip.header = Some(header);
                Ok(())
            },
        )
        .default("X-Real-IP"),
        Directive::new(
            "real_ip_recursive",
            HSL,
            Arity::Flag,
            "Skips all trusted addresses in the field, not only the last.",
            |b, s| {
                crate::settings(b).realip.recursive = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
    ],
)
.variables(&[
    Variable::without_answer("realip_remote_addr", |exchange, _, out| {
        server::address_text(&exchange.client.remote, out);
        true
    }),
    Variable::without_answer("realip_remote_port", |exchange, _, out| {
        if let SocketAddress::Tcp(tcp) = &exchange.client.remote {
            encode::push_decimal(out, tcp.port().into());
        }
        true
    }),
])
.enter(|_, location| !crate::values(location).realip.from.is_empty(), listen_to_proxy)
.phase(
    Phase::Preaccess,
    |location| !crate::values(location).realip.from.is_empty(),
    |exchange| {
        listen_to_proxy(exchange);
        Next::Continue
    },
);

/// The same for sessions of `stream`: the PROXY protocol alone tells an address there.
pub const PART: Part = Part {
    variables: &[
        of_session::Variable::new("realip_remote_addr", |session, _, out| {
            server::address_text(session.peer(), out);
            true
        }),
        of_session::Variable::new("realip_remote_port", |session, _, out| {
            if let SocketAddress::Tcp(tcp) = session.peer() {
                encode::push_decimal(out, tcp.port().into());
            }
            true
        }),
    ],
    handler: Some((part::Phase::PostAccept, |place| !crate::values(place).realip.from.is_empty(), trust)),
    ..Part::NOTHING
};

fn trust(session: &mut Session<'_>) -> part::Next {
    let from = &crate::values(&session.server.place).realip.from;
    let peer = Peer::of(session.peer());
    let told = session.proxied.as_ref().filter(|_| from.iter().any(|network| network.has(peer)));
    if let Some(source) = told.map(|proxied| proxied.source) {
        session.tell_remote(SocketAddress::Tcp(source));
    }
    part::Next::Continue
}

fn from(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let text = statement.text(0);
    let networks = match Cidr::parse(text) {
        _ if text == "unix:" => vec![Cidr::Unix],
        Some((network, has_low_bits)) => {
            if has_low_bits {
                b.warn(format!("low address bits of {text} are meaningless"), None);
            }
            vec![network]
        }
        None => {
            let addresses = (b.resolve)(text)
                .map_err(|_| Refusal::whole(format!("host not found in set_real_ip_from \"{text}\"")))?;
            addresses.iter().map(|address| Cidr::of(address.ip())).collect()
        }
    };
    let from = crate::settings(b).realip.from.get_or_insert_default();
    Arc::make_mut(from).extend(networks);
    Ok(())
}

/// Takes the address that the peer reports, if the peer is a trusted proxy.
fn listen_to_proxy(exchange: &mut Exchange<'_>) {
    let location = exchange.location;
    let settings = &crate::values(location).realip;
    if exchange.told_address().is_some() {
        return;
    }
    if let Some(address) = told(exchange, &settings.header, &settings.from, settings.recursive) {
        exchange.rare_mut().told_address = Some(SocketAddress::Tcp(address));
    }
}

fn told(exchange: &Exchange<'_>, header: &Header, from: &[Cidr], recursive: bool) -> Option<SocketAddr> {
    let peer = Peer::of(&exchange.client.remote);
    let request = &exchange.request;
    match header {
        Header::ForwardedFor => {
            let fields = request.fields().iter().rev().filter(|field| field.known == Some(Known::XForwardedFor));
            cidr::forwarded(peer, fields.map(|field| request.text(field.value)), from, recursive)
        }
        Header::ProxyProtocol => {
            let source = exchange.client.proxied.get()?.source;
            from.iter().any(|network| network.has(peer)).then_some(source)
        }
        Header::Named(name) => {
            let is_it = |field: &&weir_wire::Field| request.text(field.name).eq_ignore_ascii_case(name.as_bytes());
            let field = request.fields().iter().find(is_it)?;
            cidr::forwarded(peer, std::iter::once(request.text(field.value)), from, recursive)
        }
    }
}
