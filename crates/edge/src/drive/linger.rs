//! The end of a connection whose client may still be sending.

use std::io;
use std::time::Duration;

use weir_http::hold::conn::Conn;
use weir_http::hold::worker::Worker;
use weir_net::clock;

/// Before a close, the remaining bytes of the client are read in pieces of this size.
const READ_BYTES: usize = 4 << 10;

/// Closes the sending side and reads the rest of the client's data. Closing at once would destroy the answer on its
/// way (RFC 9112 §9.6).
pub async fn linger(conn: &Conn, worker: &Worker, time: Duration, timeout: Duration) {
    if conn.stream().shutdown_write().is_err() {
        return;
    }
    // A stop does not wait for data that weir only throws away: a draining worker may end this connection.
    conn.shared.lie_idle();
    let until = clock::now() + time;
    let mut sink = weir_net::buffer::lease(READ_BYTES);
    loop {
        sink.clear();
        match conn.stream().try_read_vec(&mut sink, READ_BYTES) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = until.saturating_duration_since(clock::now());
                if left.is_zero() || worker.is_draining() {
                    return;
                }
                conn.deadline.set(timeout.min(left));
                if conn.stream().readable(&conn.deadline).await.is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}
