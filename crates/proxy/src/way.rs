//! The way of a request to the upstream of its location.

use weir_http::conn::Conn;
use weir_http::exchange::Exchange;

use crate::family::Values;
use crate::family::cache;
use crate::family::cache::facts::Use;
use crate::family::cache::purging::Purging;
use crate::family::slice;
use crate::family::upstream::answer::Answer;
use crate::family::upstream::forward;
use crate::family::upstream::source::Source;

/// What stands between a location and its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing.
    Plain,
    /// A cache.
    Cached,
    /// A cache that gets the answer part by part (`slice`).
    Sliced,
}

impl Way {
    /// The way of a location with these settings.
    #[inline]
    pub fn of(values: &Values) -> Way {
        let is_plain =
            matches!((&values.cache.zone, &values.cache.purge), (Use::Off, Purging::Nobody | Purging::ByValue(_)));
        match (values.slice.size, is_plain) {
            (0, true) => Way::Plain,
            (0, false) => Way::Cached,
            (_, _) => Way::Sliced,
        }
    }
}

/// Asks the upstream of the exchange's location by its way. The body of the response is put into `source`.
pub async fn forward(exchange: &mut Exchange<'_>, conn: &mut Conn, source: &mut Option<Source>) -> Answer {
    let values = crate::values(exchange.location);
    match Way::of(values) {
        Way::Plain => forward::forward(exchange, conn, values, None, source).await,
        Way::Cached => cache::forward::forward(exchange, conn, values, source).await,
        Way::Sliced => slice::forward(exchange, conn, values, source).await,
    }
}
