//! SETTINGS (RFC 9114 §7.2.4, RFC 9204 §5, RFC 9220 §3).

use super::frame::{self, GREASE, H3FrameHead, H3Kind};
use super::varint;
use super::{H3Code, H3Fault};

/// Settings of one frame, at most.
const SETTINGS_MAX: usize = 64;
/// The payload of SETTINGS, at most.
pub const SETTINGS_BYTES_MAX: u64 = (SETTINGS_MAX * frame::HEAD_BYTES_MAX) as u64;

/// Settings by their numbers.
mod setting {
    pub const TABLE: u64 = 1;
    pub const SECTION: u64 = 6;
    pub const BLOCKED: u64 = 7;
    pub const CONNECT: u64 = 8;
}

/// Limits on the memory that a peer may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct H3Limits {
    /// Bytes of a field section, both compressed and uncompressed.
    pub section: usize,
    /// Bytes of QPACK's dynamic table, at most `u32::MAX`; 0 for no table.
    pub table: usize,
    /// Streams whose sections may wait for insertions into the table.
    pub blocked: usize,
    /// Extended CONNECT (RFC 9220) is allowed.
    pub is_connect_extended: bool,
}

impl Default for H3Limits {
    fn default() -> H3Limits {
        // nginx has the same table, and as many blocked streams as streams.
        H3Limits { section: 32 * 1024, table: 4096, blocked: 16, is_connect_extended: false }
    }
}

impl H3Limits {
    /// Appends our SETTINGS; a reserved one with no meaning is among them, as §7.2.4.1 advises.
    pub fn push(self, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        let mut push = |id, value| {
            varint::push(id, &mut payload);
            varint::push(value, &mut payload);
        };
        push(setting::TABLE, self.table as u64);
        push(setting::SECTION, self.section as u64);
        push(setting::BLOCKED, self.blocked as u64);
        if self.is_connect_extended {
            push(setting::CONNECT, 1);
        }
        push(GREASE, 0);
        H3FrameHead { kind: H3Kind::Settings, length: payload.len() as u64 }.push(out);
        out.append(&mut payload);
    }
}

/// The values of the peer's SETTINGS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerSettings {
    /// The largest section that the peer wants to read: names, values, and 32 bytes for each field; `None` for no limit.
    pub section: Option<u64>,
    /// The peer allows `:protocol`.
    pub is_connect_extended: bool,
}

impl PeerSettings {
    /// Reads the payload of SETTINGS.
    pub fn read(payload: &[u8]) -> Result<PeerSettings, H3Fault> {
        let wrong = |what| H3Fault::connection(H3Code::Settings, what);
        let (mut settings, mut ids, mut rest) = (PeerSettings::default(), [0; SETTINGS_MAX], payload);
        for count in 0.. {
            if rest.is_empty() {
                break;
            }
            let (id, value) = (frame::integer(&mut rest)?, frame::integer(&mut rest)?);
            let Some((seen, [place, ..])) = ids.split_at_mut_checked(count) else {
                return Err(H3Fault::connection(H3Code::ExcessiveLoad, "too many settings"));
            };
            if seen.contains(&id) {
                return Err(wrong("a setting twice"));
            }
            *place = id;
            match id {
                0 | 2..=5 => return Err(wrong("a setting of HTTP/2")),
                setting::SECTION => settings.section = Some(value),
                setting::CONNECT if value > 1 => {
                    return Err(wrong("ENABLE_CONNECT_PROTOCOL that is neither 0 nor 1"));
                }
                setting::CONNECT => settings.is_connect_extended = value == 1,
                // Our encoder has no table, so the peer's limits for it do not matter.
                _ => {}
            }
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_settings_are_read_as_they_were_meant() {
        let mut out = Vec::new();
        H3Limits { is_connect_extended: true, ..H3Limits::default() }.push(&mut out);
        let head = H3FrameHead::read(&out);
        assert_eq!(
            head.map(|(head, used)| (head.kind, used + head.length as usize)),
            Some((H3Kind::Settings, out.len()))
        );
        let expected = PeerSettings { section: Some(32 * 1024), is_connect_extended: true };
        assert_eq!(PeerSettings::read(&out[2..]), Ok(expected));
        assert_eq!(PeerSettings::read(&[]), Ok(PeerSettings::default()));
    }

    #[test]
    fn settings_that_no_peer_may_send() {
        let many: Vec<u8> = (0..65).flat_map(|id| [0x40, 0x40 + id, 0]).collect();
        let rows: [(&[u8], H3Code); 9] = [
            (&[6, 1, 6, 1], H3Code::Settings),
            (&[0x21, 1, 0x21, 1], H3Code::Settings),
            (&[8, 2], H3Code::Settings),
            (&[0, 0], H3Code::Settings),
            (&[2, 0], H3Code::Settings),
            (&[5, 0], H3Code::Settings),
            (&[6], H3Code::Frame),
            (&[6, 0x40], H3Code::Frame),
            (&many, H3Code::ExcessiveLoad),
        ];
        for (payload, code) in rows {
            assert_eq!(PeerSettings::read(payload).err().map(|fault| (fault.stream, fault.code)), Some((None, code)));
        }
        assert!(PeerSettings::read(&many[..64 * 3]).is_ok());
    }
}
