//! The statuses of sessions: nginx's, which look like those of HTTP.

/// The status of a session that ended in order.
pub const OK: u16 = 200;
/// The client's first bytes are wrong.
pub const BAD_REQUEST: u16 = 400;
/// Something that weir needs is missing.
pub const INTERNAL: u16 = 500;
/// No peer could be reached.
pub const BAD_GATEWAY: u16 = 502;
