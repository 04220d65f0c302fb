//! The side of a connection of HTTP/2 or HTTP/3.

/// The side that weir is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The peer begins requests. In HTTP/2 its streams have odd numbers.
    Server,
    /// weir begins requests.
    Client,
}
