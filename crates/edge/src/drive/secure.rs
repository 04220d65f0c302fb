//! The beginning of a connection to a `listen … ssl`: the client's hello, the server that answers, the handshake.
//!
//! The name in the client's hello chooses the server before there is a session, so that all TLS settings are those of
//! this server. A client that speaks plain HTTP gets nginx's 400 (`head`). The result is kept with the client as a
//! small [`Secured`], for variables and for HTTP/2's streams.

use std::cell::OnceCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use weir_http::exchange::conf::{Conf, Server};
use weir_http::exchange::line;
use weir_http::exchange::route::{LocationId, ServerId};
use weir_http::exchange::{Exchange, Parts};
use weir_http::hold::board::{Leg, count_fault};
use weir_http::hold::client::{Secured, TlsFacts};
use weir_http::hold::conn::Conn;
use weir_http::hold::worker::{Generation, Worker};
use weir_http::receive::head::default_core;
use weir_http::text::slots::SlotStore;
use weir_http::text::template::{Definition, Template};
use weir_meter::live::cells::{Distrust, SslCell};
use weir_net::log::Level;
use weir_net::tls::{self, Alert, Beginning, ClientHello, Complaint, Noted, TlsStream};
use weir_net::{Transport, clock};

use crate::acme::Unregistered;
use crate::family::ssl::{Verify, agree};

/// Begins TLS; logs the reason and returns `false` if the connection must be closed.
pub async fn begin(conn: &Conn, worker: &Rc<Worker>, early: &[u8]) -> bool {
    let Transport::Tls(tls) = conn.stream() else { return false };
    let generation = worker.generation();
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
    let Some(server) = serve_as(conn, worker, &generation, tls, heard) else {
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
    agree(conn, worker, conf.server(server), conf, tls, noted).await;
    worker.board.took(Leg::Tls, clock::now().us_since(begun));
    count_success(worker, conf, root, conn);
    conn.deadline.set(default_core(conf, conn.client.listen.get()).header_timeout);
    true
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
) -> Option<weir_http::exchange::route::ServerId> {
    let conf: &Conf = &generation.conf;
    let listen = conf.listens.get(conn.client.listen.get())?;
    let name = hello.as_ref().and_then(|hello| hello.server_name.clone());
    let asked = name.as_ref().map(|name| name.trim_end_matches('.').to_ascii_lowercase());
    let found = match &asked {
        Some(asked) => match listen.hosts.find(asked.as_bytes(), &mut SlotStore::default()) {
            Ok(server) => server,
            Err(failed) => {
                tls.refuse(Alert::InternalError);
                line::client_line(conf, &conn.client, Level::Alert, format_args!("{failed} while SSL handshaking"));
                return None;
            }
        },
        None => listen.hosts.default_server(),
    };
    let ssl = |server: &Server| &crate::values(conf.location(server.root)).ssl;
    let server = conf.server(found);
    if ssl(server).rejects {
        tls.refuse(Alert::UnrecognizedName);
        line::client_line(
            conf,
            &conn.client,
            Level::Info,
            format_args!("SSL handshake rejected while SSL handshaking"),
        );
        return None;
    }
    // A server without certificates uses those of the default server.
    let own = if ssl(server).tls.is_some() { server } else { conf.server(listen.hosts.default_server()) };
    let Some(speaks) = ssl(own).tls.clone() else {
        tls.refuse(Alert::UnrecognizedName);
        return None;
    };
    let held = agree::room(tls)?;
    let facts = TlsFacts {
        held,
        server_name: name,
        context: speaks.context,
        generation: conf.generation,
        random: hello.as_ref().map_or([0; 32], |hello| hello.random),
        offered: hello.filter(|_| wants_offer(conf)),
        agreed: OnceCell::new(),
    };
    conn.client.secured.set(Rc::new(Secured::Tls(facts))).ok()?;
    let http2 = listen.http2 || conf.location(server.root).values.http2.is_on;
    let session = speaks.server(http2, |template| evaluate(conn, worker, generation, server, template));
    match session.map(|session| tls.begin(&session).map_err(|failure| (Level::Error, failure.to_string()))) {
        Ok(Ok(())) => Some(own.id),
        Ok(Err((level, error))) | Err((level, error)) => {
            tls.refuse(Alert::InternalError);
            line::client_line(conf, &conn.client, level, format_args!("{error} while SSL handshaking"));
            None
        }
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
    conn: &Conn,
    worker: &Rc<Worker>,
    generation: &Rc<Generation>,
    server: &Server,
    template: &Template,
) -> String {
    let conf: &Conf = &generation.conf;
    let now = clock::now();
    let parts = Parts::default();
    let mut exchange = Exchange::new(conf, worker, generation, &conn.client, server, parts, now, clock::unix_ms());
    String::from_utf8_lossy(&template.text(&mut exchange)).into_owned()
}

/// Keeps the result of the handshake, and judges the client's certificate chain.
async fn agree(conn: &Conn, worker: &Rc<Worker>, server: &Server, conf: &Conf, tls: &TlsStream, noted: Noted) {
    let Some(facts) = conn.client.facts() else { return };
    let speaks = &crate::values(conf.location(server.root)).ssl.tls;
    // There is one handshake per connection, so nothing was set before.
    let agreement = tls.agreement(noted).unwrap_or_default();
    let _ = facts.agreed.set(agree::agreed(worker, speaks.as_deref(), agreement).await);
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
