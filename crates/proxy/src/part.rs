//! The part of an answer that an exchange fetches (`slice`).

use weir_http::exchange::Exchange;
use weir_http::hold::own::Owned;

/// The part of an answer that an exchange fetches.
pub struct Part {
    /// Where it begins.
    pub start: u64,
    /// Another exchange fetches the first part, and its client gets them all.
    pub is_further: bool,
}

impl Owned for Part {
    fn ends_at_redirect(&self) -> bool {
        true
    }
}

/// Where the part begins; `None` if the answer is not fetched in parts.
pub fn start(exchange: &Exchange<'_>) -> Option<u64> {
    exchange.own.get::<Part>().map(|part| part.start)
}

/// Fetches the answer whole.
pub fn forget(exchange: &mut Exchange<'_>) {
    exchange.own.remove::<Part>();
}

/// Whether the exchange fetches one more part of another exchange's answer.
pub fn is_part(exchange: &Exchange<'_>) -> bool {
    exchange.own.get::<Part>().is_some_and(|part| part.is_further)
}
