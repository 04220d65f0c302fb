//! The sentence about a canary, with its numbers.

use weir_judge::horizon::LOOKS;
use weir_meter::live::{Canary, CanaryNeed, CanaryPhase, CanaryReason};
use weir_words::{Said, say};

use super::refusal::{CLIENTS_MIN, LARGEST_MAX, refusal};

weir_words::texts! {
    RUNNING: "{0} has {1} of the clients; {2}; evidence of harm {3} of {4}", "{0}: 클라이언트의 {1}; {2}; 해의 증거 {4} 중 {3}";
    PLANNED: "{0} has {1} of the clients; {2}; {3} of {4} planned looks are over", "{0}: 클라이언트의 {1}; {2}; 예정한 판정 {4}번 중 {3}번이 지남";
    LEFT: "{0}; a proof of no harm needs about {1} clients, {2} min at this rate", "{0}; 해가 없음을 보이려면 클라이언트 약 {1}개, 지금 속도로 {2}분";
    REHEARSING: "{0}: a rehearsal with the old configuration alone; {1}; evidence of harm {2} of {3}", "{0}: 옛 설정만으로 예행 중; {1}; 해의 증거 {3} 중 {2}";
    LOOKING: "{0}: a look at the traffic before it begins; {1} clients so far", "{0}: 시작하기 전에 트래픽을 살펴보는 중; 지금까지 클라이언트 {1}개";
    LOOKED: "{0} clients sent {1} requests in {2}, and about {3} new clients come in a minute; {4}", "{2} 동안 클라이언트 {0}개가 요청 {1}건을 보냄. 새 클라이언트는 분당 약 {3}개; {4}";
    FORECAST: "8 of 10 such canaries are decided within: no harm: {0}; failures of {1} of the clients instead of {2}: {3}; 10 % slower: {4}; 30 % slower: {5}", "이런 카나리 10개 중 8개가 결정되는 때: 해가 없음: {0}; 클라이언트의 {2} 대신 {1}에서 오류: {3}; 10 % 느려짐: {4}; 30 % 느려짐: {5}";
    NO_SAMPLE: "they are too few to say how many clients an answer needs", "클라이언트가 너무 적어 답에 필요한 수를 말할 수 없음";
    WITHIN: "{0} clients, about {1}", "클라이언트 {0}개, 약 {1}";
    NOT_WITHIN: "not within {0} clients", "클라이언트 {0}개로는 안 됨";
    SECONDS: "{0} s", "{0}초";
    MINUTES: "{0} min", "{0}분";
    HOURS: "{0} h", "{0}시간";
    DAYS: "{0} d", "{0}일";
    NOT_BEGUN: "{0} did not begin: {1}; --anyway begins all the same", "{0}: 시작하지 않음. {1}. 그래도 시작하려면 --anyway";
    FEW: "about {0} clients are expected within {1}, and an answer needs {2}: write a longer --for or --look, or another --key", "{1} 안에 클라이언트 약 {0}개가 예상되지만 답에는 {2}개가 필요함. 더 긴 --for나 --look, 또는 다른 --key를 쓸 것";
    LARGE: "one client sends {0} of the requests, and it may send {1}: choose another --key if it stands for many users", "한 클라이언트가 요청의 {0}를 보내는데 한도는 {1}임. 여러 사용자를 대신한다면 다른 --key를 쓸 것";
    KEYLESS: "{0} of the requests have no {1}: choose another --key", "요청의 {0}에 {1}가 없음. 다른 --key를 쓸 것";
    NOISE: "the rehearsal found harm where there is none: the clients are not comparable, choose another key", "해가 없는 예행에서 해가 보임. 클라이언트를 비교할 수 없으니 다른 키를 쓸 것";
    PROMOTING: "{0} takes the place of the configuration in force", "{0}: 지금 설정을 대신하는 중";
    PROVEN: "{0} was promoted: harm beyond the margins is excluded; {1}", "{0}: 승격함. 한도를 넘는 해가 없음; {1}";
    PROMOTED: "{0} was promoted: somebody asked for it; {1}", "{0}: 요청에 따라 승격함; {1}";
    ROLLED_BACK: "{0} was rolled back: {1}; {2}", "{0}: 되돌림. {1}; {2}";
    UNDECIDED: "{0} was rolled back without a decision: its time is over; {1}", "{0}: 결정 없이 되돌림. 시간이 끝남; {1}";
    SEEN: "{0} clients of the new and {1} of the old configuration", "새 설정의 클라이언트 {0}개, 옛 설정의 클라이언트 {1}개";
    RELOADED: "the configuration was reloaded", "설정을 다시 읽음";
    UPGRADED: "a new binary serves too", "새 바이너리도 서비스함";
    DIED: "the server ended", "서버가 끝남";
    REFUSED: "it could not come into force, the error log says why", "적용할 수 없음. 이유는 오류 로그에 있음";
    ASKED: "somebody asked for it", "요청이 있었음";
    ODDS: "{0}; chance shows as much in 1 of {1} canaries of nothing", "{0}; 변화가 없는 카나리 {1}개 중 1개에서만 이만큼 나타남";
    ERRORS: "{0} of the clients of the new configuration met errors, and {1} of the old one", "새 설정의 클라이언트 중 {0}, 옛 설정의 클라이언트 중 {1}에서 오류";
    REFUSALS: "{0} of the requests of the new configuration got a status from 400 to 499, and {1} of the old one", "새 설정의 요청 중 {0}, 옛 설정의 요청 중 {1}에 400에서 499까지의 상태 코드";
    RESETS: "{0} of the clients of the new configuration met cut answers, and {1} of the old one", "새 설정의 클라이언트 중 {0}, 옛 설정의 클라이언트 중 {1}에서 끊긴 응답";
    SLOWER: "requests of the new configuration are slower than {0} of the old ones, and those of the old one than {1}", "새 설정의 요청은 옛 요청의 {0}보다, 옛 설정의 요청은 {1}보다 느림";
    SLOW: "{0} of the requests of the new configuration are beyond the {2} of the old one, and {1} of the old one", "새 설정의 요청 중 {0}, 옛 설정의 요청 중 {1}이(가) 옛 설정의 {2}보다 느림";
}

/// The sentence that says where a canary stands, and why.
pub fn sentence(of: &Canary) -> Said {
    let (file, seen) = (&of.file, say!(SEEN, of.new.clients, of.old.clients));
    match (of.phase, of.reason) {
        (CanaryPhase::Running, _) => running(of, seen),
        (CanaryPhase::Looking, _) => say!(LOOKING, file, of.new.clients + of.old.clients),
        (CanaryPhase::Rehearsing, _) => {
            say!(REHEARSING, file, seen, rounded(of.evidence), rounded(of.evidence_limit))
        }
        (CanaryPhase::Promoting, _) => say!(PROMOTING, file),
        (CanaryPhase::Promoted, CanaryReason::Proof) => say!(PROVEN, file, seen),
        (CanaryPhase::Promoted, _) => say!(PROMOTED, file, seen),
        (CanaryPhase::RolledBack, reason) => say!(ROLLED_BACK, file, because(of, reason), seen),
        (CanaryPhase::Undecided, CanaryReason::FewClients | CanaryReason::LargeClient | CanaryReason::NoKey) => {
            say!(NOT_BEGUN, file, doubt(of, of.reason))
        }
        (CanaryPhase::Undecided, _) => say!(UNDECIDED, file, seen),
    }
}

/// The numbers of the look, and how many clients an answer needs; `None` before its end.
pub fn announcement(of: &Canary) -> Option<Said> {
    let look = of.look.as_ref()?;
    let needs: Vec<Said> = look.needs.iter().map(within).collect();
    let forecast = match <[Said; 4]>::try_from(needs) {
        Ok([no_harm, failures, slower, much_slower]) => {
            let failing = look.needs.iter().find_map(|need| need.failing).unwrap_or_default();
            say!(FORECAST, no_harm, percent(failing), percent(look.failing), failures, slower, much_slower)
        }
        Err(_) => say!(NO_SAMPLE),
    };
    let rate = rounded(look.clients_per_minute);
    Some(say!(LOOKED, look.clients, look.requests, lasting(look.seconds), rate, forecast))
}

fn within(need: &CanaryNeed) -> Said {
    match (need.clients, need.seconds) {
        (Some(clients), Some(seconds)) => say!(WITHIN, clients, lasting(seconds)),
        _ => say!(NOT_WITHIN, need.clients_max),
    }
}

/// Why the traffic cannot answer the question, and the remedy.
pub fn doubt(of: &Canary, reason: CanaryReason) -> Said {
    let look = of.look.clone().unwrap_or_default();
    match reason {
        CanaryReason::LargeClient => say!(LARGE, percent(of.largest_client), percent(LARGEST_MAX)),
        CanaryReason::NoKey => {
            let part = look.without_key as f64 / (look.requests + look.without_key).max(1) as f64;
            say!(KEYLESS, percent(part), &of.key)
        }
        _ => say!(FEW, look.clients_expected, lasting(look.expected_seconds), CLIENTS_MIN),
    }
}

/// Why the judgement of a canary that has begun is weak; `None` for most.
pub fn weakness(of: &Canary) -> Option<Said> {
    let look = of.look.as_ref().filter(|_| of.phase == CanaryPhase::Running)?;
    refusal(look, of.largest_client).map(|reason| doubt(of, reason))
}

/// A time in the largest unit of which it has at least two.
fn lasting(seconds: u64) -> Said {
    match seconds {
        ..120 => say!(SECONDS, seconds),
        120..7_200 => say!(MINUTES, seconds / 60),
        7_200..172_800 => say!(HOURS, seconds / 3_600),
        _ => say!(DAYS, seconds / 86_400),
    }
}

fn running(of: &Canary, seen: Said) -> Said {
    if let Some(looks) = of.looks {
        return say!(PLANNED, &of.file, percent(of.share), seen, looks, LOOKS);
    }
    let so_far = say!(RUNNING, &of.file, percent(of.share), seen, rounded(of.evidence), rounded(of.evidence_limit));
    let done = of.new.clients + of.old.clients;
    match of.clients_needed {
        Some(needed) if done > 0 && of.seconds > 0 => {
            let minutes = needed.saturating_sub(done) as f64 * of.seconds as f64 / done as f64 / 60.0;
            say!(LEFT, so_far, needed, format!("{:.0}", minutes.ceil()))
        }
        _ => so_far,
    }
}

fn because(of: &Canary, reason: CanaryReason) -> Said {
    let text = match reason {
        CanaryReason::Harm => return harmed(of),
        CanaryReason::Noise => NOISE,
        CanaryReason::Reload => RELOADED,
        CanaryReason::Upgrade => UPGRADED,
        CanaryReason::Died => DIED,
        CanaryReason::Refused => REFUSED,
        _ => ASKED,
    };
    text.with(&[])
}

fn harmed(of: &Canary) -> Said {
    let name = of.harm.as_deref().unwrap_or_default();
    let (old, new) = of
        .aspects
        .iter()
        .find(|aspect| aspect.name == name)
        .map_or_else(Default::default, |aspect| (percent(aspect.old), percent(aspect.new)));
    let what = match name {
        "errors" => say!(ERRORS, new, old),
        "refused" => say!(REFUSALS, new, old),
        "resets" => say!(RESETS, new, old),
        "slower" => say!(SLOWER, new, old),
        quantile => say!(SLOW, new, old, quantile),
    };
    say!(ODDS, what, rounded(of.evidence))
}

/// A share as a percentage.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 1.0 { format!("{percent:.2} %") } else { format!("{percent:.1} %") }
}

fn rounded(number: f64) -> String {
    if number < 10.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_meter::live::{CanaryAspect, CanaryLane, CanaryLook};
    use weir_words::Language;

    fn canary() -> Canary {
        Canary {
            file: "/new.conf".to_owned(),
            share: 0.1,
            seconds: 60,
            old: CanaryLane { clients: 540, requests: 5_400 },
            new: CanaryLane { clients: 60, requests: 600 },
            evidence: 1.04,
            evidence_limit: 40.0,
            ..Canary::default()
        }
    }

    #[test]
    fn texts_are_complete() {
        assert_eq!(weir_words::check_texts(ALL), Vec::<String>::new());
    }

    #[test]
    fn a_running_canary_says_how_far_it_is() {
        let mut of = canary();
        let so_far = "/new.conf has 10.0 % of the clients; 60 clients of the new and 540 of the old configuration; evidence of harm 1.0 of 40";
        assert_eq!(sentence(&of).en(), so_far);
        of.clients_needed = Some(6_600);
        let more = "; a proof of no harm needs about 6600 clients, 10 min at this rate";
        assert_eq!(sentence(&of).en(), format!("{so_far}{more}"));
        assert!(sentence(&of).say(Language::Korean).contains("10분"));
        of.seconds = 0;
        assert_eq!(sentence(&of).en(), so_far, "nothing is known about the rate");
    }

    #[test]
    fn an_end_has_its_reason_and_its_numbers() {
        let aspect =
            |name: &str| CanaryAspect { name: name.to_owned(), old: 0.002, new: 0.83, ..CanaryAspect::default() };
        let harmed = |name: &str| Canary {
            phase: CanaryPhase::RolledBack,
            reason: CanaryReason::Harm,
            harm: Some(name.to_owned()),
            aspects: vec![aspect(name)],
            evidence: 1234.4,
            ..canary()
        };
        assert_eq!(
            sentence(&harmed("errors")).en(),
            "/new.conf was rolled back: 83.0 % of the clients of the new configuration met errors, and 0.20 % of the old one; \
             chance shows as much in 1 of 1234 canaries of nothing; 60 clients of the new and 540 of the old configuration"
        );
        assert!(sentence(&harmed("p95")).en().contains("beyond the p95 of the old one"));
        let need = |clients: Option<u64>, failing| CanaryNeed {
            question: String::new(),
            failing,
            clients,
            clients_max: 60_000,
            seconds: clients.map(|clients| clients * 6),
        };
        let look = CanaryLook {
            seconds: 30,
            clients: 120,
            requests: 1_200,
            without_key: 400,
            clients_per_minute: 200.4,
            failing: 0.004,
            clients_expected: 150,
            expected_seconds: 3_600,
            needs: vec![
                need(Some(13_000), None),
                need(Some(1_500), Some(0.04)),
                need(None, None),
                need(Some(19), None),
            ],
        };
        let looked = Canary { look: Some(look), largest_client: 0.2, key: "cookie:sid".to_owned(), ..canary() };
        assert_eq!(
            announcement(&looked).map(|said| said.en().to_owned()).unwrap_or_default(),
            "120 clients sent 1200 requests in 30 s, and about 200 new clients come in a minute; 8 of 10 such canaries are decided within: \
             no harm: 13000 clients, about 21 h; failures of 4.0 % of the clients instead of 0.40 %: 1500 clients, about 2 h; \
             10 % slower: not within 60000 clients; 30 % slower: 19 clients, about 114 s"
        );
        assert_eq!(announcement(&canary()), None);
        let weak = weakness(&looked).map(|said| said.en().to_owned()).unwrap_or_default();
        assert!(weak.contains("one client sends 20.0 % of the requests, and it may send 5.0 %"), "{weak}");
        let no = |reason| sentence(&Canary { phase: CanaryPhase::Undecided, reason, ..looked.clone() }).en().to_owned();
        assert!(
            no(CanaryReason::FewClients)
                .contains("about 150 clients are expected within 60 min, and an answer needs 200")
        );
        assert!(no(CanaryReason::NoKey).contains("did not begin: 25.0 % of the requests have no cookie:sid"));
        let of = |phase, reason| sentence(&Canary { phase, reason, ..canary() }).en().to_owned();
        assert!(of(CanaryPhase::Promoted, CanaryReason::Proof).contains("harm beyond the margins is excluded"));
        assert!(of(CanaryPhase::Promoted, CanaryReason::Asked).contains("promoted: somebody asked for it"));
        assert!(
            of(CanaryPhase::RolledBack, CanaryReason::Reload).contains("rolled back: the configuration was reloaded")
        );
        assert!(of(CanaryPhase::Undecided, CanaryReason::Time).contains("its time is over"));
    }
}
