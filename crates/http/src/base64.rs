//! Base64 with the standard alphabet (RFC 4648 §4), for `Authorization` and password files: as lenient as nginx.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const NGINX: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes; padding may be missing, and bytes after the padding are not read (nginx). `None` for any other byte.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.split(|byte| *byte == b'=').next()?;
    NGINX.decode(digits).ok()
}

/// Encodes, with padding.
pub fn encode(bytes: &[u8]) -> String {
    NGINX.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_nginx_reads_it() {
        for (coded, plain) in [
            (&b"Zm8="[..], Some(&b"fo"[..])),
            (b"Zm8", Some(b"fo")),
            (b"Zm9=more", Some(b"fo")),
            (b"", Some(b"")),
            (b"Z", None),
            (b"Zm9_", None),
        ] {
            assert_eq!(decode(coded).as_deref(), plain, "{coded:?}");
        }
        assert_eq!(encode(b"fo"), "Zm8=");
    }
}
