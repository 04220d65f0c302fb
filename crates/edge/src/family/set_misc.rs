//! `set_md5`, `set_escape_uri` and other directives that compute a variable from texts (OpenResty's set-misc).
//!
//! <https://github.com/openresty/set-misc-nginx-module>. They run in the order of the file, with `set`, `if` and `rewrite`.

use std::fmt::Write;

use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::Sha256;
use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::family::rewrite;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Contexts, Directive, LOCATION, LOCATION_IF, ONE, SERVER, SERVER_IF, TWO};
use weir_http::read::families::Family;
use weir_http::text::base64;
use weir_http::text::refusal::Refusal;
use weir_net::log::Level;
use weir_net::{clock, random};
use weir_wire::date::Civil;
use weir_wire::escape::{self, Unescape};

weir_http::settings! {}

/// Nothing is declared for all of `http`.
pub type Declared = ();

const PLACES: Contexts = SERVER.or(SERVER_IF).or(LOCATION).or(LOCATION_IF);

/// A variable from itself, or from a second argument.
const FROM_ONE: Arity = Arity::Between(1, 2);

const fn one(name: &'static str, doc: &'static str, set: weir_http::read::directive::Set) -> Directive {
    Directive::new(name, PLACES, FROM_ONE, doc, set).many()
}

/// The family.
pub static FAMILY: Family = Family::new(
    "set_misc",
    &[
        Directive::new("set_if_empty", PLACES, TWO, "Sets a variable that is empty.", |b, s| {
            let name = s.text(0).to_owned();
            let of = [name.as_str(), s.text(1)];
            rewrite::compute(b, &name, &of, |_, of, out| {
                let value = of.iter().find(|text| !text.is_empty());
                out.extend_from_slice(value.map(Vec::as_slice).unwrap_or_default());
                Ok(())
            })
        })
        .many(),
        one("set_quote_sql_str", "Sets a variable to a text as a string of MySQL.", |b, s| of_one(b, s, quote_sql)),
        one("set_quote_pgsql_str", "Sets a variable to a text as a string of PostgreSQL.", |b, s| {
            of_one(b, s, quote_pgsql)
        }),
        one("set_quote_json_str", "Sets a variable to a text as a string of JSON.", |b, s| of_one(b, s, quote_json)),
        one("set_escape_uri", "Sets a variable to a text, escaped for a part of a URI.", |b, s| {
            of_one(b, s, escape_uri)
        }),
        one("set_unescape_uri", "Sets a variable to a part of a URI without escapes.", |b, s| {
            of_one(b, s, unescape_uri)
        }),
        one("set_encode_hex", "Sets a variable to the hexadecimal digits of a text.", |b, s| of_one(b, s, push_hex)),
        one("set_decode_hex", "Sets a variable to the bytes of hexadecimal digits.", |b, s| decode(b, s, from_hex)),
        one("set_encode_base64", "Sets a variable to a text in base64.", |b, s| {
            of_one(b, s, |text, out| out.extend_from_slice(base64::encode(text).as_bytes()))
        }),
        one("set_encode_base64url", "Sets a variable to a text in base64 for URLs, without padding.", |b, s| {
            of_one(b, s, |text, out| {
                let coded = base64::encode(text);
                let digits = coded.trim_end_matches('=').bytes();
                out.extend(digits.map(|digit| match digit {
                    b'+' => b'-',
                    b'/' => b'_',
                    digit => digit,
                }));
            })
        }),
        one("set_decode_base64", "Sets a variable to the bytes of a text in base64.", |b, s| {
            decode(b, s, base64::decode)
        }),
        one("set_decode_base64url", "Sets a variable to the bytes of a text in base64 for URLs.", |b, s| {
            decode(b, s, base64::decode_url)
        }),
        one("set_md5", "Sets a variable to the MD5 of a text, in hexadecimal digits.", |b, s| {
            of_one(b, s, |text, out| push_hex(&Md5::digest(text), out))
        }),
        one("set_sha1", "Sets a variable to the SHA-1 of a text, in hexadecimal digits.", |b, s| {
            of_one(b, s, |text, out| push_hex(&Sha1::digest(text), out))
        }),
        Directive::new(
            "set_hmac_sha1",
            PLACES,
            Arity::exactly(3),
            "Sets a variable to the HMAC-SHA1 of a text: $VARIABLE KEY TEXT.",
            |b, s| of_two(b, s, |key, text, out| out.extend_from_slice(&hmac::<Sha1>(key, text))),
        )
        .many(),
        Directive::new(
            "set_hmac_sha256",
            PLACES,
            Arity::exactly(3),
            "Sets a variable to the HMAC-SHA256 of a text: $VARIABLE KEY TEXT.",
            |b, s| of_two(b, s, |key, text, out| out.extend_from_slice(&hmac::<Sha256>(key, text))),
        )
        .many(),
        Directive::new(
            "set_random",
            PLACES,
            Arity::exactly(3),
            "Sets a variable to a random number: $VARIABLE FROM TO. It is not a secret.",
            |b, s| rewrite::compute(b, s.text(0), &[s.text(1), s.text(2)], set_random),
        )
        .many(),
        Directive::new(
            "set_secure_random_alphanum",
            PLACES,
            TWO,
            "Sets a variable to random letters and digits that nobody can guess: $VARIABLE LENGTH.",
            |b, s| rewrite::compute(b, s.text(0), &[s.text(1)], |x, of, out| secure_random(x, of, ALPHANUM, out)),
        )
        .many(),
        Directive::new(
            "set_secure_random_lcalpha",
            PLACES,
            TWO,
            "Sets a variable to random small letters that nobody can guess: $VARIABLE LENGTH.",
            |b, s| rewrite::compute(b, s.text(0), &[s.text(1)], |x, of, out| secure_random(x, of, LCALPHA, out)),
        )
        .many(),
        Directive::new("set_local_today", PLACES, ONE, "Sets a variable to today's date, as 2030-01-31.", |b, s| {
            rewrite::compute(b, s.text(0), &[], |_, _, out| {
                let now = clock::unix_seconds() as i64;
                let today = Civil::of(now + i64::from(clock::utc_offset_minutes(now)) * 60);
                let text = format!("{:04}-{:02}-{:02}", today.year, today.month, today.day);
                out.extend_from_slice(text.as_bytes());
                Ok(())
            })
        })
        .many(),
    ],
);

/// `DIRECTIVE $VARIABLE [TEXT]`: the text is the variable's value if it is not written.
fn of_one(b: &mut Build<'_>, statement: &Statement, make: fn(&[u8], &mut Vec<u8>)) -> Result<(), Refusal> {
    let name = statement.text(0).to_owned();
    let of = statement.arg(1).map_or(name.as_str(), |word| word.text.as_str());
    rewrite::compute(b, &name, &[of], move |_, of, out| {
        make(of.first().map(Vec::as_slice).unwrap_or_default(), out);
        Ok(())
    })
}

/// As `of_one`; a text that cannot be decoded ends the request with 500.
fn decode(b: &mut Build<'_>, statement: &Statement, read: fn(&[u8]) -> Option<Vec<u8>>) -> Result<(), Refusal> {
    let (directive, name) = (statement.name.text.clone(), statement.text(0).to_owned());
    let of = statement.arg(1).map_or(name.as_str(), |word| word.text.as_str());
    rewrite::compute(b, &name, &[of], move |_, of, out| {
        let decoded = read(of.first().map(Vec::as_slice).unwrap_or_default());
        out.extend_from_slice(&decoded.ok_or_else(|| format!("{directive}: invalid value"))?);
        Ok(())
    })
}

fn of_two(b: &mut Build<'_>, statement: &Statement, make: fn(&[u8], &[u8], &mut Vec<u8>)) -> Result<(), Refusal> {
    let of = [statement.text(1), statement.text(2)];
    rewrite::compute(b, statement.text(0), &of, move |_, of, out| {
        if let [first, second] = of {
            make(first, second, out);
        }
        Ok(())
    })
}

/// The bytes after which a text is quoted, and their quoted form: MySQL's rules.
fn quote_sql(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for byte in text {
        let letter = match byte {
            0 => b'0',
            0x08 => b'b',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            26 => b'Z',
            b'\\' | b'\'' | b'"' | b'$' => *byte,
            _ => {
                out.push(*byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
    out.push(b'\'');
}

/// PostgreSQL's rules: an `E` in front, and bytes that are no UTF-8 as octal numbers.
fn quote_pgsql(text: &[u8], out: &mut Vec<u8>) {
    if text.is_empty() {
        return out.extend_from_slice(b"''");
    }
    let mut quoted = Vec::with_capacity(text.len() + 2);
    quote_sql(text, &mut quoted);
    out.push(b'E');
    if std::str::from_utf8(&quoted).is_ok() {
        return out.extend_from_slice(&quoted);
    }
    for byte in quoted {
        if byte < 0x80 {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("\\{byte:03o}").as_bytes());
        }
    }
}

fn quote_json(text: &[u8], out: &mut Vec<u8>) {
    if text.is_empty() {
        return out.extend_from_slice(b"null");
    }
    out.push(b'"');
    for byte in text {
        match byte {
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x0c => out.extend_from_slice(b"\\f"),
            0x08 => out.extend_from_slice(b"\\b"),
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', *byte]),
            0..=0x1f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}

/// Escapes control bytes, bytes above ASCII, and those that have a meaning in a URI.
fn escape_uri(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        if matches!(byte, 0..=b' ' | 0x7f.. ) || b"\"#%&+/:;<=>?[\\]^{}".contains(byte) {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(*byte);
        }
    }
}

/// Decodes escapes; `+` is a space.
fn unescape_uri(text: &[u8], out: &mut Vec<u8>) {
    let spaced: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    escape::unescape_uri(&spaced, Unescape::All, out);
}

fn push_hex(bytes: &[u8], out: &mut Vec<u8>) {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let written = write!(text, "{byte:02x}");
        debug_assert!(written.is_ok());
    }
    out.extend_from_slice(text.as_bytes());
}

fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some((digit(*high)? << 4 | digit(*low)?) as u8),
        _ => None,
    };
    text.chunks(2).map(byte).collect()
}

/// Bytes that SHA-1 and SHA-256 work on at a time.
const BLOCK: usize = 64;

/// RFC 2104, for hashes with blocks of that size.
fn hmac<D: Digest>(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0; BLOCK];
    let digest;
    let key: &[u8] = if key.len() > block.len() {
        digest = D::digest(key);
        digest.as_ref()
    } else {
        key
    };
    for (place, byte) in block.iter_mut().zip(key) {
        *place = *byte;
    }
    let padded = |pad: u8| block.iter().map(|byte| byte ^ pad).collect::<Vec<u8>>();
    let inner = D::new().chain_update(padded(0x36)).chain_update(text).finalize();
    let outer = D::new().chain_update(padded(0x5c)).chain_update(inner).finalize();
    AsRef::<[u8]>::as_ref(&outer).to_vec()
}

fn set_random(exchange: &mut Exchange<'_>, of: &[Vec<u8>], out: &mut Vec<u8>) -> Result<(), String> {
    let number = |text: &[u8]| std::str::from_utf8(text).ok().and_then(weir_http::text::value::number);
    let mut ends = [0; 2];
    for (end, (text, name)) in ends.iter_mut().zip(of.iter().zip(["from", "to"])) {
        *end = number(text)
            .and_then(|number| u32::try_from(number).ok())
            .ok_or_else(|| format!("set_random: bad \"{name}\" argument: {}", String::from_utf8_lossy(text)))?;
    }
    ends.sort_unstable();
    let [low, high] = ends;
    let number = u64::from(low) + u64::from(exchange.worker.random((high - low).saturating_add(1)));
    weir_wire::encode::push_decimal(out, number);
    Ok(())
}

const ALPHANUM: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const LCALPHA: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

/// The longest random text.
const RANDOM_BYTES_MAX: usize = 64;

fn secure_random(
    exchange: &mut Exchange<'_>,
    of: &[Vec<u8>],
    alphabet: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let text = of.first().map(Vec::as_slice).unwrap_or_default();
    let length = std::str::from_utf8(text).ok().and_then(weir_http::text::value::number);
    let length = length.and_then(|length| usize::try_from(length).ok()).filter(|n| (1..=RANDOM_BYTES_MAX).contains(n));
    let Some(length) = length else {
        return Err(format!("set_random: bad \"length\" argument: {}", String::from_utf8_lossy(text)));
    };
    let end = out.len() + length;
    while out.len() < end {
        let Ok(word) = random::word() else {
            exchange.log(Level::Crit, format_args!("the system provides no randomness"));
            return Err("set_secure_random: no random bytes".to_owned());
        };
        // Words above the largest multiple of the alphabet's length would make some letters more likely.
        let count = alphabet.len() as u16;
        if word < u16::MAX - u16::MAX % count
            && let Some(letter) = alphabet.get(usize::from(word % count))
        {
            out.push(*letter);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn made(make: fn(&[u8], &mut Vec<u8>), text: &[u8]) -> String {
        let mut out = Vec::new();
        make(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn texts_are_quoted_as_their_readers_need_them() {
        // The first three are the examples of the module's documentation.
        assert_eq!(made(quote_sql, b"hello\n\r'\"\\"), r#"'hello\n\r\'\"\\'"#);
        assert_eq!(made(quote_json, b"hello\n\r'\"\\"), r#""hello\n\r'\"\\""#);
        assert_eq!(made(unescape_uri, b"hello+world%21"), "hello world!");
        assert_eq!(
            (made(quote_sql, b""), made(quote_json, b""), made(quote_pgsql, b"")),
            ("''".into(), "null".into(), "''".into())
        );
        assert_eq!(made(quote_json, b"\x01\xc3\xa4"), "\"\\u0001ä\"");
        assert_eq!(made(quote_pgsql, b"a'\xff"), r"E'a\'\377'");
        assert_eq!(made(escape_uri, b"a b/\xc3-~!'\""), "a%20b%2F%C3-~!'%22");
        assert_eq!(made(push_hex, b"abcde\xff"), "6162636465ff");
        assert_eq!((from_hex(b"61Ff"), from_hex(b"6"), from_hex(b"6x")), (Some(vec![0x61, 0xff]), None, None));
    }

    #[test]
    fn codes_are_those_of_rfc_2202_and_4231() {
        let mut hex = Vec::new();
        push_hex(&hmac::<Sha1>(b"Jefe", b"what do ya want for nothing?"), &mut hex);
        assert_eq!(hex, b"effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
        hex.clear();
        push_hex(&hmac::<Sha256>(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First"), &mut hex);
        assert_eq!(hex, b"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    }
}
