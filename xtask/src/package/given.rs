//! The things that every product is made from.

use std::path::PathBuf;

/// What the packed binary comes from.
#[derive(Debug, PartialEq)]
pub enum From {
    /// A binary that somebody has built.
    Binary(PathBuf),
    /// The sources, and a profile of weir at work if there is one.
    Sources { profile: Option<PathBuf> },
}

impl Default for From {
    fn default() -> Self {
        From::Sources { profile: None }
    }
}

/// The input of all products.
pub struct Given {
    /// The checkout.
    pub root: PathBuf,
    /// The folder of the products.
    pub out: PathBuf,
    pub binary: PathBuf,
    pub version: String,
    /// The time of the last commit, in seconds: the time of each file in the archives.
    pub epoch: String,
}
