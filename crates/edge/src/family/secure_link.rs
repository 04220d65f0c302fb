//! `secure_link`: checks links that are signed with a secret and may expire.
//!
//! <https://nginx.org/en/docs/http/ngx_http_secure_link_module.html>. The hash is MD5, because links that exist already
//! have it; the comparison takes the same time for every wrong hash.

use md5::{Digest, Md5};
use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::conf::Location;
use weir_http::exchange::variable::Variable;
use weir_http::hold::own::Owned;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Directive, HSL, HTTP, ONE};
use weir_http::read::families::{Family, VariablesRead};
use weir_http::text::base64;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::{Argument, Template};
use weir_net::clock;

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family's settings of one block, as written. Hand-written, because a block with `secure_link_secret` inherits
/// neither `secure_link` nor `secure_link_md5`, and the other way round.
#[derive(Clone, Default)]
pub struct Settings {
    /// `secure_link`.
    link: Option<Template>,
    /// `secure_link_md5`.
    text: Option<Template>,
    /// `secure_link_secret`.
    secret: Option<Vec<u8>>,
}

/// The family's settings in force in one place.
pub type Values = Settings;

impl Settings {
    /// Takes over from the enclosing block.
    pub fn inherit(&mut self, outer: &Settings) {
        if self.secret.is_some() {
            return;
        }
        self.link = self.link.take().or_else(|| outer.link.clone());
        self.text = self.text.take().or_else(|| outer.text.clone());
        if self.link.is_none() && self.text.is_none() {
            self.secret.clone_from(&outer.secret);
        }
    }

    /// The values in force.
    pub fn values(self) -> Values {
        self
    }
}

/// The family.
pub static FAMILY: Family = Family::new(
    "secure_link",
    &[
        Directive::new(
            "secure_link",
            HSL,
            ONE,
            "The hash in a link, in base64 for URLs, and after a comma the Unix time when the link expires.",
            secure_link,
        ),
        Directive::new("secure_link_md5", HSL, ONE, "The text whose MD5 is the hash in a link.", secure_link_md5),
        Directive::new(
            "secure_link_secret",
            HSL,
            ONE,
            "The secret word of links of the form /PREFIX/HASH/LINK, where HASH is the MD5 of LINK and the word.",
            |b, s| {
                crate::settings(b).secure_link.secret = Some(s.text(0).as_bytes().to_vec());
                Ok(())
            },
        ),
    ],
)
.variables(&[
    Variable::without_answer("secure_link", verdict),
    Variable::without_answer("secure_link_expires", |exchange, _, out| {
        let found = exchange.own.get::<Expires>().map(|expires| out.extend_from_slice(&expires.0));
        found.is_some()
    }),
])
.finish(finish)
.judge(judge);

/// Marks the places whose link or text is made of the request's body.
fn judge(locations: &mut [Location], reading: &VariablesRead<'_>) {
    reading.read_first(locations, |location, text| {
        let settings = &crate::values(location).secure_link;
        settings.link.iter().chain(&settings.text).for_each(text);
    });
}

fn secure_link(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let template = b.template(statement.text(0))?;
    b.names.give("secure_link");
    b.names.give("secure_link_expires");
    crate::settings(b).secure_link.link = Some(template);
    Ok(())
}

fn secure_link_md5(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let template = b.template(statement.text(0))?;
    b.names.give("secure_link");
    crate::settings(b).secure_link.text = Some(template);
    Ok(())
}

/// Refuses a block that writes both kinds. nginx does not check the level of `http`, whose secret then is in force nowhere.
fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let settings = &crate::written(scope).secure_link;
    let is_mixed = settings.secret.is_some() && (settings.link.is_some() || settings.text.is_some());
    if is_mixed && scope.context == HTTP {
        crate::written_mut(scope).secure_link.secret = None;
    } else if is_mixed {
        let words = "\"secure_link_secret\" cannot be mixed with \"secure_link\" and \"secure_link_md5\"";
        b.refuse_in(scope, "secure_link_secret", Refusal::whole(words).about("secure_link_secret", 0));
    }
}

/// The time in the link that `$secure_link` read last, as written.
struct Expires(Vec<u8>);

impl Owned for Expires {}

/// The longest hash in a link, in bytes: 16 bytes in base64, padding included.
const HASH_TEXT_MAX: usize = 24;

/// `$secure_link`: `1` for a good link, `0` for one that has expired, else not found. With `secure_link_secret`, the
/// link itself.
fn verdict(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    let settings = &crate::values(exchange.location).secure_link;
    if let Some(secret) = &settings.secret {
        let target = exchange.request.text(exchange.request.head.path);
        return signed_path(target, secret).map(|link| out.extend_from_slice(link)).is_some();
    }
    let (Some(link), Some(text)) = (&settings.link, &settings.text) else { return false };
    let link = link.text(exchange);
    let (hash, expires) = match link.iter().position(|byte| *byte == b',') {
        Some(comma) => (link.get(..comma).unwrap_or_default(), link.get(comma + 1..)),
        None => (link.as_slice(), None),
    };
    let mut ends = None;
    if let Some(written) = expires {
        let Some(seconds) = seconds(written) else { return false };
        exchange.own.set(Expires(written.to_vec()));
        ends = Some(seconds);
    }
    if hash.len() > HASH_TEXT_MAX {
        return false;
    }
    let Some(hash) = base64::decode_url(hash) else { return false };
    let digest = Md5::digest(text.text(exchange));
    if !is_same(&hash, &digest) {
        return false;
    }
    out.push(if ends.is_some_and(|ends| ends < clock::unix_seconds()) { b'0' } else { b'1' });
    true
}

/// A Unix time above 0.
fn seconds(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    weir_http::text::value::number(text).filter(|seconds| (1..=i64::MAX as u64).contains(seconds))
}

/// The link in `/PREFIX/HASH/LINK`, if HASH is the MD5 of the link and the secret in hexadecimal digits.
fn signed_path<'t>(target: &'t [u8], secret: &[u8]) -> Option<&'t [u8]> {
    let rest = target.get(1..)?;
    let hash_at = memchr::memchr(b'/', rest)? + 1;
    let rest = rest.get(hash_at..)?;
    let (hash, link) = rest.split_at_checked(memchr::memchr(b'/', rest)?)?;
    let link = link.get(1..).filter(|link| !link.is_empty())?;
    let hash = from_hex(hash)?;
    let digest = Md5::new().chain_update(link).chain_update(secret).finalize();
    is_same(&hash, &digest).then_some(link)
}

fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some((digit(*high)? << 4 | digit(*low)?) as u8),
        _ => None,
    };
    text.chunks(2).map(byte).collect()
}

/// Compares without stopping at the first difference, so that its duration tells nothing about the right hash.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_signed_with_its_secret() {
        // printf 'top_secret_file.html''tommy' | md5sum
        for (target, link) in [
            ("/p/2c4ddd8b6f5b1c4d2b6c9f50e54b8f2b/top_secret_file.html", None),
            ("/p/top_secret_file.html", None),
            ("/p//link", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(signed_path(target.as_bytes(), b"tommy"), link, "{target}");
        }
        let hash: String = Md5::digest(b"top_secret_file.htmltommy").iter().map(|byte| format!("{byte:02X}")).collect();
        let target = format!("/any/{hash}/top_secret_file.html");
        assert_eq!(signed_path(target.as_bytes(), b"tommy"), Some(&b"top_secret_file.html"[..]));
        assert_eq!(signed_path(target.as_bytes(), b"other"), None);
    }

    #[test]
    fn the_two_kinds_of_links_do_not_mix() {
        let mixed = "\"secure_link_secret\" cannot be mixed with \"secure_link\" and \"secure_link_md5\"";
        for (server, location, problem) in [
            ("secure_link_secret s;", "secure_link $arg_a;", None),
            ("secure_link $arg_a;", "secure_link_secret s;", None),
            ("", "secure_link $arg_a; secure_link_secret s;", Some(mixed)),
            ("secure_link_secret s; secure_link_md5 $uri;", "", Some(mixed)),
            ("} secure_link_secret s; secure_link_md5 $uri; server { server_name b;", "", None),
        ] {
            let text = format!("events {{}} http {{ server {{ {server} location / {{ {location} }} }} }}");
            let (_, problems) = crate::of_text(&text);
            assert_eq!(problems.first().map(String::as_str), problem, "{text}");
        }
    }

    mod mutate {
        use super::*;
        /// Only a signed link passes, and the number of a time is one.
        #[test]
        fn links() {
            let seeds = ["/p/3e4f1ab2c96ad15a2ef29ed21bd25ac7/link", "/p/00/x", "1700000000"];
            weir_mutate::mutate(&seeds, &["/", "0", "f", "é", "\0", "99999999999999999999"], |bytes| {
                if let Some(link) = signed_path(bytes, b"secret") {
                    let digest = Md5::new().chain_update(link).chain_update(b"secret").finalize();
                    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                    assert!(String::from_utf8_lossy(bytes).to_ascii_lowercase().contains(&hex));
                }
                assert!(from_hex(bytes).is_none_or(|plain| plain.len() * 2 == bytes.len()));
                assert!(seconds(bytes).is_none_or(|seconds| seconds > 0));
            });
        }
    }
}
