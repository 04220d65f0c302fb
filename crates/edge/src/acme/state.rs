//! The files below `state_path`: the account, certificates with their keys, and orders that have begun.
//!
//! The names are those of nginx's module, so that either program goes on with the files of the other. Each file is
//! replaced whole. A certificate and its key are two files: the certificate is replaced first, and until both are, the
//! order's own file has the key. So a process that ends between any two steps loses nothing.

use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use weir_acme::{Begun, CertificateOrder, Issued};
use weir_net::process::Identity;
use weir_net::{path, whole_file};

/// The largest file: a chain of certificates.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// The URL of the account; further lines tell to which authority and key it belongs.
const ACCOUNT_URL: &str = "account.url";
/// The account's key, as PEM.
const ACCOUNT_KEY: &str = "account.key";

/// The directory of an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory(PathBuf);

/// The state of an order on disk.
#[derive(Default)]
pub struct Kept {
    /// The certificate.
    pub issued: Option<Issued>,
    /// The order under way.
    pub begun: Option<Begun>,
    /// Why a certificate that is there cannot be used.
    pub fault: Option<String>,
}

impl Directory {
    /// This directory.
    pub fn new(path: impl Into<PathBuf>) -> Directory {
        Directory(path.into())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the directory, for nobody but the user of the workers.
    ///
    /// # Errors
    /// It cannot be made, or cannot be given to the user.
    pub fn make(&self, identity: Option<&Identity>) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let Some(identity) = identity else { return Ok(()) };
        path::give(&self.0, identity.uid)?;
        // Files that another user made, nginx's master for one, must stay replaceable.
        for entry in std::fs::read_dir(&self.0)?.flatten().take(ENTRIES_MAX) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".key") || name.ends_with(".crt") || name.ends_with(".order") || name == ACCOUNT_URL {
                path::give(&entry.path(), identity.uid)?;
            }
        }
        Ok(())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        whole_file::read(&self.0.join(name), FILE_BYTES_MAX)
    }

    fn text(&self, name: &str) -> Option<String> {
        String::from_utf8(self.read(name).ok()?).ok()
    }

    /// Replaces a file; nobody else may read it.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.0.join(name);
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        // The file exists with these rights before `whole_file` writes into it.
        std::fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&beside)?;
        whole_file::replace(&path, bytes)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match std::fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The account's key.
    pub fn account_key(&self) -> Option<String> {
        self.text(ACCOUNT_KEY)
    }

    /// Keeps the account's key.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_account_key(&self, key: &str) -> io::Result<()> {
        self.replace(ACCOUNT_KEY, key.as_bytes())
    }

    /// The URL of the account, if it belongs to this authority and to the key of this thumbprint.
    pub fn account(&self, uri: &str, thumbprint: &str) -> Option<String> {
        let text = self.text(ACCOUNT_URL)?;
        let mut lines = text.lines();
        let url = lines.next()?.trim().to_owned();
        (lines.next() == Some(uri) && lines.next() == Some(thumbprint) && !url.is_empty()).then_some(url)
    }

    /// Keeps the URL of the account, or forgets it.
    ///
    /// # Errors
    /// The file cannot be changed.
    pub fn keep_account(&self, url: Option<&str>, uri: &str, thumbprint: &str) -> io::Result<()> {
        match url {
            Some(url) => self.replace(ACCOUNT_URL, format!("{url}\n{uri}\n{thumbprint}\n").as_bytes()),
            None => self.remove(ACCOUNT_URL),
        }
    }

    /// The files of an order, as far as they exist.
    pub fn order(&self, order: &CertificateOrder) -> Kept {
        let id = order.id();
        let begun = self.read(&format!("{id}.order")).ok();
        let begun = begun.and_then(|bytes| serde_json::from_slice::<Begun>(&bytes).ok());
        let Ok(chain) = self.read(&format!("{id}.crt")) else { return Kept { begun, ..Kept::default() } };
        let keys = [self.text(&format!("{id}.key")), begun.as_ref().map(|begun| begun.key.clone())];
        let mut fault = Some("its key is missing".to_owned());
        for key in keys.into_iter().flatten() {
            match Issued::kept(&chain, &key) {
                Ok(issued) => {
                    // An order whose key the certificate has is complete.
                    let begun = begun.filter(|begun| begun.key != issued.key);
                    return Kept { issued: Some(issued), begun, fault: None };
                }
                Err(unfit) => fault = Some(unfit.to_string()),
            }
        }
        Kept { issued: None, begun, fault }
    }

    /// Keeps an order that has begun, or forgets it.
    ///
    /// # Errors
    /// The file cannot be changed.
    pub fn keep_order(&self, order: &CertificateOrder, begun: Option<&Begun>) -> io::Result<()> {
        let name = format!("{}.order", order.id());
        match begun {
            Some(begun) => self.replace(&name, &serde_json::to_vec(begun)?),
            None => self.remove(&name),
        }
    }

    /// Keeps a certificate, and forgets the order that it came from.
    ///
    /// # Errors
    /// A file cannot be changed.
    pub fn keep(&self, order: &CertificateOrder, issued: &Issued) -> io::Result<()> {
        let id = order.id();
        self.replace(&format!("{id}.crt"), issued.chain.as_bytes())?;
        self.replace(&format!("{id}.key"), issued.key.as_bytes())?;
        self.remove(&format!("{id}.order"))
    }
}

/// The most files of a directory that are given to the workers' user.
const ENTRIES_MAX: usize = 100_000;
