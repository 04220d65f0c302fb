//! The error document of an authority (RFC 7807, RFC 8555 §6.7).

use std::fmt;

use serde::Deserialize;

/// The prefix of all kinds that RFC 8555 and its extensions name.
const NAMESPACE: &str = "urn:ietf:params:acme:error:";

/// Texts of an authority in the log are cut at this many bytes.
const SHOWN_BYTES_MAX: usize = 512;

/// Why an authority refused a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Problem {
    /// A URN.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// A sentence for people.
    #[serde(default)]
    pub detail: String,
    /// Where to read more, or to act.
    #[serde(default)]
    pub instance: Option<String>,
}

impl Problem {
    /// The kind without the prefix; empty for a kind of another namespace.
    pub fn name(&self) -> &str {
        self.kind.strip_prefix(NAMESPACE).unwrap_or_default()
    }

    /// Whether another try with the same account settings would fail too.
    pub fn is_bad_account(&self) -> bool {
        matches!(
            self.name(),
            "accountDoesNotExist"
                | "badPublicKey"
                | "badSignatureAlgorithm"
                | "externalAccountRequired"
                | "invalidContact"
                | "malformed"
                | "unsupportedContact"
                | "userActionRequired"
        )
    }

    /// Whether another try with the same order would fail too.
    pub fn is_bad_order(&self) -> bool {
        matches!(
            self.name(),
            "badCSR" | "caa" | "invalidProfile" | "malformed" | "rejectedIdentifier" | "unsupportedIdentifier"
        )
    }

    /// Whether the certificate that the order replaces may be the reason: every kind but those that surely are not.
    pub fn may_be_about_replacing(&self) -> bool {
        !matches!(
            self.name(),
            "badNonce"
                | "caa"
                | "invalidProfile"
                | "rateLimited"
                | "rejectedIdentifier"
                | "unsupportedIdentifier"
                | "userActionRequired"
        )
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", shown(&self.kind), shown(&self.detail))?;
        match &self.instance {
            Some(instance) if self.name() == "userActionRequired" => write!(f, "({})", shown(instance)),
            _ => Ok(()),
        }
    }
}

/// A text of an authority as the log shows it: cut, and without control characters.
pub fn shown(text: &str) -> String {
    let mut shown: String =
        text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    if shown.len() > SHOWN_BYTES_MAX {
        let end = (0..=SHOWN_BYTES_MAX).rev().find(|at| shown.is_char_boundary(*at)).unwrap_or_default();
        shown.truncate(end);
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn kinds_decide_about_another_try() {
        let problem = |name: &str| Problem { kind: format!("{NAMESPACE}{name}"), ..Problem::default() };
        assert!(problem("malformed").is_bad_account() && problem("malformed").is_bad_order());
        assert!(!problem("rateLimited").is_bad_order() && !problem("serverInternal").is_bad_account());
        assert!(problem("alreadyReplaced").may_be_about_replacing() && !problem("caa").may_be_about_replacing());
        let foreign = Problem { kind: "about:blank".to_owned(), ..Problem::default() };
        assert_eq!((foreign.name(), foreign.is_bad_order()), ("", false));
    }

    #[test]
    fn the_text_is_short_and_of_one_line() {
        let read: Problem = serde_json::from_str(
            r#"{"type":"urn:ietf:params:acme:error:userActionRequired","detail":"a\nb","instance":"https://ca/t"}"#,
        )
        .unwrap();
        assert_eq!(read.to_string(), "urn:ietf:params:acme:error:userActionRequired: a b(https://ca/t)");
        let long = Problem { detail: "\u{e4}".repeat(600), ..Problem::default() };
        assert!(long.to_string().len() < 600 && long.to_string().ends_with("..."));
    }
}
