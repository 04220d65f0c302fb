//! Sends one POST, from a thread that may block.
//!
//! By the client of a run and not by `fetch`: failures have Node's names, and `ca` means the same as for targets.

use std::rc::Rc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use weir_net::worker;

use crate::client::{self, Origin, ReadyRequest, Resolver};
use crate::tls::Tls;
use crate::url::Url;
use crate::value::{Map, Value};

/// A request to send.
pub(super) struct Post {
    pub(super) url: Url,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// A file with the certificate authorities to trust.
    pub(super) ca: Option<String>,
    pub(super) timeout: Duration,
    pub(super) resolver: Resolver,
}

/// Sends the request over a new connection. An answer that is not 2xx is an error.
pub(super) fn post(post: Post) -> Result<(), String> {
    let outcome = worker::block_on(async move {
        let origin = Rc::new(Origin::of(&post.url, &tls(post.ca.as_deref())?));
        let head = head(&post);
        let call = ReadyRequest::alone(&origin, "POST", &head, &post.body, post.timeout);
        let call = ReadyRequest { wants_body: false, ..call };
        let answer = client::exchange(&mut None, &call, &post.resolver).await;
        match answer.map_err(|error| error.name.into_owned())?.status() {
            200..=299 => Ok(()),
            status => Err(format!("the server answered {status}")),
        }
    });
    outcome.unwrap_or_else(|error| Err(error.to_string()))
}

fn tls(ca: Option<&str>) -> Result<Rc<Tls>, String> {
    let Some(path) = ca else { return Ok(Rc::default()) };
    let text = std::fs::read_to_string(path).map_err(|error| format!("ca {path}: {error}"))?;
    let mut map = Map::default();
    map.insert("ca".into(), Value::from(text.as_str()));
    Tls::new(&map)
}

fn head(post: &Post) -> Vec<u8> {
    let Post { url, content_type, headers, body, .. } = post;
    let mut head = format!("POST {} HTTP/1.1\r\nContent-Type: {content_type}\r\n", url.target);
    // A line break would begin another header field.
    for (name, value) in
        headers.iter().filter(|(name, value)| !name.contains(['\r', '\n']) && !value.contains(['\r', '\n']))
    {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(user) = &url.user {
        head.push_str(&format!("Authorization: Basic {}\r\n", STANDARD.encode(user)));
    }
    let authority = &url.authority;
    head.push_str(&format!("Content-Length: {}\r\nHost: {authority}\r\nConnection: close\r\n\r\n", body.len()));
    head.into_bytes()
}
