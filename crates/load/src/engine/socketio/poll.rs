//! The requests of HTTP long-polling: two at the same time, each on its own connection.
//!
//! Connections are kept, as browsers do; engine.io-client on Node opens one for each request.

use weir_meter::Step;
use weir_net::{Deadline, Instant, Transport, buffer, clock};
use weir_wire::chunked::{ChunkEvent, Decoder};
use weir_wire::{BodyLength, ConnectionTokens, Known, ResponseHead, keeps_alive, response_body};

use super::options::SocketioOptions;
use crate::client::{IDLE_MAX, idle_max};
use crate::engine::dial::{ConnectRefused, READ_BYTES, dial, read_head, read_more, secure, write_all};

/// The longest body of an answer.
const BODY_BYTES_MAX: usize = 64 << 20;

/// A connection that is opened when needed.
#[derive(Default)]
pub(super) struct Poller {
    /// With the time until which a request may begin.
    kept: Option<(Transport, Instant)>,
}

/// An answer.
pub(super) struct PollAnswer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Poller {
    /// Sends a GET, or a POST of `body`, and reads the answer.
    pub(super) async fn ask(
        &mut self,
        options: &SocketioOptions,
        target: &str,
        body: Option<&[u8]>,
        deadline: &Deadline,
    ) -> Result<PollAnswer, ConnectRefused> {
        let mut out = buffer::lease(1024);
        request(&mut out, options, target, body);
        let method: &[u8] = if body.is_some() { b"POST" } else { b"GET" };
        let kept = self.kept.take().filter(|(stream, until)| clock::now() < *until && !stream.peek_closed());
        if let Some((stream, _)) = kept {
            // If this fails, the server may have acted on the request: it is not sent twice.
            return self.exchange(stream, &out, method, deadline).await;
        }
        let stream = dial(&options.place.host, options.place.port, None, &options.resolver, deadline).await?;
        let stream = secure(stream, &options.place, &options.tls, deadline).await?;
        self.exchange(stream, &out, method, deadline).await
    }

    async fn exchange(
        &mut self,
        stream: Transport,
        request: &[u8],
        method: &[u8],
        deadline: &Deadline,
    ) -> Result<PollAnswer, ConnectRefused> {
        write_all(&stream, request, deadline).await?;
        stream.readable(deadline).await.map_err(|_| late())?;
        let (mut buf, mut head) = (buffer::lease(READ_BYTES), ResponseHead::new());
        read_head(&stream, deadline, &mut buf, &mut head).await?;
        let length = response_body(&buf, &head, method).map_err(|_| malformed())?;
        let keeps = keeps_alive(head.version, ConnectionTokens::of(&buf, &head.fields)) && head.status != 101;
        let announced = head.value(&buf, Known::KeepAlive).and_then(idle_max);
        let most = announced.map_or(IDLE_MAX, |announced| announced.min(IDLE_MAX));
        buf.drain(..head.len);
        let mut body = Vec::new();
        let mut left = match length {
            BodyLength::None => 0,
            BodyLength::Exact(length) => length,
            BodyLength::UntilClose => u64::MAX,
            BodyLength::Chunked => {
                read_chunked(&stream, deadline, &mut buf, &mut body).await?;
                0
            }
        };
        while left > 0 {
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
            body.extend(buf.drain(..len));
            left -= len as u64;
            if left == 0 {
                break;
            }
            if body.len() > BODY_BYTES_MAX {
                return Err(malformed());
            }
            if read_more(&stream, deadline, &mut buf).await? == 0 {
                match length {
                    BodyLength::UntilClose => break,
                    _ => return Err(ConnectRefused::new(Step::ReadResponse, Some("ECONNRESET"), "aborted")),
                }
            }
        }
        if keeps && length != BodyLength::UntilClose && buf.is_empty() {
            self.kept = Some((stream, clock::now() + most));
        }
        Ok(PollAnswer { status: head.status, body })
    }
}

async fn read_chunked(
    stream: &Transport,
    deadline: &Deadline,
    buf: &mut buffer::Lease,
    body: &mut Vec<u8>,
) -> Result<(), ConnectRefused> {
    let mut decoder = Decoder::new();
    let mut at = 0;
    loop {
        match decoder.next(buf, &mut at).map_err(|_| malformed())? {
            ChunkEvent::End => {
                buf.drain(..at);
                return Ok(());
            }
            ChunkEvent::Data { start, end } => {
                body.extend_from_slice(buf.get(start..end).unwrap_or_default());
                if body.len() > BODY_BYTES_MAX {
                    return Err(malformed());
                }
            }
            ChunkEvent::NeedMore => {
                buf.clear();
                at = 0;
                if read_more(stream, deadline, buf).await? == 0 {
                    return Err(ConnectRefused::new(Step::ReadResponse, Some("ECONNRESET"), "aborted"));
                }
            }
        }
    }
}

fn request(out: &mut Vec<u8>, options: &SocketioOptions, target: &str, body: Option<&[u8]>) {
    let mut push = |parts: &[&[u8]]| parts.iter().for_each(|part| out.extend_from_slice(part));
    let method: &[u8] = if body.is_some() { b"POST " } else { b"GET " };
    push(&[method, target.as_bytes(), b" HTTP/1.1\r\n"]);
    let has = |wanted: &str| options.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    if !has("user-agent") {
        push(&[b"User-Agent: node-XMLHttpRequest\r\n"]);
    }
    push(&[b"Accept: */*\r\n"]);
    for (name, value) in &options.headers {
        push(&[name.as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
    }
    if !has("host") {
        push(&[b"Host: ", options.place.authority.as_bytes(), b"\r\n"]);
    }
    if let Some(body) = body {
        push(&[b"Content-Type: text/plain;charset=UTF-8\r\nContent-Length: ", body.len().to_string().as_bytes()]);
        push(&[b"\r\n"]);
    }
    push(&[b"Connection: keep-alive\r\n\r\n", body.unwrap_or_default()]);
}

fn late() -> ConnectRefused {
    ConnectRefused::new(Step::AwaitHead, Some("ETIMEDOUT"), "read ETIMEDOUT")
}

fn malformed() -> ConnectRefused {
    ConnectRefused::new(Step::ReadResponse, Some("HPE_INVALID_CONSTANT"), "Parse Error")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    // The server must not depend on the tested code.
    #![allow(clippy::disallowed_methods)]
    use super::*;
    use crate::engine::socketio::options;
    use crate::value::Map;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Polls twice a server that keeps its connections and answers with the number of the connection.
    fn connections(field: &'static str) -> [Vec<u8>; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    while stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {
                        let answer = format!("HTTP/1.1 200 OK\r\n{field}Content-Length: 1\r\n\r\n{number}");
                        stream.write_all(answer.as_bytes()).unwrap();
                    }
                });
            }
        });
        weir_net::worker::block_on(async move {
            let options = options::read(&target, &Map::default()).unwrap();
            let (mut poller, deadline) = (Poller::default(), Deadline::new());
            let first = poller.ask(&options, "/", None, &deadline).await.ok().unwrap();
            let second = poller.ask(&options, "/", None, &deadline).await.ok().unwrap();
            [first.body, second.body]
        })
        .unwrap()
    }

    #[test]
    fn a_connection_is_used_as_long_as_its_server_keeps_it() {
        for (field, second) in [("", b"0"), ("Keep-Alive: timeout=9\r\n", b"0"), ("Keep-Alive: timeout=0\r\n", b"1")] {
            assert_eq!(connections(field), [b"0".as_slice(), second.as_slice()], "{field}");
        }
    }
}
