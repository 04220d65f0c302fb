//! The targets of this crate (`fuzz/README.md`): every answer of an authority that weir parses.

#![allow(clippy::panic)]

#[path = "mutate/oracle.rs"]
mod oracle;

use weir_mutate::mutate;

const BODIES: &[&str] = &[
    r#"{"newNonce":"https://a/n","newAccount":"https://a/a","newOrder":"https://a/o","renewalInfo":"https://a/r","meta":{"termsOfService":"x","externalAccountRequired":true,"profiles":{"p":"q"}}}"#,
    r#"{"status":"pending","identifiers":[{"type":"dns","value":"a.test"}],"authorizations":["https://a/z/1"],"finalize":"https://a/f","certificate":"https://a/c","error":{"type":"urn:ietf:params:acme:error:caa","detail":"no"}}"#,
    r#"{"identifier":{"type":"ip","value":"192.0.2.1"},"status":"valid","challenges":[{"type":"http-01","url":"https://a/ch","status":"pending","token":"abc-_","error":{"type":"x"}}],"wildcard":true}"#,
    r#"{"suggestedWindow":{"start":"2026-01-02T04:00:00Z","end":"2026-01-03T04:00:00.5+01:00"},"explanationURL":"https://a/x"}"#,
    "-----BEGIN CERTIFICATE-----\nMIIBtjCCAVugAwIBAgITBmyf1XSXNmY/Owua2eiedgPySjAKBggqhkjOPQQDAjA5\n-----END CERTIFICATE-----\n",
];

const FIELDS: &[&str] =
    &["<https://a/1>;rel=\"alternate\", <2>; rel=up", "120", "Sun, 06 Nov 1994 08:49:37 GMT", "oFvnlFP1wIhRlYS2jTaXbA"];

/// The texts that a mutation inserts.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "null",
    "true",
    "1e9",
    "-1",
    "\\u0000",
    "\\ud800",
    "\n",
    "\0",
    "é",
    "..",
    "/",
    "<",
    ">",
    ";",
    "rel=alternate",
    "status",
    "valid",
    "urn:ietf:params:acme:error:malformed",
    "-----BEGIN CERTIFICATE-----\n",
    "-----END CERTIFICATE-----\n",
    "AAAA",
    "9999-12-31T23:59:59Z",
    "18446744073709551616",
];

#[test]
fn bodies() {
    mutate(BODIES, WORDS, oracle::body);
}

#[test]
fn fields() {
    mutate(FIELDS, WORDS, oracle::field);
}
