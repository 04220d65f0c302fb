//! How a body is composed of texts and of the answers of subrequests; `composed` sends it.

pub mod queue;

use queue::Queue;
use weir_wire::Known;

use crate::exchange::Exchange;
use crate::exchange::response_body::Body;
use crate::hold::own::Owned;

/// The subrequests and the reader of a body. An exchange whose body is composed has it in its `own`.
#[derive(Default)]
pub struct Composed {
    /// The path of the answer before the body.
    pub before: Option<Vec<u8>>,
    /// The path of the answer after the body.
    pub after: Option<Vec<u8>>,
    /// Reads the body; without a reader the body is text.
    pub reader: Option<Box<dyn Compose>>,
}

impl Owned for Composed {}

/// Reads a body, and writes texts and orders for the answers of subrequests.
pub trait Compose {
    /// Reads from the front of `input`; returns the number of bytes that it has read. It stops early if the queue is
    /// full, or if it has to wait for an answer. With `is_last`, nothing follows `input`; this may come twice.
    fn read(&mut self, exchange: &mut Exchange<'_>, input: &[u8], is_last: bool, out: &mut Queue<'_>) -> usize;
}

/// Makes the response of an exchange composed, and lets `change` say how; `false` if its body cannot become a part of
/// another body. The length of the body is not known then, and the client may not ask for parts of it.
pub fn compose(exchange: &mut Exchange<'_>, change: impl FnOnce(&mut Composed)) -> bool {
    let response = &mut exchange.response;
    match &response.body {
        Body::Stream(stream) if !stream.is_finite() => return false,
        // It is a body now, though an empty one.
        Body::Empty => response.body = Body::Bytes(Vec::new()),
        _ => {}
    }
    response.content_length = None;
    response.allows_ranges = false;
    response.fields.remove(Known::ContentLength);
    response.fields.remove(Known::AcceptRanges);
    match exchange.own.get_mut::<Composed>() {
        Some(composed) => change(composed),
        None => {
            let mut composed = Composed::default();
            change(&mut composed);
            exchange.own.add(composed);
        }
    }
    true
}

/// Whether the response of an exchange is composed.
#[inline]
pub fn is_composed(exchange: &Exchange<'_>) -> bool {
    exchange.own.get::<Composed>().is_some()
}
