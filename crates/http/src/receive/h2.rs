//! HTTP/2 (RFC 9113): one task drives a connection, and each stream is a `Carried`, read and written like a socket.
//!
//! Towards clients, one task serves each stream:
//!
//! ```text
//!  socket ─ frames ─► drive/streams ─ a request ─► a task: seat, exchange, as for HTTP/1.1
//!                       ▲                   │ reads and writes a `Stream`, which is a `Carried`
//!  socket ◄─ frames ────┴──── `Session` ◄───┘
//! ```
//!
//! A stream's bytes are framed at once into one buffer. The driving task sends the buffer when all ready streams have
//! written: answers that are ready together leave in one call. A stream may have to wait to write: for its window,
//! for the connection's window, or because too many bytes wait for the socket. It is woken when it may write.
//!
//! Towards origins `family/upstream/line` drives; exchanges open streams, `ask` sends requests on them, and `reply`
//! takes all of the answer except the body.

pub mod ask;
pub mod input;
pub mod reply;
pub mod session;
pub mod stream;

use weir_wire::h2::connection::PREFACE;

/// Whether `bytes` are the HTTP/2 preface, its beginning, or something else.
pub fn preface(bytes: &[u8]) -> Preface {
    match bytes.get(..PREFACE.len()) {
        Some(whole) if whole == PREFACE => Preface::Whole,
        None if PREFACE.starts_with(bytes) => Preface::Part,
        _ => Preface::Other,
    }
}

/// Whether the first line of `bytes` looks like a request of HTTP/1.x: such a client gets an answer that it can read,
/// even if the line is wrong. A client that names HTTP/2, or no version, speaks something else.
pub fn claims_http1(bytes: &[u8]) -> bool {
    let line = bytes.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    let has = |word: &[u8]| memchr::memmem::find(line, word).is_some();
    has(b" HTTP/") && !line.starts_with(PRIOR)
}

/// The beginning that only a client of HTTP/2 sends (RFC 9113 §3.4).
const PRIOR: &[u8] = b"PRI * HTTP/2";

/// See [`preface`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preface {
    /// The whole preface; frames may follow.
    Whole,
    /// The beginning of the preface.
    Part,
    /// HTTP/1.1, or an unknown protocol.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_http1_is_told_from_a_broken_preface() {
        for (bytes, wanted) in [
            (&b"GET /\t HTTP/1.1\r\n\r\n"[..], true),
            (b"\r\nGET http: HTTP/9\r\n", true),
            (b"INVALID CONNECTION PREFACE\r\n\r\n", false),
            (b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", false),
            (b"PRI x\r\nHost: HTTP/1.1\r\n", false),
        ] {
            assert_eq!(claims_http1(bytes), wanted, "{bytes:?}");
        }
    }

    #[test]
    fn a_preface_is_known_as_early_as_it_can_be() {
        for (bytes, wanted) in [
            (&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0"[..], Preface::Whole),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Preface::Whole),
            (b"PRI * HT", Preface::Part),
            (b"P", Preface::Part),
            (b"", Preface::Part),
            (b"POST / HTTP/1.1\r\n", Preface::Other),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r", Preface::Other),
        ] {
            assert_eq!(preface(bytes), wanted, "{bytes:?}");
        }
    }

    mod mutate {
        use super::*;
        /// More bytes decide once: a preface is whole or other, and stays so.
        #[test]
        fn first_bytes() {
            let seeds: [&[u8]; 3] = [PREFACE, b"GET / HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nXX"];
            weir_mutate::mutate(&seeds, &["\r\n", "PRI ", " HTTP/1.1", "SM"], |bytes| {
                let whole = preface(bytes);
                for end in 0..bytes.len() {
                    let early = preface(&bytes[..end]);
                    assert!(early == Preface::Part || early == whole, "{end} bytes");
                }
                let _ = claims_http1(bytes);
            });
        }
    }
}
