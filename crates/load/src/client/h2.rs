//! HTTP/2 (RFC 9113) over a socket: the frames of all exchanges are sent at once.

mod carrier;
mod driver;
mod lost;
mod open;

pub(super) use open::open;
