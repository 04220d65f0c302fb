//! The result of asking a location's upstream.

use weir_http::exchange::Exchange;
use weir_http::exchange::message::Origin;
use weir_http::exchange::phase::Outcome;
use weir_http::hold::conn::Gone;
use weir_wire::BodyLength;

use super::pool::Link;
use super::source::Hold;

/// An upstream that agreed to switch protocols.
pub struct Upgraded {
    /// The connection.
    pub link: Box<Link>,
    /// The chosen peer.
    pub hold: Hold,
}

/// The result of forwarding.
pub enum Answer {
    /// The response is in the exchange; its body comes from the source that `forward` has put into `source`.
    Response,
    /// The peer switched protocols.
    Tunnel(Box<Upgraded>),
    /// Continue with this: an error status, or a location that the upstream named.
    Outcome(Outcome),
    /// The client left.
    Gone(Gone),
}

/// Judges a peer's answer before weir uses any part of it; returns the answer that takes its place, if one does. The
/// length is that of the body.
pub type Judge = fn(&mut Exchange<'_>, &mut Box<Origin>, BodyLength) -> Option<Answer>;
