//! Moments, and the two clocks of the kernel.

use crate::sys;
use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment of the monotonic clock, in nanoseconds: a subtraction takes ten times as long with `std`'s type, and a
/// request makes ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(NonZeroU64);

impl Instant {
    /// The earliest moment.
    pub(crate) const FIRST: Instant = Instant(NonZeroU64::MIN);

    fn of_ns(ns: u64) -> Instant {
        NonZeroU64::new(ns).map_or(Instant::FIRST, Instant)
    }

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    #[inline]
    pub fn saturating_duration_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.ns_since(earlier))
    }

    /// As [`Instant::saturating_duration_since`], in whole milliseconds.
    #[inline]
    pub fn ms_since(self, earlier: Instant) -> u64 {
        self.ns_since(earlier) / NS_PER_MS
    }

    /// As [`Instant::saturating_duration_since`], in whole microseconds.
    #[inline]
    pub fn us_since(self, earlier: Instant) -> u64 {
        self.ns_since(earlier) / NS_PER_US
    }

    /// Nanoseconds of the monotonic clock, `CLOCK_MONOTONIC`: the clock that the kernel's own programs read.
    #[inline]
    pub fn ns(self) -> u64 {
        self.0.get()
    }

    /// The same moment as the standard library writes it, for libraries that take one.
    pub fn std(self) -> std::time::Instant {
        let (base, base_ns) = *BASE;
        base + Duration::from_nanos(self.0.get().saturating_sub(base_ns))
    }

    /// The moment of the standard library; the beginning of the process if it was earlier.
    pub fn of_std(at: std::time::Instant) -> Instant {
        let (base, base_ns) = *BASE;
        Instant::of_ns(base_ns) + at.saturating_duration_since(base)
    }

    #[inline]
    pub(crate) fn ns_since(self, earlier: Instant) -> u64 {
        self.0.get().saturating_sub(earlier.0.get())
    }
}

/// One moment in both forms. A moment before it becomes this one.
static BASE: LazyLock<(std::time::Instant, u64)> = LazyLock::new(|| (std::time::Instant::now(), sys::monotonic_ns()));

impl Add<Duration> for Instant {
    type Output = Instant;

    /// Saturates 584 years after the start of the clock.
    #[inline]
    fn add(self, after: Duration) -> Instant {
        let ns = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_add(ns))
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// As [`Instant::saturating_duration_since`].
    #[inline]
    fn sub(self, earlier: Instant) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

pub(crate) const NS_PER_US: u64 = 1_000;
pub(crate) const NS_PER_MS: u64 = 1_000_000;
pub(crate) const NS_PER_SECOND: u64 = 1_000_000_000;

/// The clock read now, for the rare measurement within a turn.
#[inline]
pub fn precise() -> Instant {
    Instant::of_ns(sys::monotonic_ns())
}

/// The wall clock read now.
pub fn precise_wall() -> SystemTime {
    SystemTime::now()
}

/// [`precise_wall`] in nanoseconds since 1970; 0 before it.
#[inline]
pub(crate) fn precise_unix_ns() -> u64 {
    precise_wall().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
