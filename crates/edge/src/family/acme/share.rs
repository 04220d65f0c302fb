//! `acme_share`.

use std::sync::Arc;
use std::time::Duration;

use weir_conf::Statement;
use weir_http::read::build::Build;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;

use crate::acme::AcmeShare;

/// The longest `timeout=`.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// The longest prefix of keys, in bytes.
const PREFIX_BYTES_MAX: usize = 200;

/// Reads the statement.
pub fn read(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut trusted = String::new();
    let (mut prefix, mut timeout, mut lease) =
        ("weir:acme".to_owned(), Duration::from_secs(1), Duration::from_secs(300));
    for word in statement.args.iter().skip(1).map(|word| word.text.as_str()) {
        let bad = || Refusal::whole(format!("invalid parameter \"{word}\""));
        match word.split_once('=') {
            Some(("prefix", text)) if (1..=PREFIX_BYTES_MAX).contains(&text.len()) => prefix = text.to_owned(),
            Some(("trusted_certificate", file)) if !file.is_empty() => file.clone_into(&mut trusted),
            Some(("timeout", text)) => {
                let time = value::long_time_of(text).filter(|time| !time.is_zero() && *time <= TIMEOUT_MAX);
                timeout = time.ok_or_else(|| bad().todo("write a time from 1ms to 60s"))?;
            }
            Some(("lease", text)) => {
                lease = value::long_time_of(text).filter(|time| !time.is_zero()).ok_or_else(bad)?;
            }
            _ => return Err(bad().todo("the parameters are prefix=, timeout=, lease= and trusted_certificate=")),
        }
    }
    let server = crate::redis::server(b, statement.text(0), &trusted)?;
    crate::declaring(b).acme.share = Some(Arc::new(AcmeShare { server, prefix, timeout, lease }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::of_text;

    #[test]
    fn a_statement_is_read_or_refused() {
        for (words, expected) in [
            ("redis://u:s3cret@h:1/2 prefix=p timeout=2s lease=1m", ""),
            ("redis://h prefix=", "invalid parameter \"prefix=\""),
            ("redis://h timeout=0", "invalid parameter \"timeout=0\""),
            ("redis://h lease=0", "invalid parameter \"lease=0\""),
            ("redis://h x=1", "invalid parameter \"x=1\""),
            ("http://h", "is invalid"),
        ] {
            let (_, said) = of_text(&format!("events {{}} http {{ acme_share {words}; }}"));
            let said = said.join("\n");
            assert!(
                said.contains(expected) && said.is_empty() == expected.is_empty() && !said.contains("s3cret"),
                "{words}: {said}"
            );
        }
    }
}
