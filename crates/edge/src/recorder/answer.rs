//! The bodies of answers: hashed, and kept if they are small and of a listed type.
//!
//! Seeing the bytes of an answer takes a copy of them, and neither `sendfile` nor `splice` can send them. So weir sees them only with
//! `hashes=on` or `bodies=on`.

use std::cell::RefCell;
use std::rc::Rc;

use weir_http::exchange::Exchange;
use weir_http::exchange::response_body::{Body, BodyFilter};
use weir_wire::Known;

use super::noted::{Noted, SeenBody};
use super::options::MediaKind;
use super::place::RecordPlace;
use super::worker;

/// Passes a body on, and shows it to the recorder.
struct Watching(Rc<RefCell<SeenBody>>);

impl BodyFilter for Watching {
    fn write(&mut self, input: &[u8], _: bool, last: bool, out: &mut Vec<u8>) {
        self.0.borrow_mut().see(input, last);
        out.extend_from_slice(input);
    }

    fn is_outer(&self) -> bool {
        true
    }
}

/// Watches the body of an answer that is about to be sent, if its client is among the recorded ones.
pub fn watch(exchange: &mut Exchange<'_>, place: &RecordPlace) {
    let Some(run) = worker::run_of(&place.recorder) else { return };
    let client = worker::client(exchange, place, &run);
    let response = &mut exchange.response;
    let has_body = !response.header_only && response.status.get() != 101 && !exchange.request.is_head();
    let answer = (client.is_some() && has_body).then(|| {
        let is_listed = MediaKind::of(&response.content_type).is_some_and(|kind| place.options.kinds.contains(&kind));
        let is_kept = place.options.has_bodies && is_listed && !response.fields.has(Known::ContentEncoding);
        let seen = Rc::new(RefCell::new(SeenBody::new(run.secrets.body_hash(), is_kept)));
        if matches!(response.body, Body::Empty) {
            // A filter would make a body of nothing, and another end of the answer.
            seen.borrow_mut().see(b"", true);
        } else {
            response.body_filters.push(Box::new(Watching(seen.clone())));
        }
        seen
    });
    exchange.own.set(Noted { run: run.number, client, answer, tunnel: 0 });
}
