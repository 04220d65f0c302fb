//! One check of one peer: weir makes an exchange of its own, sends the request as the check's location would, and
//! judges the answer.
//!
//! A check does not count among clients' requests or the peer's tries, and writes nothing to an access log.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_groups::checks::{self, Asked, Ended};
use weir_http::exchange::message::{Origin, Request, Try};
use weir_http::exchange::request_body::RequestBody;
use weir_http::exchange::{Exchange, Parts};
use weir_http::hold::conn::Conn;
use weir_http::text::slots::SlotStore;
use weir_meter::Step;
use weir_net::log;
use weir_net::{Address, Deadline, buffer, clock};
use weir_wire::{BodyLength, HeadPolicy, InvalidFields, Version};

use super::grpc;
use super::matching::{self, Failed};
use super::{CheckTarget, HttpCheck};
use crate::family::proxy::pass::Pass;
use crate::family::proxy::request::{self, BodyFraming};
use crate::family::proxy_ssl::fault::Fault;
use crate::family::proxy_ssl::{self, AskedTls};
use crate::family::upstream::attempt;
use crate::family::upstream::failure::{Failure, Progressed};
use crate::family::upstream::line::Line;
use crate::family::upstream::pool::{Link, Terms};
use crate::family::upstream::sending::Outgoing;
use crate::family::upstream::source::{GroupRef, Hold, Read, Source};

/// The part of an answer's body that the tests see, in bytes (nginx: 256k).
const BODY_MAX: usize = 256 << 10;
/// Bytes of the body to read at a time.
const READ_BYTES: usize = 16 << 10;
/// The longest time of a whole check, in addition to the location's three timeouts. The timeouts limit only each step,
/// and a body may arrive byte by byte.
const TIME_MAX: Duration = Duration::from_secs(60);

/// One check with its peer and address.
struct Question<'q> {
    asked: &'q Asked<'q, HttpCheck>,
    check: &'q HttpCheck,
    pass: &'q Pass,
    group: GroupRef,
    address: Address,
}

/// Checks one peer and judges its answer.
pub(super) async fn ask(asked: &Asked<'_, HttpCheck>) -> Ended {
    let Asked { worker, generation, placed, seen, .. } = *asked;
    let (conf, check) = (&*generation.conf, &asked.check.own);
    let location = conf.location(placed.place.location);
    let (Some(pass), Some(address)) = (&crate::values(location).proxy.pass, asked.address()) else {
        return Ended::NotMade("no server to ask".to_owned());
    };
    // The other end of the pair lives as long as this one.
    let (mut conn, _other) = match Conn::of_the_edge(worker, conf.generation) {
        Ok(Some(made)) => made,
        Ok(None) => return Ended::NotMade("worker_connections are not enough".to_owned()),
        Err(error) => return Ended::NotMade(format!("socketpair() failed {}", log::Os(&error))),
    };
    let client = conn.client.clone();
    let (path, args) = check.asked().split_once('?').unwrap_or((check.asked(), ""));
    let mut parts = Parts::of(request(check), SlotStore::default(), path.into(), args.into());
    let (now, wall_ms) = (clock::now(), clock::unix_ms());
    let mut exchange =
        Exchange::new(conf, worker, generation, &client, conf.server(placed.place.server), &mut parts, now, wall_ms);
    exchange.location = location;
    exchange.body = RequestBody::Gone;
    let Some(group) = GroupRef::of(generation.clone(), placed.group, seen.clone()) else {
        return Ended::NotMade("no server to ask".to_owned());
    };
    let question = Question { asked, check, pass, group, address };
    within_time(&mut exchange, &mut conn, &question, asked.kept).await
}

/// The request in place of a client's request; most variables that read a request are empty.
fn request(check: &HttpCheck) -> Request {
    let mut request = Request::default();
    let text = match &check.grpc {
        None => format!("GET {} HTTP/1.0\r\n\r\n", check.uri),
        Some(_) => format!("POST {} HTTP/1.1\r\nContent-Type: application/grpc\r\nTE: trailers\r\n\r\n", grpc::PATH),
    };
    request.bytes.extend_from_slice(text.as_bytes());
    let policy = HeadPolicy { invalid_fields: InvalidFields::Drop, underscores: false, fields_max: 2 };
    // The URI was checked when the configuration was read.
    let _ = request.parser.request(&request.bytes, &policy, &mut request.head);
    request.used = request.bytes.len();
    request.length = Some(BodyLength::None);
    request
}

async fn within_time(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    question: &Question<'_>,
    target: &CheckTarget,
) -> Ended {
    let proxy = &crate::values(exchange.location).proxy;
    let limit = Deadline::new();
    limit.set(TIME_MAX + proxy.connect_timeout + proxy.send_timeout + proxy.read_timeout);
    let mut asking = pin!(question.ask(exchange, conn, target));
    poll_fn(|context| match asking.as_mut().poll(context) {
        Poll::Ready(ended) => Poll::Ready(ended),
        Poll::Pending => limit
            .poll_expired()
            .map(|()| Ended::Failed { why: Failure::TimedOut.to_string(), doing: Step::ReadResponse.doing() }),
    })
    .await
}

impl Question<'_> {
    async fn ask(&self, exchange: &mut Exchange<'_>, conn: &mut Conn, target: &CheckTarget) -> Ended {
        let proxy = &crate::values(exchange.location).proxy;
        let text: Option<Rc<[u8]>> = match (&self.check.grpc, &proxy.set_body) {
            (Some(call), _) => Some(call.message().into()),
            (None, Some(template)) => Some(template.text(exchange).into()),
            (None, None) => None,
        };
        let framing = text.as_ref().map_or(BodyFraming::None, |text| BodyFraming::Length(text.len() as u64));
        let mut head = exchange.worker.lease_out();
        self.compose(exchange, framing, &mut head);
        let values = crate::values(exchange.location);
        let asked = proxy_ssl::asked(exchange, self.pass.host.as_bytes());
        let (name, _) = self.group.known_peer(&exchange.worker.boards, self.asked.peer);
        let is_tls = !matches!(asked, AskedTls::Nothing);
        exchange.tries.push(Try { started: Some(clock::now()), is_tls, ..Try::at(name) });
        let answered = self
            .answer(exchange, conn, &asked, Outgoing { head: &head, framing, text: text.as_ref(), values }, target)
            .await;
        exchange.worker.return_out(head);
        match answered {
            Ok((origin, link)) => self.judge(exchange, origin, link, target).await,
            Err(failure) if is_ours(&failure) => Ended::NotMade(failure.to_string()),
            Err(failure) => Ended::Failed { why: failure.to_string(), doing: exchange.facts.step.doing() },
        }
    }

    /// Composes the request as the location would, with the check's URI.
    fn compose(&self, exchange: &mut Exchange<'_>, framing: BodyFraming, head: &mut Vec<u8>) {
        let (host, uri) = (self.pass.host.clone().into_bytes(), Some(self.check.asked().as_bytes().to_vec()));
        let target = request::Target { host, uri, is_tls: self.pass.is_tls };
        let values = crate::values(exchange.location);
        let proxy = &values.proxy;
        request::compose(exchange, (values, self.pass), Some(&target), framing, head);
        let is_said = proxy.set_headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("connection"));
        if self.check.keepalive_time.is_none() && proxy.version == Version::Http11 && !is_said {
            // The peer need not keep a connection that the check does not reuse.
            head.truncate(head.len().saturating_sub(b"\r\n".len()));
            head.extend_from_slice(b"Connection: close\r\n\r\n");
        }
    }

    /// The head of the answer, and its connection: the connection kept from the last check, or a new one.
    async fn answer(
        &self,
        exchange: &mut Exchange<'_>,
        conn: &mut Conn,
        asked: &AskedTls<'_>,
        outgoing: Outgoing<'_>,
        target: &CheckTarget,
    ) -> Result<(Box<Origin>, Box<Link>), Failure> {
        let bind = &crate::values(exchange.location).proxy.bind;
        let bound = bind.as_ref().and_then(|bind| bind.local(exchange));
        let terms = Terms { bound: bound.as_ref(), party: asked.party(), sessions: None };
        if let Some(link) = self.kept(target, terms) {
            let mut progressed = Progressed::default();
            match attempt::exchange_heads(exchange, conn, &link, outgoing, &mut progressed).await {
                Ok(origin) => return Ok((origin, link)),
                // The peer had closed the kept connection: this is not a failure.
                Err(Failure::Send(_) | Failure::Receive(_) | Failure::Closed) if !progressed.response_begun => {}
                Err(failure) => return Err(failure),
            }
        }
        let link = if crate::values(exchange.location).proxy.version == Version::Http2 {
            let (opened, _) = attempt::dial(exchange, conn, &self.address, terms).await?;
            let line = Line::new(opened, self.asked.peer, terms, exchange.worker, None);
            line.begin().ok_or(Failure::Closed)?.0
        } else {
            attempt::connect(exchange, conn, &self.address, self.asked.peer, terms).await?
        };
        let origin = attempt::exchange_heads(exchange, conn, &link, outgoing, &mut Progressed::default()).await?;
        Ok((origin, link))
    }

    fn kept(&self, target: &CheckTarget, terms: Terms<'_>) -> Option<Box<Link>> {
        let (link, time) = (target.kept.take()?, self.check.keepalive_time?);
        let is_young = clock::now().ms_since(link.opened) < time.as_millis() as u64;
        (is_young && terms.fit(&link) && !link.stream.peek_closed()).then_some(link)
    }

    /// Reads the body as far as needed, and runs the tests.
    async fn judge(
        &self,
        exchange: &mut Exchange<'_>,
        origin: Box<Origin>,
        link: Box<Link>,
        target: &CheckTarget,
    ) -> Ended {
        let status = origin.head.status;
        if let Some(attempt) = exchange.last_try() {
            attempt.header_us = Some(attempt.elapsed_us());
            attempt.status = status;
        }
        if let Some(call) = &self.check.grpc {
            return self.judge_call(exchange, &origin, link, call).await;
        }
        let tests = self.asked.placed.tests.as_deref();
        let looks_at_body = tests.is_some_and(matching::Match::looks_at_body);
        let mut body = buffer::lease(0);
        if looks_at_body || self.check.keepalive_time.is_some() {
            exchange.facts.step = Step::ReadResponse;
            match self.read(exchange, &origin, link, &mut body).await {
                Ok(source) => target.kept.set(source.into_link().filter(|_| self.check.keepalive_time.is_some())),
                // If no test looks at the body, weir reads it only to reuse the connection.
                Err(why) if looks_at_body => return Ended::Failed { why, doing: exchange.facts.step.doing() },
                Err(_) => {}
            }
        }
        let verdict = match tests {
            Some(tests) => {
                // Variables of the tests read it.
                exchange.origin = Some(origin);
                tests.judge(exchange, &body)
            }
            None if matching::is_usual(status) => Ok(()),
            None => Err(Failed::Status),
        };
        match verdict {
            Ok(()) => Ended::Passed,
            Err(failed) => Ended::Failed { why: failed.why(status), doing: failed.doing() },
        }
    }

    /// Judges a gRPC call. Its status comes after the body, or in the head if there is no body.
    async fn judge_call(
        &self,
        exchange: &mut Exchange<'_>,
        origin: &Origin,
        link: Box<Link>,
        call: &grpc::Call,
    ) -> Ended {
        exchange.facts.step = Step::ReadResponse;
        let mut body = buffer::lease(0);
        let trailers = match self.read(exchange, origin, link, &mut body).await {
            Ok(mut source) => source.take_trailers(),
            Err(why) => return Ended::Failed { why, doing: exchange.facts.step.doing() },
        };
        let is_status = |name: &[u8]| name.eq_ignore_ascii_case(b"grpc-status");
        let behind = trailers.iter().find(|field| is_status(field.name)).map(|field| field.value);
        let mut fields = origin.head.fields.iter();
        let before =
            fields.find(|field| is_status(field.name.of(&origin.bytes))).map(|field| field.value.of(&origin.bytes));
        match call.judge(origin.head.status, behind.or(before), &body) {
            Ok(()) => Ended::Passed,
            Err(why) => Ended::Failed { why, doing: "checking gRPC status" },
        }
    }

    /// Reads the body, or its first part.
    async fn read(
        &self,
        exchange: &mut Exchange<'_>,
        origin: &Origin,
        link: Box<Link>,
        body: &mut weir_net::Lease,
    ) -> Result<Source, String> {
        let length = weir_wire::response_body(&origin.bytes, &origin.head, exchange.upstream_method());
        let length = length.map_err(|violation| violation.upstream_message().to_owned())?;
        let upstream = self.group.get();
        // HTTP/2 frames mark the end of the body, and carry the trailers after it.
        let length = if link.h2.is_some() && length != BodyLength::None { BodyLength::UntilClose } else { length };
        // Balancing did not choose this peer, so its result does not count for passive health.
        let hold = Hold { group: self.group.clone(), selection: upstream.group.begin(0) };
        let mut source = Source::new(link, hold, origin, length, true);
        let here = origin.bytes.get(origin.head.len..).unwrap_or_default();
        source.feed(exchange, here, body).map_err(|broken| broken.to_string())?;
        let read_timeout = crate::values(exchange.location).proxy.read_timeout;
        while body.len() < BODY_MAX && !source.is_done() {
            if let Some(link) = source.link() {
                link.deadline.set(read_timeout);
            }
            let room = READ_BYTES.min(BODY_MAX - body.len());
            let read = poll_fn(|_| source.poll_read(exchange, body, room)).await;
            match read.map_err(|broken| broken.to_string())? {
                Read::Some => {}
                Read::End => break,
            }
        }
        body.truncate(BODY_MAX);
        Ok(source)
    }
}

/// Whether a failure has its cause in weir, not in the peer.
fn is_ours(failure: &Failure) -> bool {
    match failure {
        Failure::Connect(error) => checks::is_ours(error),
        Failure::Tls(Fault::Certificate(_)) | Failure::TableFull | Failure::Unsendable(_) => true,
        Failure::Tls(Fault::Handshake(_) | Fault::OtherName(_))
        | Failure::Send(_)
        | Failure::Receive(_)
        | Failure::Closed
        | Failure::TimedOut
        | Failure::Head(_)
        | Failure::Body(_)
        | Failure::Client(_)
        | Failure::Lost(_) => false,
    }
}

impl Failed {
    fn why(self, status: u16) -> String {
        match self {
            Failed::Status => format!("the status {status} does not pass"),
            Failed::Header => "a header does not pass".to_owned(),
            Failed::Body => "the body does not pass".to_owned(),
            Failed::Require => "a required variable is empty or \"0\"".to_owned(),
        }
    }

    fn doing(self) -> &'static str {
        match self {
            Failed::Status => "checking status code",
            Failed::Header => "checking headers",
            Failed::Body => "checking body",
            Failed::Require => "checking variables",
        }
    }
}
