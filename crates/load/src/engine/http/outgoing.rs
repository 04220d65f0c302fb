//! A request as bytes: rendered once; its head is written again for each redirect.
//!
//! Fields are in the order in which Artillery's client sends them: user-agent, the script's, content-type,
//! content-length, accept-encoding, authorization, cookie, Host, Connection.

use std::borrow::Cow;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use weir_wire::encode::push_field_decimal;

use crate::client::Origin;
use crate::failed::Failed;
use crate::url::{Url, write_target};

/// The content codings that Artillery's client offers.
const CODINGS: &[u8] = b"accept-encoding: gzip, deflate, br, zstd\r\n";

/// Fields that the script sets itself; weir does not add them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnFields {
    pub(super) host: bool,
    pub(super) connection: bool,
    pub(super) content_type: bool,
    pub(super) content_length: bool,
    pub(super) transfer_encoding: bool,
    pub(super) accept_encoding: bool,
    pub(super) authorization: bool,
    pub(super) cookie: bool,
}

impl OwnFields {
    /// Records a field name, in lower case.
    pub(super) fn note(&mut self, name: &str) {
        match name {
            "host" => self.host = true,
            "connection" => self.connection = true,
            "content-type" => self.content_type = true,
            "content-length" => self.content_length = true,
            "transfer-encoding" => self.transfer_encoding = true,
            "accept-encoding" => self.accept_encoding = true,
            "authorization" => self.authorization = true,
            "cookie" => self.cookie = true,
            _ => {}
        }
    }
}

/// A request, rendered.
pub(super) struct Outgoing {
    pub(super) method: Cow<'static, str>,
    pub(super) origin: Rc<Origin>,
    pub(super) target: String,
    /// Fields from user-agent to content-type.
    pub(super) fields: Vec<u8>,
    pub(super) own: OwnFields,
    pub(super) body: Option<Vec<u8>>,
    pub(super) decompress: bool,
    pub(super) follows: bool,
    /// The whole Authorization field.
    pub(super) authorization: Option<String>,
}

impl Outgoing {
    /// Writes the head; `cookies` is the Cookie field's value.
    pub(super) fn write_head(&self, cookies: &[u8], out: &mut Vec<u8>) {
        out.clear();
        for part in [self.method.as_bytes(), b" ", self.target.as_bytes(), b" HTTP/1.1\r\n"] {
            out.extend_from_slice(part);
        }
        if self.own.cookie && !cookies.is_empty() {
            // The jar replaces the script's own field, as in Artillery's client.
            let is_kept = |field: &&[u8]| !field.get(..7).is_some_and(|name| name.eq_ignore_ascii_case(b"cookie:"));
            let fields = self.fields.split_inclusive(|&byte| byte == b'\n');
            fields.filter(is_kept).for_each(|field| out.extend_from_slice(field));
        } else {
            out.extend_from_slice(&self.fields);
        }
        let expects_body = matches!(&*self.method, "POST" | "PUT" | "PATCH");
        match &self.body {
            _ if self.own.content_length || self.own.transfer_encoding => {}
            Some(body) => push_field_decimal(out, b"content-length", body.len() as u64),
            None if expects_body => push_field_decimal(out, b"content-length", 0),
            None => {}
        }
        if self.decompress && !self.own.accept_encoding {
            out.extend_from_slice(CODINGS);
        }
        if let Some(authorization) = &self.authorization {
            out.extend_from_slice(authorization.as_bytes());
        }
        if !cookies.is_empty() {
            for part in [b"cookie: ", cookies, b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
        if !self.own.host && !self.own.connection {
            return out.extend_from_slice(&self.origin.tail);
        }
        if !self.own.host {
            for part in ["Host: ", &self.origin.authority, "\r\n"] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        if !self.own.connection {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }

    /// The whole URL.
    pub(super) fn url(&self) -> String {
        self.origin.url(&self.target)
    }

    /// Turns the request into the next one after a redirect. The error is Node's name.
    pub(super) fn redirect(
        &mut self,
        status: u16,
        location: &[u8],
        origins: &crate::client::Origins,
    ) -> Result<(), &'static str> {
        let here = Url::parse(&self.url()).map_err(|_| "ERR_INVALID_URL")?;
        let location = String::from_utf8_lossy(location);
        let there = here.join(&location).map_err(|_| {
            let is_strange = location.split_once("://").is_some_and(|(scheme, _)| !scheme.starts_with("http"));
            if is_strange { "ERR_UNSUPPORTED_PROTOCOL" } else { "ERR_INVALID_URL" }
        })?;
        if status == 303 && self.method != "GET" && self.method != "HEAD" {
            // The content-type stays, as in Artillery.
            self.method = Cow::Borrowed("GET");
            self.body = None;
            if self.own.content_length {
                drop_field(&mut self.fields, b"content-length");
                self.own.content_length = false;
            }
        }
        if !here.same_origin(&there) {
            // Do not send credentials to another origin.
            self.authorization = None;
            for name in ["host", "cookie", "authorization"] {
                drop_field(&mut self.fields, name.as_bytes());
            }
            (self.own.host, self.own.cookie, self.own.authorization) = (false, false, false);
            self.origin = origins.of(&there);
        }
        self.target = there.target;
        Ok(())
    }
}

/// Removes all lines of a field; its name is in lower case in `fields`.
fn drop_field(fields: &mut Vec<u8>, name: &[u8]) {
    let kept: Vec<u8> = fields
        .split_inclusive(|&byte| byte == b'\n')
        .filter(|line| line.strip_prefix(name).is_none_or(|rest| rest.first() != Some(&b':')))
        .flatten()
        .copied()
        .collect();
    *fields = kept;
}

/// Appends a field. If the value is not allowed in a field, the error is Node's name for it.
pub(super) fn push_field(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), Failed> {
    // The loop has no early exit, so that the compiler can check many bytes at once.
    let is_bad = |byte: u8| byte == 0x7f || (byte < b' ' && byte != b'\t');
    if value.iter().fold(false, |bad, &byte| bad | is_bad(byte)) {
        return Err(Failed(Cow::Borrowed("ERR_INVALID_CHAR")));
    }
    for part in [name.as_bytes(), b": ", value.trim_ascii(), b"\r\n"] {
        out.extend_from_slice(part);
    }
    Ok(())
}

/// The field of HTTP Basic (RFC 7617).
pub(super) fn basic(user: &str, pass: &str) -> String {
    format!("authorization: Basic {}\r\n", BASE64.encode(format!("{user}:{pass}")))
}

/// Appends `application/x-www-form-urlencoded` (WHATWG URL).
pub(super) fn push_form_pair(out: &mut Vec<u8>, name: &str, value: &str) {
    if !out.is_empty() {
        out.push(b'&');
    }
    push_form(out, name);
    out.push(b'=');
    push_form(out, value);
}

fn push_form(out: &mut Vec<u8>, text: &str) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text.as_bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'*' | b'-' | b'.' | b'_' => out.push(byte),
            b' ' => out.push(b'+'),
            _ => {
                let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
                out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
}

/// A target with another query.
pub(super) fn with_query(target: &str, query: &[u8]) -> String {
    let path = target.split('?').next().unwrap_or("/");
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", String::from_utf8_lossy(query)) }
}

/// Joins the target's URL without query and a path.
pub(super) fn joined(prefix: &str, path: &[u8]) -> String {
    let mut out = Vec::with_capacity(prefix.len() + path.len());
    if prefix.is_empty() {
        write_target(path, &mut out);
    } else {
        let whole = [prefix.as_bytes(), path].concat();
        write_target(&whole, &mut out);
    }
    // Everything outside ASCII is percent-encoded at this point.
    String::from_utf8(out).unwrap_or_else(|_| "/".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::client::Origins;

    fn outgoing(method: &'static str, url: &str) -> Outgoing {
        let url = Url::parse(url).unwrap();
        Outgoing {
            method: Cow::Borrowed(method),
            origin: Rc::new(Origin::of(&url, &Rc::default())),
            target: url.target,
            fields: b"user-agent: u\r\ncookie: a\r\ncontent-type: t\r\n".to_vec(),
            own: OwnFields { cookie: true, ..OwnFields::default() },
            body: Some(b"abc".to_vec()),
            decompress: true,
            follows: true,
            authorization: Some(basic("u", "p")),
        }
    }

    fn head(outgoing: &Outgoing, cookies: &[u8]) -> String {
        let mut out = Vec::new();
        outgoing.write_head(cookies, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fields_stand_in_artillerys_order() {
        let text = head(&outgoing("POST", "http://a:81/x?y"), b"c=1");
        assert_eq!(
            text,
            "POST /x?y HTTP/1.1\r\nuser-agent: u\r\ncontent-type: t\r\ncontent-length: 3\r\n\
             accept-encoding: gzip, deflate, br, zstd\r\nauthorization: Basic dTpw\r\ncookie: c=1\r\n\
             Host: a:81\r\nConnection: keep-alive\r\n\r\n"
        );
    }

    #[test]
    fn redirects_keep_what_artillery_keeps() {
        for (method, status, location, expect) in [
            ("POST", 302, "/y", "POST /y content-length: 3 authorization: cookie: a Host: a:81"),
            ("POST", 303, "/y", "GET /y authorization: cookie: a Host: a:81"),
            ("PUT", 308, "http://b/z", "PUT /z content-length: 3 Host: b"),
        ] {
            let mut outgoing = outgoing(method, "http://a:81/x");
            outgoing.redirect(status, location.as_bytes(), &Origins::default()).unwrap();
            let text = head(&outgoing, b"");
            for part in expect.split_inclusive(' ').map(str::trim) {
                assert!(text.contains(part), "{part} in {text}");
            }
            assert_eq!(text.contains("authorization"), expect.contains("authorization"), "{text}");
            assert_eq!(text.contains("content-length"), expect.contains("content-length"), "{text}");
            assert!(text.contains("content-type: t"));
        }
        let mut strange = outgoing("GET", "http://a/");
        assert_eq!(strange.redirect(302, b"ftp://x/", &Origins::default()), Err("ERR_UNSUPPORTED_PROTOCOL"));
    }

    #[test]
    fn forms() {
        let mut out = Vec::new();
        push_form_pair(&mut out, "a b", "1+ü");
        push_form_pair(&mut out, "c", "");
        assert_eq!(out, b"a+b=1%2B%C3%BC&c=");
        assert_eq!(with_query("/x?old", &out), "/x?a+b=1%2B%C3%BC&c=");
    }

    #[test]
    fn values_with_line_ends_are_refused() {
        let mut out = Vec::new();
        assert_eq!(push_field(&mut out, "a", b"x\r\ny: z"), Err(Failed(Cow::Borrowed("ERR_INVALID_CHAR"))));
        assert_eq!(out, b"");
    }
}
