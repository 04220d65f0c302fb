//! The terms of a canary, and the orders about it: what the keeper and the server tell each other.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_http::hold::split::SplitKey;
use weir_judge::judge::CanaryQuestion;
use weir_judge::outcome::SHARE_MIN;
use weir_meter::live::{Canary, CanaryPhase, Timestamp};
use weir_net::clock;

use super::upstreams::UpstreamPair;
use super::{notify, say};

/// The largest share that a judge can compare.
const SHARE_MAX: f64 = 0.99;
/// Steps of a ramp, at most.
pub const STEPS_MAX: usize = 16;
/// The longest time of a canary, and of a pause.
pub const TIME_MAX: Duration = Duration::from_secs(31 * 24 * 3600);

/// The terms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The new configuration: the full path of its file; or the configuration in force with the names of two upstreams
    /// exchanged, as [`UpstreamPair::read`] reads them.
    pub file: String,
    /// The key of a client, as [`SplitKey::read`] reads it.
    pub key: String,
    /// The shares, one after another; at least one.
    pub shares: Vec<f64>,
    /// The time of each share but the last one.
    pub pause: Duration,
    /// How long the traffic is looked at before a share of the clients gets the new configuration.
    pub look: Duration,
    /// Whether it begins although the traffic cannot answer the question.
    pub anyway: bool,
    /// How long the judge first judges the old configuration as if a share of the clients had another one.
    pub rehearsal: Option<Duration>,
    /// When it ends without a decision.
    pub lasts: Option<Duration>,
    /// The time of a canary with planned looks: it is judged at these only.
    pub fixed: Option<Duration>,
    /// Whether a proof of no harm promotes.
    pub promotes: bool,
    /// The URL that gets each decision.
    pub notify: Option<String>,
}

impl Terms {
    /// The state of a canary with these terms that has just begun.
    pub fn state(&self, generation: u32) -> Canary {
        let phase = if self.rehearsal.is_some() { CanaryPhase::Rehearsing } else { CanaryPhase::Looking };
        let mut state = Canary {
            phase,
            file: self.file.clone(),
            key: self.key.clone(),
            generation,
            share: self.shares.first().copied().unwrap_or_default(),
            since: Timestamp(clock::unix_ms()),
            evidence: 1.0,
            evidence_limit: 1.0 / CanaryQuestion::default().alpha,
            ..Canary::default()
        };
        state.sentence = say::sentence(&state).en().to_owned();
        state
    }

    /// The upstreams that exchange their names; `None` if the new configuration is a file.
    pub fn pair(&self) -> Option<UpstreamPair> {
        (!self.file.starts_with('/')).then(|| UpstreamPair::read(&self.file).ok()).flatten()
    }

    /// Its longest time.
    pub fn longest(&self) -> Option<Duration> {
        self.fixed.or(self.lasts)
    }

    /// The time before a share of the clients gets the new configuration: the rehearsal is a look too.
    pub fn before(&self) -> Duration {
        self.rehearsal.map_or(self.look, |rehearsal| rehearsal.max(self.look))
    }

    /// Refuses terms that no judge can work with.
    ///
    /// # Errors
    /// The reason and the remedy.
    pub fn check(&self) -> Result<(), String> {
        SplitKey::read(&self.key)?;
        self.notify.as_deref().map(notify::receiver).transpose()?;
        if !self.file.starts_with('/') && !self.file.contains('=') {
            return Err(format!("\"{}\" is no full path", self.file));
        }
        if !self.file.starts_with('/') {
            UpstreamPair::read(&self.file)?;
        }
        if self.shares.is_empty() || self.shares.len() > STEPS_MAX {
            return Err(format!("a canary has from 1 to {STEPS_MAX} shares"));
        }
        self.shares.iter().try_for_each(|share| check_share(*share))?;
        if self.shares.windows(2).any(|pair| pair.first() >= pair.last()) {
            return Err("each share must be larger than the one before".to_owned());
        }
        if [Some(self.pause), Some(self.look), self.longest(), self.rehearsal]
            .into_iter()
            .flatten()
            .any(|time| time > TIME_MAX)
        {
            return Err("the longest time is 31d".to_owned());
        }
        if self.fixed.is_some() && (self.shares.len() > 1 || self.lasts.is_some()) {
            return Err("planned looks (--fixed) have one share and one time: write no ramp, and no --for".to_owned());
        }
        Ok(())
    }
}

/// Refuses a share with which a judge cannot compare two configurations.
///
/// # Errors
/// The remedy.
pub fn check_share(share: f64) -> Result<(), String> {
    if (SHARE_MIN..=SHARE_MAX).contains(&share) {
        return Ok(());
    }
    Err("write a share from 0.1% to 99%: a judge needs clients of both configurations".to_owned())
}

/// An order about a canary that runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum CanaryOrder {
    /// Another share.
    Share(f64),
    /// The old configuration for all clients.
    RollBack,
    /// The old configuration for all clients, because a new binary serves too.
    MakeRoom,
    /// The new configuration for all clients.
    Promote,
    /// The keeper cannot put the new configuration in force for all clients.
    Refused,
}

/// A canary's part in an order to put a configuration in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CanaryServe {
    /// The configuration of this file is put beside the one in force.
    Beside(String, Terms),
    /// The configuration of this file is the one beside, and takes the place of the one in force.
    Instead(String),
}

impl CanaryServe {
    /// The file of the configuration.
    pub fn file(&self) -> &String {
        match self {
            CanaryServe::Beside(file, _) | CanaryServe::Instead(file) => file,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Terms {
        /// Terms of a test.
        pub fn example() -> Terms {
            Terms {
                file: "/new.conf".to_owned(),
                key: "address".to_owned(),
                shares: vec![0.1],
                pause: Duration::from_secs(60),
                look: Duration::from_secs(30),
                anyway: true,
                rehearsal: None,
                lasts: None,
                fixed: None,
                promotes: true,
                notify: None,
            }
        }
    }

    #[test]
    fn terms_are_refused_by_name() {
        let good = Terms { shares: vec![0.01, 0.1, 0.5], ..Terms::example() };
        assert_eq!(good.check(), Ok(()));
        let with = |change: fn(&mut Terms)| {
            let mut terms = good.clone();
            change(&mut terms);
            terms.check().err().unwrap_or_default()
        };
        assert!(with(|terms| terms.file = "new.conf".to_owned()).contains("no full path"));
        assert!(with(|terms| terms.file = "app=".to_owned()).contains("two upstreams"));
        assert_eq!((with(|terms| terms.file = "a=b".to_owned()), good.pair()), (String::new(), None));
        assert!(with(|terms| terms.key = "$status".to_owned()).contains("write address"));
        assert!(with(|terms| terms.fixed = Some(Duration::from_secs(60))).contains("one share"));
        assert!(with(|terms| terms.notify = Some("file:///x".to_owned())).contains("no URL"));
        assert!(with(|terms| terms.shares.clear()).contains("from 1 to 16"));
        assert!(with(|terms| terms.shares = vec![0.1, 0.1]).contains("larger than"));
        for share in [0.0, 1.0, f64::NAN, -0.1] {
            assert!(check_share(share).is_err_and(|why| why.contains("from 0.1% to 99%")), "{share}");
        }
        assert!(with(|terms| terms.lasts = Some(Duration::MAX)).contains("31d"));
    }
}
