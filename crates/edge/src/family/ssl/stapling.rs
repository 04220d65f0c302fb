//! `ssl_stapling`: fetches OCSP responses at run time, and sends them in handshakes.
//!
//! One worker fetches the response for each certificate, at the start and before the old one expires; handshakes use
//! the response at hand and never wait. All servers with the same certificate share its response, also after a reload.
//! <https://nginx.org/en/docs/http/ngx_http_ssl_module.html#ssl_stapling>

use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_http::hold::dns::Resolver;
use weir_http::hold::worker::{Generation, Worker};
use weir_http::read::build::Build;
use weir_net::log::{self, Level};
use weir_net::tls::ocsp::{self, Question, Signer, Status};
use weir_net::tls::{KeyPair, Staple, Trust};
use weir_net::{clock, timer};
use weir_proxy::family::resolver;

use super::Values;
use super::responder::{OcspResponder, Url};

/// A response is renewed this long before it expires; after a failure the next try is this much later (nginx: 5 min).
const MARGIN_S: i64 = 300;

/// A response is renewed at least once an hour (nginx).
const RENEW_S: i64 = 3600;

/// The lifetime of a response without an expiry time.
const ENDLESS_S: i64 = 7 * 24 * 3600;

/// A certificate whose OCSP status weir fetches.
pub struct Stapler {
    /// The certificate's file, for messages.
    name: String,
    digest: [u8; 32],
    question: Question,
    responder: OcspResponder,
    /// `ssl_stapling_verify`: an issuer that these authorities trust must have appointed the signer.
    trust: Option<Trust>,
    staple: Arc<Staple>,
    /// A worker fetches the response.
    is_watched: AtomicBool,
}

impl Stapler {
    /// Whether another stapler has the same question and the same trust.
    fn is_as(&self, other: &Stapler) -> bool {
        self.digest == other.digest
            && self.responder.url == other.responder.url
            && self.trust.is_some() == other.trust.is_some()
    }
}

/// The staplers for a server's certificates; warns of certificates that cannot be stapled, as in nginx.
pub fn staplers(
    b: &mut Build<'_>,
    values: &Values,
    pairs: &[KeyPair],
    resolver: &resolver::Settings,
) -> Vec<Arc<Stapler>> {
    let mut all = Vec::new();
    for (pair, source) in pairs.iter().zip(&values.certificates) {
        match stapler(b, values, pair, &source.shown, resolver) {
            Ok(new) => {
                let known = crate::declaring(b).ssl.staplers.iter().find(|known| known.is_as(&new)).cloned();
                let stapler = known.unwrap_or_else(|| {
                    let new = Arc::new(new);
                    crate::declaring(b).ssl.staplers.push(new.clone());
                    new
                });
                all.push(stapler);
            }
            Err(why) => b.warn(format!("\"ssl_stapling\" ignored, {why}"), None),
        }
    }
    all
}

fn stapler(
    b: &mut Build<'_>,
    values: &Values,
    pair: &KeyPair,
    name: &str,
    resolver: &resolver::Settings,
) -> Result<Stapler, String> {
    let chain = pair.chain();
    let leaf = chain.first().copied().unwrap_or_default();
    let trusted = super::assemble::authorities(b, &values.authorities).map_err(|refusal| refusal.what)?;
    let mut issuers = chain.iter().skip(1).copied().chain(trusted.iter().map(Vec::as_slice));
    let question = issuers.find_map(|issuer| Question::new(leaf, issuer));
    let question = question.ok_or_else(|| format!("issuer certificate not found for certificate \"{name}\""))?;
    let text = match values.stapling_responder.as_str() {
        "" => ocsp::responder(leaf).ok_or_else(|| format!("no OCSP responder URL in the certificate \"{name}\""))?,
        written => written.to_owned(),
    };
    let url = Url::read(&text)
        .ok_or_else(|| format!("invalid URL prefix in OCSP responder \"{text}\" in the certificate \"{name}\""))?;
    let responder = OcspResponder::new(b, url, resolver).map_err(|refusal| refusal.what)?;
    let trust = values.stapling_verify.then(|| Trust::new(trusted)).transpose();
    let trust = trust.map_err(|flaw| format!("weir cannot read a trusted certificate: {flaw}"))?;
    let (digest, name, staple) = (pair.digest(), name.to_owned(), Arc::default());
    Ok(Stapler { name, digest, question, responder, trust, staple, is_watched: AtomicBool::new(false) })
}

/// The pairs, each with the response of its stapler.
pub fn stapled(pairs: Vec<KeyPair>, staplers: &[Arc<Stapler>]) -> Vec<KeyPair> {
    let of = |pair: &KeyPair| staplers.iter().find(|stapler| stapler.digest == pair.digest());
    pairs
        .into_iter()
        .map(|pair| of(&pair).map_or_else(|| pair.clone(), |own| pair.with_renewed(own.staple.clone())))
        .collect()
}

/// Takes over the responses of the older configuration.
pub fn adopt(new: &[Arc<Stapler>], old: &[Arc<Stapler>]) {
    for stapler in new {
        if let Some(old) = old.iter().find(|old| stapler.is_as(old)) {
            stapler.staple.adopt(&old.staple);
        }
    }
}

/// Starts all staplers of a configuration that no other worker runs; they run while it is in force.
pub fn watch(worker: &Rc<Worker>, generation: &Rc<Generation>) {
    for stapler in &crate::declared(&generation.conf).ssl.staplers {
        if !stapler.is_watched.swap(true, Ordering::Relaxed) {
            let resolver = stapler.responder.resolver(generation);
            weir_net::worker::spawn(renew(worker.clone(), Rc::downgrade(generation), stapler.clone(), resolver));
        }
    }
}

async fn renew(
    worker: Rc<Worker>,
    generation: Weak<Generation>,
    stapler: Arc<Stapler>,
    resolver: Option<Rc<Resolver>>,
) {
    while generation.upgrade().is_some_and(|generation| worker.goes_on(&generation)) {
        let pause_s = match stapler.ask(resolver.as_ref()).await {
            Ok(until) => (until - MARGIN_S - clock::unix_seconds() as i64).clamp(MARGIN_S, RENEW_S),
            Err(why) => {
                let Stapler { name, responder, .. } = &*stapler;
                let responder = &responder.url.authority;
                log::global(
                    Level::Error,
                    format_args!(
                        "{why} while requesting certificate status, responder: {responder}, certificate: \"{name}\""
                    ),
                );
                MARGIN_S
            }
        };
        timer::sleep(Duration::from_secs(pause_s as u64)).await;
    }
}

impl Stapler {
    /// Fetches a response; returns its expiry. The error is for the log.
    async fn ask(&self, resolver: Option<&Rc<Resolver>>) -> Result<i64, String> {
        let response = self.responder.ask(resolver, self.question.request()).await?;
        let now = clock::unix_seconds() as i64;
        let signer = self.trust.as_ref().map_or(Signer::Anybody, Signer::Appointed);
        let answer = self.question.read(&response, signer, now).map_err(|fault| fault.to_string())?;
        match answer.status {
            Status::Good => {
                let until = answer.until.unwrap_or(now + ENDLESS_S);
                self.staple.set(response, until);
                Ok(until)
            }
            Status::Revoked | Status::Unknown => {
                Err(format!("certificate status \"{}\" in the OCSP response", answer.status.word()))
            }
        }
    }
}
