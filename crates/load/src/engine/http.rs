//! Requests.

use crate::plan::Request;
use crate::vuser::{Failed, Vuser};

/// What requests of all virtual users of a worker share.
pub struct Http {}

impl Http {
    /// TEMP
    pub fn new(_: &crate::plan::Plan, _: &crate::record::Recorder) -> Http {
        Http {}
    }
}

/// What a virtual user keeps between requests: connections, cookies.
#[derive(Default)]
pub struct Session {}

impl Session {
    /// TEMP
    pub fn share(&self) -> Session {
        Session {}
    }
}

/// Carries out one request step.
pub async fn step(vuser: &mut Vuser, request: &Request) -> Result<(), Failed> {
    let _ = (vuser, request);
    Ok(())
}
