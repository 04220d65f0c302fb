//! Lines of nginx's error log, by what they report. weir logs in the same words.

/// What a line of an error log reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// The connection table was full, and idle connections were closed to make room.
    Recycled,
    /// The connection table was full.
    TableFull,
    /// No local port was left towards a peer.
    NoPort,
    /// The process or the system could open no more files.
    NoFile,
    /// Every server of a group was out of use.
    NoLive,
    /// A peer did not take a connection in time.
    ConnectTimeout,
    /// A peer sent nothing in time.
    ReadTimeout,
    /// A peer took no more bytes in time.
    SendTimeout,
    /// An upgraded connection was silent for too long.
    TunnelTimeout,
    /// A peer refused the connection.
    Refused,
    /// No way leads to a peer.
    Unreachable,
    /// The Unix socket of a peer does not exist.
    NoSocket,
    /// The process may not connect to a peer.
    NotAllowed,
    /// The listen queue of a peer's Unix socket was full.
    QueueFull,
    /// A peer closed the connection before its answer was whole.
    Closed,
    /// A peer reset the connection.
    Reset,
    /// The fields of an answer do not fit into the buffer.
    TooBigHeader,
    /// An answer is no HTTP.
    InvalidHeader,
    /// The certificate of a peer was not accepted.
    Certificate,
    /// The TLS handshake with a peer failed.
    TlsHandshake,
    /// A name has no address.
    Unresolved,
    /// A FastCGI application reported an error of its own.
    Script,
    /// A request was redirected inside the server again and again.
    Cycle,
    /// `deny` refused a client.
    Forbidden,
    /// `limit_req` refused a request.
    RequestRefused,
    /// `limit_req` delayed a request.
    RequestDelayed,
    /// `limit_conn` refused a request.
    ConnectionRefused,
    /// A body went to a temporary file.
    Temporary,
}

/// The words of each message. The first row that matches counts.
const WORDS: &[(Message, &str)] = &[
    (Message::Recycled, "reusing connections"),
    (Message::TableFull, "worker_connections are not enough"),
    (Message::NoPort, "(99: "),
    (Message::NoFile, "(24: "),
    (Message::NoFile, "(23: "),
    (Message::NoLive, "no live upstreams"),
    (Message::ConnectTimeout, "timed out (110: Connection timed out) while connecting to upstream"),
    (Message::ConnectTimeout, "timed out (110: Connection timed out) while SSL handshaking to upstream"),
    (Message::ReadTimeout, "timed out (110: Connection timed out) while reading response header from upstream"),
    (Message::ReadTimeout, "timed out (110: Connection timed out) while reading upstream"),
    (Message::SendTimeout, "timed out (110: Connection timed out) while sending request to upstream"),
    (Message::TunnelTimeout, "timed out (110: Connection timed out) while proxying upgraded connection"),
    (Message::Refused, "(111: "),
    (Message::Unreachable, "(113: "),
    (Message::Unreachable, "(101: "),
    (Message::NoSocket, "(2: No such file or directory) while connecting to upstream"),
    (Message::NotAllowed, "(13: Permission denied) while connecting to upstream"),
    (Message::QueueFull, "(11: Resource temporarily unavailable) while connecting to upstream"),
    (Message::Closed, "upstream prematurely closed "),
    (Message::Reset, "(104: "),
    (Message::TooBigHeader, "upstream sent too big header"),
    (Message::InvalidHeader, "upstream sent invalid "),
    (Message::InvalidHeader, "upstream sent no valid HTTP/1.0 header"),
    (Message::InvalidHeader, "upstream sent unsupported "),
    (Message::InvalidHeader, "upstream sent unexpected "),
    (Message::Certificate, "upstream SSL certificate"),
    (Message::TlsHandshake, "while SSL handshaking to upstream"),
    (Message::Unresolved, "could not be resolved ("),
    (Message::Unresolved, "no resolver defined to resolve"),
    (Message::Unresolved, "host not found in upstream"),
    (Message::Script, "FastCGI sent in stderr"),
    (Message::Cycle, "rewrite or internal redirection cycle"),
    (Message::Forbidden, "access forbidden by rule"),
    (Message::RequestRefused, "limiting requests, excess: "),
    (Message::RequestDelayed, "delaying request, excess: "),
    (Message::ConnectionRefused, "limiting connections by zone "),
    (Message::Temporary, "is buffered to a temporary file"),
];

impl Message {
    /// What a line reports. `None` for another line, and for the dry run of a limit, which has no effect.
    pub fn of(line: &str) -> Option<Message> {
        // The text after this word is the client's.
        let own = line.split_once(", client: ").map_or(line, |(own, _)| own);
        if own.contains(", dry run") {
            return None;
        }
        WORDS.iter().find(|(_, words)| own.contains(words)).map(|(message, _)| *message)
    }

    /// Its name in the reports for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Message::Recycled => "recycled",
            Message::TableFull => "connections",
            Message::NoPort => "no_port",
            Message::NoFile => "no_file",
            Message::NoLive => "no_live",
            Message::ConnectTimeout => "connect_timeout",
            Message::ReadTimeout => "read_timeout",
            Message::SendTimeout => "send_timeout",
            Message::TunnelTimeout => "tunnel_timeout",
            Message::Refused => "refused",
            Message::Unreachable => "unreachable",
            Message::NoSocket => "no_socket",
            Message::NotAllowed => "not_allowed",
            Message::QueueFull => "queue_full",
            Message::Closed => "closed",
            Message::Reset => "reset",
            Message::TooBigHeader => "too_big_header",
            Message::InvalidHeader => "invalid_header",
            Message::Certificate => "certificate",
            Message::TlsHandshake => "tls_handshake",
            Message::Unresolved => "unresolved",
            Message::Script => "script",
            Message::Cycle => "cycle",
            Message::Forbidden => "forbidden",
            Message::RequestRefused => "refused limit_req",
            Message::RequestDelayed => "delayed limit_req",
            Message::ConnectionRefused => "refused limit_conn",
            Message::Temporary => "temporary",
        }
    }

    /// All messages.
    pub fn all() -> impl Iterator<Item = Message> {
        let mut last = None;
        // The rows of a message stand together.
        WORDS.iter().map(|(message, _)| *message).filter(move |message| last.replace(*message) != Some(*message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginxs_words_are_known() {
        for (line, message) in [
            ("[alert] 1#1: 32 worker_connections are not enough", Some(Message::TableFull)),
            ("[warn] 1#1: 32 worker_connections are not enough, reusing connections", Some(Message::Recycled)),
            (
                "[crit] 5#5: *1 connect() to 127.0.0.1:3 failed (99: Cannot assign requested address) while connecting to upstream",
                Some(Message::NoPort),
            ),
            (
                "*1 upstream SSL certificate verify error: (20:unable to get local issuer certificate) while SSL handshaking to upstream",
                Some(Message::Certificate),
            ),
            (
                "*1 peer closed connection in SSL handshake while SSL handshaking to upstream",
                Some(Message::TlsHandshake),
            ),
            ("*1 limiting requests, dry run, excess: 5.4 by zone \"one\", client: ::1", None),
            ("*1 client prematurely closed connection, client: ::1", None),
            // The client chooses what comes after its address.
            ("*1 open() \"/x\" failed, client: ::1, request: \"GET /(111: HTTP/1.1\"", None),
            ("[notice] 1#1: start worker processes", None),
        ] {
            assert_eq!(Message::of(line), message, "{line}");
        }
    }

    #[test]
    fn each_message_has_one_name() {
        let names: std::collections::BTreeSet<&str> = Message::all().map(Message::name).collect();
        assert_eq!(names.len(), Message::all().count());
    }
}
