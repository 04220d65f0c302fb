//! `return`: sends a text to the client and ends the session.

use std::io;
use std::time::Duration;

use weir_http::text::template::Template;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::Content;
    use crate::tests::{Edge, on_worker};
    use std::io::Read;

    #[test]
    fn a_text_goes_out_whole_even_if_the_client_takes_it_in_parts() {
        let (part, many) = ("x".repeat(4000), "$part".repeat(300));
        let long = part.repeat(300);
        for (text, expected) in
            [("\"\"", ""), ("\"to $remote_addr:$remote_port\"", "to 192.0.2.7:5555"), (&many, &long)]
        {
            let (block, expected) =
                (format!("server {{ listen 127.0.0.1:1; set $part {part}; return {text}; }}"), expected.to_owned());
            on_worker(async move {
                let edge = Edge::new(&block);
                let (mut session, mut client) = edge.connected();
                crate::family::set::run(&mut session);
                let Content::Return(text) = &session.server.content else { panic!("it returns a text") };
                let mut got = Vec::new();
                let status = {
                    let mut said = std::pin::pin!(say(&mut session, text));
                    std::future::poll_fn(|context| {
                        let polled = said.as_mut().poll(context);
                        let _ = client.read_to_end(&mut got);
                        polled
                    })
                    .await
                };
                assert_eq!((status, session.sent), (OK, expected.len() as u64));
                assert!(got == expected.as_bytes(), "{} of {} bytes", got.len(), expected.len());
            });
        }
    }
}
