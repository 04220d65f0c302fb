//! The surroundings of one authority's client: connections through the resolver, files, cells, challenges.

use std::cell::RefCell;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use weir_acme::surroundings::BODY_BYTES_MAX;
use weir_acme::{
    AuthorityAnswer, AuthorityRequest, Begun, CertificateOrder, ChallengeType, Issued, KeyKind, Method, Proof, Record,
    Surroundings,
};
use weir_fetch::{Call, FetchedAnswer, compose};
use weir_http::hold::dns;
use weir_net::log::{self, Level, Os};
use weir_net::{Deadline, aside, clock, random, timer};

use super::cell::Cell;
use super::challenges::Challenges;
use super::publish::{self, Publisher};
use super::share;
use super::work::Work;

/// The longest time of a request, from the name to the last byte.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Addresses that weir tries for one request.
const ADDRESSES_MAX: usize = 8;

/// The largest head of an answer.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// The surroundings.
pub struct Outside {
    /// The settings.
    pub work: Arc<Work>,
    /// The thumbprint of the account's key.
    pub thumbprint: String,
    /// The challenges of this edge.
    pub challenges: Arc<Challenges>,
    resolver: Rc<dns::Resolver>,
    /// The URL of the account, for an authority without files.
    pub account: RefCell<Option<String>>,
}

impl Outside {
    /// The surroundings on the agent's thread.
    pub fn new(work: Arc<Work>, thumbprint: String, challenges: Arc<Challenges>) -> Outside {
        let resolver = dns::Resolver::new(work.resolver.0.clone());
        Outside { work, thumbprint, challenges, resolver, account: RefCell::default() }
    }

    fn cell(&self, order: &CertificateOrder) -> Option<&Arc<Cell>> {
        self.work.orders.iter().find(|(known, _)| known == order).map(|(_, cell)| cell)
    }

    fn complain(&self, what: &str, error: &std::io::Error) {
        let (path, issuer) = (self.work.path(), &self.work.issuer.name);
        log::global(Level::Warn, format_args!("{what} in \"{path}\" failed {}, acme issuer: \"{issuer}\"", Os(error)));
    }

    /// Shows the answer to a challenge on this edge, and on the others.
    async fn show_here(&self, proof: &Proof) -> Result<(), String> {
        self.challenges.add(proof)?;
        if let Some(share) = &self.work.share {
            match share.show(proof).await {
                Ok(()) => timer::sleep(share::SETTLE).await,
                // The authority may look at this edge.
                Err(why) => log::global(Level::Warn, format_args!("{why}, acme issuer: \"{}\"", self.work.issuer.name)),
            }
        }
        Ok(())
    }

    async fn hide_here(&self, proof: &Proof) {
        self.challenges.remove(proof);
        if let Some(share) = &self.work.share {
            // A challenge that stays is forgotten by itself.
            let _ = share.hide(proof).await;
        }
    }

    async fn addresses(&self, url: &url::Url) -> Result<Vec<SocketAddr>, String> {
        let port = url.port_or_known_default().ok_or("the URL has no port")?;
        let host = url.host_str().unwrap_or_default();
        if let Some(address) = weir_fetch::literal(host) {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let found = self.resolver.addresses(host, self.work.resolver.1).await;
        let found = found.map_err(|trouble| format!("{host} could not be resolved {trouble}"))?;
        let mut all: Vec<SocketAddr> =
            found.places.into_iter().map(|place| SocketAddr::new(place.address.ip(), port)).collect();
        // As in nginx's module, IPv6 comes first.
        all.sort_by_key(SocketAddr::is_ipv4);
        all.truncate(ADDRESSES_MAX);
        Ok(all)
    }
}

fn composed(request: &AuthorityRequest<'_>) -> Vec<u8> {
    let (language, kind) = (("Accept-Language", "en"), ("Content-Type", "application/jose+json"));
    match request.method {
        Method::Get => compose("GET", request.url, &[language], ""),
        Method::Post => compose("POST", request.url, &[language, kind], request.body),
    }
}

impl Surroundings for Outside {
    async fn exchange(&self, request: AuthorityRequest<'_>) -> Result<AuthorityAnswer, String> {
        let deadline = Deadline::new();
        deadline.set(TIMEOUT);
        let addresses = self.addresses(request.url).await?;
        let tls = self.work.tls.as_ref().map_err(Clone::clone);
        let call = Call { url: request.url, addresses: &addresses, tls, verifies: self.work.verifies };
        let bytes_max = HEAD_BYTES_MAX + BODY_BYTES_MAX;
        let FetchedAnswer { status, fields, body, .. } =
            call.exchange(&composed(&request), bytes_max, &deadline).await?;
        let host = request.url.host_str().unwrap_or_default();
        match body.len() <= BODY_BYTES_MAX {
            true => Ok(AuthorityAnswer { status, fields, body }),
            false => Err(format!("the response of {host} is larger than {}k", BODY_BYTES_MAX >> 10)),
        }
    }

    async fn pause(&self, time: Duration) {
        timer::sleep(time).await;
    }

    fn now(&self) -> i64 {
        clock::unix_seconds() as i64
    }

    fn chance(&self) -> u64 {
        (0..4).fold(0, |number, _| (number << 16) | u64::from(random::word().unwrap_or_default()))
    }

    async fn make_key(&self, kind: KeyKind) -> Result<String, String> {
        // An RSA key takes up to some seconds, and the thread looks after other authorities too.
        match aside::run("acme key", move || kind.generate()).await {
            Ok(made) => made,
            Err(error) => Err(format!("key generation error: {error}")),
        }
    }

    async fn show(&self, proof: &Proof) -> Result<(), String> {
        let Some(record) = proof.record() else { return self.show_here(proof).await };
        match &self.work.publisher {
            Publisher::Nobody => {
                let (Record { name, text }, issuer) = (&record, &self.work.issuer.name);
                log::global(
                    Level::Notice,
                    format_args!(
                        "the authority looks for the record: {name}. TXT \"{text}\", acme issuer: \"{issuer}\""
                    ),
                );
            }
            Publisher::Responder => self.show_here(proof).await?,
            Publisher::Update(update) => update.send(&record, true).await?,
            Publisher::Hook(program) => publish::run_hook(program.clone(), &record, true).await?,
        }
        timer::sleep(self.work.delay).await;
        Ok(())
    }

    async fn hide(&self, proof: &Proof) {
        let Some(record) = proof.record() else { return self.hide_here(proof).await };
        let hidden = match &self.work.publisher {
            // This record is meant to stay.
            _ if proof.challenge == ChallengeType::DnsPersist01 => Ok(()),
            Publisher::Nobody => Ok(()),
            Publisher::Responder => {
                self.hide_here(proof).await;
                Ok(())
            }
            Publisher::Update(update) => update.send(&record, false).await,
            Publisher::Hook(program) => publish::run_hook(program.clone(), &record, false).await,
        };
        if let Err(why) = hidden {
            let issuer = &self.work.issuer.name;
            log::global(Level::Warn, format_args!("{why} while removing a record, acme issuer: \"{issuer}\""));
        }
    }

    fn keep_account(&self, account: Option<&str>) {
        *self.account.borrow_mut() = account.map(str::to_owned);
        if let Some(directory) = &self.work.directory
            && let Err(error) = directory.keep_account(account, &self.work.issuer.uri, &self.thumbprint)
        {
            self.complain("writing the account", &error);
        }
    }

    fn keep_order(&self, order: &CertificateOrder, begun: Option<&Begun>) {
        if let Some(directory) = &self.work.directory
            && let Err(error) = directory.keep_order(order, begun)
        {
            self.complain("writing an order", &error);
        }
    }

    fn issued(&self, order: &CertificateOrder, issued: &Issued) -> Result<(), String> {
        if let Some(cell) = self.cell(order) {
            cell.put(issued)?;
        }
        match &self.work.directory {
            Some(directory) => directory.keep(order, issued).map_err(|error| Os(&error).to_string()),
            None => Ok(()),
        }
    }

    fn say(&self, level: Level, line: fmt::Arguments<'_>) {
        log::global(level, line);
    }
}
