//! Where relative names in a file point to.

/// Where relative names in a file point to.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// `-p`, with a final slash: logs, pid, roots.
    pub prefix: String,
    /// The directory of the main file, with a final slash: includes, certificates, password files.
    pub conf_prefix: String,
    /// The access log of a server without an `access_log`; `None` is `logs/access.log` under the prefix.
    pub access_log: Option<String>,
    /// Where temporary directories go if no directive names them, with a final slash; `None` is the prefix.
    pub temporary: Option<String>,
}

impl Paths {
    /// A directory for temporary files: as written, or `default` in the directory for temporary files.
    pub fn temporary(&self, written: Option<&str>, default: &str) -> String {
        match written {
            Some(written) => written.to_owned(),
            None => format!("{}{default}", self.temporary.as_ref().unwrap_or(&self.prefix)),
        }
    }
}
