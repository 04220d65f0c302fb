//! An order, from its beginning to the certificate. It can be continued after the process ended at any step.

use std::time::Duration;

use serde_json::json;
use weir_net::log::Level;

use crate::account_key::base64url;
use crate::answer::{self, Authorization, PARTS_MAX};
use crate::chain::{self, Issued};
use crate::csr;
use crate::failed::Failed;
use crate::fields;
use crate::identifier::Identifier;
use crate::issuer::{CertificateOrder, ChallengeType};
use crate::proof::{Begun, Proof};
use crate::surroundings::{AuthorityAnswer, Surroundings};
use crate::talk::{Payload, SERVER_PAUSE_MAX, Talk, address};

/// How long weir waits for an authority to check a host, and to make the certificate.
const PATIENCE_S: u64 = 60;

/// The longest pause between two looks, if the authority does not say.
const PAUSE_MAX_S: u64 = 8;

/// Pauses between looks: 1, 1, 2, 3, 5 and 8 seconds, until the patience is over.
struct Pauses {
    next: (u64, u64),
    until: i64,
}

impl<S: Surroundings> Talk<'_, S> {
    /// Gets a certificate. `begun` is an order that has begun; it stays for the next try if it can be continued.
    /// `replaces` is the identifier of the certificate in force.
    pub(crate) async fn obtain(
        &mut self,
        order: &CertificateOrder,
        replaces: Option<&str>,
        begun: &mut Option<Begun>,
    ) -> Result<Issued, Failed> {
        let mut known = None;
        if let Some(own) = begun.as_ref() {
            match self.look(&own.url).await {
                Ok((state, answer)) if state.status != "invalid" => known = Some((own.clone(), state, answer)),
                Err(failed) if !failed.ends_order() || failed.is_unknown_account() => return Err(failed),
                // The authority looked at a challenge while weir did not run, for one.
                looked => self.give_up(order, looked.err()),
            }
        }
        let (own, state, answer) = match known {
            Some(known) => known,
            None => self.begin(order, replaces).await?,
        };
        let obtained = self.finish(order, &own, state, answer).await;
        *begun = Some(own).filter(|_| obtained.as_ref().is_err_and(|failed| !failed.ends_order()));
        if obtained.as_ref().is_err_and(Failed::ends_order) {
            self.around.keep_order(order, None);
        }
        obtained
    }

    /// Forgets an order that cannot be continued.
    fn give_up(&self, order: &CertificateOrder, why: Option<Failed>) {
        let why = why.unwrap_or(Failed::OrderStatus("invalid".to_owned()));
        let (name, id) = (&self.issuer.name, order.id());
        self.around.say(
            Level::Info,
            format_args!(
                "the order cannot be continued ({why}), weir places another, acme issuer: \"{name}\", order: \"{id}\""
            ),
        );
        self.around.keep_order(order, None);
    }

    /// Places an order.
    async fn begin(
        &mut self,
        order: &CertificateOrder,
        replaces: Option<&str>,
    ) -> Result<(Begun, answer::Order, AuthorityAnswer), Failed> {
        let key = self.around.make_key(order.key).await.map_err(Failed::Key)?;
        let mut request = json!({"identifiers": order.identifiers});
        if let Some(profile) = self.profile().await? {
            request["profile"] = profile.into();
        }
        let plain = request.to_string();
        if let Some(replaces) = replaces {
            request["replaces"] = replaces.into();
        }
        let url = self.directory().await?.new_order;
        let answer = match self.post(&url, Payload::Json(&request.to_string())).await {
            Err(Failed::Problem(problem)) if replaces.is_some() && problem.may_be_about_replacing() => {
                let (name, id) = (&self.issuer.name, order.id());
                self.around.say(
                    Level::Info,
                    format_args!(
                        "{problem} while replacing certificate; retrying without \"replaces\", acme issuer: \"{name}\", \
                         order: \"{id}\""
                    ),
                );
                self.post(&url, Payload::Json(&plain)).await?
            }
            placed => placed?,
        };
        let location = answer.field("location").ok_or(Failed::OrderUrl)?;
        let url = address(location).map_err(|_| Failed::OrderUrl)?.to_string();
        let begun = Begun { url, key };
        self.around.keep_order(order, Some(&begun));
        Ok((begun, answer::read(&answer.body)?, answer))
    }

    async fn look(&mut self, url: &str) -> Result<(answer::Order, AuthorityAnswer), Failed> {
        let answer = self.post(url, Payload::Nothing).await?;
        Ok((answer::read(&answer.body)?, answer))
    }

    /// Goes on from the state of an order.
    async fn finish(
        &mut self,
        order: &CertificateOrder,
        begun: &Begun,
        mut state: answer::Order,
        mut answer: AuthorityAnswer,
    ) -> Result<Issued, Failed> {
        if state.status == "pending" {
            for url in state.authorizations.iter().take(PARTS_MAX) {
                self.authorize(url).await?;
            }
            (state, answer) = self.look(&begun.url).await?;
        }
        if state.status == "ready" {
            let request = csr::request(order, &begun.key, self.issuer.names_subject).map_err(Failed::Key)?;
            let request = json!({"csr": base64url(request)}).to_string();
            match self.post(&state.finalize, Payload::Json(&request)).await {
                Ok(finalized) => (state, answer) = (answer::read(&finalized.body)?, finalized),
                Err(failed) if failed.is_final_for_order() => return Err(failed),
                // The authority may have taken the request although its answer was lost.
                Err(_) => state.status = "processing".to_owned(),
            }
        }
        let mut pauses = Pauses::new(self.around.now());
        while state.status == "processing" && self.wait(&answer, &mut pauses).await {
            (state, answer) = self.look(&begun.url).await?;
        }
        if state.status != "valid" {
            return Err(state.error.map_or(Failed::OrderStatus(state.status), Failed::Problem));
        }
        let url = state.certificate.ok_or(Failed::MissingCertificate)?;
        let chain = self.download(&url).await?;
        Ok(Issued::new(&chain, &begun.key, &order.identifiers, self.around.now())?)
    }

    /// The chain of the certificate: the preferred one, if the authority has it.
    async fn download(&mut self, url: &str) -> Result<Vec<u8>, Failed> {
        let answer = self.post(url, Payload::Nothing).await?;
        let Some(wanted) = &self.issuer.chain else { return Ok(answer.body) };
        let default = chain::read(&answer.body)?;
        if chain::is_issued_by(&default, wanted) {
            return Ok(answer.body);
        }
        let base = address(url)?;
        let links = answer.fields.iter().filter(|(name, _)| name == "link");
        let links = links.flat_map(|(_, value)| fields::links(value, "alternate"));
        let links: Vec<_> = links.filter_map(|link| base.join(link).ok()).take(PARTS_MAX).collect();
        for link in links {
            let other = self.post(link.as_str(), Payload::Nothing).await?;
            if chain::is_issued_by(&chain::read(&other.body)?, wanted) {
                return Ok(other.body);
            }
        }
        Ok(answer.body)
    }

    /// Proves one host.
    async fn authorize(&mut self, url: &str) -> Result<(), Failed> {
        let answer = self.post(url, Payload::Nothing).await?;
        let authorization: Authorization = answer::read(&answer.body)?;
        match authorization.status.as_str() {
            "valid" => return Ok(()),
            "pending" => {}
            other => return Err(Failed::AuthorizationStatus(other.to_owned())),
        }
        let challenge = self.chosen(&authorization).ok_or(Failed::NoSupportedChallenges)?;
        let value = authorization.identifier.value.to_ascii_lowercase();
        let identifier = match authorization.identifier.kind.as_str() {
            "ip" => Identifier::Ip(value),
            _ => Identifier::Dns(value.strip_prefix("*.").unwrap_or(&value).to_owned()),
        };
        let proof = Proof {
            challenge: self.issuer.challenge,
            identifier,
            token: challenge.token.clone(),
            authorization: match self.issuer.challenge {
                ChallengeType::DnsPersist01 => self.persistent(challenge, &authorization)?,
                _ => self.key.authorizes(&challenge.token),
            },
        };
        let shown = self.around.show(&proof).await.map_err(Failed::Challenge);
        let proved = match shown {
            Ok(()) => self.prove(url, challenge).await,
            Err(failed) => Err(failed),
        };
        self.around.hide(&proof).await;
        proved
    }

    /// The challenge of the file, if the authority offers it in a form that weir can answer.
    fn chosen<'a>(&self, authorization: &'a Authorization) -> Option<&'a answer::Challenge> {
        let kind = self.issuer.challenge;
        let is_usable = |challenge: &&answer::Challenge| match kind {
            ChallengeType::DnsPersist01 => !challenge.issuer_names.is_empty(),
            _ => answer::is_token(&challenge.token),
        };
        let mut offered =
            authorization.challenges.iter().take(PARTS_MAX).filter(|challenge| challenge.kind == kind.name());
        offered.find(is_usable)
    }

    /// The text of the record of `dns-persist-01`: the authority's name, the account, and whether it is for all names.
    fn persistent(&self, challenge: &answer::Challenge, authorization: &Authorization) -> Result<String, Failed> {
        let is_name = |name: &&String| Identifier::read(name).is_ok();
        let name = challenge.issuer_names.iter().find(is_name).ok_or(Failed::NoSupportedChallenges)?;
        let account = self.account_url().unwrap_or_default();
        let is_wildcard = authorization.wildcard || authorization.identifier.value.starts_with("*.");
        let policy = if is_wildcard { "; policy=wildcard" } else { "" };
        Ok(format!("{name}; accounturi={account}{policy}"))
    }

    /// Tells the authority to look, and waits for its verdict.
    async fn prove(&mut self, url: &str, challenge: &answer::Challenge) -> Result<(), Failed> {
        // An authority that has begun to look, for an earlier process, need not be told again.
        let mut answer = AuthorityAnswer::default();
        if challenge.status == "pending" {
            answer = self.post(&challenge.url, Payload::Json("{}")).await?;
            let told: answer::Challenge = answer::read(&answer.body)?;
            if !matches!(told.status.as_str(), "pending" | "processing" | "valid") {
                return Err(told.error.map_or(Failed::ChallengeStatus(told.status), Failed::Problem));
            }
        }
        let mut pauses = Pauses::new(self.around.now());
        let verdict = loop {
            let goes_on = self.wait(&answer, &mut pauses).await;
            answer = self.post(url, Payload::Nothing).await?;
            let looked: Authorization = answer::read(&answer.body)?;
            if looked.status != "pending" || !goes_on {
                break looked;
            }
        };
        if verdict.status == "valid" {
            return Ok(());
        }
        let own = verdict.challenges.into_iter().find(|other| other.kind == challenge.kind);
        let why = own.and_then(|challenge| challenge.error);
        Err(why.map_or(Failed::AuthorizationStatus(verdict.status), Failed::Problem))
    }

    /// Waits until the next look; false if the patience is over.
    async fn wait(&self, answer: &AuthorityAnswer, pauses: &mut Pauses) -> bool {
        let Some(own) = pauses.next(self.around.now()) else { return false };
        let pause = self.asked_pause(answer).unwrap_or(own).min(SERVER_PAUSE_MAX);
        self.around.pause(pause).await;
        true
    }
}

impl Pauses {
    fn new(now: i64) -> Pauses {
        Pauses { next: (0, 1), until: now + PATIENCE_S as i64 }
    }

    fn next(&mut self, now: i64) -> Option<Duration> {
        if now >= self.until {
            return None;
        }
        let (before, pause) = self.next;
        self.next = (pause, before + pause);
        Some(Duration::from_secs(pause.min(PAUSE_MAX_S)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let mut pauses = Pauses::new(100);
        let seconds: Vec<u64> = std::iter::from_fn(|| pauses.next(159)).take(8).map(|pause| pause.as_secs()).collect();
        assert_eq!(seconds, [1, 1, 2, 3, 5, 8, 8, 8]);
        assert_eq!(pauses.next(160), None);
    }
}
