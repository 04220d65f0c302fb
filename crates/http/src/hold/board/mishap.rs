//! Errors of requests, in classes that are counted without an allocation.

use weir_meter::live::ErrorKind;
use weir_meter::live::cells::{LimitPolicy, Why};
use weir_meter::live::histogram::Count;

/// One error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// The answer has a status from 400 to 599; the reason is that of the last try, if it failed.
    Answered(u16, Option<Why>),
    /// The client got no answer; the reason is that of the last try, if it failed.
    Unanswered(Option<Why>),
    /// A policy of the configuration refused the request.
    Refused(LimitPolicy),
    /// The origin failed after the client had the head.
    Cut,
    /// A try failed, but the client got an answer.
    Tried(Why),
}

/// The first status that counts as an error.
const FIRST_STATUS: u16 = 400;

/// Number of statuses that are counted separately.
const STATUSES: usize = 200;

/// Number of reasons, and one place for no reason.
const REASONS: usize = Why::ALL.len() + 1;

/// Where the classes without a status begin.
const UNANSWERED: usize = STATUSES * REASONS;
const REFUSED: usize = UNANSWERED + REASONS;
const CUT: usize = REFUSED + LimitPolicy::ALL.len();
const TRIED: usize = CUT + 1;

/// All classes.
const CLASSES: usize = TRIED + Why::ALL.len();

impl Mishap {
    /// The error of an answer with that status; `None` for statuses that applications use in normal operation.
    pub fn of_status(status: u16, why: Option<Why>) -> Option<Mishap> {
        matches!(status, 400 | 408 | 413 | 414 | 421 | 429 | 431 | 494..=499 | 500..=599)
            .then_some(Mishap::Answered(status, why))
    }

    /// Its kind: failed, refused, recovered, or the client's fault.
    pub fn kind(self) -> ErrorKind {
        match self {
            Mishap::Answered(500.., _) | Mishap::Unanswered(Some(_)) | Mishap::Cut => ErrorKind::Failed,
            Mishap::Refused(_) => ErrorKind::Refused,
            Mishap::Tried(_) => ErrorKind::Recovered,
            Mishap::Answered(..) | Mishap::Unanswered(None) => ErrorKind::Client,
        }
    }

    /// The name of its class: `502 connection refused`, `413`, `no answer`, `limit_req`, `cut short`, `try timeout`.
    pub fn class(self) -> String {
        match self {
            Mishap::Answered(status, Some(why)) => format!("{status} {}", why.words()),
            Mishap::Answered(status, None) => status.to_string(),
            Mishap::Unanswered(Some(why)) => format!("no answer {}", why.words()),
            Mishap::Unanswered(None) => "no answer".to_owned(),
            Mishap::Refused(policy) => policy.as_str().to_owned(),
            Mishap::Cut => "cut short".to_owned(),
            Mishap::Tried(why) => format!("try {}", why.words()),
        }
    }

    fn number(self) -> usize {
        let reason = |why: Option<Why>| why.map_or(0, |why| why as usize + 1);
        match self {
            Mishap::Answered(status, why) => {
                usize::from(status.saturating_sub(FIRST_STATUS)).min(STATUSES - 1) * REASONS + reason(why)
            }
            Mishap::Unanswered(why) => UNANSWERED + reason(why),
            Mishap::Refused(policy) => REFUSED + policy as usize,
            Mishap::Cut => CUT,
            Mishap::Tried(why) => TRIED + why as usize,
        }
    }

    fn numbered(number: usize) -> Option<Mishap> {
        let why = |number: usize| Why::ALL.get(number).copied();
        let reason = |number: usize| number.checked_sub(1).and_then(why);
        Some(match number {
            ..UNANSWERED => {
                Mishap::Answered(FIRST_STATUS + u16::try_from(number / REASONS).ok()?, reason(number % REASONS))
            }
            UNANSWERED..REFUSED => Mishap::Unanswered(reason(number - UNANSWERED)),
            REFUSED..CUT => Mishap::Refused(LimitPolicy::ALL.get(number - REFUSED).copied()?),
            CUT => Mishap::Cut,
            _ => Mishap::Tried(why(number - TRIED)?),
        })
    }
}

/// A counter for each class.
pub struct MishapCells(Box<[Count]>);

impl Default for MishapCells {
    fn default() -> MishapCells {
        MishapCells((0..CLASSES).map(|_| Count::default()).collect())
    }
}

impl MishapCells {
    /// Counts one.
    pub fn count(&self, mishap: Mishap) {
        if let Some(count) = self.0.get(mishap.number()) {
            count.one();
        }
    }

    /// The errors that occurred, and how often.
    pub fn all(&self) -> impl Iterator<Item = (Mishap, u64)> {
        let counted = self.0.iter().enumerate().map(|(number, count)| (number, count.get()));
        counted.filter(|(_, count)| *count > 0).filter_map(|(number, count)| Some((Mishap::numbered(number)?, count)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_class_has_a_number_and_a_name_of_its_own() {
        let all: Vec<Mishap> = (0..CLASSES).map(|number| Mishap::numbered(number).unwrap()).collect();
        assert_eq!(Mishap::numbered(CLASSES), None);
        for (number, mishap) in all.iter().enumerate() {
            assert_eq!(mishap.number(), number, "{mishap:?}");
        }
        let mut names: Vec<String> = all.iter().map(|mishap| mishap.class()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CLASSES);
    }

    #[test]
    fn classes_are_counted_apart() {
        let cells = MishapCells::default();
        for mishap in [
            Mishap::Answered(502, Some(Why::Refused)),
            Mishap::Answered(502, Some(Why::Refused)),
            Mishap::Answered(413, None),
            Mishap::Unanswered(None),
            Mishap::Unanswered(Some(Why::Other)),
            Mishap::Refused(LimitPolicy::LimitReq),
            Mishap::Cut,
            Mishap::Tried(Why::TimedOut),
        ] {
            cells.count(mishap);
        }
        let mut all: Vec<_> = cells.all().map(|(mishap, count)| (mishap.class(), count)).collect();
        all.sort();
        let named = [
            ("413", 1),
            ("502 connection refused", 2),
            ("cut short", 1),
            ("limit_req", 1),
            ("no answer", 1),
            ("no answer other", 1),
            ("try timeout", 1),
        ];
        assert_eq!(all, named.map(|(name, count)| (name.to_owned(), count)));
    }

    #[test]
    fn errors_are_not_what_an_application_says_every_day() {
        let is = |status| Mishap::of_status(status, None).is_some();
        assert!(is(502) && is(499) && is(413) && !is(404) && !is(401) && !is(200) && !is(302));
    }

    #[test]
    fn what_the_configuration_or_the_client_wants_is_no_failure() {
        for (mishap, kind) in [
            (Mishap::Answered(502, Some(Why::Refused)), ErrorKind::Failed),
            (Mishap::Answered(500, None), ErrorKind::Failed),
            (Mishap::Unanswered(Some(Why::Reset)), ErrorKind::Failed),
            (Mishap::Cut, ErrorKind::Failed),
            (Mishap::Refused(LimitPolicy::LimitReq), ErrorKind::Refused),
            (Mishap::Tried(Why::Refused), ErrorKind::Recovered),
            (Mishap::Answered(499, None), ErrorKind::Client),
            (Mishap::Unanswered(None), ErrorKind::Client),
        ] {
            assert_eq!(mishap.kind(), kind, "{mishap:?}");
        }
    }
}
