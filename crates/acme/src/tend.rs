//! Looks after the certificates of one authority: one round does everything that is due, and tells when the next round
//! is. A failure never ends the rounds.

use std::time::Duration;

use weir_net::log::Level;

use crate::account_key::AccountKey;
use crate::answer::{self, RenewalInfo};
use crate::failed::Failed;
use crate::issuer::{CertificateOrder, Issuer};
use crate::plan::{ACCOUNT_RETRY_MAX_S, Due, Plan, retry_pause};
use crate::proof::Begun;
use crate::surroundings::Surroundings;
use crate::talk::Talk;

/// The longest pause between two rounds.
const ROUND_MAX_S: i64 = 24 * 3600;

/// A certificate to look after.
pub struct Tended {
    /// Its hosts and its key.
    pub order: CertificateOrder,
    /// Its schedule.
    pub plan: Plan,
    /// The identifier of the certificate in force (RFC 9773 §4.1).
    pub renewal_id: Option<String>,
    /// An order that an earlier process began.
    pub begun: Option<Begun>,
    /// Why the last step failed.
    pub error: Option<String>,
}

/// An authority, and its certificates.
pub struct Tending {
    /// The certificates.
    pub all: Vec<Tended>,
    /// The URL of the account, if an earlier process found it.
    pub account: Option<String>,
    /// Failures in a row to reach the authority or to have an account.
    fails: u32,
    /// The authority refuses the account for good.
    is_refused: bool,
}

impl Tending {
    /// These certificates.
    pub fn new(all: Vec<Tended>, account: Option<String>) -> Tending {
        Tending { all, account, fails: 0, is_refused: false }
    }
}

/// Does what is due. Returns the time of the next round; `None` if there is none before the configuration changes.
pub async fn tend<S: Surroundings>(
    issuer: &Issuer,
    key: &AccountKey,
    tending: &mut Tending,
    around: &S,
) -> Option<i64> {
    if tending.is_refused {
        return None;
    }
    let name = &issuer.name;
    let mut talk = Talk::new(issuer, key, around, tending.account.clone());
    let mut round = Round { talk: &mut talk, account: None };
    let mut outcome = Ok(());
    for tended in &mut tending.all {
        outcome = round.one(tended).await;
        if outcome.is_err() {
            break;
        }
    }
    if let Some(account) = round.account {
        tending.account = account;
    }
    let now = around.now();
    match outcome {
        Ok(()) => tending.fails = 0,
        Err(Failed::RateLimited(pause)) => {
            around.say(
                Level::Warn,
                format_args!("{} while creating account, acme issuer \"{name}\"", Failed::RateLimited(pause)),
            );
            return Some(now.saturating_add(bounded(pause)));
        }
        Err(failed) if failed.is_final_for_account() => {
            around.say(Level::Error, format_args!("{failed} while creating account, acme issuer \"{name}\""));
            tending.is_refused = true;
            tending.all.iter_mut().for_each(|tended| tended.error = Some(failed.to_string()));
            return None;
        }
        Err(failed) => {
            around.say(Level::Warn, format_args!("{failed} while creating account, acme issuer \"{name}\""));
            let pause = retry_pause(tending.fails, ACCOUNT_RETRY_MAX_S, around.chance());
            tending.fails = tending.fails.saturating_add(1);
            for tended in &mut tending.all {
                if tended.plan.due != Due::Never && tended.plan.next <= now {
                    tended.error = Some(failed.to_string());
                }
            }
            return Some(now + pause);
        }
    }
    let next = tending.all.iter().filter(|tended| tended.plan.due != Due::Never).map(|tended| tended.plan.next).min();
    next.map(|next| next.min(now + ROUND_MAX_S))
}

/// A pause that an authority asks for; at most 30 days.
fn bounded(pause: Duration) -> i64 {
    i64::try_from(pause.as_secs()).unwrap_or(i64::MAX).min(ROUND_MAX_S * 30)
}

/// One round.
struct Round<'r, 't, S> {
    talk: &'r mut Talk<'t, S>,
    /// The account as it changed in this round.
    account: Option<Option<String>>,
}

impl<S: Surroundings> Round<'_, '_, S> {
    /// One certificate. An error is about the authority or the account, and ends the round.
    async fn one(&mut self, tended: &mut Tended) -> Result<(), Failed> {
        let around = self.talk.around;
        if tended.plan.is_due(Due::Info, around.now()) {
            self.ask_info(tended).await?;
        }
        if !tended.plan.wants_certificate(around.now()) {
            return Ok(());
        }
        self.open_account().await?;
        let directory = self.talk.directory().await?;
        let replaces = tended.renewal_id.clone().filter(|_| directory.renewal_info.is_some());
        let mut obtained = self.talk.obtain(&tended.order, replaces.as_deref(), &mut tended.begun).await;
        if obtained.as_ref().is_err_and(Failed::is_unknown_account) && self.talk.forget_account() {
            // The order was of that account.
            tended.begun = None;
            around.keep_order(&tended.order, None);
            self.open_account().await?;
            obtained = self.talk.obtain(&tended.order, replaces.as_deref(), &mut tended.begun).await;
        }
        let (name, id) = (&self.talk.issuer.name, tended.order.id());
        let issued = match obtained {
            Ok(issued) => issued,
            Err(failed) => {
                self.note_failure(tended, &failed);
                return Ok(());
            }
        };
        if let Err(why) = around.issued(&tended.order, &issued) {
            around.say(
                Level::Warn,
                format_args!(
                    "writing certificate to state directory failed {why}, acme issuer: \"{name}\", order: \"{id}\""
                ),
            );
        }
        tended.error = None;
        tended.renewal_id = issued.renewal_id.clone();
        tended.plan.issued(answer::Window { start: issued.begins, end: issued.ends }, around.chance());
        let next = String::from_utf8_lossy(&weir_wire::date::iso8601(tended.plan.next, 0)).into_owned();
        around.say(
            Level::Info,
            format_args!("certificate issued, renewal scheduled at {next}, acme issuer: \"{name}\", order: \"{id}\""),
        );
        if directory.renewal_info.is_some() {
            // RFC 9773 §4.3.2: the first question follows at once.
            tended.plan.ask_info();
            self.ask_info(tended).await?;
        }
        Ok(())
    }

    /// Logs why there is no certificate, and plans the next try.
    fn note_failure(&self, tended: &mut Tended, failed: &Failed) {
        let around = self.talk.around;
        let (name, id, now) = (&self.talk.issuer.name, tended.order.id(), around.now());
        let is_final = failed.is_final_for_order();
        let level = if is_final { Level::Error } else { Level::Warn };
        around
            .say(level, format_args!("{failed} while updating certificate, acme issuer: \"{name}\", order: \"{id}\""));
        tended.error = Some(failed.to_string());
        match failed {
            _ if is_final => tended.plan.refused(),
            Failed::RateLimited(pause) => {
                tended.plan.failed(now, around.chance());
                tended.plan.next = tended.plan.next.max(now.saturating_add(bounded(*pause)));
            }
            _ => tended.plan.failed(now, around.chance()),
        }
    }

    async fn open_account(&mut self) -> Result<(), Failed> {
        self.talk.account().await?;
        self.account = Some(self.talk.account_url());
        Ok(())
    }

    /// Asks when to renew. A failure to read the directory is an error; any other is noted.
    async fn ask_info(&mut self, tended: &mut Tended) -> Result<(), Failed> {
        let around = self.talk.around;
        let directory = self.talk.directory().await?;
        let (Some(base), Some(id)) = (directory.renewal_info, tended.renewal_id.clone()) else {
            tended.plan.renew_by_life(around.chance());
            return Ok(());
        };
        let (name, order) = (&self.talk.issuer.name, tended.order.id());
        let asked = self.talk.get(&format!("{}/{id}", base.trim_end_matches('/'))).await;
        let read = asked.and_then(|answer| {
            let info: RenewalInfo = answer::read(&answer.body)?;
            Ok((info, self.talk.asked_pause(&answer)))
        });
        let before = tended.plan.window;
        let failed = match read {
            Ok((info, pause)) => {
                let window = info.suggested_window;
                if tended.plan.informed(window, pause, around.now(), around.chance()) {
                    tended.error = None;
                    if window != before {
                        let shown = |at| String::from_utf8_lossy(&weir_wire::date::iso8601(at, 0)).into_owned();
                        let why =
                            info.explanation.map(|url| format!(", see {} for details", crate::problem::shown(&url)));
                        let (start, end, why) = (shown(window.start), shown(window.end), why.unwrap_or_default());
                        around.say(
                            Level::Info,
                            format_args!(
                                "CA suggested renewal window: {start} - {end}{why}, acme issuer: \"{name}\", order: \
                                 \"{order}\", identifier: \"{id}\""
                            ),
                        );
                    }
                    return Ok(());
                }
                Failed::RenewalWindow
            }
            Err(failed) => Failed::RenewalInfo(Box::new(failed)),
        };
        around.say(
            Level::Warn,
            format_args!(
                "{failed} while updating renewal info, acme issuer: \"{name}\", order: \"{order}\", identifier: \
                 \"{id}\""
            ),
        );
        tended.error = Some(failed.to_string());
        tended.plan.failed(around.now(), around.chance());
        Ok(())
    }
}
