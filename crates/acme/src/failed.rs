//! Why weir has no certificate yet: one name for each reason, in the words of nginx's module where it has them.

use std::fmt;
use std::time::Duration;

use crate::chain::Unfit;
use crate::problem::{Problem, shown};

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The authority refused it.
    Problem(Problem),
    /// There was no answer: the reason.
    Net(String),
    /// The answer is no HTTP redirect that weir follows: the reason.
    Redirect(&'static str),
    /// The answer has another status than a success, and no error document.
    Status(u16),
    /// The answer is not the JSON that RFC 8555 describes: the reason.
    Format(String),
    /// The answer has no valid `Replay-Nonce`.
    Nonce,
    /// A URL of the authority is not one that weir asks: the URL.
    Address(String),
    /// The authority asks for a longer pause than weir waits within an order.
    RateLimited(Duration),
    /// weir could not sign or make a key: the reason.
    Key(String),
    /// The directory could not be read.
    Directory(Box<Failed>),
    /// The request for an account failed.
    Account(Box<Failed>),
    /// The authority wants `external_account_key`.
    ExternalAccount,
    /// The account is not valid.
    AccountStatus(String),
    /// The authority named no account.
    AccountUrl,
    /// The authority named no order.
    OrderUrl,
    /// The order has this status where another was expected.
    OrderStatus(String),
    /// The authorization has this status.
    AuthorizationStatus(String),
    /// The challenge has this status.
    ChallengeStatus(String),
    /// The authority does not offer the challenge of the file.
    NoSupportedChallenges,
    /// weir could not show the challenge: the reason.
    Challenge(String),
    /// The authority named no certificate.
    MissingCertificate,
    /// The certificate cannot be used.
    Unfit(Unfit),
    /// The renewal window is empty, or ends after the certificate does.
    RenewalWindow,
    /// The renewal information could not be read.
    RenewalInfo(Box<Failed>),
}

impl Failed {
    /// Whether weir must not try again before the configuration changes.
    pub fn is_final_for_account(&self) -> bool {
        match self {
            Failed::ExternalAccount | Failed::AccountStatus(_) => true,
            Failed::Account(inner) => matches!(&**inner, Failed::Problem(problem) if problem.is_bad_account()),
            _ => false,
        }
    }

    /// The same for an order.
    pub fn is_final_for_order(&self) -> bool {
        matches!(self, Failed::Problem(problem) if problem.is_bad_order())
    }

    /// Whether the order cannot be continued: the next try begins another one.
    pub fn ends_order(&self) -> bool {
        match self {
            Failed::Net(_) | Failed::Nonce | Failed::RateLimited(_) | Failed::Directory(_) | Failed::Key(_) => false,
            Failed::Status(status) => (400..500).contains(status),
            Failed::Problem(problem) => !matches!(problem.name(), "serverInternal" | "badNonce" | "rateLimited"),
            Failed::Challenge(_) => false,
            _ => true,
        }
    }

    /// Whether the authority does not know the account any more.
    pub fn is_unknown_account(&self) -> bool {
        matches!(self, Failed::Problem(problem) if problem.name() == "accountDoesNotExist")
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Problem(problem) => problem.fmt(f),
            Failed::Net(why) => f.write_str(&shown(why)),
            Failed::Redirect(why) => write!(f, "redirect failed: {why}"),
            Failed::Status(status) => write!(f, "unexpected status code {status} in response"),
            Failed::Format(why) => write!(f, "cannot deserialize response ({})", shown(why)),
            Failed::Nonce => f.write_str("cannot obtain replay nonce"),
            Failed::Address(url) => write!(f, "invalid URL \"{}\" in response", shown(url)),
            Failed::RateLimited(time) => write!(f, "rate limit exceeded, next attempt in {time:?}"),
            Failed::Key(why) => f.write_str(why),
            Failed::Directory(inner) => write!(f, "directory update failed ({inner})"),
            Failed::Account(inner) => match &**inner {
                Failed::Problem(problem) => problem.fmt(f),
                inner => write!(f, "account request failed ({inner})"),
            },
            Failed::ExternalAccount => f.write_str("external account key required"),
            Failed::AccountStatus(status) => write!(f, "unexpected account status {}", shown(status)),
            Failed::AccountUrl => f.write_str("no account URL in response"),
            Failed::OrderUrl => f.write_str("invalid or missing order URL"),
            Failed::OrderStatus(status) => write!(f, "unexpected order status {}", shown(status)),
            Failed::AuthorizationStatus(status) => write!(f, "unexpected authorization status {}", shown(status)),
            Failed::ChallengeStatus(status) => write!(f, "unexpected challenge status {}", shown(status)),
            Failed::NoSupportedChallenges => f.write_str("no supported challenges"),
            Failed::Challenge(why) => write!(f, "weir cannot show the challenge ({why})"),
            Failed::MissingCertificate => f.write_str("no certificate in the completed order"),
            Failed::Unfit(why) => why.fmt(f),
            Failed::RenewalWindow => f.write_str("invalid renewal window"),
            Failed::RenewalInfo(inner) => write!(f, "renewal information request failed: {inner}"),
        }
    }
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Failed {
        Failed::Problem(problem)
    }
}

impl From<Unfit> for Failed {
    fn from(unfit: Unfit) -> Failed {
        Failed::Unfit(unfit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_that_the_authority_refuses_for_good_is_final() {
        let problem = |name: &str| {
            let kind = format!("urn:ietf:params:acme:error:{name}");
            Failed::Problem(Problem { kind, ..Problem::default() })
        };
        assert!(Failed::ExternalAccount.is_final_for_account());
        assert!(Failed::Account(Box::new(problem("invalidContact"))).is_final_for_account());
        assert!(!Failed::Account(Box::new(problem("serverInternal"))).is_final_for_account());
        assert!(problem("malformed").ends_order() && !problem("serverInternal").ends_order());
        assert!(!Failed::Net("down".to_owned()).ends_order() && Failed::Status(404).ends_order());
        assert!(!Failed::Status(503).ends_order());
        let told = Failed::Directory(Box::new(Failed::Account(Box::new(Failed::Nonce)))).to_string();
        assert_eq!(told, "directory update failed (account request failed (cannot obtain replay nonce))");
    }
}
