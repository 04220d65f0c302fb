//! The codings, and the settings of a coder.

/// A content coding (RFC 9110 §8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// RFC 8878.
    Zstd,
    /// RFC 7932.
    Brotli,
    /// RFC 1952.
    Gzip,
}

/// The settings of a coder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodingPlan {
    /// The coding.
    pub coding: Coding,
    /// Its level.
    pub level: i32,
    /// Its window as a power of two, where the settings say it.
    pub window_bits: Option<i32>,
    /// The length of the body, if it is known.
    pub length: Option<u64>,
}
