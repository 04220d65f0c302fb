//! Who gets alerts, when, and in which form.

use std::time::Duration;

use url::Url;
use weir_dash::alarm::Alarm;
use weir_dash::verdict::State;
use weir_net::tls;
use weir_words::Language;

/// How long weir tries to deliver an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The time of one try.
    pub timeout: Duration,
    /// The pauses after failed tries. There is one try more than pauses.
    pub pauses: [Duration; 3],
}

/// The patience with every receiver.
pub const PATIENCE: Patience = Patience {
    timeout: Duration::from_secs(10),
    pauses: [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(30)],
};

/// The form of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Slack's, and that of programs that take Slack's, such as Mattermost.
    Slack,
    /// Discord's.
    Discord,
    /// Prometheus Alertmanager's API v2.
    Alertmanager,
    /// weir's own.
    Json,
}

impl Form {
    /// All forms, with their names in the configuration.
    pub const ALL: [(&str, Form); 4] = [
        ("slack", Form::Slack),
        ("discord", Form::Discord),
        ("alertmanager", Form::Alertmanager),
        ("json", Form::Json),
    ];
}

/// Who gets alerts, and when.
#[derive(Clone)]
pub struct Receiver {
    /// Its URL.
    pub url: Url,
    /// The form of the body.
    pub form: Form,
    /// How long a verdict has to hold.
    pub after: Duration,
    /// How often trouble that goes on is told again.
    pub interval: Option<Duration>,
    /// The least state that is trouble.
    pub from: State,
    /// The name of this edge.
    pub name: String,
    /// The language of the texts.
    pub language: Language,
    /// The text of the file of authorities; empty for those of the machine.
    pub trusted: Vec<u8>,
    /// Speaks TLS with it.
    pub tls: Result<tls::Client, String>,
    /// How long weir tries.
    pub patience: Patience,
}

impl Receiver {
    /// The host of its URL, for the log.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Whether a reload changes nothing about it.
    pub fn is_as(&self, other: &Receiver) -> bool {
        let settings = |it: &Receiver| {
            let times = (it.after, it.interval, it.patience);
            (it.url.clone(), it.form, times, it.from, it.name.clone(), it.language, it.trusted.clone())
        };
        settings(self) == settings(other)
    }

    /// Its alarm, which has told nothing.
    pub fn alarm(&self) -> Alarm {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Alarm::new(ms(self.after), self.interval.map(ms), self.from)
    }
}
