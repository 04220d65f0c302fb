//! The JSON of an authority's answers (RFC 8555 §7.1, RFC 9773 §4.2), and their reading.
//!
//! Unknown members are ignored, as RFC 8555 §7 demands. The size of an answer is bounded before it gets here.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::failed::Failed;
use crate::problem::Problem;

/// The most authorizations of one order, and the most challenges of one authorization, that weir follows.
pub const PARTS_MAX: usize = 256;

/// The URLs of an authority.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Directory {
    /// Gives nonces.
    pub new_nonce: String,
    /// Takes accounts.
    pub new_account: String,
    /// Takes orders.
    pub new_order: String,
    /// Tells when to renew, if the authority does.
    #[serde(default)]
    pub renewal_info: Option<String>,
    /// Facts about the authority.
    #[serde(default, deserialize_with = "or_default")]
    pub meta: Meta,
}

/// Facts about an authority.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// Where the terms of service are.
    pub terms_of_service: Option<String>,
    /// Accounts must belong to customers.
    #[serde(deserialize_with = "or_default")]
    pub external_account_required: bool,
    /// The names of the profiles.
    #[serde(deserialize_with = "or_default")]
    pub profiles: BTreeMap<String, IgnoredAny>,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Account {
    /// `valid`, `deactivated` or `revoked`.
    pub status: String,
}

/// An order.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Order {
    /// `pending`, `ready`, `processing`, `valid` or `invalid`.
    pub status: String,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<Problem>,
    /// The URLs of its authorizations.
    #[serde(default)]
    pub authorizations: Vec<String>,
    /// Takes the request for the certificate.
    pub finalize: String,
    /// The URL of the certificate.
    #[serde(default)]
    pub certificate: Option<String>,
}

/// An authorization.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Authorization {
    /// The host.
    pub identifier: AuthorityHost,
    /// `pending`, `valid`, or a failure.
    pub status: String,
    /// Whether it is for all names of the host's domain.
    #[serde(default, deserialize_with = "or_default")]
    pub wildcard: bool,
    /// The ways to prove it.
    #[serde(default)]
    pub challenges: Vec<Challenge>,
}

/// A host as an authority writes it: without `*.` for a wildcard.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AuthorityHost {
    /// The kind of host.
    #[serde(rename = "type")]
    pub kind: String,
    /// The host itself.
    pub value: String,
}

/// A challenge.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Challenge {
    /// The name of its kind.
    #[serde(rename = "type")]
    pub kind: String,
    /// Told when weir is ready.
    pub url: String,
    /// `pending`, `processing`, `valid` or `invalid`.
    pub status: String,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<Problem>,
    /// A text chosen by the authority.
    #[serde(default)]
    pub token: String,
    /// The names under which the authority is found in a record of `dns-persist-01`.
    #[serde(default, rename = "issuer-domain-names")]
    pub issuer_names: Vec<String>,
}

/// When to renew.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenewalInfo {
    /// The time in which to renew.
    pub suggested_window: Window,
    /// Where people read why.
    #[serde(default, rename = "explanationURL")]
    pub explanation: Option<String>,
}

/// A time from one moment to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Window {
    /// Seconds since 1970.
    #[serde(deserialize_with = "moment")]
    pub start: i64,
    /// Seconds since 1970.
    #[serde(deserialize_with = "moment")]
    pub end: i64,
}

/// Reads an answer's body.
///
/// # Errors
/// The reason why it is not the expected JSON.
pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failed> {
    serde_json::from_slice(body).map_err(|error| Failed::Format(error.to_string()))
}

/// A token has only characters of base64url (RFC 8555 §8.1): it becomes part of a path or of a name.
pub fn is_token(text: &str) -> bool {
    (1..=256).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// `null` is the same as no value.
fn or_default<'d, D: Deserializer<'d>, T: Deserialize<'d> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

fn moment<'d, D: Deserializer<'d>>(deserializer: D) -> Result<i64, D::Error> {
    let text = String::deserialize(deserializer)?;
    let read = OffsetDateTime::parse(&text, &Rfc3339).map_err(serde::de::Error::custom)?;
    Ok(read.unix_timestamp())
}

/// Reads bytes as every kind of answer; for the tests that change answers at random.
pub fn read_as_anything(body: &[u8]) {
    let _ = read::<Directory>(body);
    let _ = read::<Account>(body);
    let _ = read::<Order>(body);
    let _ = read::<Authorization>(body);
    let _ = read::<Challenge>(body);
    let _ = read::<RenewalInfo>(body);
    let _ = read::<Problem>(body);
    let _ = crate::chain::read(body);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_directory_needs_three_urls() {
        let text = r#"{"newNonce":"https://a/n","newAccount":"https://a/a","newOrder":"https://a/o","revokeCert":1,
            "meta":{"externalAccountRequired":true,"profiles":{"short":"x","odd":{"a":1}}}}"#;
        let read: Directory = super::read(text.as_bytes()).unwrap();
        assert!(read.meta.external_account_required && read.meta.profiles.contains_key("odd"));
        for text in [r#"{"newNonce":"https://a/n"}"#, "[]", "", "{", "null", "\u{0}"] {
            assert!(matches!(super::read::<Directory>(text.as_bytes()), Err(Failed::Format(_))), "{text}");
        }
        let nulls = r#"{"newNonce":"a","newAccount":"b","newOrder":"c","meta":{"profiles":null,"externalAccountRequired":null}}"#;
        assert!(super::read::<Directory>(nulls.as_bytes()).is_ok());
    }

    #[test]
    fn times_are_those_of_rfc_3339() {
        let window = |start: &str| {
            let text = format!(r#"{{"suggestedWindow":{{"start":"{start}","end":"2027-01-01T00:00:00.5+01:00"}}}}"#);
            super::read::<RenewalInfo>(text.as_bytes()).map(|info| info.suggested_window)
        };
        assert_eq!(window("2027-01-01T00:00:00Z").unwrap(), Window { start: 1_798_761_600, end: 1_798_758_000 });
        assert!(window("2027-01-01").is_err() && window("2027-13-01T00:00:00Z").is_err());
    }

    #[test]
    fn deep_nesting_is_refused_by_name() {
        let deep = format!("{{\"meta\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(super::read::<Directory>(deep.as_bytes()), Err(Failed::Format(_))));
    }

    #[test]
    fn tokens_have_no_path_in_them() {
        assert!(is_token("LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0"));
        for bad in ["", "a/b", "a.b", "..", "a b", "a\u{e4}", &"a".repeat(257)] {
            assert!(!is_token(bad), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            read_as_anything(&bytes);
        }
    }
}
