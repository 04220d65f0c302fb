//! The word for the step at which one of weir's requests failed.

use weir_meter::Step;

/// `dns`, `connect`, `tls`, `send`, `wait`, `body`; `queue` before and `socket` after all of these.
pub fn phase(step: Step) -> &'static str {
    match step {
        Step::Queue => "queue",
        Step::Resolve => "dns",
        Step::Connect => "connect",
        Step::TlsOrigin | Step::TlsClient => "tls",
        Step::SendRequest | Step::SendResponse => "send",
        Step::AwaitHead | Step::AwaitRequest | Step::Keepalive => "wait",
        Step::ReadResponse | Step::ReadBody | Step::ReadLine | Step::ReadHead => "body",
        // A request never is at a step of the edge's sessions.
        Step::Tunnel
        | Step::StartSession
        | Step::ProxyHeader
        | Step::Preread
        | Step::Session
        | Step::FromClient
        | Step::FromOrigin
        | Step::ToClient
        | Step::ToOrigin
        | Step::ReturnText
        | Step::Pass => "socket",
        Step::Log | Step::Close => "check",
    }
}

/// The step of a [`phase`] word, for reading another process's data.
pub(super) fn step(phase: &str) -> Option<Step> {
    Some(match phase {
        "queue" => Step::Queue,
        "dns" => Step::Resolve,
        "connect" => Step::Connect,
        "tls" => Step::TlsOrigin,
        "send" => Step::SendRequest,
        "wait" => Step::AwaitHead,
        "body" => Step::ReadResponse,
        "socket" => Step::Tunnel,
        "check" => Step::Close,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_leads_back_to_itself() {
        for at in Step::ALL {
            assert_eq!(step(phase(at)).map(phase), Some(phase(at)));
        }
        assert_eq!(step("elsewhere"), None);
    }
}
