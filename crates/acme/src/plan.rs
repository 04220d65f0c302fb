//! When a certificate is due: at once, at a time by its validity, or at a time that the authority tells (RFC 9773).
//!
//! Time and chance are arguments. All times are seconds since 1970.

use std::time::Duration;

use crate::answer::Window;

/// How long after a failure weir tries again: after the first, the second, the third, and at most.
const RETRY_S: [i64; 3] = [60, 600, 6_000];
/// The longest pause before another try for a certificate.
const RETRY_MAX_S: i64 = 24 * 3600;
/// The longest pause before another question for renewal information.
const INFO_RETRY_MAX_S: i64 = 6 * 3600;

/// How often weir asks for renewal information, if the authority does not say, and the bounds of the authority's say.
const INFO_EVERY: Duration = Duration::from_secs(12 * 3600);
const INFO_EVERY_MIN: Duration = Duration::from_secs(60);
const INFO_EVERY_MAX: Duration = Duration::from_secs(24 * 3600);

/// A certificate that lives longer is renewed after two thirds of its life, any other after a half (Let's Encrypt's
/// integration guide).
const LONG_LIFE_S: i64 = 10 * 24 * 3600;

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// There is no certificate: get one.
    Request,
    /// Get another one.
    Renewal,
    /// Ask when to renew.
    Info,
    /// Nothing until the configuration changes: the authority refuses the order.
    Never,
}

/// The schedule of one certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The next step.
    pub due: Due,
    /// Its time.
    pub next: i64,
    /// Failures of that step since the last success.
    pub fails: u32,
    /// The validity of the certificate in force; empty without one.
    pub valid: Window,
    /// The time in which to renew it.
    pub window: Window,
}

impl Plan {
    /// No certificate yet.
    pub fn empty() -> Plan {
        Plan { due: Due::Request, next: 0, fails: 0, valid: Window::default(), window: Window::default() }
    }

    /// A certificate that weir kept from an earlier process: weir asks at once when to renew it.
    pub fn kept(valid: Window) -> Plan {
        Plan { due: Due::Info, next: 0, fails: 0, valid, window: window_by_life(valid) }
    }

    /// Whether there is a certificate.
    pub fn has_certificate(&self) -> bool {
        self.valid.end > self.valid.start
    }

    /// Whether this step is due.
    pub fn is_due(&self, step: Due, now: i64) -> bool {
        self.due == step && now >= self.next
    }

    /// Whether a certificate is to be had.
    pub fn wants_certificate(&self, now: i64) -> bool {
        self.is_due(Due::Request, now) || self.is_due(Due::Renewal, now)
    }

    /// A certificate of this validity was issued.
    pub fn issued(&mut self, valid: Window, chance: u64) {
        *self = Plan { valid, window: window_by_life(valid), ..*self };
        self.renew_by_life(chance);
    }

    /// The authority tells nothing about renewals, or the last answer stays in force.
    pub fn renew_by_life(&mut self, chance: u64) {
        (self.due, self.next, self.fails) = (Due::Renewal, point(self.window, chance), 0);
    }

    /// The question for renewal information follows at once (RFC 9773 §4.3.2).
    pub fn ask_info(&mut self) {
        (self.due, self.next, self.fails) = (Due::Info, 0, 0);
    }

    /// The authority told when to renew, and when to ask again. False if the window is not within the certificate's
    /// life.
    pub fn informed(&mut self, window: Window, ask_again: Option<Duration>, now: i64, chance: u64) -> bool {
        if window.start >= window.end || window.end > self.valid.end {
            return false;
        }
        let pause = ask_again.unwrap_or(INFO_EVERY).clamp(INFO_EVERY_MIN, INFO_EVERY_MAX);
        let again = now + pause.as_secs() as i64;
        let at = point(window, chance);
        (self.window, self.fails) = (window, 0);
        (self.due, self.next) = if at < again { (Due::Renewal, at) } else { (Due::Info, again) };
        true
    }

    /// The step failed: it is tried again later, a little at random. If the time for renewals would pass meanwhile, no
    /// further question is asked.
    pub fn failed(&mut self, now: i64, chance: u64) {
        let max = if self.due == Due::Info { INFO_RETRY_MAX_S } else { RETRY_MAX_S };
        let next = now + retry_pause(self.fails, max, chance);
        if self.due == Due::Info && next >= self.window.end {
            return self.renew_by_life(chance);
        }
        (self.next, self.fails) = (next, self.fails.saturating_add(1));
    }

    /// The authority refuses the order for good.
    pub fn refused(&mut self) {
        (self.due, self.next) = (Due::Never, i64::MAX);
    }
}

/// The pause after this many failures before this one.
pub fn retry_pause(fails: u32, max_s: i64, chance: u64) -> i64 {
    let pause = RETRY_S.get(fails as usize).copied().unwrap_or(max_s).min(max_s);
    // 2 % earlier or later.
    let spread = pause / 50;
    pause - spread + (chance % (2 * spread.unsigned_abs() + 1)) as i64
}

/// The longest pause before another try for an account.
pub const ACCOUNT_RETRY_MAX_S: i64 = RETRY_MAX_S;

fn window_by_life(valid: Window) -> Window {
    let life = (valid.end - valid.start).max(0);
    let at = valid.start + if life > LONG_LIFE_S { life / 3 * 2 } else { life / 2 };
    Window { start: at - life / 50, end: at + life / 50 }
}

fn point(window: Window, chance: u64) -> i64 {
    let length = window.end.saturating_sub(window.start).max(1).unsigned_abs();
    window.start.saturating_add((chance % length) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY: i64 = 24 * 3600;

    fn plan(days: i64) -> Plan {
        let mut plan = Plan::empty();
        plan.issued(Window { start: 0, end: days * DAY }, 0);
        plan
    }

    #[test]
    fn a_long_life_is_renewed_after_two_thirds_a_short_one_after_half() {
        assert_eq!(plan(90).next, 60 * DAY - 90 * DAY / 50);
        assert_eq!(plan(6).next, 3 * DAY - 6 * DAY / 50);
        assert!(plan(90).wants_certificate(60 * DAY) && !plan(90).wants_certificate(50 * DAY));
        assert!(Plan::empty().wants_certificate(0) && !Plan::empty().has_certificate());
    }

    #[test]
    fn the_authority_may_move_the_renewal() {
        let mut plan = plan(90);
        plan.ask_info();
        assert!(plan.is_due(Due::Info, 10));
        // A window that is far away: weir asks again in the meantime.
        assert!(plan.informed(Window { start: 50 * DAY, end: 52 * DAY }, None, 10, 0));
        assert_eq!((plan.due, plan.next), (Due::Info, 10 + 12 * 3600));
        // A window that has passed: the certificate is to be replaced at once.
        assert!(plan.informed(Window { start: 1, end: 2 }, None, 10 * DAY, 0));
        assert!(plan.wants_certificate(10 * DAY));
        // The pause is bounded.
        for (asked, wanted) in [(0, 60), (30 * 24 * 3600, DAY)] {
            assert!(plan.informed(Window { start: 50 * DAY, end: 52 * DAY }, Some(Duration::from_secs(asked)), 0, 0));
            assert_eq!(plan.next, wanted);
        }
    }

    #[test]
    fn windows_outside_the_life_are_refused() {
        let mut plan = plan(90);
        let before = plan;
        assert!(!plan.informed(Window { start: 80 * DAY, end: 91 * DAY }, None, 0, 0));
        assert!(!plan.informed(Window { start: 2, end: 2 }, None, 0, 0));
        assert_eq!(plan, before);
    }

    #[test]
    fn tries_come_less_and_less_often_but_never_end() {
        let (mut plan, mut now, mut pauses) = (plan(90), 60 * DAY, Vec::new());
        for _ in 0..6 {
            plan.failed(now, 0);
            pauses.push(plan.next - now);
            now = plan.next;
        }
        assert_eq!(pauses, [59, 588, 5_880, 84_672, 84_672, 84_672]);
        plan.refused();
        assert!(!plan.wants_certificate(i64::MAX - 1));
    }

    #[test]
    fn questions_that_fail_give_way_to_the_renewal() {
        let mut plan = Plan::kept(Window { start: 0, end: 90 * DAY });
        plan.failed(10, 0);
        assert_eq!((plan.due, plan.next), (Due::Info, 10 + 59));
        plan.failed(plan.window.end - 5, 0);
        assert_eq!(plan.due, Due::Renewal);
    }

    proptest! {
        #[test]
        fn no_window_panics(start in any::<i64>(), end in any::<i64>(), now in 0..=i64::MAX / 4, chance in any::<u64>()) {
            let mut plan = plan(90);
            plan.informed(Window { start, end }, Some(Duration::MAX), now, chance);
            plan.failed(now, chance);
            plan.renew_by_life(chance);
        }
    }
}
