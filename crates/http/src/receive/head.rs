//! Reads a request's head within limits.
//!
//! Each refusal has a name (`wire::Violation`), and weir logs it in nginx's words.

use std::io;

use weir_net::clock;
use weir_wire::{HeadPolicy, InvalidFields, Progress, Version, Violation};

use crate::exchange::Parts;
use crate::exchange::conf::Conf;
use crate::exchange::message::Request;
use crate::exchange::route::ServerId;
use crate::family::Values;
use crate::family::core::Values as Core;
use crate::hold::conn::Conn;
use crate::receive::h2::{self, Preface};

/// Heads are read in pieces of this size: most heads fit one piece, and a larger head takes a few.
const READ_BYTES: usize = 2 << 10;

/// The result of reading a head.
pub enum Head {
    /// It is complete.
    Complete,
    /// The connection had no bytes to read.
    Nothing,
    /// The client closed between requests.
    Closed,
    /// It begins with HTTP/2's preface.
    Streams,
    /// It will not become complete, or it breaks a rule.
    Refused(Refused),
}

/// Why a request does not get as far as its phases.
pub enum Refused {
    /// It breaks a rule.
    Violation(Violation),
    /// It took longer than `client_header_timeout`.
    TimedOut,
    /// The client closed in the middle.
    ClosedInHead,
}

/// The rules for heads under these settings: those of the default server, because the host is not known yet.
pub fn policy(core: &Core) -> HeadPolicy {
    HeadPolicy {
        invalid_fields: if core.ignore_invalid_headers { InvalidFields::Drop } else { InvalidFields::Keep },
        underscores: core.underscores_in_headers,
        fields_max: core.headers_max as usize,
    }
}

/// The settings of a listen's default server: they apply before the host is known.
pub fn default_values(conf: &Conf, listen: usize) -> &Values {
    let server = conf.listens.get(listen).map_or(ServerId(0), |listen| listen.hosts.default_server());
    &conf.location(conf.server(server).root).values
}

/// The settings about requests among them.
#[inline]
pub fn default_core(conf: &Conf, listen: usize) -> &Core {
    &default_values(conf, listen).core
}

/// Reads until a head is complete. `Nothing` if the connection has no bytes to read. If the connection `may_carry`
/// streams, it may return HTTP/2's preface instead.
pub async fn read(conn: &mut Conn, parts: &mut Parts, core: &Core, may_carry: bool) -> Head {
    let policy = policy(core);
    let request = parts.request();
    request.parser.reset();
    let mut began = !request.bytes.is_empty();
    if began {
        request.started = Some(clock::now());
    }
    let mut is_timed = false;
    loop {
        let preface = if may_carry { h2::preface(&request.bytes) } else { Preface::Other };
        if preface == Preface::Whole {
            return Head::Streams;
        }
        // Bytes that may become a preface are no request yet; they use up the time that the connection had for its
        // first byte.
        if !request.bytes.is_empty() && preface == Preface::Other {
            match request.parser.request(&request.bytes, &policy, &mut request.head) {
                Ok(Progress::Done) => {
                    request.used = request.head.len;
                    if request.head.version == Version::Http09 && !request.unread().trim_ascii().is_empty() {
                        // A client of HTTP/0.9 sends only one line: more bytes mean a request line with a stray line
                        // end.
                        return Head::Refused(Refused::Violation(Violation::InvalidRequest));
                    }
                    return match over_limits(&request.bytes, request.head.line.end as usize, request.head.len, core) {
                        Some(violation) => Head::Refused(Refused::Violation(violation)),
                        None => Head::Complete,
                    };
                }
                Ok(Progress::Partial { line_done, offset }) => {
                    let pending = request.bytes.len().saturating_sub(offset) as u64;
                    let (count, size) = core.large_headers;
                    if pending >= size.max(core.header_buffer) {
                        return Head::Refused(Refused::Violation(if line_done {
                            Violation::HeadTooLarge
                        } else {
                            Violation::TargetTooLong
                        }));
                    }
                    if request.bytes.len() as u64 >= core.header_buffer + u64::from(count) * size {
                        return Head::Refused(Refused::Violation(Violation::HeadTooLarge));
                    }
                    // nginx has one timer for the whole head. Most heads arrive whole and need no timer.
                    if !is_timed {
                        is_timed = true;
                        conn.deadline.set(core.header_timeout);
                    }
                }
                Err(violation) if may_carry && is_bad_preface(request, violation) => return Head::Streams,
                Err(violation) => return Head::Refused(Refused::Violation(violation)),
            }
        }
        match conn.shared.stream.try_read_vec(&mut request.bytes, READ_BYTES) {
            Ok(0) => {
                return if request.bytes.is_empty() { Head::Closed } else { Head::Refused(Refused::ClosedInHead) };
            }
            Ok(_) => {
                if !began {
                    began = true;
                    request.started = Some(clock::now());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if request.bytes.is_empty() {
                    return Head::Nothing;
                }
                if conn.shared.stream.readable(&conn.deadline).await.is_err() {
                    return Head::Refused(Refused::TimedOut);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Head::Closed,
        }
    }
}

/// Whether the client of a port that accepts HTTP/2 sent an invalid preface and not a request of HTTP/1: its first line
/// is no request, and names no version of HTTP/1. A line without a method is not an invalid preface: it may be TLS.
fn is_bad_preface(request: &Request, violation: Violation) -> bool {
    request.head.line.is_empty() && violation != Violation::InvalidMethod && !h2::claims_http1(&request.bytes)
}

/// The limits of `client_header_buffer_size` and `large_client_header_buffers` on a complete head.
#[inline]
fn over_limits(bytes: &[u8], line_end: usize, head_len: usize, core: &Core) -> Option<Violation> {
    let (count, size) = core.large_headers;
    let line_max = size.max(core.header_buffer) as usize;
    // One comparison is enough for most heads.
    if head_len <= core.header_buffer as usize {
        return None;
    }
    if line_end >= line_max {
        return Some(Violation::TargetTooLong);
    }
    let head = bytes.get(..head_len).unwrap_or_default();
    if head.split(|b| *b == b'\n').skip(1).any(|line| line.len() >= line_max) {
        return Some(Violation::HeadTooLarge);
    }
    (head_len as u64 > core.header_buffer + u64::from(count) * size).then_some(Violation::HeadTooLarge)
}
