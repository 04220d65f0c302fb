//! Decompresses bodies, in the codings that the request offers.

use std::borrow::Cow;
use std::io::Read;

use super::incoming::BODY_BYTES_MAX;

/// A body with its content codings removed.
pub type Decoded<'b> = Result<Cow<'b, [u8]>, &'static str>;

/// Removes these content codings (RFC 9110 §8.4), the last applied first. The error is Node's name for it.
///
/// An unknown coding leaves the rest unchanged, as Artillery's client does.
pub fn decode<'b>(body: &'b [u8], codings: Option<&[u8]>) -> Decoded<'b> {
    let mut bytes = Cow::Borrowed(body);
    let Some(codings) = codings.filter(|_| !body.is_empty()) else {
        return Ok(bytes);
    };
    for coding in codings.rsplit(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        let undone = match coding.to_ascii_lowercase().as_slice() {
            b"gzip" | b"x-gzip" => all(flate2::read::MultiGzDecoder::new(&*bytes)),
            // deflate means zlib's format; some servers send raw deflate.
            b"deflate" if bytes.first().is_some_and(|first| first & 0x0f == 8) => {
                all(flate2::read::ZlibDecoder::new(&*bytes))
            }
            b"deflate" => all(flate2::read::DeflateDecoder::new(&*bytes)),
            b"br" => all(brotli_decompressor::Decompressor::new(&*bytes, 4096)).map_err(|_| "ERR__ERROR_FORMAT"),
            b"zstd" => zstd(&bytes),
            _ => return Ok(bytes),
        }?;
        bytes = Cow::Owned(undone);
    }
    Ok(bytes)
}

fn zstd(bytes: &[u8]) -> Result<Vec<u8>, &'static str> {
    let decoder = ruzstd::decoding::StreamingDecoder::new(bytes).map_err(|_| "ZSTD_error_prefix_unknown")?;
    all(decoder).map_err(|_| "ZSTD_error_corruption_detected")
}

/// Reads everything, up to the limit.
fn all(reader: impl Read) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::new();
    match reader.take(BODY_BYTES_MAX as u64 + 1).read_to_end(&mut out) {
        Ok(_) if out.len() > BODY_BYTES_MAX => Err("ERR_BODY_TOO_LARGE"),
        Ok(_) => Ok(out),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err("Z_BUF_ERROR"),
        Err(_) => Err("Z_DATA_ERROR"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    #[test]
    fn codings_are_undone() {
        let text = b"hello hello hello hello".as_slice();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        zlib.write_all(text).unwrap();
        let zlib = zlib.finish().unwrap();
        let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        raw.write_all(text).unwrap();
        let raw = raw.finish().unwrap();
        // `zstd` and `brotli` made these bytes from "hi\n".
        let zstd: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x00, 0x19, 0x00, 0x00, b'h', b'i', b'\n'];
        let brotli: &[u8] = &[0x0b, 0x01, 0x80, b'h', b'i', b'\n', 0x03];
        assert_eq!(decode(text, None).unwrap(), text);
        assert_eq!(decode(text, Some(b"identity")).unwrap(), text);
        assert_eq!(decode(&gzip, Some(b"GZIP")).unwrap(), text);
        assert_eq!(decode(&zlib, Some(b"deflate")).unwrap(), text);
        assert_eq!(decode(&raw, Some(b"deflate")).unwrap(), text);
        assert_eq!(decode(brotli, Some(b"br")).unwrap(), b"hi\n".as_slice());
        // This cuts off the checksum at the end: the data is four bytes shorter, and the flag is not set.
        assert!(decode(zstd.get(..9).unwrap(), Some(b"zstd")).is_err());
        assert_eq!(decode(b"nothing but rubbish", Some(b"gzip")), Err("Z_DATA_ERROR"));
        assert_eq!(decode(gzip.get(..gzip.len() - 9).unwrap(), Some(b"gzip")), Err("Z_BUF_ERROR"));
    }

    mod mutate {
        use super::*;
        /// A body in any coding, also a bomb: it is read up to the limit, or the error has a name.
        #[test]
        fn bodies() {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            gzip.write_all(b"hello hello hello").unwrap();
            let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x00, 0x19, 0x00, 0x00, b'h', b'i', b'\n'];
            let brotli = [0x0b, 0x01, 0x80, b'h', b'i', b'\n', 0x03];
            let seeds = [gzip.finish().unwrap(), zstd.to_vec(), brotli.to_vec(), vec![0x78, 0x9c, 0x03, 0, 0, 0, 0, 1]];
            let words: [&[u8]; 6] =
                [b"\x1f\x8b\x08\0", &zstd[..5], b"\0\0\xff\xff", b"\xff\xff\xff\xff", b"\x0b\x01\x80", b"\x02\0\0"];
            weir_mutate::mutate(&seeds, &words, |body| {
                for codings in ["gzip", "deflate", "br", "zstd", "x, gzip , zstd", ",,"] {
                    match decode(body, Some(codings.as_bytes())) {
                        Ok(plain) => assert!(plain.len() <= BODY_BYTES_MAX),
                        Err(name) => assert!(!name.is_empty()),
                    }
                }
            });
        }
    }
}
