//! Metrics and events over UDP: StatsD, DogStatsD, and Telegraf's dialect.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use weir_net::clock;

use super::options::StatsDOptions;
use crate::output::number::js;
use crate::record::Period;

/// Size of one datagram: what an Ethernet frame carries unfragmented, as in Datadog's clients.
const DATAGRAM_BYTES_MAX: usize = 1432;

/// A receiver of datagrams.
pub(super) struct StatsD {
    options: StatsDOptions,
    /// The target of the load, for events.
    target: String,
    /// Start time of the run in ms, for events.
    began_ms: u64,
    socket: Option<UdpSocket>,
}

impl StatsD {
    pub(super) fn new(options: StatsDOptions, target: &str) -> StatsD {
        StatsD { options, target: target.to_owned(), began_ms: clock::unix_ms(), socket: None }
    }

    /// Sends the metrics of a period. An error is noticed only if the host itself reports that nothing listens.
    pub(super) fn send(&mut self, period: &Period) -> Result<(), String> {
        let lines = self.lines(period);
        self.datagrams(&lines)
    }

    /// Sends an event: the run has begun or ended.
    pub(super) fn event(&mut self, what: &str) {
        if let Some(line) = self.event_line(what) {
            // If nothing listens, sending the periods reports that.
            let _ = self.datagrams(&[line]);
        }
    }

    fn lines(&self, period: &Period) -> Vec<String> {
        let filter = &self.options.filter;
        let mut lines = Vec::new();
        for (name, count) in period.counters.iter().filter(|(name, _)| filter.lets(name)) {
            lines.push(self.line(name, &count.to_string(), 'c'));
        }
        for (name, summary) in period.summaries.iter().filter(|(name, _)| filter.lets(name)) {
            for (figure, value) in summary.figures() {
                lines.push(self.line(&format!("{name}.{figure}"), &js(value), 'g'));
            }
        }
        for (name, rate) in period.rates.iter().filter(|(name, _)| filter.lets(name)) {
            lines.push(self.line(name, &js(*rate), 'g'));
        }
        lines
    }

    fn line(&self, name: &str, value: &str, kind: char) -> String {
        let StatsDOptions { prefix, tags, is_telegraf, .. } = &self.options;
        // These characters end a name, a value or a line, and errors' names contain them.
        let name = name.replace([':', '|', '@', '\n', '#'], "_");
        let tags = tags.join(",");
        match (is_telegraf, tags.is_empty()) {
            (_, true) => format!("{prefix}{name}:{value}|{kind}"),
            (true, false) => {
                // In Telegraf's dialect, commas and spaces end a name.
                let name = name.replace([' ', ','], "_");
                format!("{prefix}{name},{}:{value}|{kind}", tags.replace(':', "="))
            }
            (false, false) => format!("{prefix}{name}:{value}|{kind}|#{tags}"),
        }
    }

    /// DogStatsD's `_e{…}`.
    fn event_line(&self, what: &str) -> Option<String> {
        let event = self.options.event.as_ref()?;
        let title = event.title.clone().unwrap_or_else(|| format!("Artillery.io Test {}", self.began_ms));
        let title = format!("{what}: {title}").replace('\n', "\\n");
        let text = event.text.clone().unwrap_or_else(|| format!("Target: {}", self.target)).replace('\n', "\\n");
        let mut line = format!("_e{{{},{}}}:{title}|{text}", title.len(), text.len());
        for (mark, value) in [
            ("k", event.aggregation_key.as_deref()),
            ("p", Some(event.priority.as_str())),
            ("s", event.source_type_name.as_deref()),
            ("t", Some(event.alert_type.as_str())),
        ] {
            if let Some(value) = value {
                line.push_str(&format!("|{mark}:{value}"));
            }
        }
        let tags: Vec<&str> = self.options.tags.iter().chain(&event.tags).map(String::as_str).collect();
        if !tags.is_empty() {
            line.push_str(&format!("|#{}", tags.join(",")));
        }
        Some(line)
    }

    fn datagrams(&mut self, lines: &[String]) -> Result<(), String> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => connect(&self.options.host, self.options.port)?,
        };
        let mut datagram = String::new();
        let mut outcome = Ok(());
        let mut send = |datagram: &str| {
            if let Err(error) = socket.send(datagram.as_bytes()) {
                outcome = Err(error.to_string());
            }
        };
        for line in lines {
            if !datagram.is_empty() && datagram.len() + 1 + line.len() > DATAGRAM_BYTES_MAX {
                send(&datagram);
                datagram.clear();
            }
            if !datagram.is_empty() {
                datagram.push('\n');
            }
            datagram.push_str(line);
        }
        if !datagram.is_empty() {
            send(&datagram);
        }
        // If nothing listens, the host's answer to the last datagram arrives too.
        if let Ok(Some(error)) = socket.take_error() {
            outcome = Err(error.to_string());
        }
        self.socket = Some(socket);
        outcome
    }
}

fn connect(host: &str, port: u16) -> Result<UdpSocket, String> {
    let named = |error: std::io::Error| format!("{host}: {error}");
    let mut addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(named)?.collect();
    // IPv4 first, as everywhere in weir: a listener at `localhost` is usually at 127.0.0.1.
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let address = addresses.first().ok_or_else(|| format!("{host} has no address"))?;
    let socket = match address {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = socket.map_err(named)?;
    socket.connect(address).map_err(named)?;
    Ok(socket)
}
