//! The way of a request to the upstream of its location.

use weir_http::exchange::Exchange;
use weir_http::hold::conn::Conn;

use crate::family::Values;
use crate::family::cache;
use crate::family::cache::facts::Use;
use crate::family::cache::purging::Purging;
use crate::family::slice;
use crate::family::upstream::answer::Answer;
use crate::family::upstream::forward;
use crate::family::upstream::source::Source;

/// The stages between a location and its upstream.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_a_purge_by_method_or_slices_stand_between_a_location_and_its_upstream() {
        for (settings, expected) in [
            ("", Way::Plain),
            ("proxy_cache off;", Way::Plain),
            ("proxy_cache z;", Way::Cached),
            ("proxy_cache $arg_z;", Way::Cached),
            ("proxy_cache z; slice 1m;", Way::Sliced),
            ("slice 1m;", Way::Sliced),
            ("slice 0;", Way::Plain),
            ("proxy_cache z; proxy_cache_purge $arg_p;", Way::Cached),
            ("proxy_cache_purge $arg_p;", Way::Plain),
        ] {
            let text = format!(
                "events {{}} http {{ proxy_cache_path /c keys_zone=z:1m; server {{ location / {{ proxy_pass http://127.0.0.1:1; {settings} }} }} }}"
            );
            let (conf, problems) = crate::of_text(&text);
            assert_eq!(problems, [""; 0], "{settings}");
            let conf = conf.unwrap();
            let location = conf.locations.iter().find(|location| location.name == "/").unwrap();
            assert_eq!(Way::of(crate::values(location)), expected, "{settings}");
        }
    }
}
