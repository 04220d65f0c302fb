//! The inside of an `acme_issuer` block.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use weir_acme::{AccountKey, ChallengeType, External, Issuer, KeyKind, Profile};
use weir_conf::Statement;
use weir_http::family::certificates;
use weir_http::read::build::Build;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::tls::Client;

use super::authority::Authority;
use super::dns;
use crate::acme::publish::Update;
use crate::acme::state::Directory;
use crate::acme::{AccountKeySource, KeptWork, Publisher};
use crate::trust;

/// The longest `dns_delay`.
const DELAY_MAX: Duration = Duration::from_secs(3600);

/// The most contacts of an account.
const CONTACTS_MAX: usize = 64;

/// base64url, with or without padding.
const BASE64URL: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The statements and how many arguments they take.
const LINES: &[(&str, RangeInclusive<usize>)] = &[
    ("uri", 1..=1),
    ("account_key", 1..=1),
    ("challenge", 1..=1),
    ("common_name_in_csr", 1..=1),
    ("contact", 1..=1),
    ("external_account_key", 2..=2),
    ("preferred_chain", 1..=1),
    ("profile", 1..=2),
    ("ssl_trusted_certificate", 1..=1),
    ("ssl_verify", 1..=1),
    ("state_path", 1..=1),
    ("accept_terms_of_service", 0..=0),
    // weir's own.
    ("dns_update", 1..=6),
    ("dns_hook", 1..=1),
    ("dns_delay", 1..=1),
];

/// The block while it is read.
#[derive(Default)]
struct Draft {
    issuer: Issuer,
    /// `None` until `account_key`; a file's name, or a kind.
    key: Option<Result<KeyKind, String>>,
    trusted: String,
    verifies: Option<bool>,
    /// `None` inside for `off`.
    state: Option<Option<String>>,
    update: Option<Arc<Update>>,
    hook: Option<String>,
    delay: Duration,
    seen: Vec<&'static str>,
    is_broken: bool,
}

/// Reads an `acme_issuer`.
pub fn issuer(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let name = statement.text(0).to_owned();
    if crate::declaring(b).acme.authorities.iter().any(|known| known.issuer.name == name) {
        return Err(Refusal::directive("is duplicate"));
    }
    let mut draft = Draft { issuer: Issuer { name, ..Issuer::default() }, ..Draft::default() };
    for line in statement.children() {
        b.stand(line.at);
        if let Err(refusal) = draft.line(b, line) {
            draft.is_broken = true;
            b.refuse_at("acme_issuer", refusal, line.at);
        }
    }
    b.stand(statement.at);
    let authority = draft.authority(b)?;
    crate::declaring(b).acme.authorities.push(authority);
    Ok(())
}

impl Draft {
    fn line(&mut self, b: &mut Build<'_>, line: &Statement) -> Result<(), Refusal> {
        let Some((name, count)) = LINES.iter().find(|(name, _)| *name == line.name.text) else {
            let written = &line.name.text;
            let meant = weir_conf::did_you_mean(written, LINES.iter().map(|(name, _)| *name));
            let refusal = Refusal::whole(format!("unknown directive \"{written}\""));
            return Err(match meant {
                Some(meant) => refusal.todo(format!("did you mean \"{meant}\"?")),
                None => refusal,
            });
        };
        if line.block.is_some() {
            return Err(Refusal::whole(format!("directive \"{name}\" is not terminated by \";\"")));
        }
        if !count.contains(&line.args.len()) {
            return Err(Refusal::whole(format!("invalid number of arguments in \"{name}\"")));
        }
        // As in nginx's module, a later `uri` replaces an earlier one.
        if self.seen.contains(name) && !matches!(*name, "contact" | "uri") {
            return Err(about(name, "is duplicate"));
        }
        self.seen.push(name);
        self.value(b, line, name)
    }

    fn value(&mut self, b: &mut Build<'_>, line: &Statement, name: &'static str) -> Result<(), Refusal> {
        let text = line.text(0);
        match name {
            "uri" => {
                let url = url::Url::parse(text).ok();
                let url = url.filter(|url| matches!(url.scheme(), "https" | "http") && url.host().is_some());
                let url =
                    url.ok_or_else(|| about(name, "invalid value").todo("write the URL of the authority's directory"))?;
                self.issuer.uri = url.into();
            }
            "account_key" => {
                self.key = Some(match KeyKind::read(text) {
                    Some(Ok(kind)) => Ok(kind),
                    Some(Err(why)) => return Err(Refusal::whole(format!("account_key: {why}"))),
                    None => Err(text.to_owned()),
                });
            }
            "challenge" => {
                let read = ChallengeType::read(text);
                self.issuer.challenge = read.ok_or_else(|| Refusal::whole(format!("unsupported challenge: {text}")))?;
            }
            "common_name_in_csr" => self.issuer.names_subject = value::flag(line)?,
            "contact" => {
                if text.is_empty() || self.issuer.contacts.len() >= CONTACTS_MAX {
                    return Err(about(name, "invalid value"));
                }
                let is_url = has_scheme(text);
                self.issuer.contacts.push(if is_url { text.to_owned() } else { format!("mailto:{text}") });
            }
            "external_account_key" => self.issuer.external = Some(external(b, text, line.text(1))?),
            "preferred_chain" => self.issuer.chain = Some(text.to_owned()),
            "profile" => {
                let is_required = match line.args.get(1).map(|word| word.text.as_str()) {
                    None => false,
                    Some("require") => true,
                    Some(_) => return Err(about(name, "invalid value")),
                };
                self.issuer.profile = Some(Profile { name: text.to_owned(), is_required });
            }
            "ssl_trusted_certificate" => self.trusted = text.to_owned(),
            "ssl_verify" => self.verifies = Some(value::flag(line)?),
            "dns_update" => self.update = Some(Arc::new(dns::update(b, line)?)),
            "dns_hook" => self.hook = Some(certificates::full_name(b, text)),
            "dns_delay" => {
                self.delay =
                    value::long_time_of(line.text(0)).ok_or_else(|| Refusal::directive("invalid value"))?.min(DELAY_MAX)
            }
            "state_path" => self.state = Some((text != "off").then(|| b.path(text))),
            _ => self.issuer.accepts_terms = true,
        }
        Ok(())
    }

    /// The authority, once its block is read.
    fn authority(self, b: &mut Build<'_>) -> Result<Authority, Refusal> {
        if self.issuer.uri.is_empty() && !self.is_broken {
            return Err(Refusal::whole("acme_issuer: \"uri\" is missing"));
        }
        let key = match self.key {
            None => AccountKeySource::Own(KeyKind::default()),
            Some(Ok(kind)) => AccountKeySource::Own(kind),
            Some(Err(file)) => {
                let cannot = |why: &str| Refusal::whole(format!("acme_issuer: cannot load account key: {why}"));
                let read = certificates::read(b, &file);
                let text = read.map_err(|(path, error)| cannot(&format!("BIO_new_file(\"{path}\") failed {error}")))?;
                AccountKey::read(&text).map_err(|why| cannot(&why))?;
                AccountKeySource::File(text)
            }
        };
        let publisher = match (self.hook, self.update) {
            (Some(_), Some(_)) => {
                return Err(Refusal::whole("acme_issuer: \"dns_hook\" and \"dns_update\" exclude each other"));
            }
            (Some(hook), None) => Publisher::Hook(hook.into()),
            (None, Some(update)) => Publisher::Update(update),
            // `check` decides whether there is a responder.
            (None, None) => Publisher::Nobody,
        };
        let verifies = self.verifies.unwrap_or(true);
        let trusted = if verifies { Some(trust::authorities(b, &self.trusted)?) } else { None };
        let state = self.state.unwrap_or_else(|| Some(b.path(&format!("acme_{}", self.issuer.name))));
        if let Some(directory) = &state {
            b.reach.write(directory);
        }
        Ok(Authority {
            key,
            directory: state.map(Directory::new),
            verifies,
            tls: Client::for_servers(trusted, trust::HTTP),
            publisher,
            delay: self.delay,
            at: b.at(),
            orders: Vec::new(),
            memory: Arc::new(Mutex::new(KeptWork::default())),
            issuer: self.issuer,
        })
    }
}

/// A refusal in the form of the module: it quotes the reason.
fn about(name: &str, why: &str) -> Refusal {
    Refusal::whole(format!("\"{name}\" directive \"{why}\""))
}

/// RFC 3986 §3.1.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

fn external(b: &mut Build<'_>, key_id: &str, source: &str) -> Result<External, Refusal> {
    const NAME: &str = "external_account_key";
    if key_id.is_empty() || source.is_empty() {
        return Err(about(NAME, "invalid value"));
    }
    let text = match source.strip_prefix("data:") {
        Some(text) => text.as_bytes().to_vec(),
        None => {
            let read = certificates::read(b, source);
            let failed = |(path, error)| Refusal::whole(format!("{NAME}: open() \"{path}\" failed {error}"));
            read.map_err(failed)?.to_vec()
        }
    };
    let key = BASE64URL.decode(text.trim_ascii());
    let key = key.map_err(|_| about(NAME, "invalid base64url encoded value"))?;
    Ok(External { key_id: key_id.to_owned(), key })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::of_text;

    fn read(block: &str) -> (Option<Issuer>, String) {
        let text = format!("events {{}} http {{ resolver 127.0.0.1; acme_issuer one {{ {block} ssl_verify off; }} }}");
        let (conf, said) = of_text(&text);
        (conf.map(|conf| crate::declared(&conf).acme.authorities[0].issuer.clone()), said.join("\n"))
    }

    #[test]
    fn a_block_is_read() {
        let (issuer, said) = read(
            "uri https://ca.test:14000/dir; challenge tls-alpn; common_name_in_csr on; contact admin@a.test; contact \
             tel:+49; external_account_key id data:AAECAw; preferred_chain \"Root X\"; profile short require; \
             accept_terms_of_service; account_key rsa; state_path off;",
        );
        assert_eq!(said, "");
        let issuer = issuer.unwrap();
        assert_eq!((issuer.uri.as_str(), issuer.challenge), ("https://ca.test:14000/dir", ChallengeType::TlsAlpn01));
        assert_eq!(issuer.contacts, ["mailto:admin@a.test", "tel:+49"]);
        assert_eq!(issuer.external.unwrap().key, [0, 1, 2, 3]);
        assert_eq!(issuer.profile, Some(Profile { name: "short".to_owned(), is_required: true }));
        assert!(issuer.names_subject && issuer.accepts_terms && issuer.chain.as_deref() == Some("Root X"));
    }

    #[test]
    fn a_block_is_refused_in_the_words_of_the_module() {
        const URI: &str = "uri https://ca.test/dir;";
        for (block, expected) in [
            ("", "acme_issuer: \"uri\" is missing"),
            ("uri ca.test;", "\"uri\" directive \"invalid value\""),
            ("challenge x;", "unsupported challenge: x"),
            ("challenge http; challenge http;", "\"challenge\" directive \"is duplicate\""),
            ("account_key ecdsa:1;", "account_key: unsupported curve"),
            ("account_key rsa:1;", "account_key: unsupported key size"),
            (
                "account_key no-such-file.key;",
                "acme_issuer: cannot load account key: BIO_new_file(\"/p/no-such-file.key\") failed",
            ),
            (
                "external_account_key a data:*;",
                "\"external_account_key\" directive \"invalid base64url encoded value\"",
            ),
            ("external_account_key a no-such-file;", "external_account_key: open() \"/p/no-such-file\" failed"),
            ("profile a b;", "\"profile\" directive \"invalid value\""),
            ("contact a b;", "invalid number of arguments in \"contact\""),
            ("contact \"\";", "\"contact\" directive \"invalid value\""),
            ("common_name_in_csr maybe;", "it must be \"on\" or \"off\""),
            ("contacts a;", "unknown directive \"contacts\""),
        ] {
            let uri = if block.is_empty() || block.starts_with("uri") { "" } else { URI };
            let (_, said) = read(&format!("{uri} {block}"));
            assert!(said.contains(expected) && said.lines().count() == 1, "{block}: {said}");
        }
        let text =
            "events {} http { resolver 127.0.0.1; acme_issuer a { uri http://a; ssl_verify off; } acme_issuer a { } }";
        assert!(of_text(text).1.join("\n").contains("\"acme_issuer\" directive is duplicate"));
    }
}
