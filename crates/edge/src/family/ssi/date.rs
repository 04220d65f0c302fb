//! `$date_local` and `$date_gmt`: the date in the format that `config timefmt` sets.

use weir_http::exchange::Exchange;
use weir_http::hold::own::Owned;
use weir_net::clock;

/// The format of dates that `config timefmt` sets, for the rest of a body.
pub struct TimeFormat(pub Vec<u8>);

impl Owned for TimeFormat {}

const TIME_FORMAT: &[u8] = b"%A, %d-%b-%Y %H:%M:%S %Z";

/// The longest date (nginx: `NGX_HTTP_SSI_DATE_LEN`).
const DATE_BYTES_MAX: usize = 2048;

/// Appends the date, in local time or in GMT.
pub fn push(exchange: &mut Exchange<'_>, is_local: bool, out: &mut Vec<u8>) -> bool {
    let format = exchange.own.get::<TimeFormat>().map_or(TIME_FORMAT, |format| &format.0);
    let seconds = clock::unix_seconds();
    if format == b"%s" {
        weir_wire::encode::push_decimal(out, seconds);
        return true;
    }
    match clock::strftime(format, seconds as i64, is_local, DATE_BYTES_MAX) {
        Some(text) => {
            out.extend_from_slice(&text);
            true
        }
        None => false,
    }
}
