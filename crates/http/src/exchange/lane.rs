//! The key of a client in its request, by which it gets its configuration while there are two.

use std::rc::Rc;

use weir_wire::Known;

use crate::exchange::message::Request;
use crate::hold::client::Client;
use crate::hold::split::{Coin, SplitKey};
use crate::hold::worker::{Generation, Worker};
use crate::text::texts::cookie;

/// The lane of a request, once its head is known; `None` if its client has the right one already.
#[inline]
pub fn of_request(
    worker: &Worker,
    client: &Client,
    request: &Request,
    first: &Rc<Generation>,
) -> Option<Rc<Generation>> {
    worker.lane_by(first, |coin| number(coin, client, request))
}

/// The number of the client that sent this request; `None` if the request has no key.
pub fn number(coin: &Coin, client: &Client, request: &Request) -> Option<u64> {
    if let Some((id, number)) = request.client_number.get()
        && id == coin.id()
    {
        return Some(number);
    }
    let number = number_of(coin, client, request)?;
    request.client_number.set(Some((coin.id(), number)));
    Some(number)
}

fn number_of(coin: &Coin, client: &Client, request: &Request) -> Option<u64> {
    match coin.key() {
        SplitKey::Address => coin.of_address(client.ip()),
        SplitKey::Cookie(name) => {
            let mut fields = request.fields().iter().filter(|field| field.known == Some(Known::Cookie));
            coin.of_text(fields.find_map(|field| cookie(request.text(field.value), name.as_bytes()))?)
        }
        SplitKey::Field(name) => {
            let named = |found: &[u8]| found.eq_ignore_ascii_case(name.as_bytes());
            let field = request.fields().iter().find(|field| named(request.text(field.name)))?;
            coin.of_text(request.text(field.value))
        }
        SplitKey::Argument(name) => {
            let target = request.text(request.head.target);
            let query = target.iter().position(|byte| *byte == b'?').and_then(|at| target.get(at + 1..))?;
            let mut pairs = query.split(|byte| *byte == b'&').filter_map(|pair| {
                let (found, value) = pair.split_at_checked(name.len())?;
                value.strip_prefix(b"=").filter(|_| found.eq_ignore_ascii_case(name.as_bytes()))
            });
            coin.of_text(pairs.next()?)
        }
    }
}
