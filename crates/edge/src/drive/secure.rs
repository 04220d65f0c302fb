//! The beginning of a connection to a `listen … ssl`: the client's hello, the server that answers, the handshake.
//!
//! The name in the client's hello chooses the server before there is a session, so that all TLS settings are those of
//! this server. A client that speaks plain HTTP gets nginx's 400 (`head`). The result is kept with the client as a
//! small [`Secured`], for variables and for HTTP/2's streams.

use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_http::exchange::conf::{Conf, Server};
use weir_http::exchange::line;
use weir_http::exchange::route::{LocationId, ServerId};
use weir_http::exchange::{Exchange, Parts};
use weir_http::hold::board::{Leg, count_fault, count_tls_fault};
use weir_http::hold::client::{Client, Secured, TlsFacts};
use weir_http::hold::conn::Conn;
use weir_http::hold::worker::{Generation, Worker};
use weir_http::receive::head::default_core;
use weir_http::text::slots::SlotStore;
use weir_http::text::template::{Definition, Template};
use weir_meter::live::cells::{Distrust, SslCell};
use weir_meter::live::quic::ShakeFailure;
use weir_net::log::Level;
use weir_net::tls::{self, Alert, Beginning, ClientHello, Complaint, Failure, Noted, TlsStream};
use weir_net::worker::Task;
use weir_net::{Instant, Transport, clock};
use weir_quic::connection::{self, QuicConnection, QuicEnd};
use weir_quic::tls::Handshake;

use crate::acme::Unregistered;
use crate::family::ssl::assemble::Above;
use crate::family::ssl::{Verify, agree};

/// Begins TLS; logs the reason and returns `false` if the connection must be closed.
pub async fn begin(conn: &Conn, worker: &Rc<Worker>, generation: &Rc<Generation>, early: &[u8]) -> bool {
    let Transport::Tls(tls) = conn.stream() else { return false };
    let conf = &generation.conf;
    let heard = match tls.hear(early, &conn.deadline).await {
        Ok(Beginning::Tls(hello)) => hello,
        Ok(Beginning::Plain) => return conn.client.secured.set(Rc::new(Secured::Plain)).is_ok(),
        Err(error) => {
            note(conf, conn, &error);
            count_failure(worker, conf, default_root(conf, conn), &error);
            return false;
        }
    };
    if let Some(hello) = &heard
        && let Some(asked) = crate::declared(conf).acme.challenged(hello)
    {
        prove(conn, conf, tls, asked).await;
        return false;
    }
    let begun = clock::now();
    let Some(server) = serve_as(conn, worker, generation, tls, heard) else {
        cell(worker, conf, default_root(conf, conn)).failed.one();
        return false;
    };
    let (shaken, noted) = tls.shake(&conn.deadline).await;
    let root = conf.server(server).root;
    if let Err(error) = shaken {
        note(conf, conn, &error);
        count_failure(worker, conf, root, &error);
        say_why(conn).await;
        return false;
    }
    agree(conn, (worker, generation), conf.server(server), tls, noted).await;
    worker.board.took(Leg::Tls, clock::now().us_since(begun));
    count_success(worker, conf, root, conn);
    conn.deadline.set(default_core(conf, conn.client.listen.get()).header_timeout);
    true
}

/// Waits for the handshake of a connection of QUIC; logs the reason and returns `false` if there is none.
pub async fn shaken(
    conn: &Conn,
    (worker, generation): (&Worker, &Generation),
    quic: &QuicConnection,
    (handshake, chosen): &(Handshake, Rc<Cell<Option<ServerId>>>),
    begun: Instant,
) -> bool {
    let result = poll_fn(|_| {
        quic.keep(Task::current());
        conn.shared.keep(Task::current());
        match handshake.take() {
            Some(Ok(agreement)) => Poll::Ready(Ok(agreement)),
            Some(Err(failure)) => Poll::Ready(Err(Some(failure))),
            None if quic.has_ended() || conn.shared.has_ended() => Poll::Ready(Err(None)),
            None => conn.deadline.poll_expired().map(|()| Err(None)),
        }
    })
    .await;
    let conf = &generation.conf;
    let root = chosen.get().map_or(default_root(conf, conn), |server| conf.server(server).root);
    match result {
        Ok(agreement) => {
            if let Some(facts) = conn.client.facts() {
                let speaks = &crate::values(conf.location(root)).ssl.tls;
                // There is one handshake per connection, so nothing was set before.
                let _ = facts.agreed.set(agree::agreed((worker, generation), speaks.as_deref(), agreement).await);
            }
            worker.board.took(Leg::Tls, clock::now().us_since(begun));
            count_success(worker, conf, root, conn);
            if quic.has_early_data() {
                worker.board.quic.early.one();
            }
            true
        }
        Err(failure) => {
            let end = quic.fate();
            quic.close(0, b"");
            quic_failed(conn, (worker, conf), (failure.as_ref(), chosen.get()), end.as_ref());
            false
        }
    }
}

/// Counts and logs a handshake of QUIC that failed. It lasted too long if the connection has no end.
pub fn quic_failed(
    conn: &Conn,
    (worker, conf): (&Worker, &Conf),
    (failure, chosen): (Option<&Failure>, Option<ServerId>),
    end: Option<&QuicEnd>,
) {
    let cell = cell(worker, conf, chosen.map_or(default_root(conf, conn), |server| conf.server(server).root));
    cell.failed.one();
    let why = shake_failure(end);
    worker.board.quic.failed(why);
    match (failure, why) {
        (Some(failure), _) => count_tls_fault(cell, failure),
        (None, ShakeFailure::TimedOut) => cell.timeout.one(),
        (None, ShakeFailure::Alert(alert)) if is_about_certificate(alert) => cell.rejected.one(),
        (None, _) => {}
    }
    let told = match (failure, why, end) {
        (Some(failure), ..) => format!("SSL_do_handshake() failed (SSL: {failure})"),
        // The choice of the server has logged why.
        (None, ShakeFailure::Alert(_), Some(QuicEnd::Fault(..))) if chosen.is_none() => return,
        (None, ShakeFailure::TimedOut, _) => "client timed out (110: Connection timed out)".to_owned(),
        (None, ShakeFailure::Closed, _) => "peer closed connection in SSL handshake".to_owned(),
        (None, ShakeFailure::Ours, _) | (None, _, None) => return,
        (None, _, Some(end)) => end.to_string(),
    };
    line::client_line(conf, &conn.client, Level::Info, format_args!("{told} while SSL handshaking"));
}

/// Codes without an error of QUIC: the end, and an end by the application before it may tell its code (RFC 9000 §10.2.3).
const NO_ERRORS: [u64; 2] = [0, 0xc];

fn shake_failure(end: Option<&QuicEnd>) -> ShakeFailure {
    match end {
        Some(QuicEnd::Refused(code, _)) if NO_ERRORS.contains(code) => ShakeFailure::Closed,
        Some(QuicEnd::Fault(code, _) | QuicEnd::Refused(code, _)) => {
            connection::alert(*code).map_or(ShakeFailure::Transport, ShakeFailure::Alert)
        }
        Some(QuicEnd::Closed(..) | QuicEnd::Reset) => ShakeFailure::Closed,
        Some(QuicEnd::Ours) => ShakeFailure::Ours,
        Some(QuicEnd::Idle) | None => ShakeFailure::TimedOut,
    }
}

/// Whether a client that sends this alert does not take the certificate (RFC 8446 §6.2).
fn is_about_certificate(alert: u8) -> bool {
    matches!(alert, 42..=46 | 48)
}

/// Shows the certificate of a challenge to an authority (RFC 8737 §3): the handshake is all it wants.
async fn prove(conn: &Conn, conf: &Conf, tls: &TlsStream, asked: Result<tls::Server, Unregistered>) {
    let Ok(server) = asked else {
        tls.refuse(Alert::UnrecognizedName);
        let what = "acme/tls-alpn-01: no challenge registered for the name";
        return line::client_line(conf, &conn.client, Level::Info, format_args!("{what} while SSL handshaking"));
    };
    let shaken = match tls.begin(&server) {
        Ok(()) => tls.shake(&conn.deadline).await.0,
        Err(failure) => Err(failure.into()),
    };
    match shaken {
        // The authority reads the end; it needs no answer.
        Ok(()) => drop(tls.shutdown_write()),
        Err(error) => {
            note(conf, conn, &error);
            say_why(conn).await;
        }
    }
}

/// How long a client may take to read the alert after a TLS failure.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Lets the client read the alert with the reason of a TLS failure; returns at once if TLS did not fail.
pub async fn say_why(conn: &Conn) {
    let Transport::Tls(tls) = conn.stream() else { return };
    if tls.has_failed() {
        // A stop of the worker does not wait for this.
        conn.shared.lie_idle();
        conn.deadline.set(LAST_WORDS);
        tls.say_why(&conn.deadline).await;
    }
}

/// Chooses the server and makes the session; returns the server whose TLS settings are used. `None` if weir refused
/// the client.
fn serve_as(
    conn: &Conn,
    worker: &Rc<Worker>,
    generation: &Rc<Generation>,
    tls: &TlsStream,
    hello: Option<Box<ClientHello>>,
) -> Option<ServerId> {
    let chosen = choose(&conn.client, worker, generation, Carrier::Tcp, hello.as_deref());
    let begun = chosen.and_then(|(id, session)| match tls.begin(&session) {
        Ok(()) => Ok(id),
        Err(failure) => {
            line::client_line(
                &generation.conf,
                &conn.client,
                Level::Error,
                format_args!("{failure} while SSL handshaking"),
            );
            Err(Alert::InternalError)
        }
    });
    begun.map_err(|alert| tls.refuse(alert)).ok()
}

/// The transport of TLS's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A connection of TCP.
    Tcp,
    /// QUIC, whose clients speak HTTP/3.
    Quic,
}

/// Chooses the server for a client by its hello, and the TLS settings; notes the facts with the client. An alert refuses the
/// client, and the reason is in the log.
///
/// # Errors
/// The alert for the client.
pub fn choose(
    client: &Rc<Client>,
    worker: &Rc<Worker>,
    generation: &Rc<Generation>,
    carrier: Carrier,
    hello: Option<&ClientHello>,
) -> Result<(ServerId, tls::Server), Alert> {
    let conf: &Conf = &generation.conf;
    let refuse = |alert, level, why: std::fmt::Arguments<'_>| {
        line::client_line(conf, client, level, format_args!("{why} while SSL handshaking"));
        alert
    };
    let listen = conf.listens.get(client.listen.get()).ok_or(Alert::InternalError)?;
    let name = hello.and_then(|hello| hello.server_name.clone());
    let asked = name.as_ref().map(|name| name.trim_end_matches('.').to_ascii_lowercase());
    let found = match &asked {
        Some(asked) => listen
            .hosts
            .find(asked.as_bytes(), &mut SlotStore::default())
            .map_err(|failed| refuse(Alert::InternalError, Level::Alert, format_args!("{failed}")))?,
        None => listen.hosts.default_server(),
    };
    let ssl = |server: &Server| &crate::values(conf.location(server.root)).ssl;
    let server = conf.server(found);
    if ssl(server).rejects {
        return Err(refuse(Alert::UnrecognizedName, Level::Info, format_args!("SSL handshake rejected")));
    }
    // A server without certificates uses those of the default server.
    let own = if ssl(server).tls.is_some() { server } else { conf.server(listen.hosts.default_server()) };
    let speaks = ssl(own).tls.clone().ok_or(Alert::UnrecognizedName)?;
    let facts = TlsFacts {
        held: agree::room().ok_or(Alert::InternalError)?,
        server_name: name,
        context: speaks.context,
        generation: conf.generation,
        random: hello.map_or([0; 32], |hello| hello.random),
        offered: hello.filter(|_| wants_offer(conf)).map(|hello| Box::new(hello.clone())),
        agreed: OnceCell::new(),
    };
    client.secured.set(Rc::new(Secured::Tls(facts))).map_err(|_| Alert::InternalError)?;
    let above = match carrier {
        Carrier::Quic => Above::Http3,
        Carrier::Tcp if listen.http2 || conf.location(server.root).values.http2.is_on => Above::Http2,
        Carrier::Tcp => Above::Http1,
    };
    let session = speaks.server(above, |template| evaluate(client, worker, generation, server, template));
    match session {
        Ok(session) => Ok((own.id, session)),
        Err((level, error)) => Err(refuse(Alert::InternalError, level, format_args!("{error}"))),
    }
}

/// Whether a variable reads the client's hello: otherwise weir does not keep it.
fn wants_offer(conf: &Conf) -> bool {
    conf.definitions.iter().any(|definition| match definition {
        Definition::Computed(_, argument) => {
            matches!(argument.name.as_str(), "ssl_ciphers" | "ssl_curves" | "ssl_sigalgs")
        }
        Definition::Slot | Definition::Cached(..) => false,
    })
}

/// A file name of a certificate, for this client: there is no request yet, so variables about a request are empty.
fn evaluate(
    client: &Rc<Client>,
    worker: &Rc<Worker>,
    generation: &Rc<Generation>,
    server: &Server,
    template: &Template,
) -> String {
    let conf: &Conf = &generation.conf;
    let now = clock::now();
    let mut parts = Parts::default();
    let mut exchange = Exchange::new(conf, worker, generation, client, server, &mut parts, now, clock::unix_ms());
    String::from_utf8_lossy(&template.text(&mut exchange)).into_owned()
}

/// Keeps the result of the handshake, and judges the client's certificate chain.
async fn agree(conn: &Conn, place: (&Worker, &Generation), server: &Server, tls: &TlsStream, noted: Noted) {
    let Some(facts) = conn.client.facts() else { return };
    let speaks = &crate::values(place.1.conf.location(server.root)).ssl.tls;
    // There is one handshake per connection, so nothing was set before.
    let agreement = tls.agreement(noted).unwrap_or_default();
    let _ = facts.agreed.set(agree::agreed(place, speaks.as_deref(), agreement).await);
}

fn default_root(conf: &Conf, conn: &Conn) -> LocationId {
    let listen = conf.listens.get(conn.client.listen.get());
    conf.server(listen.map_or(ServerId(0), |listen| listen.hosts.default_server())).root
}

fn cell<'w>(worker: &'w Worker, conf: &Conf, root: LocationId) -> &'w SslCell {
    &worker.board.zone(conf.location(root).cell).ssl
}

fn count_success(worker: &Worker, conf: &Conf, root: LocationId, conn: &Conn) {
    let cell = cell(worker, conf, root);
    cell.handshakes.one();
    let Some(agreed) = conn.client.facts().and_then(|facts| facts.agreed.get()) else { return };
    if agreed.is_resumed {
        cell.reused.one();
    }
    if let (Some(_), Err(complaint)) = (&agreed.certificate, &agreed.verdict) {
        cell.distrusted(Distrust::of(complaint.code));
    }
}

fn count_failure(worker: &Worker, conf: &Conf, root: LocationId, error: &io::Error) {
    let cell = cell(worker, conf, root);
    cell.failed.one();
    count_fault(cell, error);
}

/// Logs why there is no connection, as nginx does.
fn note(conf: &Conf, conn: &Conn, error: &io::Error) {
    let told = agree::told(error);
    line::client_line(conf, &conn.client, Level::Info, format_args!("{told} while SSL handshaking"));
}

/// The status and the log message for a request that the connection's TLS does not allow.
pub fn objection(exchange: &Exchange<'_>) -> Option<(u16, String)> {
    if exchange.client.is_plain_by_mistake() {
        return Some((497, "client sent plain HTTP request to HTTPS port".to_owned()));
    }
    let facts = exchange.client.facts()?;
    let settings = &crate::values(exchange.location).ssl;
    if settings.verify == Verify::Off {
        return None;
    }
    let host = &exchange.request.host;
    let is_same_name = facts
        .server_name
        .as_ref()
        .is_some_and(|name| host.is_empty() || name.trim_end_matches('.').as_bytes().eq_ignore_ascii_case(host));
    let context = settings.tls.as_ref().map(|tls| tls.context);
    let shown = facts.shown();
    // If the client named no server, nginx accepts a certificate that another server asked for and judged; weir
    // treats it as if the client had named that server.
    let is_other = match &facts.server_name {
        Some(_) => !is_same_name,
        None => shown.is_some() && context != Some(facts.context),
    };
    if is_other {
        let told = "client attempted to request the server name different from the one that was negotiated";
        return Some((421, told.to_owned()));
    }
    if shown.is_some() && facts.generation != exchange.conf.generation {
        // The new configuration may not trust the certificate any more. weir verifies it again on a new connection
        // (nginx closes waiting connections).
        return Some((421, "client SSL certificate was verified by an earlier configuration".to_owned()));
    }
    match (shown, settings.verify) {
        (Some((_, Err(complaint))), verify) if verify != Verify::OptionalNoCa || !complaint.is_about_trust_alone() => {
            let Complaint { code, text } = complaint;
            Some((495, format!("client SSL certificate verify error: ({code}:{text})")))
        }
        (None, Verify::On) => {
            let [no_cert, ..] = &cell(exchange.worker, exchange.conf, exchange.server.root).verify;
            no_cert.one();
            Some((496, "client sent no required SSL certificate".to_owned()))
        }
        _ => None,
    }
}
