//! Requests.

use crate::plan::Request;
use crate::vuser::{Failed, Vuser};

/// What requests of all virtual users of a worker share.
pub struct Http {}

/// What a virtual user keeps between requests: connections, cookies.
#[derive(Default)]
pub struct Session {}

/// Carries out one request step.
pub async fn step(vuser: &mut Vuser, request: &Request) -> Result<(), Failed> {
    let _ = (vuser, request);
    Ok(())
}
