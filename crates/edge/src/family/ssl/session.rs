//! TLS with the client of a session of `stream`.
//!
//! As for requests (`drive/secure`): the name in the client's hello chooses the server. Without a request there is no
//! answer to a wrong certificate: weir ends the session.

use std::cell::OnceCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use weir_http::hold::client::TlsFacts;
use weir_http::text::template::Definition;
use weir_net::log::Level;
use weir_net::tls::{Alert, Beginning, ClientHello, Complaint, TlsStream};
use weir_net::{Deadline, Transport};
use weir_stream::drive::status::INTERNAL;
use weir_stream::part::{Next, Part};
use weir_stream::session::Session;

use super::assemble::{Above, ServerTls};
use super::{Verify, agree, variables};

/// TLS, for sessions.
pub const PART: Part = Part { variables: variables::OF_SESSIONS, secure: Some(secure), ..Part::NOTHING };

fn secure<'s>(session: &'s mut Session<'_>) -> Pin<Box<dyn Future<Output = Next> + 's>> {
    Box::pin(async move {
        match shake(session).await {
            Some(()) => Next::Continue,
            None => Next::End(INTERNAL),
        }
    })
}

/// Makes the handshake and judges the client; `None` if the session must end, which is then logged.
async fn shake(session: &mut Session<'_>) -> Option<()> {
    let shared = session.shared.clone()?;
    let Transport::Tls(tls) = &shared.stream else { return None };
    if session.facts.get().is_some() {
        // `pass` brought the connection: the handshake was made for another server.
        return is_welcome(session).then_some(());
    }
    let deadline = Deadline::new();
    deadline.set(crate::values(&session.server.place).ssl.handshake_timeout);
    let early = std::mem::take(&mut session.early);
    let hello = match tls.hear(&early, &deadline).await {
        Ok(Beginning::Tls(hello)) => hello,
        Ok(Beginning::Plain) => {
            session.log(Level::Info, format_args!("SSL_do_handshake() failed (SSL: the client does not speak TLS)"));
            return None;
        }
        Err(error) => {
            session.log(Level::Info, format_args!("{}", agree::told(&error)));
            return None;
        }
    };
    let speaks = begin(session, tls, hello)?;
    let (shaken, noted) = tls.shake(&deadline).await;
    if let Err(error) = shaken {
        session.log(Level::Info, format_args!("{}", agree::told(&error)));
        if tls.has_failed() {
            // The client learns the reason.
            tls.say_why(&deadline).await;
        }
        return None;
    }
    let place = (&**session.worker, &**session.generation);
    let agreed = agree::agreed(place, Some(&speaks), tls.agreement(noted).unwrap_or_default()).await;
    if let Some(facts) = session.facts.get() {
        // There is one handshake in a session, so nothing was set before.
        let _ = facts.agreed.set(agreed);
    }
    is_welcome(session).then_some(())
}

/// Chooses the server and makes the session of TLS.
fn begin(session: &mut Session<'_>, tls: &TlsStream, hello: Option<Box<ClientHello>>) -> Option<Arc<ServerTls>> {
    let name = hello.as_ref().and_then(|hello| hello.server_name.clone());
    if let Some(name) = &name {
        session.serve_host(name.as_bytes());
    }
    if crate::values(&session.server.place).ssl.rejects {
        tls.refuse(Alert::UnrecognizedName);
        session.log(Level::Info, format_args!("SSL handshake rejected"));
        return None;
    }
    // A server without certificates uses those of the default server.
    let default = session.stream.server(session.listen.hosts.default_server());
    let of = |place| crate::values(place).ssl.tls.clone();
    let Some(speaks) = of(&session.server.place).or_else(|| default.and_then(|server| of(&server.place))) else {
        tls.refuse(Alert::UnrecognizedName);
        return None;
    };
    let Some(held) = agree::room() else {
        tls.refuse(Alert::InternalError);
        return None;
    };
    let facts = TlsFacts {
        held,
        server_name: name,
        context: speaks.context,
        generation: session.conf.generation,
        random: hello.as_ref().map_or([0; 32], |hello| hello.random),
        offered: hello.filter(|_| wants_offer(session)),
        agreed: OnceCell::new(),
    };
    let _ = session.facts.set(Box::new(facts));
    let made = speaks.server(Above::Http1, |template| String::from_utf8_lossy(&template.text(session)).into_owned());
    match made.map(|server| tls.begin(&server).map_err(|failure| (Level::Error, failure.to_string()))) {
        Ok(Ok(())) => Some(speaks),
        Ok(Err((level, error))) | Err((level, error)) => {
            tls.refuse(Alert::InternalError);
            session.log(level, format_args!("{error}"));
            None
        }
    }
}

/// Whether a variable reads the client's hello: otherwise weir does not keep it.
fn wants_offer(session: &Session<'_>) -> bool {
    session.stream.definitions.iter().any(|definition| match definition {
        Definition::Computed(_, argument) => {
            matches!(argument.name.as_str(), "ssl_ciphers" | "ssl_curves" | "ssl_sigalgs")
        }
        Definition::Slot | Definition::Cached(..) => false,
    })
}

/// Whether the client's certificate is the one that the server asks for.
fn is_welcome(session: &Session<'_>) -> bool {
    let verify = crate::values(&session.server.place).ssl.verify;
    let shown = session.facts.get().and_then(|facts| facts.shown());
    match (shown, verify) {
        (_, Verify::Off) => true,
        (Some((_, Err(complaint))), verify) if verify != Verify::OptionalNoCa || !complaint.is_about_trust_alone() => {
            let Complaint { code, text } = complaint;
            session.log(Level::Info, format_args!("client SSL certificate verify error: ({code}:{text})"));
            false
        }
        (None, Verify::On) => {
            session.log(Level::Info, format_args!("client sent no required SSL certificate"));
            false
        }
        _ => true,
    }
}
