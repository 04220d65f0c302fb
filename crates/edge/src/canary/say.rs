//! The sentence about a canary, with its numbers.

use weir_meter::live::{Canary, CanaryPhase, CanaryReason};
use weir_words::{Said, say};

weir_words::texts! {
    RUNNING: "{0} has {1} of the clients; {2}; evidence of harm {3} of {4}", "{0}: 클라이언트의 {1}; {2}; 해의 증거 {4} 중 {3}";
    LEFT: "{0}; a proof of no harm needs about {1} clients, {2} min at this rate", "{0}; 해가 없음을 보이려면 클라이언트 약 {1}개, 지금 속도로 {2}분";
    REHEARSING: "{0}: a rehearsal with the old configuration alone; {1}; evidence of harm {2} of {3}", "{0}: 옛 설정만으로 예행 중; {1}; 해의 증거 {3} 중 {2}";
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
        (CanaryPhase::Rehearsing, _) => {
            say!(REHEARSING, file, seen, rounded(of.evidence), rounded(of.evidence_limit))
        }
        (CanaryPhase::Promoting, _) => say!(PROMOTING, file),
        (CanaryPhase::Promoted, CanaryReason::Proof) => say!(PROVEN, file, seen),
        (CanaryPhase::Promoted, _) => say!(PROMOTED, file, seen),
        (CanaryPhase::RolledBack, reason) => say!(ROLLED_BACK, file, because(of, reason), seen),
        (CanaryPhase::Undecided, _) => say!(UNDECIDED, file, seen),
    }
}

fn running(of: &Canary, seen: Said) -> Said {
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
        CanaryReason::Proof | CanaryReason::Time | CanaryReason::Asked | CanaryReason::None => ASKED,
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
    use weir_meter::live::{CanaryAspect, CanaryLane};
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
        let of = |phase, reason| sentence(&Canary { phase, reason, ..canary() }).en().to_owned();
        assert!(of(CanaryPhase::Promoted, CanaryReason::Proof).contains("harm beyond the margins is excluded"));
        assert!(of(CanaryPhase::Promoted, CanaryReason::Asked).contains("promoted: somebody asked for it"));
        assert!(
            of(CanaryPhase::RolledBack, CanaryReason::Reload).contains("rolled back: the configuration was reloaded")
        );
        assert!(of(CanaryPhase::Undecided, CanaryReason::Time).contains("its time is over"));
    }
}
