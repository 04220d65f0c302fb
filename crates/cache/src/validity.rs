//! The data of a stored answer for later decisions: 32 bytes without text.

/// Bytes of [`Validity::encode`].
pub const ENCODED_BYTES: usize = 32;

/// How far the clock may be behind the time of storing, in milliseconds, before ages become invalid.
pub const CLOCK_SLACK_MS: i64 = 2000;

/// How long a stored answer may be used, and for which clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The time of its arrival or its last revalidation, in milliseconds since 1970.
    pub received_ms: i64,
    /// It is fresh before this, in milliseconds since 1970.
    pub fresh_until_ms: i64,
    /// Its age at its arrival, in seconds.
    pub age_s: u32,
    /// How long after that it may be served during a refresh, in seconds.
    pub while_revalidate_s: u32,
    /// How long after that it may replace an error, in seconds.
    pub if_error_s: u32,
    /// Its further flags.
    pub marks: Marks,
}

/// A set of flags of a [`Validity`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// Ask the origin each time: `no-cache`, or a lifetime of zero.
    pub const ASK_ALWAYS: Marks = Marks(1);
    /// Never stale without asking: `must-revalidate`, `proxy-revalidate`.
    pub const ASK_WHEN_STALE: Marks = Marks(2);
    /// `s-maxage`: the same, unless the answer or a directive allows more.
    pub const SHARED_LIFETIME: Marks = Marks(4);
    /// An authorized request may share it (RFC 9111 §3.5).
    pub const FOR_AUTHORIZED: Marks = Marks(8);
    /// Anybody may get it.
    pub const FOR_EVERYBODY: Marks = Marks(16);

    const KNOWN: u8 = 31;

    /// The set as a number for storing.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Reads such a number.
    pub const fn from_bits(bits: u8) -> Marks {
        Marks(bits & Marks::KNOWN)
    }

    /// Whether all of `other` are set.
    pub const fn has(self, other: Marks) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets `other` if `wanted`.
    #[must_use]
    pub const fn with_if(self, other: Marks, wanted: bool) -> Marks {
        if wanted { Marks(self.0 | other.0) } else { self }
    }
}

impl Validity {
    /// Its age, in seconds: the value of the `Age` field (RFC 9111 §4.2.3).
    pub fn current_age_s(&self, now_ms: i64) -> u32 {
        let resident_s = now_ms.saturating_sub(self.received_ms).max(0) / 1000;
        self.age_s.saturating_add(u32::try_from(resident_s).unwrap_or(u32::MAX))
    }

    /// Whether it is fresh. An answer that needs revalidation each time is never fresh.
    pub fn is_fresh(&self, now_ms: i64) -> bool {
        now_ms < self.fresh_until_ms && !self.marks.has(Marks::ASK_ALWAYS) && !self.clock_went_back(now_ms)
    }

    /// Whether it was stored later than `now_ms`, so that its age has no meaning.
    pub fn clock_went_back(&self, now_ms: i64) -> bool {
        now_ms.saturating_add(CLOCK_SLACK_MS) < self.received_ms
    }

    /// Whether it has been stale for at most this many seconds.
    pub fn is_within(&self, seconds: u32, now_ms: i64) -> bool {
        seconds > 0
            && !self.clock_went_back(now_ms)
            && now_ms < self.fresh_until_ms.saturating_add(i64::from(seconds).saturating_mul(1000))
    }

    /// Makes it stale at once, and keeps it for revalidation or errors: a soft purge.
    pub fn expire(&mut self, now_ms: i64) {
        self.fresh_until_ms = self.fresh_until_ms.min(now_ms);
    }

    /// Encodes it for the file: little-endian numbers in the order of the fields, then zeros.
    pub fn encode(&self) -> [u8; ENCODED_BYTES] {
        let mut bytes = [0; ENCODED_BYTES];
        let parts: [&[u8]; 6] = [
            &self.received_ms.to_le_bytes(),
            &self.fresh_until_ms.to_le_bytes(),
            &self.age_s.to_le_bytes(),
            &self.while_revalidate_s.to_le_bytes(),
            &self.if_error_s.to_le_bytes(),
            &[self.marks.0],
        ];
        for (to, from) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        bytes
    }

    /// Reads the result of [`encode`](Self::encode); `None` for other bytes.
    pub fn decode(bytes: &[u8; ENCODED_BYTES]) -> Option<Validity> {
        let (received_ms, rest) = bytes.split_first_chunk()?;
        let (fresh_until_ms, rest) = rest.split_first_chunk()?;
        let (age_s, rest) = rest.split_first_chunk()?;
        let (while_revalidate_s, rest) = rest.split_first_chunk()?;
        let (if_error_s, rest) = rest.split_first_chunk()?;
        let (marks, rest) = rest.split_first()?;
        if marks & !Marks::KNOWN != 0 || rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        Some(Validity {
            received_ms: i64::from_le_bytes(*received_ms),
            fresh_until_ms: i64::from_le_bytes(*fresh_until_ms),
            age_s: u32::from_le_bytes(*age_s),
            while_revalidate_s: u32::from_le_bytes(*while_revalidate_s),
            if_error_s: u32::from_le_bytes(*if_error_s),
            marks: Marks(*marks),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OF: Validity = Validity {
        received_ms: 10_000,
        fresh_until_ms: 15_000,
        age_s: 30,
        while_revalidate_s: 2,
        if_error_s: 0,
        marks: Marks(0),
    };

    #[test]
    fn time_goes_by() {
        for (now_ms, is_fresh, is_within, age_s) in [
            (10_000, true, true, 30),
            (14_999, true, true, 34),
            (15_000, false, true, 35),
            (16_999, false, true, 36),
            (17_000, false, false, 37),
            (9_000, true, true, 30),
            (7_999, false, false, 30),
            (i64::MAX, false, false, u32::MAX),
            (i64::MIN, false, false, 30),
        ] {
            assert_eq!(OF.is_fresh(now_ms), is_fresh, "{now_ms}");
            assert_eq!(OF.is_within(OF.while_revalidate_s, now_ms), is_within, "{now_ms}");
            assert_eq!(OF.current_age_s(now_ms), age_s, "{now_ms}");
        }
        assert!(!OF.is_within(OF.if_error_s, 15_000), "none given, none granted");
    }

    #[test]
    fn a_soft_purge_makes_it_stale_and_never_fresher() {
        let mut validity = OF;
        validity.expire(12_000);
        assert!(!validity.is_fresh(12_000) && validity.is_within(2, 13_000));
        validity.expire(20_000);
        assert_eq!(validity.fresh_until_ms, 12_000);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes: [u8; ENCODED_BYTES], times: [i64; 3]) {
            if let Some(validity) = Validity::decode(&bytes) {
                prop_assert_eq!(validity.encode(), bytes);
            }
            let marks = Marks::default().with_if(Marks::ASK_ALWAYS, times[2] > 0).with_if(Marks::FOR_EVERYBODY, true);
            let validity = Validity { received_ms: times[0], fresh_until_ms: times[1], marks, ..OF };
            prop_assert_eq!(Validity::decode(&validity.encode()), Some(validity));
            validity.is_fresh(times[2]);
            validity.is_within(u32::MAX, times[2]);
            validity.current_age_s(times[2]);
        }
    }
}
