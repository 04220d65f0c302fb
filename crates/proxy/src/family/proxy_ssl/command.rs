//! `proxy_ssl_conf_command`: OpenSSL's commands that have a meaning in weir.
//!
//! <https://docs.openssl.org/3.0/man3/SSL_CONF_cmd/>

use weir_http::text::refusal::Refusal;
use weir_net::tls::ciphers::{Ciphers, Protocols};
use weir_net::tls::commands;

/// The commands of a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commands {
    suites: Option<String>,
    list: Option<String>,
    least: Option<Version>,
    most: Option<Version>,
    /// `Protocol`: the versions to add and to remove, in order.
    changes: Vec<String>,
    /// `Certificate` and `PrivateKey`: used in place of the files that the directives name.
    pub pair: (Option<String>, Option<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Version {
    Older,
    Tls12,
    Tls13,
}

impl Version {
    fn of(word: &str) -> Option<Version> {
        match word {
            "None" | "SSLv3" | "TLSv1" | "TLSv1.1" => Some(Version::Older),
            "TLSv1.2" => Some(Version::Tls12),
            "TLSv1.3" => Some(Version::Tls13),
            _ => None,
        }
    }
}

impl Commands {
    /// Adds one command; as in OpenSSL, the case of its name does not matter.
    pub fn add(&mut self, name: &str, value: &str) -> Result<(), Refusal> {
        let invalid =
            || Refusal::whole(format!("SSL_CONF_cmd(\"{name}\", \"{value}\") failed (SSL: bad value)")).weirs_own();
        match name.to_ascii_lowercase().as_str() {
            "ciphersuites" => {
                let own = commands::own_suites(value);
                Ciphers::default().with_suites(&own).map_err(|_| invalid())?;
                self.suites = Some(own);
            }
            "cipherstring" => {
                Ciphers::of_list(value).map_err(|_| invalid())?;
                self.list = Some(value.to_owned());
            }
            "minprotocol" => self.least = Some(Version::of(value).ok_or_else(invalid)?),
            "maxprotocol" => match Version::of(value).ok_or_else(invalid)? {
                Version::Older if value == "None" => self.most = None,
                Version::Older => return Err(invalid().todo("TLSv1.2 or TLSv1.3")),
                version => self.most = Some(version),
            },
            "protocol" => {
                Protocols::default().changed(value).ok_or_else(invalid)?;
                self.changes.push(value.to_owned());
            }
            // Without tickets a server gives sessions another name, and the order of suites is the server's affair.
            "options"
                if value.split(',').map(|word| word.trim_start_matches(['+', '-'])).all(|option| {
                    matches!(option, "SessionTicket" | "ServerPreference") || commands::is_idle_option(option)
                }) => {}
            "certificate" => self.pair.0 = Some(value.to_owned()),
            "privatekey" => self.pair.1 = Some(value.to_owned()),
            _ if commands::is_idle(name, value) == Some(true) => {}
            _ => {
                return Err(Refusal::whole(format!(
                    "SSL_CONF_cmd(\"{name}\", \"{value}\") failed: weir has no such setting"
                ))
                .weirs_own()
                .todo("weir has Ciphersuites, CipherString, Protocol, MinProtocol, MaxProtocol, Certificate and PrivateKey"));
            }
        }
        Ok(())
    }

    /// Applies the commands to the protocols and ciphers that the directives chose.
    pub fn apply(&self, protocols: Protocols, ciphers: Ciphers) -> Result<(Protocols, Ciphers), Refusal> {
        let is_within = |version: Version| {
            self.least.is_none_or(|least| least <= version) && self.most.is_none_or(|most| version <= most)
        };
        let change =
            |kept: Protocols, list: &String| kept.changed(list).unwrap_or(Protocols { tls12: false, tls13: false });
        let protocols = self.changes.iter().fold(protocols, change);
        let protocols = Protocols {
            tls12: protocols.tls12 && is_within(Version::Tls12),
            tls13: protocols.tls13 && is_within(Version::Tls13),
        };
        if protocols.is_empty() {
            return Err(
                Refusal::whole("proxy_ssl_protocols and proxy_ssl_conf_command leave no TLS version").weirs_own()
            );
        }
        let refused = |_| Refusal::whole("SSL_CONF_cmd() failed (SSL: no cipher match)");
        let ciphers = match &self.list {
            Some(list) => super::ciphers_of(list)?,
            None => ciphers,
        };
        let ciphers = match &self.suites {
            Some(suites) => ciphers.with_suites(suites).map_err(refused)?,
            None => ciphers,
        };
        Ok((protocols, ciphers))
    }
}
