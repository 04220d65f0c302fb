//! The frames of a packet that prove an address: PATH_CHALLENGE and PATH_RESPONSE (RFC 9000 §19.17, §19.18).

/// A frame that proves an address, with its eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFrame {
    /// The sender wants to know whether the other side is there.
    Challenge([u8; 8]),
    /// The answer.
    Response([u8; 8]),
}

/// The bytes of the longest token of a stateless reset (RFC 9000 §10.3).
const RESET_TOKEN_BYTES: usize = 16;

/// The frames that prove addresses among the frames of a packet of 1-RTT. A frame that cannot be read ends them.
pub fn path_frames(payload: &[u8]) -> impl Iterator<Item = PathFrame> {
    let mut rest = Frames(payload);
    std::iter::from_fn(move || {
        while !rest.0.is_empty() {
            if let Some(found) = rest.next()? {
                return Some(found);
            }
        }
        None
    })
}

/// The frames that have not been read.
struct Frames<'p>(&'p [u8]);

impl Frames<'_> {
    /// Reads a frame; `Some(None)` is one of another kind, and `None` is no frame.
    fn next(&mut self) -> Option<Option<PathFrame>> {
        match self.number()? {
            // PADDING, PING, HANDSHAKE_DONE, IMMEDIATE_ACK.
            0x00 | 0x01 | 0x1e | 0x1f => {}
            kind @ (0x02 | 0x03) => self.ack(kind == 0x03)?,
            // RESET_STREAM.
            0x04 => self.numbers(3)?,
            // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED.
            0x05 | 0x11 | 0x15 => self.numbers(2)?,
            // CRYPTO.
            0x06 => {
                self.number()?;
                self.sized()?;
            }
            // NEW_TOKEN, DATAGRAM with a length.
            0x07 | 0x31 => self.sized()?,
            kind @ 0x08..=0x0f => self.stream(kind)?,
            // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID.
            0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => self.numbers(1)?,
            // NEW_CONNECTION_ID.
            0x18 => {
                self.numbers(2)?;
                let length = *self.take(1)?.first()?;
                self.take(usize::from(length) + RESET_TOKEN_BYTES)?;
            }
            0x1a => return self.eight().map(|data| Some(PathFrame::Challenge(data))),
            0x1b => return self.eight().map(|data| Some(PathFrame::Response(data))),
            // CONNECTION_CLOSE.
            0x1c => {
                self.numbers(2)?;
                self.sized()?;
            }
            0x1d => {
                self.number()?;
                self.sized()?;
            }
            // DATAGRAM to the end.
            0x30 => self.0 = &[],
            // ACK_FREQUENCY.
            0xaf => self.numbers(4)?,
            _ => return None,
        }
        Some(None)
    }

    /// An ACK frame after its type: the largest number, the delay, the count of ranges, the first range, the ranges; with ECN,
    /// three counts.
    fn ack(&mut self, has_ecn: bool) -> Option<()> {
        self.numbers(2)?;
        let ranges = self.number()?;
        self.number()?;
        // Each range takes two bytes, so the packet bounds the loop.
        for _ in 0..ranges {
            self.numbers(2)?;
        }
        if has_ecn { self.numbers(3) } else { Some(()) }
    }

    fn stream(&mut self, kind: u64) -> Option<()> {
        self.number()?;
        if kind & 4 != 0 {
            self.number()?;
        }
        if kind & 2 != 0 {
            return self.sized();
        }
        self.0 = &[];
        Some(())
    }

    /// A number of variable length (RFC 9000 §16).
    fn number(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let bytes = self.take(1 << (first >> 6))?;
        Some(bytes.iter().skip(1).fold(u64::from(first & 0x3f), |number, byte| number << 8 | u64::from(*byte)))
    }

    fn numbers(&mut self, count: usize) -> Option<()> {
        (0..count).try_for_each(|_| self.number().map(drop))
    }

    /// Bytes after their length.
    fn sized(&mut self) -> Option<()> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length).map(drop)
    }

    fn eight(&mut self) -> Option<[u8; 8]> {
        self.take(8)?.try_into().ok()
    }

    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHALLENGE: [u8; 9] = *b"\x1a12345678";
    const RESPONSE: [u8; 9] = *b"\x1babcdefgh";

    /// One frame of each kind that ends before the packet does.
    const FRAMES: [&[u8]; 27] = [
        &[0, 0, 0],
        &[1],
        &[2, 0x40, 9, 1, 1, 2, 0, 0],
        &[3, 9, 1, 0, 2, 1, 2, 3],
        &[4, 1, 2, 3],
        &[5, 1, 2],
        &[6, 0, 2, 0x1a, 0x1b],
        &[7, 1, 0x1a],
        &[0x0a, 1, 1, 0x1b],
        &[0x0f, 1, 0x80, 0, 0, 7, 2, 0x1b, 0x1a],
        &[0x10, 0xc0, 0, 0, 0, 0, 0, 0, 1],
        &[0x11, 1, 2],
        &[0x12, 1],
        &[0x13, 1],
        &[0x14, 1],
        &[0x15, 1, 2],
        &[0x16, 1],
        &[0x17, 1],
        &[0x18, 1, 0, 4, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        &[0x19, 1],
        &[0x1c, 1, 2, 2, 0x1a, 0x1b],
        &[0x1d, 1, 1, 0x1a],
        &[0x1e],
        &[0x1f],
        &[0x31, 2, 0x1a, 0x1b],
        &[0x40, 0xaf, 1, 2, 3, 4],
        &[],
    ];

    fn found(payload: &[u8]) -> Vec<PathFrame> {
        path_frames(payload).collect()
    }

    #[test]
    fn frames_that_prove_an_address_are_found_behind_every_other_frame() {
        let both = [PathFrame::Challenge(*b"12345678"), PathFrame::Response(*b"abcdefgh")];
        for frame in FRAMES {
            let payload = [frame, &CHALLENGE, frame, &RESPONSE, frame].concat();
            assert_eq!(found(&payload), both, "{frame:x?}");
        }
        let all = [&FRAMES.concat()[..], &CHALLENGE, &RESPONSE].concat();
        assert_eq!(found(&all), both);
    }

    #[test]
    fn bytes_of_a_stream_or_of_a_datagram_are_no_frames() {
        for frame in [&[8, 1][..], &[0x0c, 1, 2], &[0x30], &[0x0a, 1, 9], &[0x31, 9], &[6, 0, 9], &[0x21], &[0x1a, 0]] {
            let payload = [frame, &RESPONSE].concat();
            assert!(!found(&payload).contains(&PathFrame::Response(*b"abcdefgh")), "{frame:x?}");
        }
        for end in 0..CHALLENGE.len() {
            assert_eq!(found(&CHALLENGE[..end]), []);
        }
    }

    mod mutate {
        use super::*;

        #[test]
        fn packets() {
            let all = [&FRAMES.concat()[..], &CHALLENGE, &RESPONSE].concat();
            weir_mutate::mutate(&[&all], &["\x1a", "\x1b", "\x02\u{7f}", "\x0a"], |bytes| {
                // Each is nine bytes, and none overlaps another.
                assert!(found(bytes).len() * CHALLENGE.len() <= bytes.len());
                let data = |frame| match frame {
                    PathFrame::Challenge(data) | PathFrame::Response(data) => data,
                };
                for frame in found(bytes) {
                    assert!(bytes.windows(8).any(|window| window == data(frame)));
                }
            });
        }
    }
}
