//! `ssl_ocsp`: after a handshake, asks OCSP responders whether the client's certificates were revoked.
//!
//! Only the request waits for the answer. A certificate that is not known to be good is refused.
//! <https://nginx.org/en/docs/http/ngx_http_ssl_module.html#ssl_ocsp>

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_conf::Statement;
use weir_http::hold::worker::{Generation, Worker};
use weir_http::read::build::Build;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::log::{self, Level};
use weir_net::tls::ocsp::{self, Question, Signer, Status};
use weir_net::tls::{Complaint, Trust};
use weir_net::{Address, clock};
use weir_proxy::family::resolver;

use super::flight::Flights;
use super::responder::{OcspResponder, Url};

/// `ssl_ocsp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// No check.
    Off,
    /// Every certificate of the chain except the root authority.
    Chain,
    /// Only the client's own certificate.
    Leaf,
}

/// The check of clients' certificates.
pub struct Checks {
    is_leaf_only: bool,
    /// `ssl_ocsp_responder`; without it each certificate names its responder.
    responder: Option<OcspResponder>,
    resolver: resolver::Settings,
    cache: Option<Arc<Cache>>,
}

/// The assumed cost of a cache entry, in bytes.
const ENTRY_BYTES: u64 = 256;

/// nginx refuses zones of less than eight pages.
const CACHE_BYTES_MIN: u64 = 32 << 10;

/// Answers of responders, shared by all workers and kept across reloads.
pub struct Cache {
    /// The name and the size in bytes: another size makes another cache.
    identity: (String, u64),
    entries: Mutex<HashMap<Vec<u8>, (Status, i64)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change adds or removes a whole entry, so a panic of a lock holder leaves a valid table.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cache {
    fn find(&self, id: &[u8], now: i64) -> Option<Status> {
        lock(&self.entries).get(id).filter(|(_, until)| now < *until).map(|(status, _)| *status)
    }

    fn keep(&self, id: &[u8], status: Status, until: i64, now: i64) {
        let limit = usize::try_from(self.identity.1 / ENTRY_BYTES).unwrap_or(usize::MAX);
        let mut entries = lock(&self.entries);
        if entries.len() >= limit {
            entries.retain(|_, (_, until)| now < *until);
        }
        if entries.len() >= limit {
            // Any entry.
            let some = entries.keys().next().cloned();
            some.map(|id| entries.remove(&id));
        }
        entries.insert(id.to_vec(), (status, until));
    }
}

/// Reads `off` or `shared:NAME:SIZE`.
pub fn cache(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let text = statement.text(0);
    let invalid = || Refusal::whole(format!("invalid OCSP cache \"{text}\""));
    if text == "off" {
        crate::settings(b).ssl.status_cache = Some(None);
        return Ok(());
    }
    let (name, size) = text.strip_prefix("shared:").and_then(|rest| rest.split_once(':')).ok_or_else(invalid)?;
    let size = value::size_of(size).filter(|_| !name.is_empty()).ok_or_else(invalid)?;
    if size < CACHE_BYTES_MIN {
        return Err(Refusal::whole(format!("OCSP cache \"{text}\" is too small")));
    }
    let identity = (name.to_owned(), size);
    let caches = &mut crate::declaring(b).ssl.status_caches;
    let cache = match caches.iter().find(|known| known.identity.0 == name) {
        Some(known) if known.identity != identity => {
            return Err(Refusal::whole(format!(
                "the size {size} of shared memory zone \"{name}\" conflicts with already declared size {}",
                known.identity.1
            )));
        }
        Some(known) => known.clone(),
        None => {
            let new = Arc::new(Cache { identity, entries: Mutex::default() });
            caches.push(new.clone());
            new
        }
    };
    crate::settings(b).ssl.status_cache = Some(Some(cache));
    Ok(())
}

/// Takes over the entries of the older configuration.
pub fn adopt(new: &[Arc<Cache>], old: &[Arc<Cache>]) {
    for cache in new {
        if let Some(old) = old.iter().find(|old| old.identity == cache.identity) {
            let known = lock(&old.entries).clone();
            *lock(&cache.entries) = known;
        }
    }
}

/// The checks of a server, with the URL that the file names and the cache; `None` for none.
pub fn checks(
    b: &Build<'_>,
    checked: Checked,
    (text, cache): (&str, Option<&Arc<Cache>>),
    resolver: &resolver::Settings,
) -> Result<Option<Checks>, Refusal> {
    if checked == Checked::Off {
        return Ok(None);
    }
    let responder = match text {
        "" => None,
        text => {
            let bad =
                || Refusal::whole(format!("invalid URL prefix in OCSP responder \"{text}\" in \"ssl_ocsp_responder\""));
            Some(OcspResponder::new(b, Url::read(text).ok_or_else(bad)?, resolver)?)
        }
    };
    let is_leaf_only = checked == Checked::Leaf;
    Ok(Some(Checks { is_leaf_only, responder, resolver: resolver.clone(), cache: cache.cloned() }))
}

impl Checks {
    /// Checks a chain that is valid otherwise; the client's own certificate comes first, the authority last.
    pub async fn judge(
        &self,
        (worker, generation): (&Worker, &Generation),
        trust: &Trust,
        chain: &[Vec<u8>],
    ) -> Result<(), Complaint> {
        let checked = if self.is_leaf_only { 1 } else { chain.len() };
        for pair in chain.windows(2).take(checked) {
            let [certificate, issuer] = pair else { continue };
            match self.status((worker, generation), trust, certificate, issuer).await {
                Ok(Status::Good) => {}
                Ok(Status::Revoked) => return Err(Complaint::REVOKED),
                Ok(Status::Unknown) => return Err(Complaint::STATUS),
                Err(why) => {
                    log::global(Level::Error, format_args!("{why} while requesting certificate status"));
                    return Err(Complaint::STATUS);
                }
            }
        }
        Ok(())
    }

    async fn status(
        &self,
        (worker, generation): (&Worker, &Generation),
        trust: &Trust,
        certificate: &[u8],
        issuer: &[u8],
    ) -> Result<Status, String> {
        let question =
            Question::new(certificate, issuer).ok_or("weir cannot make an OCSP request for the certificate")?;
        let now = clock::unix_seconds() as i64;
        if let Some(status) = self.cache.as_ref().and_then(|cache| cache.find(question.id(), now)) {
            return Ok(status);
        }
        let key = (std::ptr::from_ref(self) as usize, question.id().to_vec());
        worker.own.of(Flights::default).hear(key, || self.ask(generation, trust, certificate, &question)).await
    }

    /// Asks the responder, and caches the answer while it is valid.
    async fn ask(
        &self,
        generation: &Generation,
        trust: &Trust,
        certificate: &[u8],
        question: &Question,
    ) -> Result<Status, String> {
        let response = match &self.responder {
            Some(responder) => responder.ask(responder.resolver(generation).as_ref(), question.request()).await?,
            None => {
                let text = ocsp::responder(certificate).ok_or("no OCSP responder URL in the certificate")?;
                let url = Url::read(&text).ok_or_else(|| format!("invalid URL prefix in OCSP responder \"{text}\""))?;
                let responder = OcspResponder::later(url, &self.resolver)?;
                responder.ask(responder.resolver(generation).as_ref(), question.request()).await?
            }
        };
        let now = clock::unix_seconds() as i64;
        let answer = question.read(&response, Signer::Appointed(trust), now).map_err(|fault| fault.to_string())?;
        if let (Some(cache), Some(until)) = (&self.cache, answer.until.filter(|until| now < *until)) {
            cache.keep(question.id(), answer.status, until, now);
        }
        Ok(answer.status)
    }
}

impl OcspResponder {
    /// The responder that a client's certificate names: an address, or a name for the resolver.
    fn later(url: Url, resolver: &resolver::Settings) -> Result<OcspResponder, String> {
        let address: Option<Address> = weir_http::read::authority::literal_address(&url.authority);
        match (address, resolver.servers.clone().flatten()) {
            (Some(address), _) => Ok(OcspResponder { url, resolver: None, addresses: vec![address] }),
            (None, Some(servers)) => {
                let timeout = resolver.timeout.unwrap_or(weir_http::hold::dns::TIMEOUT_DEFAULT);
                Ok(OcspResponder { url, resolver: Some((servers, timeout)), addresses: Vec::new() })
            }
            (None, None) => Err(format!("no resolver defined to resolve {}", url.authority)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::of_text;

    #[test]
    fn a_cache_keeps_no_more_than_it_may_and_no_longer() {
        let cache = Cache { identity: ("c".to_owned(), 4 * ENTRY_BYTES), entries: Mutex::default() };
        for id in 0..9u8 {
            cache.keep(&[id], Status::Good, 10, 0);
            assert!(lock(&cache.entries).len() <= 4);
        }
        cache.keep(b"x", Status::Revoked, 10, 0);
        assert_eq!((cache.find(b"x", 9), cache.find(b"x", 10)), (Some(Status::Revoked), None));
    }

    #[test]
    fn what_is_wrong_is_told_in_nginx_words() {
        for (line, words) in [
            ("ssl_ocsp yes;", "invalid value \"yes\""),
            ("ssl_ocsp_cache builtin;", "invalid OCSP cache \"builtin\""),
            ("ssl_ocsp_cache shared::1m;", "invalid OCSP cache \"shared::1m\""),
            ("ssl_ocsp_cache shared:a:1k;", "OCSP cache \"shared:a:1k\" is too small"),
            (
                "ssl_ocsp_cache shared:a:1m; server { server_name b; ssl_ocsp_cache shared:a:2m; }",
                "the size 2097152 of shared memory zone \"a\" conflicts with already declared size 1048576",
            ),
        ] {
            let (_, problems) = of_text(&format!("events {{}} http {{ {line} server {{ listen 80; }} }}"));
            assert_eq!(problems, [words], "{line}");
        }
    }
}
