//! Pages of weir's own.
use crate::exchange::Exchange;
use crate::phase::Outcome;

/// error_page.
pub fn redirect(_exchange: &mut Exchange<'_>, _status: u16) -> Option<Outcome> {
    None
}

/// Whether error_page names this status.
pub fn is_intercepted(_exchange: &Exchange<'_>, _status: u16) -> bool {
    false
}

/// Fills the response.
pub fn page(exchange: &mut Exchange<'_>, status: u16) {
    exchange.response.status = status;
    exchange.response.content_length = Some(0);
}

/// The status line.
pub fn status_line(status: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{status} X").as_bytes());
}

/// Location made absolute.
pub fn absolute(_exchange: &Exchange<'_>, location: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(location);
}
