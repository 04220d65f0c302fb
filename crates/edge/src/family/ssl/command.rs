//! `ssl_conf_command`: the commands of OpenSSL's `SSL_CONF_cmd` that have a meaning in weir.
//!
//! <https://docs.openssl.org/3.0/man3/SSL_CONF_cmd/>. They apply after all directives, as in nginx.

use weir_conf::Statement;
use weir_http::family::certificates::source::CertificateSource;
use weir_http::read::build::Build;
use weir_http::text::refusal::Refusal;
use weir_net::tls::ciphers::{Groups, Protocols};
use weir_net::tls::commands;

use super::Settings;

/// Reads the directive; refuses an invalid command at its place.
pub(super) fn read(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let (name, value) = (statement.text(0).to_owned(), statement.text(1).to_owned());
    // Applied to empty settings: an error here is an error everywhere.
    apply(b, &mut Settings::default(), &name, &value)?;
    let todo = || Some("you may keep the line: weir has no such switch, and serves the same clients".to_owned());
    if commands::is_idle(&name, &value).is_some() {
        b.warn(format!("weir ignores the command \"{name}\""), todo());
    }
    if name.eq_ignore_ascii_case("options") {
        for option in value.split(',').filter(|word| !word.starts_with('-')) {
            let option = option.trim_start_matches('+');
            match option {
                "PrioritizeChaCha" => b.warn(
                    format!("weir ignores the option \"{option}\""),
                    Some(
                        "with ssl_prefer_server_ciphers off, which is the default, the client's order of suites counts"
                            .to_owned(),
                    ),
                ),
                "KTLS" | "KTLSTxZerocopySendfile" | "NoResumptionOnRenegotiation" | "AllowNoDHEKEX" => {
                    b.warn(format!("weir ignores the option \"{option}\""), todo());
                }
                _ => {}
            }
        }
    }
    crate::settings(b).ssl.commands.get_or_insert_default().push((name, value));
    Ok(())
}

/// Changes settings by one command.
pub(super) fn apply(b: &mut Build<'_>, settings: &mut Settings, name: &str, value: &str) -> Result<(), Refusal> {
    let failed = || Refusal::whole(format!("SSL_CONF_cmd(\"{name}\", \"{value}\") failed")).weirs_own();
    match name.to_ascii_lowercase().as_str() {
        "options" => {
            for word in value.split(',') {
                let (is_on, option) = match word.strip_prefix('-') {
                    Some(option) => (false, option),
                    None => (true, word.strip_prefix('+').unwrap_or(word)),
                };
                match option {
                    "ServerPreference" => settings.prefers_own_order = Some(is_on),
                    "SessionTicket" => settings.tickets = Some(is_on),
                    _ if commands::is_idle_option(option) => {}
                    _ => {
                        return Err(failed().todo(format!(
                            "weir does not have the option \"{option}\"; it has ServerPreference and SessionTicket"
                        )));
                    }
                }
            }
        }
        "ciphersuites" => {
            let kept = settings.ciphers.clone().unwrap_or_default();
            let kept = kept.with_suites(&commands::own_suites(value)).map_err(|_| {
                failed()
                    .todo("weir has TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256 and TLS_AES_128_GCM_SHA256")
            })?;
            settings.ciphers = Some(kept.into());
        }
        "cipherstring" => settings.ciphers = Some(super::ciphers(b, value)?.into()),
        "groups" | "curves" => {
            settings.groups = Some(Groups::of_list(value).map_err(|_| failed())?.kept.into());
        }
        "protocol" => {
            let kept = settings.protocols.unwrap_or_default();
            settings.protocols = Some(kept.changed(value).ok_or_else(failed)?);
        }
        "minprotocol" | "maxprotocol" => {
            let is_min = name.eq_ignore_ascii_case("minprotocol");
            let kept = settings.protocols.unwrap_or_default();
            settings.protocols = Some(match (value, is_min) {
                ("None" | "SSLv3" | "TLSv1" | "TLSv1.1" | "TLSv1.2", true) | ("None" | "TLSv1.3", false) => kept,
                ("TLSv1.3", true) => Protocols { tls12: false, ..kept },
                ("TLSv1.2", false) => Protocols { tls13: false, ..kept },
                _ => return Err(failed().todo("write TLSv1.2 or TLSv1.3")),
            });
        }
        "certificate" => settings.certificates = Some(vec![CertificateSource::read(b, value)?]),
        "privatekey" => settings.keys = Some(vec![CertificateSource::read(b, value)?]),
        _ if commands::is_idle(name, value) == Some(true) => {}
        _ => {
            return Err(failed().todo(
                "weir has Options, Ciphersuites, CipherString, Groups, MinProtocol, MaxProtocol, Protocol, \
                 Certificate and PrivateKey",
            ));
        }
    }
    Ok(())
}
