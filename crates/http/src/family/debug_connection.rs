//! `debug_connection`: clients whose lines go to each error log, whatever level that log takes.
//!
//! At the level `debug`, weir writes a line for each exchange: the location that answered, and the peers that weir asked.
//! <https://nginx.org/en/docs/ngx_core_module.html#debug_connection>

use std::fmt::Write;

use weir_conf::Statement;
use weir_net::SocketAddress;
use weir_net::log::Level;

use crate::exchange::Exchange;
use crate::exchange::conf::{Conf, Location};
use crate::read::authority;
use crate::read::build::Build;
use crate::read::directive::{Directive, EVENTS, ONE};
use crate::read::families::Family;
use crate::text::cidr::{Cidr, Peer};
use crate::text::refusal::Refusal;

crate::settings! {
    /// The clients.
    clients: Vec<Cidr> = Vec::new(),
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "debug_connection",
    &[Directive::new(
        "debug_connection",
        EVENTS,
        ONE,
        "Writes all lines about these clients to each error log: an address, a network, a host name, or unix:.",
        debug_connection,
    )
    .many()],
)
.log(writes, tell);

impl Values {
    /// Whether the client of this address is one of them.
    pub fn has(&self, address: &SocketAddress) -> bool {
        !self.clients.is_empty() && self.clients.iter().any(|network| network.has(Peer::of(address)))
    }
}

fn debug_connection(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let text = statement.text(0);
    let found = if text == "unix:" {
        vec![Cidr::Unix]
    } else if let Some((network, has_low_bits)) = Cidr::parse(text) {
        if has_low_bits {
            b.warn(format!("low address bits of {text} are meaningless"), None);
        }
        vec![network]
    } else {
        let addresses = authority::resolve_in(b, text, 0, "debug_connection")?;
        addresses.iter().filter_map(|address| address.tcp()).map(|address| Cidr::of(address.ip())).collect()
    };
    b.settings().debug_connection.clients.get_or_insert_default().extend(found);
    Ok(())
}

/// Whether a log takes the line at the end of an exchange.
fn writes(conf: &Conf, location: &Location) -> bool {
    !conf.main.debug_connection.clients.is_empty() || location.values.error_log.sinks.takes(Level::Debug)
}

/// The line at the end of an exchange.
fn tell(exchange: &mut Exchange<'_>) {
    if !exchange.logs(Level::Debug) {
        return;
    }
    let mut asked = String::new();
    for attempt in &*exchange.tries {
        let written = write!(asked, ", asked {}: {}", attempt.peer, attempt.status);
        debug_assert!(written.is_ok());
        for (what, us) in [("head", attempt.header_us), ("end", attempt.response_us)] {
            if let Some(us) = us {
                let written = write!(asked, ", {what} after {us} us");
                debug_assert!(written.is_ok());
            }
        }
    }
    let (status, sent) = (exchange.response.status.get(), exchange.bytes.sent);
    let ms = weir_net::clock::now().ms_since(exchange.facts.started);
    let location = exchange.location.name.as_str();
    exchange.log(
        Level::Debug,
        format_args!("http end: {status} by location \"{location}\", {sent} bytes in {ms} ms{asked}"),
    );
}
