//! The things that every product is made from.

use std::path::PathBuf;

/// The way to the packed binary.
#[derive(Debug, Default, PartialEq)]
pub enum PackedWay {
    /// A build from the sources.
    #[default]
    Built,
    /// The same by this profile of weir at work.
    BuiltBy(PathBuf),
    /// Nothing is built: this is the binary.
    Given(PathBuf),
}

/// The input of all products.
pub struct Given {
    /// The checkout.
    pub root: PathBuf,
    /// The folder of the products.
    pub out: PathBuf,
    pub binary: PathBuf,
    /// The folder of the book of the documents; nothing if the products have none.
    pub book: Option<PathBuf>,
    pub version: String,
    /// The time of the last commit, in seconds: the time of each file in the archives.
    pub epoch: String,
}
