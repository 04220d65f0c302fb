//! The nginx version that a configuration is for.

use std::fmt;

/// `1.22.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u16, pub u16, pub u16);

/// The newest version with directives and defaults that this crate knows. It is assumed if no version is given.
pub const NEWEST: Version = Version(1, 31, 5);

impl Version {
    /// Parses `1.22.1`. A missing third number is 0.
    pub fn read(text: &str) -> Option<Version> {
        let mut parts = text.trim().split('.').map(|part| {
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part.get(..digits)?.parse::<u16>().ok()
        });
        let (major, minor) = (parts.next()??, parts.next()??);
        Some(Version(major, minor, parts.next().flatten().unwrap_or(0)))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// The output of `nginx -V`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// Its version.
    pub version: Version,
    /// Whether the version line names weir.
    pub is_weir: bool,
    /// The `configure` arguments, `--with-http_ssl_module` and so on.
    pub arguments: Vec<String>,
}

impl Build {
    /// Parses the output of `nginx -V`. `None` if it is another text.
    pub fn read(text: &str) -> Option<Build> {
        let version = text.lines().find_map(|line| line.strip_prefix("nginx version: "))?;
        let is_weir = version.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "weir");
        let number = version.split_once("nginx/").or_else(|| version.split_once('/'));
        let version = Version::read(number.map_or(version, |(_, number)| number))?;
        let arguments = text.lines().find_map(|line| line.strip_prefix("configure arguments:")).unwrap_or_default();
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        Some(Build { version, is_weir, arguments })
    }

    /// The binary's default path of its configuration.
    pub fn conf_path(&self) -> Option<&str> {
        self.argument("--conf-path=")
    }

    /// The error log if the configuration names none.
    pub fn error_log_path(&self) -> Option<&str> {
        self.argument("--error-log-path=")
    }

    /// The directory that relative paths begin at.
    pub fn prefix(&self) -> Option<&str> {
        self.argument("--prefix=")
    }

    fn argument(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find_map(|argument| argument.strip_prefix(name))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn versions_and_builds_are_read() {
        assert_eq!(Version::read("1.22.1"), Some(Version(1, 22, 1)));
        assert_eq!(Version::read("1.29"), Some(Version(1, 29, 0)));
        assert_eq!(Version::read("1.31.5-weir"), Some(Version(1, 31, 5)));
        assert_eq!(Version::read("nginx"), None);
        assert!(Version(1, 9, 15) < Version(1, 10, 0));
        let text = "nginx version: nginx/1.22.1\nbuilt with OpenSSL 3.0.8\nconfigure arguments: --conf-path=/etc/nginx/nginx.conf --with-threads\n";
        let build = Build::read(text).unwrap();
        assert_eq!((build.version, build.conf_path()), (Version(1, 22, 1), Some("/etc/nginx/nginx.conf")));
        assert_eq!(Build::read("hello"), None);
    }
}
