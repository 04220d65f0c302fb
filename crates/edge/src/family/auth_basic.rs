//! `auth_basic`: names and passwords from a file in htpasswd form.
//!
//! weir reads the file at each request, as nginx does, so changes apply at once.
//! <https://nginx.org/en/docs/http/ngx_http_auth_basic_module.html>, RFC 7617.

pub mod password;

use std::io::{self, Read};

use password::PasswordVerdict;
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::Location;
use weir_http::exchange::phase::{Chore, Next, Phase};
use weir_http::exchange::variable::Variable;
use weir_http::hold::own::Owned;
use weir_http::read::directive::{Contexts, Directive, HSL, LIMIT_EXCEPT, ONE};
use weir_http::read::families::{Family, VariablesRead};
use weir_http::text::base64;
use weir_http::text::template::Template;
use weir_net::log::{Level, Os};
use weir_net::opening;
use weir_wire::Known;

weir_http::settings! {
    /// `auth_basic`: the realm, or `off`.
    realm: Option<Template> = None,
    /// `auth_basic_user_file`.
    user_file: Option<Template> = None,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

const PLACES: Contexts = HSL.or(LIMIT_EXCEPT);

/// The family.
pub static FAMILY: Family = Family::new(
    "auth_basic",
    &[
        Directive::new(
            "auth_basic",
            PLACES,
            ONE,
            "Asks clients for a name and a password; off asks for none.",
            |b, s| {
                let realm = b.template(s.text(0))?;
                crate::settings(b).auth_basic.realm = Some(Some(realm));
                Ok(())
            },
        )
        .default("off"),
        Directive::new("auth_basic_user_file", PLACES, ONE, "The file with names and passwords.", |b, s| {
            let file = b.template(s.text(0))?;
            if b.reach.read_named(file.beginning(), &b.paths.conf_prefix) {
                b.opens_all("reading");
            }
            crate::settings(b).auth_basic.user_file = Some(Some(file));
            Ok(())
        }),
    ],
)
.variables(&[Variable::without_answer("remote_user", |exchange, _, out| match credentials(exchange) {
    Some((name, _)) => {
        out.extend_from_slice(&name);
        true
    }
    None => false,
})])
.phase(Phase::Access, |location| asks(&crate::values(location).auth_basic), enter)
.judge(judge);

/// Marks the places whose realm or file is made of the request's body.
fn judge(locations: &mut [Location], reading: &VariablesRead<'_>) {
    reading.read_first(locations, |location, text| {
        let settings = &crate::values(location).auth_basic;
        settings.realm.iter().chain(&settings.user_file).for_each(text);
    });
}

/// The verdict of a thread on the password of this request.
struct Checked(PasswordVerdict);

impl Owned for Checked {}

/// Whether the location asks for a name and a password.
pub fn asks(settings: &Values) -> bool {
    let is_off = settings.realm.as_ref().and_then(Template::literal) == Some(b"off");
    settings.realm.is_some() && settings.user_file.is_some() && !is_off
}

fn contents(path: &str) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    opening::open(path.as_bytes(), None)?.read_to_end(&mut contents)?;
    Ok(contents)
}

fn enter(exchange: &mut Exchange<'_>) -> Next {
    let settings = &crate::values(exchange.location).auth_basic;
    let (Some(realm), Some(file)) = (&settings.realm, &settings.user_file) else { return Next::Continue };
    let realm = realm.text(exchange);
    if realm == b"off" {
        return Next::Continue;
    }
    let Some((name, secret)) = credentials(exchange) else {
        exchange.log(Level::Info, format_args!("no user/password was provided for basic authentication"));
        return ask(exchange, &realm);
    };
    let file = String::from_utf8_lossy(&file.text(exchange)).into_owned();
    let path = if file.starts_with('/') { file } else { format!("{}{file}", exchange.conf.paths.conf_prefix) };
    let contents = match contents(&path) {
        Ok(contents) => contents,
        Err(error) => {
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            let (level, status) = if is_missing { (Level::Error, 403) } else { (Level::Crit, 500) };
            exchange.log(level, format_args!("open() \"{path}\" failed {}", Os(&error)));
            return Next::Status(status);
        }
    };
    let shown = String::from_utf8_lossy(&name).into_owned();
    let Some(stored) = stored_for(&contents, &name) else {
        exchange.log(Level::Error, format_args!("user \"{shown}\" was not found in \"{path}\""));
        return ask(exchange, &realm);
    };
    let verdict = match exchange.own.take::<Checked>() {
        Some(checked) => checked.0,
        None if password::is_slow(stored) => {
            let stored = stored.to_vec();
            return Next::Aside(Chore::new(move || Checked(password::verify(&secret, &stored))));
        }
        None => password::verify(&secret, stored),
    };
    match verdict {
        PasswordVerdict::Right => {
            exchange.flags.knows_password = true;
            Next::Allow
        }
        PasswordVerdict::Wrong => {
            exchange.log(Level::Error, format_args!("user \"{shown}\": password mismatch"));
            ask(exchange, &realm)
        }
        PasswordVerdict::Unknown => {
            exchange.log(
                Level::Crit,
                format_args!("weir does not support the hash of the password of user \"{shown}\" in \"{path}\"; htpasswd -B makes one that it supports"),
            );
            Next::Status(500)
        }
    }
}

/// Asks the client for a name and a password: as a server, or as a proxy if the client asks for a tunnel (RFC 9110
/// §11.7).
fn ask(exchange: &mut Exchange<'_>, realm: &[u8]) -> Next {
    let value = [b"Basic realm=\"", realm, b"\""].concat();
    let (name, known, status): (&[u8], _, _) = if asks_proxy(exchange) {
        (b"Proxy-Authenticate", Known::ProxyAuthenticate, 407)
    } else {
        (b"WWW-Authenticate", Known::WwwAuthenticate, 401)
    };
    exchange.response.fields.push_known(name, &value, Some(known));
    Next::Status(status)
}

fn asks_proxy(exchange: &Exchange<'_>) -> bool {
    exchange.request.method() == b"CONNECT"
}

/// The name and the password of `Authorization: Basic`, or of `Proxy-Authorization` if the client asks for a tunnel; the
/// name may not be empty.
fn credentials(exchange: &Exchange<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let field = if asks_proxy(exchange) { Known::ProxyAuthorization } else { Known::Authorization };
    decode(exchange.request.field(field)?)
}

fn decode(field: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    const SCHEME: &[u8] = b"Basic ";
    let (scheme, rest) = field.split_at_checked(SCHEME.len())?;
    let rest = rest.trim_ascii_start();
    if !scheme.eq_ignore_ascii_case(SCHEME) || rest.is_empty() {
        return None;
    }
    let plain = base64::decode(rest)?;
    let colon = plain.iter().position(|byte| *byte == b':').filter(|colon| *colon > 0)?;
    let secret = plain.get(colon + 1..)?;
    Some((plain.get(..colon)?.to_vec(), secret.to_vec()))
}

/// The part of the file that belongs to a name: up to the next colon or the end of the line.
fn stored_for<'f>(file: &'f [u8], name: &[u8]) -> Option<&'f [u8]> {
    file.split(|byte| *byte == b'\n')
        .filter(|line| !line.starts_with(b"#") && !line.starts_with(b"\r"))
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(b":"))
        .and_then(|rest| rest.split(|byte| matches!(byte, b':' | b'\r')).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_name_counts() {
        let file = b"# a:x\n\nab:1:comment\na:2\r\na:3\nlast:4";
        for (name, stored) in [("a", Some("2")), ("ab", Some("1")), ("last", Some("4")), ("b", None), ("", None)] {
            assert_eq!(stored_for(file, name.as_bytes()), stored.map(str::as_bytes), "{name}");
        }
    }

    #[test]
    fn credentials_need_a_name_and_a_colon() {
        for (field, read) in [
            ("Basic YTpi", Some(("a", "b"))),
            ("basic  YTpiOmM=", Some(("a", "b:c"))),
            ("Basic YTo=", Some(("a", ""))),
            ("Basic OmI=", None),
            ("Basic YQ==", None),
            ("Basic ", None),
            ("Bearer YTpi", None),
            ("Basic !!!", None),
        ] {
            let read = read.map(|(name, secret): (&str, &str)| (name.as_bytes().to_vec(), secret.as_bytes().to_vec()));
            assert_eq!(decode(field.as_bytes()), read, "{field}");
        }
    }

    mod mutate {
        use super::super::password::{PasswordVerdict, verify};
        use super::*;
        use weir_mutate::mutate;

        /// Only the password opens, whatever bytes a client sends for it.
        #[test]
        fn credentials() {
            let stored: [(&[u8], &[u8]); 4] = [
                (b"{PLAIN}secret", b"secret"),
                (b"{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", b"secret"),
                (b"Z1ISqXfMZe1jY", b""),
                (b"$unknown$", b""),
            ];
            let seeds: [&[u8]; 4] = [b"Basic YTpi", b"basic  YTpiOmM=", b"secret", b"Basic c2VjcmV0OnNlY3JldA=="];
            mutate(&seeds, &["Basic ", "=", "\0", "é", "secret", ":"], |bytes| {
                if let Some((name, secret)) = decode(bytes) {
                    assert!(!name.is_empty() && !name.contains(&b':') && name.len() + secret.len() < bytes.len());
                }
                for (stored, right) in stored {
                    let is_right = verify(bytes, stored) == PasswordVerdict::Right;
                    let written = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
                    assert!(!is_right || right.is_empty() || written == right);
                }
                // A name that ends a line or holds a colon never finds another name's entry.
                if let Some(found) = stored_for(b"a:one\nb:two\n", bytes) {
                    assert!((bytes == b"a" && found == b"one") || (bytes == b"b" && found == b"two"));
                }
            });
        }
    }
}
