//! The step of an exchange: words that all crates share.
//!
//! The words are nginx's `log->action` strings, so that an error line ends with `... while connecting to upstream`,
//! as operators' greps expect. Invariant: the words of a step are written only here.

/// The current step of an exchange or of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A fresh connection on which nothing has arrived yet.
    AwaitRequest,
    /// A kept-alive connection between two requests.
    Keepalive,
    /// The TLS handshake with the client.
    TlsClient,
    /// Reading the request line.
    ReadLine,
    /// Reading the request's fields.
    ReadHead,
    /// Reading the request body.
    ReadBody,
    /// Waiting for a free slot at the upstream.
    Queue,
    /// Resolving the origin's name.
    Resolve,
    /// Connecting to the origin.
    Connect,
    /// The TLS handshake with the origin.
    TlsOrigin,
    /// Sending the request to the origin.
    SendRequest,
    /// Waiting for, and reading, the response head.
    AwaitHead,
    /// Reading the response body from the origin.
    ReadResponse,
    /// Sending the response to the client.
    SendResponse,
    /// Relaying an upgraded connection both ways.
    Tunnel,
    /// Writing the access log.
    Log,
    /// The answer is sent; the connection is being closed, or lingers.
    Close,
    /// A connection of `stream` before its first byte.
    StartSession,
    /// Reading the PROXY protocol header before a client's bytes.
    ProxyHeader,
    /// Looking at the first bytes of a client of `stream`.
    Preread,
    /// Relaying a session of `stream` both ways.
    Session,
    /// Reading from the client of a session.
    FromClient,
    /// Reading from the peer of a session.
    FromOrigin,
    /// Sending to the client of a session.
    ToClient,
    /// Sending to the peer of a session.
    ToOrigin,
    /// Sending the text of `return` in `stream`.
    ReturnText,
    /// Handing a connection of `stream` to another socket.
    Pass,
}

impl Step {
    /// All steps, in the order of an exchange.
    pub const ALL: [Step; 27] = [
        Step::AwaitRequest,
        Step::Keepalive,
        Step::TlsClient,
        Step::ReadLine,
        Step::ReadHead,
        Step::ReadBody,
        Step::Queue,
        Step::Resolve,
        Step::Connect,
        Step::TlsOrigin,
        Step::SendRequest,
        Step::AwaitHead,
        Step::ReadResponse,
        Step::SendResponse,
        Step::Tunnel,
        Step::Log,
        Step::Close,
        Step::StartSession,
        Step::ProxyHeader,
        Step::Preread,
        Step::Session,
        Step::FromClient,
        Step::FromOrigin,
        Step::ToClient,
        Step::ToOrigin,
        Step::ReturnText,
        Step::Pass,
    ];

    /// The words after "while" in an error line.
    ///
    /// They are nginx's own `log->action` (1.31.5) where nginx has one. nginx sets none while it reads a request
    /// body, queues or resolves; for these three steps weir has words of its own, in the same grammar.
    pub const fn doing(self) -> &'static str {
        match self {
            Step::AwaitRequest => "waiting for request",
            Step::Keepalive => "keepalive",
            Step::TlsClient => "SSL handshaking",
            Step::ReadLine => "reading client request line",
            Step::ReadHead => "reading client request headers",
            Step::ReadBody => "reading client request body",
            Step::Queue => "waiting for upstream",
            Step::Resolve => "resolving upstream",
            Step::Connect => "connecting to upstream",
            Step::TlsOrigin => "SSL handshaking to upstream",
            Step::SendRequest => "sending request to upstream",
            Step::AwaitHead => "reading response header from upstream",
            Step::ReadResponse => "reading upstream",
            Step::SendResponse => "sending to client",
            Step::Tunnel => "proxying upgraded connection",
            Step::Log => "logging request",
            Step::Close => "closing request",
            Step::StartSession => "initializing session",
            Step::ProxyHeader => "reading PROXY protocol",
            Step::Preread => "prereading client data",
            Step::Session => "proxying connection",
            Step::FromClient => "proxying and reading from client",
            Step::FromOrigin => "proxying and reading from upstream",
            Step::ToClient => "proxying and sending to client",
            Step::ToOrigin => "proxying and sending to upstream",
            Step::ReturnText => "returning text",
            Step::Pass => "passing connection to port",
        }
    }

    /// The same for a program that sends requests to a target: the target has the place of the upstream.
    pub fn doing_to(self, target: &str) -> String {
        self.doing().replace("upstream", target)
    }

    /// The side for which the step waits.
    pub const fn side(self) -> Side {
        match self {
            Step::AwaitRequest
            | Step::Keepalive
            | Step::TlsClient
            | Step::ReadLine
            | Step::ReadHead
            | Step::ReadBody
            | Step::SendResponse
            | Step::Tunnel
            | Step::Close
            | Step::StartSession
            | Step::ProxyHeader
            | Step::Preread
            | Step::Session
            | Step::FromClient
            | Step::ToClient
            | Step::ReturnText => Side::Client,
            Step::Queue | Step::Log | Step::Pass => Side::Edge,
            Step::Resolve
            | Step::Connect
            | Step::TlsOrigin
            | Step::SendRequest
            | Step::AwaitHead
            | Step::ReadResponse
            | Step::FromOrigin
            | Step::ToOrigin => Side::Origin,
        }
    }
}

/// One of three sides: the client, weir itself, or the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The side that sent the request.
    Client,
    /// The proxy itself.
    Edge,
    /// The side that answers.
    Origin,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_step_has_its_own_words() {
        let words: HashSet<_> = Step::ALL.iter().map(|s| s.doing()).collect();
        assert_eq!(words.len(), Step::ALL.len());
        let steps: HashSet<_> = Step::ALL.iter().collect();
        assert_eq!(steps.len(), Step::ALL.len());
    }

    #[test]
    fn words_are_nginx_words() {
        assert_eq!(Step::Connect.doing(), "connecting to upstream");
        assert_eq!(Step::Connect.doing_to("127.0.0.1:80"), "connecting to 127.0.0.1:80");
        assert_eq!(Step::AwaitHead.doing(), "reading response header from upstream");
        assert_eq!(Step::Connect.side(), Side::Origin);
        assert_eq!(Step::ReadHead.side(), Side::Client);
    }
}
