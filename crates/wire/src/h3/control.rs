//! Reads the peer's control stream (RFC 9114 §6.2.1, §7.2).

use crate::role::Role;
use crate::section::Urgency;

use super::frame::{self, FrameReader, H3FrameHead, H3Kind};
use super::settings::{PeerSettings, SETTINGS_BYTES_MAX};
use super::varint::VARINT_BYTES_MAX;
use super::{H3Code, H3Fault};

/// The value of a PRIORITY_UPDATE, at most.
const PRIORITY_BYTES_MAX: u64 = 256;

/// The meaning of a frame on the control stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFrame {
    /// The peer's SETTINGS, which are in [`ControlReader::settings`].
    Settings,
    /// The peer processes no request (or on a server, wants no push) with this number or a higher one.
    GoAway(u64),
    /// The priority of a request.
    Priority(u64, Urgency),
    /// Nothing for the caller.
    Nothing,
}

/// The reader. It keeps no memory between frames.
#[derive(Debug)]
pub struct ControlReader {
    role: Role,
    reader: FrameReader,
    /// The frame whose payload is being read.
    frame: Option<H3Kind>,
    settings: Option<PeerSettings>,
    goaway: Option<u64>,
    max_push: Option<u64>,
}

impl ControlReader {
    /// A reader at the beginning of the stream, after its type.
    pub fn new(role: Role) -> ControlReader {
        ControlReader {
            role,
            reader: FrameReader::default(),
            frame: None,
            settings: None,
            goaway: None,
            max_push: None,
        }
    }

    /// The peer's SETTINGS, when they have come.
    pub fn settings(&self) -> Option<PeerSettings> {
        self.settings
    }

    /// The number in the peer's last GOAWAY.
    pub fn goaway(&self) -> Option<u64> {
        self.goaway
    }

    /// Reads up to the end of the next frame, of which `used` bytes are in the input; without one, it has used all.
    pub fn next(&mut self, input: &[u8]) -> Result<(usize, Option<ControlFrame>), H3Fault> {
        let mut used = 0;
        let kind = match self.frame {
            Some(kind) => kind,
            None => {
                let (of_head, head) = self.reader.head(input);
                let Some(head) = head else { return Ok((of_head, None)) };
                used = of_head;
                self.begin(head)?;
                *self.frame.insert(head.kind)
            }
        };
        let rest = input.get(used..).unwrap_or_default();
        if kind == H3Kind::Other {
            used += self.reader.pass(rest);
            if !self.reader.is_payload_over() {
                return Ok((used, None));
            }
            self.frame = None;
            return Ok((used, Some(ControlFrame::Nothing)));
        }
        let mut reader = std::mem::take(&mut self.reader);
        let (of_payload, payload) = reader.keep(rest);
        let frame = payload.map(|payload| self.take(kind, payload)).transpose()?;
        if frame.is_some() {
            self.frame = None;
            reader.take_kept();
        }
        self.reader = reader;
        Ok((used + of_payload, frame))
    }

    /// Checks that a frame may come here, and that its payload has a bound.
    fn begin(&self, head: H3FrameHead) -> Result<(), H3Fault> {
        let unexpected = |what| Err(H3Fault::connection(H3Code::FrameUnexpected, what));
        let is_client = self.role == Role::Client;
        if self.settings.is_none() && head.kind != H3Kind::Settings {
            return Err(H3Fault::connection(H3Code::MissingSettings, "a control stream without SETTINGS"));
        }
        let most = match head.kind {
            H3Kind::Data | H3Kind::Headers | H3Kind::PushPromise => {
                return unexpected("a frame of requests on the control stream");
            }
            H3Kind::Forbidden => return unexpected("a frame of HTTP/2"),
            H3Kind::Settings if self.settings.is_some() => return unexpected("SETTINGS again"),
            H3Kind::MaxPushId if is_client => return unexpected("MAX_PUSH_ID of a server"),
            H3Kind::PriorityUpdate | H3Kind::PushPriorityUpdate if is_client => {
                return unexpected("PRIORITY_UPDATE of a server");
            }
            H3Kind::Other => return Ok(()),
            H3Kind::Settings => SETTINGS_BYTES_MAX,
            H3Kind::PriorityUpdate | H3Kind::PushPriorityUpdate => PRIORITY_BYTES_MAX + VARINT_BYTES_MAX as u64,
            H3Kind::CancelPush | H3Kind::GoAway | H3Kind::MaxPushId if head.length > VARINT_BYTES_MAX as u64 => {
                return Err(H3Fault::connection(H3Code::Frame, "a payload longer than its fields"));
            }
            H3Kind::CancelPush | H3Kind::GoAway | H3Kind::MaxPushId => return Ok(()),
        };
        if head.length > most {
            return Err(H3Fault::connection(H3Code::ExcessiveLoad, "a frame of the control stream that is too large"));
        }
        Ok(())
    }

    fn take(&mut self, kind: H3Kind, mut payload: &[u8]) -> Result<ControlFrame, H3Fault> {
        let wrong_id = |what| Err(H3Fault::connection(H3Code::Id, what));
        match kind {
            H3Kind::Settings => {
                self.settings = Some(PeerSettings::read(payload)?);
                Ok(ControlFrame::Settings)
            }
            H3Kind::GoAway => {
                let [id] = frame::integers(payload)?;
                if self.role == Role::Client && !id.is_multiple_of(4) {
                    return wrong_id("GOAWAY with a number that no request has");
                }
                if self.goaway.is_some_and(|before| id > before) {
                    return wrong_id("GOAWAY with a higher number than before");
                }
                self.goaway = Some(id);
                Ok(ControlFrame::GoAway(id))
            }
            H3Kind::MaxPushId => {
                let [id] = frame::integers(payload)?;
                if self.max_push.is_some_and(|before| id < before) {
                    return wrong_id("MAX_PUSH_ID with a lower number than before");
                }
                self.max_push = Some(id);
                Ok(ControlFrame::Nothing)
            }
            H3Kind::PriorityUpdate => {
                let id = frame::integer(&mut payload)?;
                if !id.is_multiple_of(4) {
                    return wrong_id("PRIORITY_UPDATE with a number that no request has");
                }
                Ok(ControlFrame::Priority(id, Urgency::read(payload)))
            }
            // No push is ever promised, on either side.
            H3Kind::CancelPush => {
                let [_] = frame::integers(payload)?;
                wrong_id("CANCEL_PUSH of no push")
            }
            _ => {
                frame::integer(&mut payload)?;
                wrong_id("PRIORITY_UPDATE of no push")
            }
        }
    }
}
