//! Which answers count as good.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::said::{Said, say};

/// Most words of a list.
const WORDS_MAX: usize = 32;

/// The statuses of good answers, as `2xx,3xx,404`. Every other answer is a failure: a refusal by the edge, or an
/// error from an application. `101` (RFC 9110 §15.2.2) is always good: the client asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GoodStatuses {
    /// First and last of each range, in the order of the list.
    ranges: Vec<(u16, u16)>,
}

impl Default for GoodStatuses {
    /// Every 2xx and every 3xx.
    fn default() -> GoodStatuses {
        GoodStatuses { ranges: vec![(200, 299), (300, 399)] }
    }
}

impl GoodStatuses {
    /// Whether an answer with that status is good.
    pub fn has(&self, status: u16) -> bool {
        status == 101 || self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&status))
    }
}

impl FromStr for GoodStatuses {
    type Err = Said;

    /// # Errors
    /// A word is neither a class nor a status. The sentence says which form is expected.
    fn from_str(text: &str) -> Result<GoodStatuses, Said> {
        let word = |word: &str| {
            let word = word.trim();
            let range = match word.strip_suffix("xx") {
                Some(class) => class
                    .parse::<u16>()
                    .ok()
                    .filter(|class| (1..=5).contains(class))
                    .map(|class| (class * 100, class * 100 + 99)),
                None => word.parse::<u16>().ok().filter(|code| (100..=599).contains(code)).map(|code| (code, code)),
            };
            range.ok_or_else(|| say!(ERR_GOOD, word))
        };
        let words: Vec<&str> = text.split(',').collect();
        if words.len() > WORDS_MAX {
            return Err(say!(ERR_GOOD_MANY, WORDS_MAX));
        }
        Ok(GoodStatuses { ranges: words.into_iter().map(word).collect::<Result<_, _>>()? })
    }
}

impl fmt::Display for GoodStatuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (first, last)) in self.ranges.iter().enumerate() {
            f.write_str(if number > 0 { ", " } else { "" })?;
            if first == last { write!(f, "{first}")? } else { write!(f, "{}xx", first / 100)? }
        }
        Ok(())
    }
}

impl TryFrom<String> for GoodStatuses {
    type Error = Said;

    fn try_from(text: String) -> Result<GoodStatuses, Said> {
        text.parse()
    }
}

impl From<GoodStatuses> for String {
    fn from(good: GoodStatuses) -> String {
        good.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn classes_and_statuses_are_read() {
        let good = GoodStatuses::default();
        assert!(good.has(200) && good.has(304) && good.has(101));
        assert!(![100, 404, 429, 499, 502, 503].into_iter().any(|status| good.has(status)));
        let good: GoodStatuses = "2xx, 3xx,404".parse().unwrap();
        assert!(good.has(404) && !good.has(403));
        assert_eq!(good.to_string().parse::<GoodStatuses>().unwrap(), good);
        for wrong in ["", "6xx", "2x", "99", "600", "2xx,,3xx", "ok"] {
            assert!(wrong.parse::<GoodStatuses>().is_err_and(|why| why.contains("2xx,3xx,404")), "{wrong}");
        }
    }
}
