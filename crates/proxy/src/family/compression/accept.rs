//! Reads `Accept-Encoding` as leniently as nginx reads it for gzip.

/// The weight of a coding in thousandths; 0 if the field does not name it, or refuses it.
pub fn weight(field: &[u8], name: &str) -> u16 {
    let name = name.as_bytes();
    let mut from = 0;
    while let Some(rest) = field.get(from..) {
        let Some(at) = rest.windows(name.len()).position(|window| window.eq_ignore_ascii_case(name)) else { return 0 };
        let start = from + at;
        let before = start.checked_sub(1).and_then(|before| field.get(before));
        if matches!(before, None | Some(b',' | b' ')) {
            return weight_after(field.get(start + name.len()..).unwrap_or_default());
        }
        from = start + name.len();
    }
    0
}

/// The most a coding can weigh, and its weight without a parameter.
const WHOLE: u16 = 1000;

/// The text after the coding: nothing, the next coding, or `;q=` and a weight.
fn weight_after(after: &[u8]) -> u16 {
    let after = after.trim_ascii_start();
    let parameter = match after.split_first() {
        None | Some((b',', _)) => return WHOLE,
        Some((b';', rest)) => rest.trim_ascii_start(),
        Some(_) => return 0,
    };
    match parameter.split_first() {
        None => WHOLE,
        Some((b'q' | b'Q', [b'=', weight @ ..])) => read(weight),
        Some(_) => 0,
    }
}

/// `0.001` to `1.000`: at most three digits, not above one.
fn read(weight: &[u8]) -> u16 {
    let end = weight.iter().position(|b| matches!(b, b',' | b' ')).unwrap_or(weight.len());
    match weight.get(..end) {
        Some(b"1") => WHOLE,
        Some([b'1', b'.', digits @ ..]) if digits.len() <= 3 && digits.iter().all(|b| *b == b'0') => WHOLE,
        Some([b'0', b'.', digits @ ..]) if digits.len() <= 3 && digits.iter().all(u8::is_ascii_digit) => {
            let digit = |at: usize| digits.get(at).map_or(0, |digit| u16::from(digit - b'0'));
            digit(0) * 100 + digit(1) * 10 + digit(2)
        }
        Some(_) | None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_encoding_is_read_as_nginx_reads_it() {
        for (field, expected) in [
            ("gzip", 1000),
            ("gzip, deflate", 1000),
            ("deflate, GZip", 1000),
            ("deflate,gzip;q=0.001", 1),
            ("gzip; q=1.000", 1000),
            ("gzip;q=1", 1000),
            ("gzip;q=0.5, deflate", 500),
            ("gzip;q=0.25", 250),
            ("gzip;q=0", 0),
            ("gzip;q=0.000", 0),
            ("gzip;q=1.001", 0),
            ("gzip;q=0.0001", 0),
            ("gzip;q=", 0),
            ("gzip;x=1", 0),
            ("x-gzip", 0),
            ("x-gzip, gzip", 1000),
            ("gzipped", 0),
            ("identity", 0),
            ("", 0),
        ] {
            assert_eq!(weight(field.as_bytes(), "gzip"), expected, "{field:?}");
        }
    }

    #[test]
    fn each_coding_has_its_own_weight() {
        let field = b"gzip;q=0.5, br;q=0.8, zstd";
        assert_eq!(["gzip", "br", "zstd", "deflate"].map(|name| weight(field, name)), [500, 800, 1000, 0]);
        assert_eq!(weight(b"brotli, abr", "br"), 0);
    }

    mod mutate {
        use super::*;
        /// A weight is one, and a field without the coding's name has none.
        #[test]
        fn fields() {
            let seeds = ["gzip, br;q=0.5, zstd ; q=1.000", "*;q=0", "identity, GZIP;Q=0.001", "x-gzip,gzip;q=1.001"];
            weir_mutate::mutate(&seeds, &[",", ";", "q=", "0.", "1", " ", "gzip", "br", "\0", "é"], |field| {
                for name in ["gzip", "br", "zstd"] {
                    let weight = weight(field, name);
                    assert!(weight <= WHOLE);
                    assert!(
                        weight == 0
                            || field.to_ascii_lowercase().windows(name.len()).any(|part| part == name.as_bytes())
                    );
                }
            });
        }
    }
}
