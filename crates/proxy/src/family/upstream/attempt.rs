//! One try at one peer: connects or reuses a connection, sends, and waits for the head.
//!
//! Cost with a pooled connection: one `writev` for head and body, one `read` that usually brings head and body of the
//! answer. While it waits it also watches the client, because no work is needed for a client that has left.

use std::future::poll_fn;
use std::task::Poll;

use weir_http::exchange::Exchange;
use weir_http::exchange::message::Origin;
use weir_http::hold::conn::{Conn, Gone};
use weir_http::hold::worker::ROOMS_MAX;
use weir_http::receive::body;
use weir_meter::Step;
use weir_net::{ConnectOptions, Deadline, Stream, Transport, clock};
use weir_wire::BodyLength;

use super::failure::{Failure, Progressed};
use super::line::Opened;
use super::pool::{Link, Terms, UNTOLD};
use super::reading::{Reading, Received};
use super::sending::{BodyState, Outgoing, Sending, Upload};
use crate::family::Values;
use crate::family::proxy_ssl::handshake::shake_hands;
use crate::family::{early_hints, proxy};

/// Opens a connection to a peer on these terms; connect and handshake share `proxy_connect_timeout`.
pub async fn connect(
    exchange: &mut Exchange<'_>,
    conn: &Conn,
    address: &weir_net::Address,
    peer: usize,
    terms: Terms<'_>,
) -> Result<Box<Link>, Failure> {
    let (Opened { stream, place, at: opened, .. }, deadline) = dial(exchange, conn, address, terms).await?;
    let (bound, party, place) = (terms.bound.copied(), terms.party.cloned(), Some(place));
    Ok(Box::new(Link {
        stream,
        deadline,
        peer,
        bound,
        party,
        opened,
        carried: 0,
        peer_keeps_s: UNTOLD,
        place,
        h2: None,
    }))
}

/// Opens the connection itself; returns its deadline too.
pub async fn dial(
    exchange: &mut Exchange<'_>,
    conn: &Conn,
    address: &weir_net::Address,
    Terms { bound, party, sessions }: Terms<'_>,
) -> Result<(Opened, Deadline), Failure> {
    let location = exchange.location;
    let values = &crate::values(location).proxy;
    let options = ConnectOptions {
        bind: bound.copied(),
        receive_buffer_bytes: values.receive_buffer as usize,
        send_buffer_bytes: values.send_buffer as usize,
        keepalive: values.socket_keepalive,
    };
    exchange.facts.step = Step::Connect;
    let place = match exchange.worker.try_place() {
        Some(place) => place,
        // Boxed, as below.
        None => Box::pin(exchange.worker.wait_for_place(values.connect_timeout)).await.ok_or(Failure::TableFull)?,
    };
    let mut stream = Stream::connect(address, &options);
    for _ in 0..ROOMS_MAX {
        if !stream.as_ref().is_err_and(weir_net::is_out_of_files) {
            break;
        }
        // Boxed, because few exchanges need this future and all would carry its memory.
        Box::pin(exchange.worker.make_descriptors()).await;
        stream = Stream::connect(address, &options);
    }
    let stream = stream.map_err(Failure::Connect)?;
    let (deadline, opened) = (Deadline::new(), clock::now());
    deadline.set(values.connect_timeout);
    let watch = proxy::is_for_its_client_alone(exchange);
    poll_fn(|_| {
        if stream.poll_writable().is_ready() {
            return Poll::Ready(Ok(()));
        }
        if watch && let Poll::Ready(error) = conn.poll_gone() {
            return Poll::Ready(Err(Failure::Client(Gone::Closed(error))));
        }
        deadline.poll_expired().map(|()| Err(Failure::TimedOut))
    })
    .await?;
    // Only here is it known whether the connection succeeded.
    stream.connected(&deadline).await.map_err(Failure::Connect)?;
    let stream: Transport = match party {
        None => stream.into(),
        // Boxed: few exchanges make a handshake, and every one would need the room for it.
        Some(party) => Box::pin(shake_hands(exchange, conn, stream, address, party, &deadline, sessions)).await?.into(),
    };
    Ok((Opened { stream, place, at: opened, opening: None, past: None }, deadline))
}

/// The final answer of a peer: its head, the connection, and the length of the body.
pub struct Answered {
    /// The head.
    pub origin: Box<Origin>,
    /// The connection.
    pub link: Box<Link>,
    /// The length of the body.
    pub length: BodyLength,
}

/// Sends the request over `link` and reads the answer's head.
pub async fn exchange_heads(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    link: &Link,
    outgoing: Outgoing<'_>,
    progressed: &mut Progressed,
) -> Result<Box<Origin>, Failure> {
    // The rest of a request to another peer, whose answer was not used, must not go to this one.
    drop(exchange.own.take::<Upload>());
    let body = BodyState::of(exchange, &outgoing);
    let streams = body == BodyState::Client;
    if streams {
        body::welcome(exchange, conn).await.map_err(Failure::Client)?;
    }
    let mut sending = Sending::new(outgoing, body);
    exchange.facts.step = Step::SendRequest;
    if let Some(stream) = &link.h2 {
        sending.send_head(exchange, stream, outgoing.framing)?;
        progressed.request_sent = true;
    }
    let (values, reading) = (outgoing.values, Reading::default());
    let mut heads = Heads { link, values, progressed, streams, is_timed: false, sending, reading };
    if streams {
        conn.deadline.set(exchange.location.values.core.body_timeout.longest);
    }
    loop {
        match poll_fn(|_| heads.poll(exchange, conn)).await? {
            Received::Final(origin) => {
                if link.h2.is_some() && !heads.progressed.request_complete {
                    exchange.own.set(heads.sending.into_upload());
                }
                return Ok(origin);
            }
            // Boxed: few answers follow an interim one, and every exchange would need the room for it.
            Received::Interim(origin) => Box::pin(heads.pass_on(exchange, conn, origin)).await?,
        }
    }
}

/// A request being sent to a peer, and the head of the answer being read.
struct Heads<'h> {
    link: &'h Link,
    values: &'h Values,
    progressed: &'h mut Progressed,
    /// The body passes through while the client sends it.
    streams: bool,
    /// A deadline is set: a request that is sent at once needs none for sending.
    is_timed: bool,
    sending: Sending<'h>,
    reading: Reading,
}

impl Heads<'_> {
    /// Passes an interim answer to the client, and continues with the next head.
    async fn pass_on(
        &mut self,
        exchange: &mut Exchange<'_>,
        conn: &mut Conn,
        origin: Box<Origin>,
    ) -> Result<(), Failure> {
        early_hints::pass(exchange, conn, &origin).await.map_err(Failure::Client)?;
        self.reading.go_on(origin);
        self.link.deadline.set(self.values.proxy.read_timeout);
        if self.streams {
            conn.deadline.set(exchange.location.values.core.body_timeout.longest);
        }
        Ok(())
    }

    fn poll(&mut self, exchange: &mut Exchange<'_>, conn: &Conn) -> Poll<Result<Received, Failure>> {
        let (link, proxy) = (self.link, &self.values.proxy);
        let mut was_sent = false;
        if !self.progressed.request_complete {
            match self.sending.poll(exchange, conn, link, proxy, self.progressed) {
                Poll::Ready(Ok(())) => {
                    self.progressed.request_complete = true;
                    exchange.facts.step = Step::AwaitHead;
                    was_sent = true;
                }
                // The peer may have answered before it stopped reading: look for the answer first.
                Poll::Ready(Err(Failure::Send(error))) => {
                    match self.reading.poll(exchange, link, proxy, self.progressed) {
                        Poll::Ready(Ok(received)) => return Poll::Ready(Ok(received)),
                        // The stream knows why it ended.
                        Poll::Ready(Err(lost @ Failure::Lost(_))) => return Poll::Ready(Err(lost)),
                        _ => return Poll::Ready(Err(Failure::Send(error))),
                    }
                }
                Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                Poll::Pending if !self.is_timed => link.deadline.set(proxy.send_timeout),
                Poll::Pending => {}
            }
            self.is_timed = true;
        }
        if let Poll::Ready(result) = self.reading.poll(exchange, link, proxy, self.progressed) {
            return Poll::Ready(result);
        }
        if (!self.streams || self.progressed.request_complete)
            && proxy.follows_client(exchange)
            && let Poll::Ready(error) = conn.poll_gone()
        {
            return Poll::Ready(Err(Failure::Client(Gone::Closed(error))));
        }
        if self.streams && !self.progressed.request_complete && self.sending.waits_for_client() {
            // The client causes the pause, so the peer's timeout does not run.
            link.deadline.set(proxy.send_timeout.max(proxy.read_timeout));
            return conn.deadline.poll_expired().map(|()| Err(Failure::Client(Gone::TimedOut)));
        }
        // The time for the answer begins with the end of the request.
        let late = if was_sent { link.deadline.poll_after(proxy.read_timeout) } else { link.deadline.poll_expired() };
        late.map(|()| Err(Failure::TimedOut))
    }
}
