//! Sends one request and reads its answer, for verbs that query an edge.
//!
//! By the client of a run and not by `fetch`: a failure has Node's name and a step, which the message says in two languages.

use std::rc::Rc;
use std::time::Duration;

use weir_net::worker;
use weir_words::{Said, say};

use crate::client::{self, Origin, ReadyRequest, Resolver};
use crate::texts;
use crate::tls::Tls;
use crate::url::Url;

/// A request.
#[derive(Clone, Debug)]
pub struct Once {
    /// `http://[user:password@]host[:port]/path`, or `https://`; the user becomes Basic authorization (RFC 7617).
    pub url: String,
    /// The method, `GET` and so on.
    pub method: &'static str,
    /// A JSON body; sent if it is not empty.
    pub json: Vec<u8>,
    /// Time limit from resolving the name to the last byte.
    pub timeout: Duration,
    /// True: accept any certificate.
    pub insecure: bool,
    /// A token, for `Authorization: Bearer` (RFC 6750).
    pub bearer: Option<String>,
}

/// Sends the request and waits; returns status and body of the answer. The error is for the user, without the
/// password.
pub fn ask(once: &Once) -> Result<(u16, Vec<u8>), Said> {
    let url = Url::parse(&once.url)?;
    let (place, head) = (url.authority.clone(), head(once, &url));
    let once = once.clone();
    let answered = worker::block_on(async move {
        let tls: Rc<Tls> = Rc::default();
        let tls = if once.insecure { tls.accepting_anyone() } else { tls };
        let origin = Rc::new(Origin::of(&url, &tls));
        let call = ReadyRequest::alone(&origin, once.method, &head, &once.json, once.timeout);
        let answer = client::exchange(&mut None, &call, &Resolver::default()).await;
        answer.map(|answer| (answer.status(), answer.body().to_vec()))
    });
    match answered {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(failed)) => Err(say!(texts::NO_ANSWER, &place, failed.name.as_ref(), texts::doing(failed.step, &place))),
        Err(error) => Err(say!(texts::NOT_ASKED, place, error.to_string())),
    }
}

fn head(once: &Once, url: &Url) -> Vec<u8> {
    let agent = concat!("weir/", env!("CARGO_PKG_VERSION"));
    let mut head = format!(
        "{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {agent}\r\nAccept: application/json\r\nConnection: close\r\n",
        once.method, url.target, url.authority
    );
    if let Some(basic) = url.basic() {
        head += &format!("Authorization: {basic}\r\n");
    }
    // Ignore a token with characters that could end the header line.
    if let Some(token) = once.bearer.as_ref().filter(|token| token.bytes().all(|byte| (b' '..=b'~').contains(&byte))) {
        head += &format!("Authorization: Bearer {token}\r\n");
    }
    if !once.json.is_empty() {
        head += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", once.json.len());
    }
    head += "\r\n";
    head.into_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn once(url: &str, json: &[u8]) -> Once {
        let timeout = Duration::from_secs(5);
        Once { url: url.to_owned(), method: "POST", json: json.to_vec(), timeout, insecure: false, bearer: None }
    }

    #[test]
    fn a_head_says_what_is_needed() {
        let once = once("http://u:p@h:81/purge?a", b"{}");
        let head = String::from_utf8(head(&once, &Url::parse(&once.url).unwrap())).unwrap();
        assert!(head.starts_with("POST /purge?a HTTP/1.1\r\nHost: h:81\r\n"), "{head}");
        assert!(head.contains("\r\nAuthorization: Basic dTpw\r\n"), "{head}");
        assert!(head.ends_with("\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"), "{head}");
    }

    #[test]
    fn who_cannot_be_asked_is_named() {
        let place = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let said = ask(&once(&format!("http://u:s3cret@{place}/"), b"")).unwrap_err();
        assert!(said.contains(&place.to_string()) && said.contains("ECONNREFUSED"), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
        assert!(ask(&once("ftp://h/", b"")).unwrap_err().contains("http://"));
    }
}
