//! The reason phrases of Node, which got puts where the server sends none.

/// The phrase in Node's `http.STATUS_CODES`. The rows are those that nginx does not have, or has in other words.
pub(super) fn of(status: u16) -> Option<&'static str> {
    Some(match status {
        102 => "Processing",
        203 => "Non-Authoritative Information",
        205 => "Reset Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        302 => "Found",
        305 => "Use Proxy",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Payload Too Large",
        414 => "URI Too Long",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        418 => "I'm a Teapot",
        422 => "Unprocessable Entity",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        506 => "Variant Also Negotiates",
        508 => "Loop Detected",
        509 => "Bandwidth Limit Exceeded",
        510 => "Not Extended",
        511 => "Network Authentication Required",
        _ => return weir_wire::status::reason(status),
    })
}
