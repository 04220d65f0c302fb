//! permessage-deflate in a handshake (RFC 7692 §5, §7.1): the client's offer, and its reading of the answer.

/// A client's offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeflateOffer {
    /// `server_no_context_takeover`: the server uses a new window for each message.
    pub server_no_context_takeover: bool,
    /// `client_no_context_takeover`: the client uses a new window for each message.
    pub client_no_context_takeover: bool,
    /// `server_max_window_bits`, 8 to 15.
    pub server_max_window_bits: Option<u8>,
}

/// The agreed parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deflate {
    /// Each message of the server has its own window; otherwise its messages share one window.
    pub server_no_context_takeover: bool,
    /// Each message of the client has its own window.
    pub client_no_context_takeover: bool,
}

impl DeflateOffer {
    /// The value of Sec-WebSocket-Extensions.
    pub fn value(&self) -> String {
        let mut value = "permessage-deflate".to_owned();
        if self.server_no_context_takeover {
            value.push_str("; server_no_context_takeover");
        }
        if self.client_no_context_takeover {
            value.push_str("; client_no_context_takeover");
        }
        if let Some(bits) = self.server_max_window_bits {
            value.push_str(&format!("; server_max_window_bits={bits}"));
        }
        value
    }

    /// The parameters that an answer agrees to; `None` if it answers something else, or more than was offered (RFC
    /// 7692 §5.1, §7.1).
    pub fn agreed(&self, answer: &[u8]) -> Option<Deflate> {
        let answer = std::str::from_utf8(answer).ok()?;
        let mut parts = answer.split(';').map(str::trim);
        if parts.next() != Some("permessage-deflate") {
            return None;
        }
        let mut agreed = Deflate::default();
        let mut window_bits = None;
        for part in parts {
            let (name, value) = part.split_once('=').map_or((part, None), |(name, value)| (name, Some(value)));
            match (name.trim(), value) {
                ("server_no_context_takeover", None) if !agreed.server_no_context_takeover => {
                    agreed.server_no_context_takeover = true;
                }
                ("client_no_context_takeover", None) if !agreed.client_no_context_takeover => {
                    agreed.client_no_context_takeover = true;
                }
                ("server_max_window_bits", Some(value)) if window_bits.is_none() => {
                    let value = value.trim().trim_matches('"').parse::<u8>().ok();
                    window_bits = Some(value.filter(|bits| (8..=15).contains(bits))?);
                }
                // A server may answer client_max_window_bits only if it was offered, and weir never offers it.
                _ => return None,
            }
        }
        if self.server_no_context_takeover && !agreed.server_no_context_takeover {
            return None;
        }
        match (self.server_max_window_bits, window_bits) {
            (Some(asked), answered) if answered.is_none_or(|bits| bits > asked) => None,
            _ => Some(agreed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let any = DeflateOffer::default();
        let strict = DeflateOffer { server_no_context_takeover: true, server_max_window_bits: Some(10), ..any.clone() };
        assert_eq!(any.value(), "permessage-deflate");
        assert_eq!(strict.value(), "permessage-deflate; server_no_context_takeover; server_max_window_bits=10");
        let check = |offer: &DeflateOffer, answer: &str, expect: Option<(bool, bool)>| {
            let agreed = offer.agreed(answer.as_bytes());
            let seen = agreed.map(|agreed| (agreed.server_no_context_takeover, agreed.client_no_context_takeover));
            assert_eq!(seen, expect, "{answer}");
        };
        check(&any, "permessage-deflate", Some((false, false)));
        check(&any, "permessage-deflate;client_no_context_takeover ; server_no_context_takeover", Some((true, true)));
        check(&any, "permessage-deflate; server_max_window_bits=\"12\"", Some((false, false)));
        check(&strict, "permessage-deflate; server_no_context_takeover; server_max_window_bits=9", Some((true, false)));
        check(&strict, "permessage-deflate; server_no_context_takeover; server_max_window_bits=11", None);
        check(&strict, "permessage-deflate; server_no_context_takeover", None);
        check(&strict, "permessage-deflate; server_max_window_bits=10", None);
        for answer in [
            "",
            "x",
            "permessage-deflate; x",
            "permessage-deflate, permessage-deflate",
            "permessage-deflate; client_max_window_bits=10",
            "permessage-deflate; server_max_window_bits=7",
            "permessage-deflate; server_max_window_bits",
            "permessage-deflate; server_no_context_takeover=1",
            "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        ] {
            check(&any, answer, None);
        }
    }
}
