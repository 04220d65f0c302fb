//! The peer's unidirectional streams (RFC 9114 §6.2): their types, and the rules about their number and their end.

use crate::role::Role;

use super::frame::UniKind;
use super::varint::{self, VARINT_BYTES_MAX};
use super::{H3Code, H3Fault};

/// Streams whose type has not come whole, at most.
const UNTYPED_MAX: usize = 16;

/// A stream whose type has not come whole.
#[derive(Clone, Copy, Debug)]
struct Untyped {
    id: u64,
    held: [u8; VARINT_BYTES_MAX],
    held_bytes: u8,
}

/// See the module.
#[derive(Debug)]
pub struct UniStreams {
    role: Role,
    control: Option<u64>,
    encoder: Option<u64>,
    decoder: Option<u64>,
    untyped: Vec<Untyped>,
}

impl UniStreams {
    /// No streams yet.
    pub fn new(role: Role) -> UniStreams {
        UniStreams { role, control: None, encoder: None, decoder: None, untyped: Vec::new() }
    }

    /// The type of a stream, if it is known; `used` bytes of the input belong to it.
    pub fn kind(&mut self, id: u64, input: &[u8]) -> Result<(usize, Option<UniKind>), H3Fault> {
        if let Some(kind) = self.known(id) {
            return Ok((0, Some(kind)));
        }
        let at = self.untyped.iter().position(|untyped| untyped.id == id);
        let mut untyped =
            at.map_or(Untyped { id, held: [0; VARINT_BYTES_MAX], held_bytes: 0 }, |at| self.untyped.swap_remove(at));
        for (used, &byte) in input.iter().enumerate() {
            // An integer is complete after eight bytes.
            if let Some(place) = untyped.held.get_mut(usize::from(untyped.held_bytes)) {
                *place = byte;
                untyped.held_bytes += 1;
            }
            let held = untyped.held.get(..usize::from(untyped.held_bytes)).unwrap_or_default();
            if let Some((number, _)) = varint::read(held) {
                let kind = UniKind::of(number);
                self.begin(id, kind)?;
                return Ok((used + 1, Some(kind)));
            }
        }
        if self.untyped.len() >= UNTYPED_MAX {
            return Err(H3Fault::connection(H3Code::ExcessiveLoad, "too many streams without a type"));
        }
        self.untyped.push(untyped);
        Ok((input.len(), None))
    }

    /// A stream has ended or was reset. Those of the connection must not (RFC 9114 §6.2.1, RFC 9204 §4.2).
    pub fn closed(&mut self, id: u64) -> Result<(), H3Fault> {
        self.untyped.retain(|untyped| untyped.id != id);
        match self.known(id) {
            Some(_) => Err(H3Fault::connection(H3Code::ClosedCriticalStream, "a stream of the connection that ends")),
            None => Ok(()),
        }
    }

    fn known(&self, id: u64) -> Option<UniKind> {
        [(self.control, UniKind::Control), (self.encoder, UniKind::Encoder), (self.decoder, UniKind::Decoder)]
            .into_iter()
            .find(|&(known, _)| known == Some(id))
            .map(|(_, kind)| kind)
    }

    fn begin(&mut self, id: u64, kind: UniKind) -> Result<(), H3Fault> {
        let place = match (kind, self.role) {
            (UniKind::Control, _) => &mut self.control,
            (UniKind::Encoder, _) => &mut self.encoder,
            (UniKind::Decoder, _) => &mut self.decoder,
            (UniKind::Other, _) => return Ok(()),
            (UniKind::Push, Role::Server) => {
                return Err(H3Fault::connection(H3Code::StreamCreation, "a push stream of a client"));
            }
            // A client of weir never allows a push (RFC 9114 §4.6).
            (UniKind::Push, Role::Client) => {
                return Err(H3Fault::connection(H3Code::Id, "a push that was not allowed"));
            }
        };
        if place.is_some() {
            return Err(H3Fault::connection(H3Code::StreamCreation, "a second stream of one type"));
        }
        *place = Some(id);
        Ok(())
    }
}
