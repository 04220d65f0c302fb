//! `return`: sends a text to the client and ends the session.

use std::io;
use std::time::Duration;

use weir_http::template::Template;
use weir_meter::Step;
use weir_net::Deadline;
use weir_net::log::{Level, Os};

use super::status::{INTERNAL, OK};
use crate::session::Session;

/// How long the client may take to accept some bytes (nginx has the same).
const TIMEOUT: Duration = Duration::from_secs(5);

/// Sends the text.
pub async fn say(session: &mut Session<'_>, text: &Template) -> u16 {
    session.step = Some(Step::ReturnText);
    let text = text.text(session);
    let Some(shared) = session.shared.clone() else { return INTERNAL };
    let deadline = Deadline::new();
    deadline.set(TIMEOUT);
    let mut rest = text.as_slice();
    while !rest.is_empty() {
        match shared.stream.try_write(rest) {
            Ok(count) => {
                rest = rest.get(count..).unwrap_or_default();
                session.sent += count as u64;
                deadline.set(TIMEOUT);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if shared.stream.writable(&deadline).await.is_err() {
                    session.log(Level::Info, format_args!("connection timed out (110: Connection timed out)"));
                    return OK;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                session.log(Level::Info, format_args!("send() failed {}", Os(&error)));
                return OK;
            }
        }
    }
    OK
}
