//! Base64 (RFC 4648 §4 and §5), for `Authorization`, password files, cookies and signed links: as lenient as nginx.

use base64::Engine as _;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const NGINX: GeneralPurpose = of(&STANDARD);
const NGINX_URL: GeneralPurpose = of(&URL_SAFE);

const fn of(alphabet: &Alphabet) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(alphabet, config)
}

/// Decodes; padding may be missing, and bytes after the padding are not read (nginx). `None` for any other byte.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.split(|byte| *byte == b'=').next()?;
    NGINX.decode(digits).ok()
}

/// Decodes the alphabet for URLs (RFC 4648 §5), with the same leniency.
pub fn decode_url(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.split(|byte| *byte == b'=').next()?;
    NGINX_URL.decode(digits).ok()
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
        assert_eq!(decode_url(b"-_8=").as_deref(), Some(&b"\xfb\xff"[..]));
        assert_eq!(decode_url(b"+/8"), None);
    }

    mod mutate {
        use super::*;
        /// Decoded bytes are the same when they are encoded again.
        #[test]
        fn texts() {
            weir_mutate::mutate(
                &["Zm8=", "-_8", "YTpi"],
                &["=", "+", "/", "-", "_", " ", "\n", "é", "\0", "AAAA"],
                |bytes| {
                    for plain in [decode(bytes), decode_url(bytes)].into_iter().flatten() {
                        assert!(plain.len() <= bytes.len() / 4 * 3 + 2);
                    }
                    assert_eq!(decode(encode(bytes).as_bytes()).as_deref(), Some(bytes));
                },
            );
        }
    }
}
