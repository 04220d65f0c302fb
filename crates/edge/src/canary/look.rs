//! The look at the traffic before a canary begins: what it can answer, and how soon. Pure: the time is an argument.

use std::time::Duration;

use weir_judge::forecast::{CLIENTS_MAX, PlantedHarm, Sample, SeenClient, ShareStep};
use weir_judge::horizon::{self, LOOKS};
use weir_judge::latencies::Latencies;
use weir_meter::live::{CanaryLook, CanaryNeed};

use super::clients::{Clients, ClosedWindow};
use super::terms::{TIME_MAX, Terms};

/// A window closes this long after its client has come, at least.
const CLOSES_AFTER_S: f64 = 10.0;

/// A look.
pub struct TrafficLook {
    begun_ms: u64,
    ends_ms: u64,
    sample: Sample,
    /// The latencies, when it has ended.
    known: Latencies,
    /// Clients that came in the first half and in the second half.
    came: [u64; 2],
}

impl TrafficLook {
    /// A look that begins now.
    pub fn new(now_ms: u64, lasts: Duration) -> TrafficLook {
        TrafficLook {
            begun_ms: now_ms,
            ends_ms: now_ms + lasts.as_millis() as u64,
            sample: Sample::new(now_ms),
            known: Latencies::default(),
            came: [0; 2],
        }
    }

    /// Whether its time is over.
    pub fn is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.ends_ms
    }

    /// Takes a client whose window has closed.
    pub fn take(&mut self, closed: &ClosedWindow) {
        let ClosedWindow { outcome, latencies, opened_ms } = closed;
        let is_late = opened_ms.saturating_sub(self.begun_ms) * 2 >= self.ends_ms - self.begun_ms;
        self.came[usize::from(is_late)] += 1;
        let seen = SeenClient {
            places: latencies.clone(),
            refused: f64::from(outcome.refused) / f64::from(outcome.requests.max(1)),
            has_failed: outcome.failed > 0,
            was_reset: outcome.resets > 0,
        };
        self.sample.take(seen);
    }

    /// Ends it: the result says what was seen.
    pub fn end(&mut self, clients: &Clients, without_key: u64, terms: &Terms) -> CanaryLook {
        self.known = clients.known().clone();
        let within = terms.longest().unwrap_or(TIME_MAX);
        CanaryLook {
            seconds: (self.ends_ms - self.begun_ms) / 1000,
            clients: self.sample.clients,
            requests: clients.requests,
            without_key,
            clients_per_minute: self.rate() * 60.0,
            failing: self.sample.failing(),
            clients_expected: (self.present() + self.rate() * within.as_secs_f64()) as u64,
            expected_seconds: within.as_secs(),
            needs: Vec::new(),
        }
    }

    /// How many clients each question needs with these shares. Takes a part of a second of CPU.
    pub fn needs(&self, shares: &[f64], terms: &Terms) -> Vec<CanaryNeed> {
        if !self.sample.is_enough(&self.known) {
            return Vec::new();
        }
        let looks = terms.fixed.map(|lasts| horizon::planned(&self.planned(lasts)));
        let clients_max =
            looks.as_ref().and_then(|looks| looks.last()).map_or(CLIENTS_MAX, |last| last.0.min(CLIENTS_MAX));
        let (steps, failing) = (self.steps(shares, terms.pause), self.sample.ten_times());
        let questions = [
            ("no_harm", PlantedHarm::Nothing),
            ("failures", PlantedHarm::Failing(failing)),
            ("10_percent_slower", PlantedHarm::Slower(1.1)),
            ("30_percent_slower", PlantedHarm::Slower(1.3)),
        ];
        let need = |(question, planted): (&str, PlantedHarm)| {
            let (sample, known, share) = (&self.sample, &self.known, shares.first().copied().unwrap_or_default());
            let clients = match &looks {
                Some(looks) => sample.clients_until_look(planted, known, share, looks, self.begun_ms),
                None => sample.clients_until(planted, known, &steps, self.begun_ms),
            };
            CanaryNeed {
                question: question.to_owned(),
                failing: matches!(planted, PlantedHarm::Failing(_)).then_some(failing),
                clients,
                clients_max,
                seconds: clients.map(|clients| self.seconds(clients)),
            }
        };
        questions.map(need).into()
    }

    /// The clients of each share of a ramp.
    fn steps(&self, shares: &[f64], pause: Duration) -> Vec<ShareStep> {
        let each = (self.rate() * pause.as_secs_f64()) as u64;
        let clients = |at: usize| each + if at == 0 { self.present() as u64 } else { 0 };
        shares.iter().enumerate().map(|(at, share)| ShareStep { share: *share, clients: clients(at) }).collect()
    }

    /// The clients until each planned look.
    fn planned(&self, lasts: Duration) -> Vec<u64> {
        let until = |look: u32| (self.present() + self.rate() * (lasts * look / LOOKS).as_secs_f64()) as u64;
        (1..=LOOKS).map(until).collect()
    }

    /// New clients a second, by those of the second half: who came in the first half may have been there before, and a client
    /// counts once. The half client more is for the chance that one more was about to come (Jeffreys' prior).
    fn rate(&self) -> f64 {
        let half = (self.ends_ms - self.begun_ms) as f64 / 2000.0;
        if self.sample.clients == 0 { 0.0 } else { (self.came[1] as f64 + 0.5) / half.max(0.001) }
    }

    /// Clients that are there at every moment, beside the new ones.
    fn present(&self) -> f64 {
        self.came[0].saturating_sub(self.came[1]) as f64
    }

    /// The time until so many clients have been judged.
    fn seconds(&self, clients: u64) -> u64 {
        let wanted = (clients as f64 - self.present()).max(0.0);
        (wanted / self.rate() + CLOSES_AFTER_S).min(TIME_MAX.as_secs_f64()) as u64
    }
}

#[cfg(test)]
mod tests {
    use weir_meter::live::CanaryReason;

    use super::*;
    use crate::canary::clients::Note;
    use crate::canary::refusal::refusal;

    fn terms(lasts: Option<u64>) -> Terms {
        Terms { lasts: lasts.map(Duration::from_secs), ..Terms::example() }
    }

    fn note(client: u64, took_us: u64) -> Note {
        Note { client, limit: 1 << 63, is_new: client < 1 << 63, took_us: Some(took_us), ..Note::default() }
    }

    /// A look of 30 s: clients that were there before, of which each sends a request a second, and new ones with one request.
    fn look(present: u64, new_a_second: u64, terms: &Terms) -> (CanaryLook, Clients) {
        let (mut look, mut clients) = (TrafficLook::new(0, Duration::from_secs(30)), Clients::before());
        for second in 0..30 {
            let new = 1_000 + second * new_a_second;
            for client in (0..present).chain(new..new + new_a_second) {
                clients.take(note(client.reverse_bits() | client, 1_000 + client), second * 1000);
            }
            clients.close(second * 1000).iter().for_each(|closed| look.take(closed));
        }
        assert!(!look.is_over(29_999) && look.is_over(30_000));
        clients.close_all(30_000).iter().for_each(|closed| look.take(closed));
        let mut seen = look.end(&clients, 0, terms);
        seen.needs = look.needs(&terms.shares, terms);
        (seen, clients)
    }

    #[test]
    fn clients_that_were_there_before_are_no_new_clients() {
        let (seen, _) = look(100, 2, &terms(Some(3_600)));
        assert_eq!((seen.clients, seen.requests, seen.seconds), (160, 3_060, 30));
        assert!((120.0..125.0).contains(&seen.clients_per_minute), "{}", seen.clients_per_minute);
        assert!((7_200..7_600).contains(&seen.clients_expected), "{}", seen.clients_expected);
        let (alone, _) = look(100, 0, &terms(Some(600)));
        assert!((100..150).contains(&alone.clients_expected), "{}", alone.clients_expected);
    }

    #[test]
    fn each_question_has_its_number_and_time() {
        let (seen, _) = look(0, 10, &terms(None));
        let asked: Vec<&str> = seen.needs.iter().map(|need| need.question.as_str()).collect();
        assert_eq!(asked, ["no_harm", "failures", "10_percent_slower", "30_percent_slower"]);
        let failures = seen.needs.get(1).cloned().unwrap_or_default();
        assert_eq!(failures.failing, Some(0.01), "none failed");
        let (clients, seconds) = (failures.clients.unwrap_or_default(), failures.seconds.unwrap_or_default());
        assert!((1_000..=60_000).contains(&clients), "{clients}");
        assert!(seconds.abs_diff(clients / 10 + 10) <= clients / 100 + 1, "{clients} clients in {seconds} s");
        assert_eq!(look(3, 0, &terms(None)).0.needs, [], "three clients are no sample");
        let (fixed, _) =
            look(0, 20, &Terms { fixed: Some(Duration::from_secs(600)), shares: vec![0.5], ..Terms::example() });
        let found = fixed.needs.get(3).and_then(|need| need.clients);
        assert!(found.is_some_and(|found| found <= 12_200) && fixed.expected_seconds == 600, "{fixed:?}");
    }

    #[test]
    fn traffic_without_an_answer_is_refused_by_name() {
        let reason = |(look, clients): (CanaryLook, Clients)| refusal(&look, clients.largest());
        assert_eq!(reason(look(100, 2, &terms(None))), None);
        assert_eq!(reason(look(0, 1, &terms(Some(60)))), Some(CanaryReason::FewClients));
        assert_eq!(reason(look(0, 0, &terms(None))), Some(CanaryReason::FewClients), "nobody came");
        let keyless = CanaryLook { requests: 10, without_key: 11, ..CanaryLook::default() };
        assert_eq!(refusal(&keyless, 1.0), Some(CanaryReason::NoKey));
        let (seen, mut clients) = look(50, 2, &terms(None));
        (0..100).for_each(|_| drop(clients.take(note(7 << 40, 1), 30_000)));
        assert_eq!(refusal(&seen, clients.largest()), Some(CanaryReason::LargeClient));
    }
}
