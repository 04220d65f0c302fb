//! PEM (RFC 7468) with OpenSSL's additions: encrypted keys of the old kind, certificates with trust settings.

use super::der::first;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The first byte of DER; no PEM begins with it.
pub(super) const SEQUENCE: u8 = 0x30;

/// One section of a text.
#[derive(Debug)]
pub(super) struct Section<'t> {
    /// The text after BEGIN.
    pub(super) label: &'t str,
    /// Its lines `Name: value` (RFC 1421).
    pub(super) headers: Vec<(&'t str, &'t str)>,
    pub(super) der: Vec<u8>,
}

/// The sections of a text, in its order; `Err` names the error of the first bad one.
pub(super) fn sections(text: &[u8]) -> Result<Vec<Section<'_>>, String> {
    // For OpenSSL, bytes that are not text are a comment between sections; a section is ASCII.
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(text.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default(),
    };
    // OpenSSL: editors of Windows begin a text with this mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
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
            let Some(line) = lines.next() else { return Err(format!("the section \"{label}\" has no END line")) };
            let line = line.trim();
            if line.starts_with("-----END ") {
                break;
            }
            match line.split_once(':') {
                Some((name, value)) => headers.push((name.trim(), value.trim())),
                None => body.push_str(line),
            }
        }
        let der = STANDARD.decode(body).map_err(|_| format!("the section \"{label}\" is not base64"))?;
        sections.push(Section { label, headers, der });
    }
    Ok(sections)
}

/// The certificates of a PEM text, or the one certificate in DER.
pub(super) fn certificates(given: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    if given.first() == Some(&SEQUENCE) {
        return Ok(vec![given.to_vec()]);
    }
    let mut found = Vec::new();
    for section in sections(given)? {
        match section.label {
            "CERTIFICATE" | "X509 CERTIFICATE" => found.push(section.der),
            // The certificate, then the purposes for which OpenSSL trusts it.
            "TRUSTED CERTIFICATE" => {
                let first = first(&section.der).map_err(|flaw| format!("weir cannot read a certificate: {flaw}"))?;
                found.push(first.to_vec());
            }
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sections_with_headers_and_noise() {
        let text = b"noise\n-----BEGIN A B-----\r\nProc-Type: 4,ENCRYPTED\r\n\r\nZm9v\r\nZm9v\r\n-----END A B-----\n";
        let sections = sections(text).unwrap();
        assert_eq!((sections[0].label, &sections[0].der[..]), ("A B", &b"foofoo"[..]));
        assert_eq!(sections[0].headers, [("Proc-Type", "4,ENCRYPTED")]);
        let marked = [b"\xef\xbb\xbf", &text[b"noise\n".len()..]].concat();
        assert_eq!(super::sections(&marked).unwrap()[0].label, "A B");
        assert!(super::sections(b"-----BEGIN A-----\nZm9v\n").is_err());
        assert!(super::sections(b"-----BEGIN A-----\n****\n-----END A-----").is_err());
    }
}
