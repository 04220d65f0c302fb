//! The tokens of NEW_TOKEN frames that clients have used: each proves an address once (RFC 9000 §8.1.4).

use std::collections::HashSet;
use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use quinn_proto::{TokenLog, TokenReuseError};

/// Tokens in one of the two halves of the memory: 32 bytes each.
const HALF_MAX: usize = 32 << 10;

/// The memory of used tokens, which all workers share. Invariant: a token that may have been used is refused.
#[derive(Default)]
pub struct UsedTokens(Mutex<Used>);

#[derive(Default)]
struct Used {
    young: Half,
    old: Half,
    /// Tokens that were issued up to then may be forgotten.
    forgotten: Option<SystemTime>,
}

#[derive(Default)]
struct Half {
    tokens: HashSet<u128>,
    last_issued: Option<SystemTime>,
}

impl TokenLog for UsedTokens {
    fn check_and_insert(&self, token: u128, issued: SystemTime, _: Duration) -> Result<(), TokenReuseError> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = used.young.tokens.contains(&token) || used.old.tokens.contains(&token);
        if is_known || used.forgotten.is_some_and(|forgotten| issued <= forgotten) {
            return Err(TokenReuseError);
        }
        if used.young.tokens.len() >= HALF_MAX {
            let young = mem::take(&mut used.young);
            let old = mem::replace(&mut used.old, young);
            used.forgotten = used.forgotten.max(old.last_issued);
        }
        used.young.tokens.insert(token);
        used.young.last_issued = used.young.last_issued.max(Some(issued));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_taken(log: &UsedTokens, token: u128, issued_s: u64) -> bool {
        let issued = SystemTime::UNIX_EPOCH + Duration::from_secs(issued_s);
        log.check_and_insert(token, issued, Duration::MAX).is_ok()
    }

    #[test]
    fn a_token_counts_once() {
        let log = UsedTokens::default();
        assert!(is_taken(&log, 1, 10) && is_taken(&log, 2, 10));
        assert!(!is_taken(&log, 1, 10) && !is_taken(&log, 2, 10));
    }

    #[test]
    fn what_may_be_forgotten_is_refused() {
        let log = UsedTokens::default();
        for token in 0..2 * HALF_MAX as u128 {
            assert!(is_taken(&log, token, 10));
        }
        assert!(!is_taken(&log, 0, 10));
        // The third half takes the place of the first one.
        assert!(is_taken(&log, u128::MAX, 20));
        assert!(!is_taken(&log, 0, 10) && !is_taken(&log, u128::MAX - 1, 10));
        assert!(is_taken(&log, u128::MAX - 1, 11));
    }
}
