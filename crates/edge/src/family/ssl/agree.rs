//! The result of a handshake with a client: the parameters, and the verdict on the client's certificate.

use std::io;

use weir_http::hold::bounds::{MEMORY, Share};
use weir_http::hold::client::Agreed;
use weir_http::hold::worker::{Generation, Worker};
use weir_net::clock;
use weir_net::log::Os;
use weir_net::tls::{Agreement, Complaint, Purpose, failure};

use super::assemble::ServerTls;

/// Memory of a session of TLS, also while its connection is idle: a record in each direction, keys, and the handshake. Many
/// handshakes in one second would pass a limit on memory that is only measured.
const SESSION_BYTES: u64 = 48 << 10;

/// The memory of a session, counted before the session is made; `None` if there is none.
pub fn room() -> Option<Share> {
    let mut share = MEMORY.share();
    share.grow(SESSION_BYTES).then_some(share)
}

/// Judges the client's certificate chain, and collects the parameters of the session.
pub async fn agreed(place: (&Worker, &Generation), speaks: Option<&ServerTls>, agreement: Agreement) -> Agreed {
    let now = i64::try_from(clock::unix_seconds()).unwrap_or(i64::MAX);
    let chain: Vec<&[u8]> = agreement.certificates.iter().map(Box::as_ref).collect();
    let mut verdict = match speaks {
        _ if chain.is_empty() => Ok(()),
        Some(speaks) => speaks.trust.judge(&chain, Purpose::Client, speaks.depth, now),
        None => Err(Complaint::NO_LOCAL_ISSUER),
    };
    if let Some(speaks) = speaks
        && let Some(checks) = &speaks.checks
        && !chain.is_empty()
        && verdict.is_ok()
    {
        let chain = speaks.trust.chain(&chain, speaks.depth);
        verdict = Box::pin(checks.judge(place, &speaks.trust, &chain)).await;
    }
    Agreed {
        protocol: agreement.version,
        cipher: agreement.cipher,
        group: agreement.group,
        alpn: agreement.alpn,
        is_resumed: agreement.is_resumed,
        noted: agreement.noted,
        certificate: agreement.certificates.into_iter().next(),
        verdict,
    }
}

/// Why there is no TLS connection, in nginx's words.
pub fn told(error: &io::Error) -> String {
    match failure(error) {
        Some(failure) => format!("SSL_do_handshake() failed (SSL: {failure})"),
        None if error.kind() == io::ErrorKind::TimedOut => "client timed out (110: Connection timed out)".to_owned(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => "peer closed connection in SSL handshake".to_owned(),
        None => format!("SSL_do_handshake() failed {}", Os(error)),
    }
}
