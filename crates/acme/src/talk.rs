//! The conversation with one authority: its directory, nonces, signed requests, redirects, retries, and the account.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::json;
use url::Url;
use weir_net::log::Level;

use crate::account_key::{AccountKey, Signer};
use crate::answer::{self, Directory};
use crate::failed::Failed;
use crate::fields;
use crate::issuer::Issuer;
use crate::problem::{Problem, shown};
use crate::surroundings::{AuthorityAnswer, AuthorityRequest, Method, Surroundings};

/// Redirects that weir follows for one request.
const REDIRECTS_MAX: usize = 10;

/// Tries of one request beyond the first: after a failed connection, a nonce that is not accepted, and a limit.
const RETRIES_MAX: usize = 3;

/// How long weir waits before another try, if the authority does not say.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause that an authority may ask for within an order.
pub(crate) const SERVER_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Nonces kept for later requests.
const NONCES_MAX: usize = 8;

/// The body of a request.
#[derive(Clone, Copy)]
pub(crate) enum Payload<'p> {
    /// None: asks for a resource.
    Nothing,
    /// JSON.
    Json(&'p str),
}

/// The conversation.
pub(crate) struct Talk<'t, S> {
    pub(crate) issuer: &'t Issuer,
    pub(crate) key: &'t AccountKey,
    pub(crate) around: &'t S,
    directory: Option<Directory>,
    nonces: VecDeque<String>,
    /// The URL of the account, and whether the authority has confirmed it in this conversation.
    account: Option<(String, bool)>,
}

impl<'t, S: Surroundings> Talk<'t, S> {
    /// `account` is its URL, if an earlier conversation found it.
    pub(crate) fn new(issuer: &'t Issuer, key: &'t AccountKey, around: &'t S, account: Option<String>) -> Talk<'t, S> {
        let account = account.map(|url| (url, false));
        Talk { issuer, key, around, directory: None, nonces: VecDeque::new(), account }
    }

    /// The URLs of the authority, read once.
    pub(crate) async fn directory(&mut self) -> Result<Directory, Failed> {
        if let Some(known) = &self.directory {
            return Ok(known.clone());
        }
        let read = match self.get(&self.issuer.uri).await {
            Ok(answer) => answer::read::<Directory>(&answer.body),
            Err(failed) => Err(failed),
        };
        let directory = read.map_err(|failed| Failed::Directory(Box::new(failed)))?;
        self.directory = Some(directory.clone());
        Ok(directory)
    }

    /// Reads something public.
    pub(crate) async fn get(&self, url: &str) -> Result<AuthorityAnswer, Failed> {
        let mut url = address(url)?;
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.exchange(Method::Get, &url, "").await?;
            match answer.status {
                300..400 => {
                    let target = answer.field("location").ok_or(Failed::Redirect("missing redirect URI"))?;
                    let next = url.join(target).map_err(|_| Failed::Redirect("invalid redirect URI"))?;
                    if !matches!(next.scheme(), "https" | "http") || next.host().is_none() {
                        return Err(Failed::Redirect("invalid redirect URI"));
                    }
                    if url.scheme() == "https" && next.scheme() != "https" {
                        return Err(Failed::Redirect("redirect from https to http"));
                    }
                    url = next;
                }
                _ if answer.is_success() => return Ok(answer),
                status => return Err(problem(&answer).map_or(Failed::Status(status), Failed::Problem)),
            }
        }
        Err(Failed::Redirect("too many redirects"))
    }

    async fn exchange(&self, method: Method, url: &Url, body: &str) -> Result<AuthorityAnswer, Failed> {
        self.around.exchange(AuthorityRequest { method, url, body }).await.map_err(Failed::Net)
    }

    async fn nonce(&mut self) -> Result<String, Failed> {
        if let Some(nonce) = self.nonces.pop_front() {
            return Ok(nonce);
        }
        let url = self.directory().await?.new_nonce;
        let answer = self.get(&url).await?;
        nonce_of(&answer).ok_or(Failed::Nonce)
    }

    /// Sends a signed request.
    pub(crate) async fn post(&mut self, url: &str, payload: Payload<'_>) -> Result<AuthorityAnswer, Failed> {
        let signer = self.account.as_ref().map(|(account, _)| account.clone());
        let answer = self.post_as(signer.as_deref().map_or(Signer::Key, Signer::Account), url, payload).await?;
        if let Some((_, is_confirmed)) = &mut self.account {
            *is_confirmed = true;
        }
        Ok(answer)
    }

    async fn post_as(
        &mut self,
        signer: Signer<'_>,
        url: &str,
        payload: Payload<'_>,
    ) -> Result<AuthorityAnswer, Failed> {
        let target = address(url)?;
        let mut nonce = self.nonce().await?;
        let mut tries = 0..RETRIES_MAX;
        loop {
            let payload = match payload {
                Payload::Nothing => "",
                Payload::Json(text) => text,
            };
            let body = self.key.sign(signer, target.as_str(), &nonce, payload).map_err(Failed::Key)?;
            let answer = match self.exchange(Method::Post, &target, &body).await {
                Ok(answer) => answer,
                Err(failed) if tries.next().is_none() => return Err(failed),
                Err(_) => {
                    self.around.pause(RETRY_PAUSE).await;
                    continue;
                }
            };
            if answer.is_success() {
                self.keep_nonce(nonce_of(&answer));
                return Ok(answer);
            }
            // RFC 8555 §6.5: the nonce of a refusal is to be used for the next try.
            let fresh = nonce_of(&answer);
            let Some(refused) = problem(&answer) else { return Err(Failed::Status(answer.status)) };
            let may_retry = match refused.name() {
                "badNonce" => true,
                "rateLimited" => {
                    let asked = self.asked_pause(&answer);
                    if let Some(long) = asked.filter(|asked| *asked > SERVER_PAUSE_MAX) {
                        return Err(Failed::RateLimited(long));
                    }
                    true
                }
                _ => false,
            };
            if !may_retry || tries.next().is_none() {
                self.keep_nonce(fresh);
                return Err(refused.into());
            }
            nonce = fresh.ok_or(Failed::Nonce)?;
            let pause = self.asked_pause(&answer).unwrap_or(RETRY_PAUSE).min(SERVER_PAUSE_MAX);
            self.around.pause(pause).await;
        }
    }

    /// `Retry-After` of an answer.
    pub(crate) fn asked_pause(&self, answer: &AuthorityAnswer) -> Option<Duration> {
        fields::retry_after(answer.field("retry-after")?, self.around.now())
    }

    fn keep_nonce(&mut self, nonce: Option<String>) {
        if self.nonces.len() < NONCES_MAX {
            self.nonces.extend(nonce);
        }
    }

    /// Makes sure that there is an account.
    pub(crate) async fn account(&mut self) -> Result<(), Failed> {
        if self.account.is_some() {
            return Ok(());
        }
        let directory = self.directory().await?;
        if directory.meta.external_account_required && self.issuer.external.is_none() {
            return Err(Failed::ExternalAccount);
        }
        let mut request = json!({});
        if !self.issuer.contacts.is_empty() {
            request["contact"] = self.issuer.contacts.clone().into();
        }
        if self.issuer.accepts_terms {
            request["termsOfServiceAgreed"] = true.into();
        }
        if let Some(external) = &self.issuer.external {
            let bound = self.key.bind(&external.key_id, &external.key, &directory.new_account).map_err(Failed::Key)?;
            request["externalAccountBinding"] = bound;
        }
        let request = request.to_string();
        let answer = self.post_as(Signer::Key, &directory.new_account, Payload::Json(&request)).await;
        let answer = answer.map_err(|failed| match failed {
            failed @ (Failed::RateLimited(_) | Failed::Directory(_)) => failed,
            failed => {
                if let (Failed::Problem(problem), Some(terms)) = (&failed, &directory.meta.terms_of_service)
                    && problem.name() == "userActionRequired"
                {
                    let (terms, name) = (shown(terms), &self.issuer.name);
                    self.around.say(Level::Notice, format_args!("terms of service: {terms}, acme issuer: \"{name}\""));
                }
                Failed::Account(Box::new(failed))
            }
        })?;
        let account: answer::Account =
            answer::read(&answer.body).map_err(|failed| Failed::Account(Box::new(failed)))?;
        if account.status != "valid" {
            return Err(Failed::AccountStatus(account.status));
        }
        let url = answer.field("location").ok_or(Failed::AccountUrl)?;
        address(url).map_err(|_| Failed::AccountUrl)?;
        if answer.status == 201 {
            let name = &self.issuer.name;
            let url = shown(url);
            self.around.say(Level::Info, format_args!("account \"{url}\" created, acme issuer: \"{name}\""));
        }
        self.around.keep_account(Some(url));
        self.account = Some((url.to_owned(), true));
        Ok(())
    }

    /// Forgets an account that an earlier conversation found, and that the authority does not know any more. False if
    /// the account is of this conversation.
    pub(crate) fn forget_account(&mut self) -> bool {
        let is_old = self.account.as_ref().is_some_and(|(_, is_confirmed)| !is_confirmed);
        if is_old {
            self.account = None;
            self.around.keep_account(None);
        }
        is_old
    }

    /// The URL of the account.
    pub(crate) fn account_url(&self) -> Option<String> {
        self.account.as_ref().map(|(url, _)| url.clone())
    }

    /// The profile to ask for: one that is not required is left out if the authority does not have it.
    pub(crate) async fn profile(&mut self) -> Result<Option<String>, Failed> {
        let Some(profile) = &self.issuer.profile else { return Ok(None) };
        let has = self.directory().await?.meta.profiles.contains_key(&profile.name);
        if !has && !profile.is_required {
            let name = &profile.name;
            self.around.say(Level::Notice, format_args!("acme profile \"{name}\" is not supported by the server"));
            return Ok(None);
        }
        Ok(Some(profile.name.clone()))
    }
}

/// A URL that weir asks.
pub(crate) fn address(text: &str) -> Result<Url, Failed> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "https" | "http") && url.host().is_some());
    url.ok_or_else(|| Failed::Address(text.to_owned()))
}

fn problem(answer: &AuthorityAnswer) -> Option<Problem> {
    serde_json::from_slice::<Problem>(&answer.body).ok().filter(|problem| !problem.kind.is_empty())
}

fn nonce_of(answer: &AuthorityAnswer) -> Option<String> {
    answer.field("replay-nonce").filter(|nonce| fields::is_nonce(nonce)).map(str::to_owned)
}
