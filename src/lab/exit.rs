//! Exit codes of `weir lab`.

/// The change is worse, or is better in one way and worse in another; the measurement proves it.
pub const REGRESSION: u8 = 1;
/// The experiment failed to run.
pub const FAILED: u8 = 2;
/// The measurement allows no verdict.
pub const NO_VERDICT: u8 = 3;
/// Ended by a signal.
pub const INTERRUPTED: u8 = crate::stop::INTERRUPTED;
