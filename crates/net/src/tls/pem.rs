//! PEM (RFC 7468) with what OpenSSL adds to it: encrypted keys of the old kind, certificates with trust settings.

/// One section of a text.
#[derive(Debug)]
pub(super) struct Section<'t> {
    /// What stands after BEGIN.
    pub(super) label: &'t str,
    /// Its lines `Name: value` (RFC 1421).
    pub(super) headers: Vec<(&'t str, &'t str)>,
    pub(super) der: Vec<u8>,
}

/// The sections of a text, in its order; `Err` names what is wrong with the first bad one.
pub(super) fn sections(text: &[u8]) -> Result<Vec<Section<'_>>, String> {
    // What is not text is a comment between sections to OpenSSL; a section is ASCII.
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(text.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default(),
    };
    let mut sections = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(label) = line.trim_end().strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----"))
        else {
            continue;
        };
        let mut headers = Vec::new();
        let mut body = String::new();
        loop {
            let Some(line) = lines.next() else { return Err(format!("the section \"{label}\" does not end")) };
            let line = line.trim();
            if line.starts_with("-----END ") {
                break;
            }
            match line.split_once(':') {
                Some((name, value)) => headers.push((name.trim(), value.trim())),
                None => body.push_str(line),
            }
        }
        let der = base64(body.as_bytes()).ok_or_else(|| format!("the section \"{label}\" is not base64"))?;
        sections.push(Section { label, headers, der });
    }
    Ok(sections)
}

/// The certificates of a text or of one in DER.
pub(super) fn certificates(given: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    if given.first() == Some(&super::der::SEQUENCE) {
        return Ok(vec![given.to_vec()]);
    }
    let mut found = Vec::new();
    for section in sections(given)? {
        match section.label {
            "CERTIFICATE" | "X509 CERTIFICATE" => found.push(section.der),
            // The certificate, then for what OpenSSL trusts it.
            "TRUSTED CERTIFICATE" => {
                let first = super::der::Items(&section.der).next().ok_or("a certificate cannot be read")?;
                found.push(first.raw.to_vec());
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Standard base64 with padding (RFC 4648 §4).
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().position(|byte| *byte == b'=').unwrap_or(text.len());
    let (digits, padding) = text.split_at(end);
    if !text.len().is_multiple_of(4) || padding.len() > 2 || padding.iter().any(|byte| *byte != b'=') {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0u32, 0);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn base64_as_rfc_4648_has_it() {
        for (text, wanted) in [
            ("", Some(&b""[..])),
            ("Zg==", Some(b"f")),
            ("Zm8=", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("Zm9", None),
            ("Z===", None),
            ("Zm9*", None),
        ] {
            assert_eq!(base64(text.as_bytes()).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn sections_with_headers_and_noise() {
        let text = b"noise\n-----BEGIN A B-----\r\nProc-Type: 4,ENCRYPTED\r\n\r\nZm9v\r\nZm9v\r\n-----END A B-----\n";
        let sections = sections(text).unwrap();
        assert_eq!((sections[0].label, &sections[0].der[..]), ("A B", &b"foofoo"[..]));
        assert_eq!(sections[0].headers, [("Proc-Type", "4,ENCRYPTED")]);
        assert!(super::sections(b"-----BEGIN A-----\nZm9v\n").is_err());
        assert!(super::sections(b"-----BEGIN A-----\n****\n-----END A-----").is_err());
    }
}
