//! Opens a connection of HTTP/2.

use std::rc::Rc;

use weir_meter::Step;
use weir_net::{Transport, clock};

use super::super::error::{Error, NOT_AGREED};
use super::super::open;
use super::super::streams::{Carrier, StreamSession, Wanted};
use super::carrier::H2Carrier;
use super::driver;
use crate::tls::Offer;
use crate::url::Scheme;

/// Opens a connection, and starts its driver.
pub(in super::super) async fn open(wanted: &Wanted<'_>) -> Result<Rc<StreamSession<dyn Carrier>>, Error> {
    let Wanted { origin, resolver, sessions, deadline, .. } = *wanted;
    let began = clock::precise();
    let opened = open::open(origin, resolver, Offer::Http2, sessions, deadline).await?;
    let times = (
        opened.resolved.saturating_duration_since(began),
        opened.connected - opened.resolved,
        opened.secured.map(|secured| secured - opened.connected),
    );
    match &opened.link {
        Transport::Tls(tls) if tls.alpn().as_deref() == Some(b"h2") => {}
        Transport::Plain(_) if origin.scheme == Scheme::Http => {}
        _ => return Err(Error::named(Step::TlsOrigin, NOT_AGREED)),
    }
    let session =
        StreamSession::new(H2Carrier::new(opened.link), wanted.streams_max, wanted.tuning.exchanges_max, times);
    driver::start(session.clone());
    Ok(session)
}
