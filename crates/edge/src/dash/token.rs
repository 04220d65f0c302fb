//! The secret that opens a dashboard, and the cookie a browser has for it.

use std::fmt::Write;
use std::io::Read;

use sha2::{Digest, Sha256};
use weir_http::exchange::Exchange;
use weir_http::text::texts;
use weir_net::{answers, log};
use weir_wire::Known;

/// Where a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// In the first line of a file.
    File(String),
    /// In a variable of the environment.
    Variable(String),
}

impl TokenSource {
    /// The secret for this directive, and words for where it is.
    ///
    /// # Errors
    /// The file or variable does not exist.
    pub fn text(&self, directive: &str) -> Result<(String, String), String> {
        match self {
            TokenSource::File(path) => Ok((first_line(path)?, format!("the first line of \"{path}\""))),
            TokenSource::Variable(name) => {
                let text = std::env::var(name).map_err(|_| {
                    format!(
                        "the environment has no variable \"{name}\" for \"{directive}\": set it before you start weir"
                    )
                })?;
                Ok((text.trim().to_owned(), format!("the variable \"{name}\"")))
            }
        }
    }
}

/// Bytes of a token, at least: it stands between the internet and a purge.
pub const BYTES_MIN: usize = 16;
/// At most.
pub const BYTES_MAX: usize = 1024;

/// The cookie's name.
const COOKIE: &[u8] = b"weir_dashboard";

/// A token as it was read. weir compares digests, so that the time of a comparison reveals nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    digest: [u8; 32],
    /// The value that the browser sends back: another digest, so that a cookie does not hold the token.
    cookie: String,
}

impl Token {
    /// Reads it.
    ///
    /// # Errors
    /// The file or variable does not exist, or its value is too short or too long.
    pub fn read(source: &TokenSource) -> Result<Token, String> {
        let (text, name) = source.text("dashboard_token")?;
        match text.len() {
            BYTES_MIN..=BYTES_MAX => Ok(Token::new(&text)),
            length => Err(format!(
                "{name} has {length} bytes, but a \"dashboard_token\" needs {BYTES_MIN} to {BYTES_MAX}: make one with \
                 openssl rand -hex 16"
            )),
        }
    }

    fn new(text: &str) -> Token {
        let mut cookie = String::with_capacity(64);
        for byte in digest(b"cookie", text.as_bytes()) {
            // Writing to a String cannot fail.
            let _ = write!(cookie, "{byte:02x}");
        }
        Token { digest: digest(b"token", text.as_bytes()), cookie }
    }

    /// Whether this is the token.
    pub fn is(&self, text: &[u8]) -> bool {
        same(&self.digest, &digest(b"token", text))
    }

    /// Whether the request carries it, as a cookie or as `Authorization: Bearer`.
    pub fn is_brought(&self, exchange: &Exchange<'_>) -> bool {
        let bearer = exchange.request.field(Known::Authorization);
        if let Some(token) = bearer.and_then(|value| value.strip_prefix(b"Bearer ")) {
            return self.is(token.trim_ascii());
        }
        let request = &exchange.request;
        let lines = request.fields().iter().filter(|field| request.text(field.name).eq_ignore_ascii_case(b"cookie"));
        let cookies = lines.filter_map(|field| texts::cookie(request.text(field.value), COOKIE));
        let wanted = digest(b"", self.cookie.as_bytes());
        cookies.fold(false, |is, cookie| is | same(&wanted, &digest(b"", cookie)))
    }

    /// The field that sets the browser's cookie, for this path only.
    pub fn cookie(&self, path: &str, is_secure: bool) -> String {
        let secure = if is_secure { "; Secure" } else { "" };
        format!("weir_dashboard={}; Path={path}; HttpOnly; SameSite=Strict{secure}", self.cookie)
    }
}

fn first_line(path: &str) -> Result<String, String> {
    let read = answers::ask(answers::QuestionKind::File, path, || {
        let mut text = Vec::new();
        std::fs::File::open(path)?.take(2 * BYTES_MAX as u64).read_to_end(&mut text)?;
        Ok(text)
    });
    let text = read.map_err(|error| format!("open() \"{path}\" failed {}", log::Os(&error)))?;
    Ok(String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned())
}

fn digest(what: &[u8], text: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"weir dashboard ");
    hash.update(what);
    hash.update(text);
    hash.finalize().into()
}

/// Whether two digests are equal, in a time that does not depend on where they differ.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    std::hint::black_box(a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b))) == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_token_is_the_first_line_of_its_file() {
        let directory = std::env::temp_dir().join(format!("weir-token-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("token").display().to_string();
        let source = TokenSource::File(path.clone());
        std::fs::write(&path, "0123456789abcdef\nnothing of it\n").unwrap();
        let token = Token::read(&source).map_err(|_| ()).unwrap();
        assert!(token.is(b"0123456789abcdef"));
        for wrong in [&b""[..], b"0123456789abcdeF", b"0123456789abcdef\n", token.cookie.as_bytes()] {
            assert!(!token.is(wrong));
        }
        let cookie = token.cookie("/weir/", true);
        assert!(cookie.ends_with("; Path=/weir/; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
        assert!(!cookie.contains("0123456789abcdef"));
        std::fs::write(&path, "short\n").unwrap();
        let said = Token::read(&source).err().unwrap();
        assert!(said.contains("has 5 bytes") && said.contains("openssl rand"), "{said}");
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(Token::read(&source).err().unwrap().contains("No such file"));
        let said = Token::read(&TokenSource::Variable("WEIR_NO_SUCH_TOKEN".into())).err().unwrap();
        assert!(said.contains("WEIR_NO_SUCH_TOKEN"), "{said}");
    }
}
