//! The sentences about a script: what it has, and what it does not have.

use weir_words::Text;

use super::fit::LogFlow;
use super::gather::LoggedRequest;
use super::parts::{ScriptParts, tenth};
use super::said;
use super::sessions::STEPS_MAX;

impl ScriptParts<'_> {
    /// All sentences.
    pub(super) fn notes(&self, scenarios: &[LogFlow<'_>]) -> Vec<String> {
        let say = |words: Text, values: &[&str]| said::fill(words, self.wish.language, values);
        let count = |notes: &mut Vec<String>, words: Text, count: u64| {
            if count > 0 {
                notes.push(say(words, &[&count.to_string()]));
            }
        };
        let (window, counts) = (self.window, &self.log.counts);
        let when = |ms: u64| format!("{}", weir_meter::live::Timestamp(ms));
        let requests = self.sessions.requests();
        let mut notes = vec![say(
            said::LOAD_FROM_SOURCE,
            &[
                &requests.to_string(),
                &self.sessions.all.len().to_string(),
                &when(window.from_ms),
                &when(window.to_ms),
                &scenarios.len().to_string(),
            ],
        )];
        self.log.formats.iter().for_each(|(name, format)| notes.push(say(said::LOAD_FROM_FORMAT, &[name, format])));
        notes.extend(self.note_of_host());
        self.notes_of_recordings(&mut notes);
        self.notes_of_time(&mut notes, requests);
        if counts.unread > 0 {
            let first = say(said::LOAD_FROM_UNREAD, &[&counts.unread.to_string(), &counts.lines.to_string()]);
            notes.push(first);
            notes.extend(self.log.unread.iter().map(|line| format!("  {line}")));
        }
        match self.log.only_client.as_deref().filter(|_| self.log.requests.len() > 1) {
            Some(_) if !self.log.has_lines() => notes.push(say(said::LOAD_FROM_ONE_RECORDED_CLIENT, &[])),
            Some("") => notes.push(say(said::LOAD_FROM_NO_CLIENT, &[])),
            Some(client) => notes.push(say(said::LOAD_FROM_ONE_CLIENT, &[client])),
            None => {}
        }
        count(&mut notes, said::LOAD_FROM_OTHER_HOSTS, counts.other_hosts);
        count(&mut notes, said::LOAD_FROM_OTHER_METHODS, counts.other_methods);
        count(&mut notes, said::LOAD_FROM_ASSETS, counts.assets);
        count(&mut notes, said::LOAD_FROM_BEYOND, counts.beyond);
        count(&mut notes, said::LOAD_FROM_GATHERED, self.routes.gathered);
        if self.sessions.cut > 0 {
            notes.push(say(said::LOAD_FROM_CUT, &[&self.sessions.cut.to_string(), &STEPS_MAX.to_string()]));
        }
        count(
            &mut notes,
            said::LOAD_FROM_SAMPLES,
            scenarios.iter().filter(|scenario| scenario.is_sample).count() as u64,
        );
        if self.log.has_lines() {
            notes.push(say(said::LOAD_FROM_NOT_IN_LOG, &[]));
            let shares = || self.routes.all.iter().zip(&self.routes.shares);
            let bodies = shares().filter(|(route, _)| matches!(&*route.method, "POST" | "PUT" | "PATCH"));
            count(&mut notes, said::LOAD_FROM_BODIES, bodies.map(|(_, share)| share.requests).sum());
            let same = shares().flat_map(|(_, share)| &share.statuses).filter(|(status, _)| *status == 304);
            count(&mut notes, said::LOAD_FROM_NOT_MODIFIED, same.map(|(_, count)| count).sum());
        }
        count(&mut notes, said::LOAD_FROM_HASHES, counts.hashed);
        count(&mut notes, said::LOAD_FROM_BODIES_MISSING, counts.bodies_missing);
        count(&mut notes, said::LOAD_FROM_BODIES_UNFIT, counts.bodies_unfit);
        count(&mut notes, said::LOAD_FROM_WEBSOCKETS, self.log.tunnels.len() as u64);
        count(&mut notes, said::LOAD_FROM_SILENT_WEBSOCKETS, counts.silent_websockets);
        count(&mut notes, said::LOAD_FROM_MESSAGES_UNFIT, counts.messages_unfit);
        if self.routes.shares.iter().any(|share| share.redirects) {
            notes.push(say(said::LOAD_FROM_REDIRECTS, &[]));
        }
        notes.push(say(said::LOAD_FROM_TARGET, &[&self.wish.target]));
        notes
    }

    /// The host of the requests, and whether the script sends its name.
    fn note_of_host(&self) -> Option<String> {
        let say = |words: Text, values: &[&str]| said::fill(words, self.wish.language, values);
        let host = say(said::LOAD_FROM_HOST, &[self.log.host.as_ref()?]);
        Some(match self.host() {
            Some(_) => host + " " + &say(said::LOAD_FROM_HOST_SENT, &[]),
            None => host,
        })
    }

    /// The accounts of the recordings: their requests and their losses.
    fn notes_of_recordings(&self, notes: &mut Vec<String>) {
        let say = |words: Text, values: &[&str]| said::fill(words, self.wish.language, values);
        for source in &self.log.recordings {
            let (name, lost) = (source.name.as_str(), source.lost);
            let recorded = source.recorded.to_string();
            notes.push(match lost.all() {
                0 => say(said::LOAD_FROM_RECORDED, &[name, &recorded]),
                _ => {
                    let counts = [source.exchanges, lost.queue, lost.size, lost.writing, lost.large];
                    let [all, queue, size, writing, large] = counts.map(|count| count.to_string());
                    say(said::LOAD_FROM_LOST, &[name, &recorded, &all, &queue, &size, &writing, &large])
                }
            });
            if !source.has_end {
                notes.push(say(said::LOAD_FROM_NO_END, &[name]));
            }
        }
        let each = self.log.clients_each();
        let share = tenth(100.0 / each);
        match (each > 1.0, self.wish.all_clients) {
            (false, _) => {}
            (true, false) => notes.push(say(said::LOAD_FROM_SHARE, &[&share])),
            (true, true) => notes.push(say(said::LOAD_FROM_ALL_CLIENTS, &[&share, &format!("{each:.2}")])),
        }
        let [_, http2, http3] = self.log.versions;
        let all = self.log.versions.iter().sum::<u64>().max(1) as f64;
        let shares = [http2, http3].map(|count| tenth(count as f64 / all * 100.0));
        if http2 + http3 > 0 {
            let words =
                if self.log.protocol().is_some() { said::LOAD_FROM_VERSIONS } else { said::LOAD_FROM_ONLY_HTTP1 };
            notes.push(say(words, &[&shares[0], &shares[1]]));
        }
    }

    fn notes_of_time(&self, notes: &mut Vec<String>, requests: usize) {
        let say = |words: Text, values: &[&str]| said::fill(words, self.wish.language, values);
        let window = self.window;
        let length_s = (window.to_ms - window.from_ms) as f64 / 1000.0;
        let ends = |request: Option<&LoggedRequest>| request.map_or(0, |request| request.at_ms);
        if window.is_part {
            let whole_ms = ends(self.log.requests.last()) - ends(self.log.requests.first());
            notes.push(say(
                said::LOAD_FROM_PART,
                &[&tenth(whole_ms as f64 / 3_600_000.0), &tenth(requests as f64 / length_s)],
            ));
        }
        if let Some(minutes) = self.wish.minutes {
            let times = format!("{:.3}", window.share);
            notes.push(say(said::LOAD_FROM_SHAPE, &[&tenth(length_s / 60.0), &minutes.to_string(), &times]));
        }
        if (self.wish.speed - 1.0).abs() > f64::EPSILON {
            notes.push(say(said::LOAD_FROM_SPEED, &[&self.wish.speed.to_string()]));
        }
        if self.bursts > 0 {
            notes.push(say(said::LOAD_FROM_BURSTS, &[&self.bursts.to_string()]));
        }
        if !self.log.has_fractions && self.log.has_lines() {
            notes.push(say(said::LOAD_FROM_WHOLE_SECONDS, &[]));
        }
    }
}
