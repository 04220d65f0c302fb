//! Where the URLs of a script lead.

use std::borrow::Cow;
use std::rc::Rc;

use super::outgoing;
use crate::client::{Origin, Origins};
use crate::failed::Failed;
use crate::plan::Plan;
use crate::url::Url;

/// The origins of a run, and the one that paths without an origin go to.
pub(super) struct RunOrigins {
    pub origins: Origins,
    base: Option<Base>,
}

/// `config.target`, parsed: paths are appended to its path.
struct Base {
    origin: Rc<Origin>,
    prefix: String,
    authorization: Option<String>,
}

impl RunOrigins {
    /// The places of a plan.
    pub fn new(plan: &Plan, origins: Origins) -> RunOrigins {
        RunOrigins { base: Base::of(&plan.target, &origins), origins }
    }

    /// The origin and target of a rendered URL.
    pub fn of(&self, plan: &Plan, url: &str) -> Result<(Rc<Origin>, String, Option<String>), Failed> {
        // Hooks get the whole URL, and usually leave it unchanged.
        let below = url.strip_prefix(&*plan.target).filter(|_| self.base.is_some()).unwrap_or(url);
        if below.starts_with('/')
            && let Some(base) = &self.base
        {
            return Ok((
                base.origin.clone(),
                outgoing::joined(&base.prefix, below.as_bytes()),
                base.authorization.clone(),
            ));
        }
        let url = with_target(plan, url);
        if !url.starts_with("http") {
            return Err(Failed(Cow::Owned(format!("Invalid URL - {url}"))));
        }
        let parsed = Url::parse(&url).map_err(|_| Failed(Cow::Borrowed("ERR_INVALID_URL")))?;
        let authorization = parsed.basic().map(|basic| format!("authorization: {basic}\r\n"));
        Ok((self.origins.of(&parsed), parsed.target, authorization))
    }
}

impl Base {
    fn of(target: &str, origins: &Origins) -> Option<Base> {
        if target.contains(['?', '#', '{']) {
            return None;
        }
        let url = Url::parse(target).ok()?;
        let after = target.split_once("://").map_or("", |(_, after)| after);
        let prefix = after.find('/').and_then(|at| after.get(at..)).unwrap_or_default().to_owned();
        Some(Base {
            origin: origins.of(&url),
            prefix,
            authorization: url.basic().map(|basic| format!("authorization: {basic}\r\n")),
        })
    }
}

/// A URL that begins with a slash goes to the target: plain concatenation, as in Artillery.
pub(super) fn with_target<'u>(plan: &Plan, url: &'u str) -> Cow<'u, str> {
    if url.starts_with('/') { Cow::Owned(format!("{}{url}", plan.target)) } else { Cow::Borrowed(url) }
}
