//! When a verdict is worth an alert: trouble that lasts begins, changes, goes on and ends.

use crate::verdict::{State, Verdict};

/// The trouble that a verdict names. Two verdicts with one subject tell of the same trouble, also with other figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The state.
    pub state: State,
    /// The limit, as `KIND OF`, or the upstream group; empty if requests fail for another reason.
    pub what: String,
}

impl Subject {
    fn of(verdict: &Verdict) -> Subject {
        let limit = verdict.limit.as_ref().map(|limit| format!("{} {}", limit.kind, limit.of).trim_end().to_owned());
        Subject { state: verdict.state, what: limit.or(verdict.group.clone()).unwrap_or_default() }
    }
}

/// The kind of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Trouble began.
    Begins,
    /// The trouble has another subject.
    Changes,
    /// The trouble goes on.
    Lasts,
    /// All is well again.
    Ends,
}

/// One alert.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// The kind.
    pub event: Event,
    /// The verdict now.
    pub verdict: Verdict,
    /// The trouble, and when it began. At its end: the one that ended.
    pub trouble: (Subject, u64),
    /// With [`Event::Changes`]: the trouble before.
    pub before: Option<(Subject, u64)>,
    /// Now, Unix milliseconds.
    pub at_ms: u64,
}

/// Decides about alerts from the verdict of each second.
#[derive(Clone, Debug)]
pub struct Alarm {
    /// How long a verdict has to hold, in milliseconds.
    after_ms: u64,
    /// How often trouble that goes on is told again, in milliseconds.
    every_ms: Option<u64>,
    /// The least state that is trouble.
    from: State,
    told: Option<Told>,
    /// Since when there is trouble, or none.
    since: Option<(bool, u64)>,
    /// The present trouble, and since when.
    present: Option<(Subject, u64)>,
}

/// The trouble of the last alert.
#[derive(Clone, Debug)]
struct Told {
    trouble: (Subject, u64),
    at_ms: u64,
}

impl Alarm {
    /// An alarm that has told nothing. Times are in milliseconds.
    pub fn new(after_ms: u64, every_ms: Option<u64>, from: State) -> Alarm {
        Alarm { after_ms, every_ms, from, told: None, since: None, present: None }
    }

    /// Takes the verdict of a second. The alert counts as told: the caller asks only if it can send one.
    pub fn observe(&mut self, verdict: &Verdict, now_ms: u64, may_tell: bool) -> Option<Alert> {
        if verdict.state == State::Waiting {
            return None;
        }
        let is_trouble = verdict.state >= self.from;
        let since = match self.since {
            Some((was, since)) if was == is_trouble => since,
            _ => now_ms,
        };
        self.since = Some((is_trouble, since));
        let subject = is_trouble.then(|| Subject::of(verdict));
        if self.present.as_ref().map(|(subject, _)| subject) != subject.as_ref() {
            self.present = subject.map(|subject| (subject, now_ms));
        }
        let holds = |since: u64| now_ms.saturating_sub(since) >= self.after_ms;
        let (event, trouble) = match (&self.told, &self.present) {
            _ if !may_tell => return None,
            // The subject may have changed since the trouble began.
            (None, Some((subject, _))) if holds(since) => (Event::Begins, (subject.clone(), since)),
            (Some(told), None) if holds(since) => (Event::Ends, told.trouble.clone()),
            (Some(told), Some(now)) if told.trouble.0 != now.0 && holds(now.1) => (Event::Changes, now.clone()),
            (Some(told), Some(_)) if self.every_ms.is_some_and(|every| now_ms.saturating_sub(told.at_ms) >= every) => {
                (Event::Lasts, told.trouble.clone())
            }
            _ => return None,
        };
        let before = self.told.take().map(|told| told.trouble).filter(|_| event == Event::Changes);
        self.told = (event != Event::Ends).then(|| Told { trouble: trouble.clone(), at_ms: now_ms });
        Some(Alert { event, verdict: verdict.clone(), trouble, before, at_ms: now_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::NamedLimit;

    fn verdict(state: State, what: &str) -> Verdict {
        let limit = NamedLimit { kind: what.to_owned(), ..NamedLimit::default() };
        Verdict { state, limit: (!what.is_empty()).then_some(limit), ..Verdict::default() }
    }

    /// The alerts of verdicts of one second each, with their seconds.
    fn told(alarm: &mut Alarm, verdicts: &[(State, &str)]) -> Vec<(usize, Event, String)> {
        let each = verdicts.iter().enumerate().filter_map(|(second, (state, what))| {
            let alert = alarm.observe(&verdict(*state, what), second as u64 * 1000, true)?;
            Some((second, alert.event, alert.trouble.0.what))
        });
        each.collect()
    }

    const WELL: (State, &str) = (State::Healthy, "");
    const FAILS: (State, &str) = (State::Failing, "");
    const FULL: (State, &str) = (State::Limited, "fds");

    #[test]
    fn only_trouble_that_lasts_is_told_and_its_end() {
        let mut alarm = Alarm::new(3000, None, State::Near);
        let seconds = [
            &[(State::Waiting, "")][..],
            &[FAILS, FAILS, WELL, WELL],
            &[FAILS, FULL, FAILS, FULL, FAILS, FAILS, FAILS, FAILS],
            &[WELL, WELL, FAILS, WELL, WELL, WELL, WELL, WELL],
        ];
        let expected = [
            (8, Event::Begins, "fds".to_owned()),
            (12, Event::Changes, String::new()),
            (19, Event::Ends, String::new()),
        ];
        // Trouble of any kind counts from second 5; the subject of second 9 has to hold for itself.
        assert_eq!(told(&mut alarm, &seconds.concat()), expected);
    }

    #[test]
    fn trouble_is_repeated_and_small_trouble_is_none() {
        let mut alarm = Alarm::new(0, Some(2000), State::Limited);
        let seconds = [(State::Near, "ports"), FULL, FULL, FULL, FULL, (State::Near, "ports")];
        let all = told(&mut alarm, &seconds);
        let events: Vec<(usize, Event)> = all.iter().map(|(second, event, _)| (*second, *event)).collect();
        assert_eq!(events, [(1, Event::Begins), (3, Event::Lasts), (5, Event::Ends)]);
    }

    #[test]
    fn what_could_not_be_told_is_told_later() {
        let mut alarm = Alarm::new(0, None, State::Near);
        let fails = verdict(State::Failing, "");
        assert_eq!(alarm.observe(&fails, 1000, false), None);
        let later = alarm.observe(&fails, 9000, true);
        assert_eq!(later.map(|alert| (alert.event, alert.trouble.1)), Some((Event::Begins, 1000)));
    }
}
