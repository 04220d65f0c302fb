//! `dashboard_alert`: who gets the changes of the verdict, and when.

use std::sync::Arc;
use std::time::Duration;

use url::Url;
use weir_conf::Statement;
use weir_dash::verdict::State;
use weir_http::family::certificates;
use weir_http::read::build::Build;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::log;
use weir_net::tls::Client;
use weir_words::Language;

use crate::dash::alert::RECEIVERS_MAX;
use crate::dash::alert::receiver::{Form, PATIENCE, Receiver};
use crate::dash::token::TokenSource;
use crate::trust;

/// How long a verdict has to hold unless `after=` says so.
const AFTER: Duration = Duration::from_secs(30);
/// How often Alertmanager is told again unless `interval=` says so: it forgets what it does not hear of.
const ALERTMANAGER_INTERVAL: Duration = Duration::from_secs(60);
/// The shortest `interval=`.
const INTERVAL_MIN: Duration = Duration::from_secs(60);
/// The longest `after=` and `interval=`.
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);
/// The longest name of an edge.
const NAME_BYTES_MAX: usize = 100;

/// The states that `from=` names.
const STATES: [(&str, State); 3] = [("near", State::Near), ("limited", State::Limited), ("failing", State::Failing)];
const LANGUAGES: [(&str, Language); 2] = [("en", Language::English), ("ko", Language::Korean)];

/// A receiver as the directive names it.
pub struct WantedAlert {
    place: Place,
    receiver: Receiver,
}

/// Where the URL is.
#[derive(PartialEq, Eq)]
enum Place {
    Here(Url),
    Secret(TokenSource),
}

/// The directive.
pub fn alert(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let place = place(b, statement.text(0))?;
    let mut receiver = Receiver {
        // Of no meaning until the place is read.
        url: Url::parse("http://localhost/").map_err(|error| Refusal::whole(error.to_string()))?,
        form: Form::Json,
        after: AFTER,
        interval: None,
        from: State::Near,
        name: log::hostname().to_owned(),
        language: Language::of_environment(|name| std::env::var(name).ok()),
        trusted: Vec::new(),
        tls: Err("the URL is not https".to_owned()),
        patience: PATIENCE,
    };
    let mut trusted = String::new();
    for word in statement.args.iter().skip(1) {
        match word.text.strip_prefix("trusted_certificate=").filter(|file| !file.is_empty()) {
            Some(file) => file.clone_into(&mut trusted),
            None => parameter(&mut receiver, &word.text)?,
        }
    }
    if receiver.form == Form::Alertmanager {
        receiver.interval.get_or_insert(ALERTMANAGER_INTERVAL);
    }
    // The scheme of a secret URL is known when it is read.
    let may_be_tls = !matches!(&place, Place::Here(url) if url.scheme() == "http");
    if may_be_tls {
        receiver.tls = Client::for_servers(Some(trust::authorities(b, &trusted)?), trust::HTTP);
        if !trusted.is_empty() {
            receiver.trusted = certificates::read(b, &trusted).map(|text| text.to_vec()).unwrap_or_default();
        }
    }
    let alerts = &mut crate::declaring(b).dashboard.alerts;
    if alerts.iter().any(|known| known.place == place) {
        return Err(Refusal::directive("is duplicate"));
    }
    if alerts.len() >= RECEIVERS_MAX {
        return Err(Refusal::directive(format!("is set more than {RECEIVERS_MAX} times"))
            .todo("let one receiver pass the alerts on"));
    }
    alerts.push(WantedAlert { place, receiver });
    Ok(())
}

fn place(b: &Build<'_>, text: &str) -> Result<Place, Refusal> {
    match (text, text.strip_prefix("env:")) {
        ("" | "env:", _) => {
            Err(Refusal::directive("is empty").todo("write a URL, env:VARIABLE, or a file whose first line is the URL"))
        }
        (_, Some(name)) => Ok(Place::Secret(TokenSource::Variable(name.to_owned()))),
        (text, None) if text.contains("://") => Ok(Place::Here(url(text).map_err(|why| {
            Refusal::whole(format!("invalid URL in \"dashboard_alert\" directive: {why}"))
                .todo("write http://HOST[:PORT]/PATH or https://HOST/PATH")
        })?)),
        (path, None) => Ok(Place::Secret(TokenSource::File(b.path(path)))),
    }
}

/// A URL; the error does not repeat it.
fn url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" | "https" if url.host_str().is_some_and(|host| !host.is_empty()) => Ok(url),
        "http" | "https" => Err("it has no host".to_owned()),
        _ => Err("it begins with neither http:// nor https://".to_owned()),
    }
}

fn parameter(receiver: &mut Receiver, word: &str) -> Result<(), Refusal> {
    let invalid = |todo: String| Refusal::whole(format!("invalid parameter \"{word}\"")).todo(todo);
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let time = |least: Duration| {
        let time = value::time_of(value).filter(|time| (least..=TIME_MAX).contains(time));
        time.ok_or_else(|| invalid(format!("write a time from {} s to 24 h, such as {name}=60s", least.as_secs())))
    };
    match name {
        "format" => receiver.form = one_of(&Form::ALL, value).map_err(invalid)?,
        "after" => receiver.after = time(Duration::ZERO)?,
        "interval" => receiver.interval = Some(time(INTERVAL_MIN)?),
        "from" => receiver.from = one_of(&STATES, value).map_err(invalid)?,
        "lang" => receiver.language = one_of(&LANGUAGES, value).map_err(invalid)?,
        "name" if !value.is_empty() && value.len() <= NAME_BYTES_MAX => value.clone_into(&mut receiver.name),
        "name" => return Err(invalid(format!("write a name of 1 to {NAME_BYTES_MAX} bytes"))),
        _ => {
            return Err(invalid(
                "write format=, after=, interval=, from=, lang=, name= or trusted_certificate=".to_owned(),
            ));
        }
    }
    Ok(())
}

/// The value with this name; the error lists all names.
fn one_of<T: Copy>(all: &[(&str, T)], name: &str) -> Result<T, String> {
    let found = all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| format!("write one of {}", all.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ")))
}

/// The receivers, with the URLs that are in files or in the environment.
///
/// # Errors
/// A URL cannot be read, or it is none; the error does not repeat it.
pub fn read(wanted: &[WantedAlert]) -> Result<Vec<Arc<Receiver>>, String> {
    let one = |wanted: &WantedAlert| {
        let url = match &wanted.place {
            Place::Here(url) => url.clone(),
            Place::Secret(source) => {
                let (text, name) = source.text("dashboard_alert")?;
                url(&text).map_err(|why| format!("{name} is no URL for \"dashboard_alert\": {why}"))?
            }
        };
        Ok(Arc::new(Receiver { url, ..wanted.receiver.clone() }))
    };
    wanted.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::of_text;

    fn receivers(line: &str) -> Result<Vec<Arc<Receiver>>, String> {
        let (conf, said) = of_text(&format!("events {{}} {line}"));
        match conf {
            Some(conf) => read(&crate::declared(&conf).dashboard.alerts),
            None => Err(said.join("\n")),
        }
    }

    #[test]
    fn parameters_are_read_and_their_defaults() {
        let all = receivers(
            "dashboard_alert https://hooks.slack.test/services/x format=slack after=5s interval=1h from=failing name=shop lang=ko; \
             dashboard_alert http://127.0.0.1:9093 format=alertmanager;",
        )
        .unwrap();
        let first = &all[0];
        assert_eq!((first.form, first.after, first.from), (Form::Slack, Duration::from_secs(5), State::Failing));
        assert_eq!((first.interval, first.name.as_str()), (Some(Duration::from_secs(3600)), "shop"));
        assert!(first.language == Language::Korean && first.tls.is_ok() && all[1].tls.is_err());
        let second = &all[1];
        assert_eq!((second.after, second.from, second.interval), (AFTER, State::Near, Some(ALERTMANAGER_INTERVAL)));
    }

    #[test]
    fn what_is_wrong_is_named_and_a_url_is_not_repeated() {
        for (line, said) in [
            ("dashboard_alert \"\";", "is empty"),
            ("dashboard_alert ftp://a.test/secret;", "begins with neither http:// nor https://"),
            ("dashboard_alert http://:80/secret;", "invalid URL in \"dashboard_alert\" directive"),
            ("dashboard_alert http://a/ format=teams;", "invalid parameter \"format=teams\""),
            ("dashboard_alert http://a/ after=2d;", "invalid parameter \"after=2d\""),
            ("dashboard_alert http://a/ interval=5s;", "invalid parameter \"interval=5s\""),
            ("dashboard_alert http://a/ now;", "invalid parameter \"now\""),
            ("dashboard_alert http://a/; dashboard_alert http://a/;", "is duplicate"),
            (
                "dashboard_alert http://a/1; dashboard_alert http://a/2; dashboard_alert http://a/3; dashboard_alert http://a/4; dashboard_alert http://a/5;",
                "is set more than 4 times",
            ),
            ("dashboard_alert env:WEIR_NO_SUCH;", "WEIR_NO_SUCH"),
            ("dashboard_alert /nowhere/url;", "/nowhere/url"),
            ("dashboard_alert https://a/ trusted_certificate=/nowhere/ca.pem;", "/nowhere/ca.pem"),
        ] {
            let why = receivers(line).err().unwrap_or_default();
            assert!(why.contains(said), "{line}: {why}");
        }
    }

    #[test]
    fn a_url_may_stand_in_a_file() {
        let path = std::env::temp_dir().join(format!("weir-alert-{}", std::process::id()));
        std::fs::write(&path, "https://hooks.test/secret\n").unwrap();
        let all = receivers(&format!("dashboard_alert {} format=discord;", path.display())).unwrap();
        assert_eq!(all[0].url.as_str(), "https://hooks.test/secret");
        std::fs::write(&path, "hooks.test/secret\n").unwrap();
        let why = receivers(&format!("dashboard_alert {};", path.display())).err().unwrap();
        assert!(why.contains("is no URL for \"dashboard_alert\"") && !why.contains("hooks.test"), "{why}");
        std::fs::remove_file(&path).unwrap();
    }
}
