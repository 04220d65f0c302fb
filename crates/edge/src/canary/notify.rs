//! News of a canary for the receiver that its order names: one POST for each.
//!
//! The canary never waits: news that find the queue full are dropped. A URL may be a secret, so the log names its host alone, and
//! the state has no URL. Invariant: only `weir canary` names a URL, never the API, so no request chooses whom weir asks.

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use url::Url;
use weir_meter::live::Canary;
use weir_net::log::{self, Level};
use weir_net::tls::{Client, Trust};
use weir_net::worker;

use crate::dash::alert::{post, request_to};
use crate::trust;

/// News that wait for the receiver, at most: a canary has two.
const QUEUE_MAX: usize = 4;
/// How long the receiver may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The URL of a receiver.
///
/// # Errors
/// It is none: the remedy.
pub fn receiver(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| "the receiver of the decision is no URL: write http://HOST/PATH or https://HOST/PATH".to_owned())
}

/// Starts the thread that sends news. It ends with the end of the canary.
///
/// # Errors
/// The thread cannot be started.
pub fn start(url: Url) -> io::Result<SyncSender<Canary>> {
    let (send, news) = sync_channel::<Canary>(QUEUE_MAX);
    worker::block_aside("canary news", move || {
        for state in news {
            let phase = state.phase;
            let outcome = deliver(url.clone(), &state);
            if let Err(why) = outcome {
                let host = url.host_str().unwrap_or_default();
                log::global(Level::Error, format_args!("canary: {host} was not told ({phase:?}): {why}"));
            }
            if !phase.is_on() {
                return;
            }
        }
    })?;
    Ok(send)
}

fn deliver(url: Url, state: &Canary) -> Result<(), String> {
    let request = request_to(&url, &serde_json::to_string(state).map_err(|error| error.to_string())?);
    let sent = worker::block_on(async move {
        let tls = if url.scheme() == "https" {
            Client::for_servers(Some(Trust::of_machine()), trust::HTTP)
        } else {
            Err(String::new())
        };
        post(&url, tls.as_ref().map_err(Clone::clone), &request, PATIENCE).await.map_err(|failed| failed.why)
    });
    sent.unwrap_or_else(|error| Err(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_a_url_or_refused() {
        assert!(receiver("https://user:secret@hooks.test/a?b").is_ok());
        for text in ["", "hooks.test", "file:///etc/passwd", "http://", "unix:/run/docker.sock"] {
            assert!(receiver(text).is_err_and(|why| why.contains("write http://")), "{text}");
        }
    }
}
