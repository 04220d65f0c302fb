//! QUIC (RFC 9000) for clients of the edge: connections over UDP sockets, and streams that are read and written like a
//! socket. The library quinn-proto keeps the protocol's state; it does no I/O.
#![forbid(unsafe_code)]
