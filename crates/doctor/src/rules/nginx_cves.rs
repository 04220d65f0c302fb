//! The version has a known vulnerability that this configuration exposes.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "nginx_cves",
    level: FindingLevel::Risk,
    group: Group::Safety,
    symptoms: &[],
    says: words(
        "This version of nginx has a known vulnerability that this file exposes",
        "이 nginx 버전에 알려진 취약점이 있고 이 설정에서 드러납니다",
    ),
    remedy: words(
        "Update nginx. Distributions fix older versions and keep the version number, so read the package's changelog first.",
        "nginx를 업데이트하세요. 배포판은 버전 번호를 바꾸지 않고 고치기도 하므로 패키지 changelog를 먼저 확인하세요.",
    ),
    source: "nginx CHANGES; nginx.org, security advisories",
    check,
    fires: Example::with("http { resolver 10.0.0.1; server { listen 80; } }", |facts| {
        facts.version_is_told = Some(Version(1, 20, 0))
    }),
    silent: Example::with("http { server { listen 80; } }", |facts| facts.version_is_told = Some(Version(1, 31, 7))),
};

/// A vulnerability: the affected versions, and the configuration that exposes it.
struct Hole {
    id: &'static str,
    what: Words,
    /// The first affected version.
    since: Version,
    /// The first fixed version of each branch, the mainline's last.
    mended: &'static [Version],
    opened_by: fn(&Case<'_>) -> bool,
}

fn says(case: &Case<'_>, name: &str) -> bool {
    case.view.all().any(|spot| spot.name() == name)
}

fn on(case: &Case<'_>, name: &str) -> bool {
    case.view.all().any(|spot| spot.name() == name && spot.arg(0) != "off")
}

/// The vulnerability that `…_cache_background_update on` exposes in a file with unnamed captures.
const OF_BACKGROUND_UPDATES: &str = "CVE-2026-60005";

/// Whether `…_cache_background_update on` would expose a known vulnerability in this file.
pub fn background_update_opens(case: &Case<'_>) -> bool {
    let Some(version) = case.facts.version_is_told.filter(|_| !case.is_weir()) else { return false };
    let hole = HOLES.iter().find(|hole| hole.id == OF_BACKGROUND_UPDATES);
    hole.is_some_and(|hole| hole.is_in(version)) && uses_captures(case) && !updates_in_background(case)
}

/// Whether a statement uses `$1` and its like.
fn uses_captures(case: &Case<'_>) -> bool {
    let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    case.view.all().any(|spot| spot.args().any(|arg| reach::variables(arg).any(is_number)))
}

fn updates_in_background(case: &Case<'_>) -> bool {
    crate::caches::FAMILIES.iter().any(|names| on(case, names.background_update))
}

impl Hole {
    /// Whether this version has it.
    fn is_in(&self, version: Version) -> bool {
        let same_branch =
            self.mended.iter().any(|mended| (mended.0, mended.1) == (version.0, version.1) && version >= *mended);
        version >= self.since && version < self.fixed_in() && !same_branch
    }

    /// The first version of the mainline without it.
    fn fixed_in(&self) -> Version {
        self.mended.last().copied().unwrap_or(Version(0, 0, 0))
    }
}

fn listens(case: &Case<'_>, word: &str) -> bool {
    case.view.all().any(|spot| spot.name() == "listen" && spot.says(word))
}

/// `rewrite … /x?$1`, followed by another statement of the rewrite module.
fn rewrites_arguments(case: &Case<'_>) -> bool {
    case.view.all().filter(|spot| spot.name() == "rewrite" && spot.arg(1).contains('?')).any(|spot| {
        let numbered = reach::variables(spot.arg(1)).any(|name| name.parse::<u8>().is_ok());
        let more = spot
            .scope()
            .statements()
            .any(|other| other.is_after(spot) && matches!(other.name(), "rewrite" | "if" | "set"));
        numbered && more
    })
}

/// Vulnerabilities since 1.17.3, from CHANGES. Branches and first versions are from nginx.org's list of advisories.
static HOLES: &[Hole] = &[
    Hole {
        id: "CVE-2026-42533",
        what: words(
            "a map with patterns behind a capture in one text overflows a buffer",
            "패턴이 있는 map을 캡처 뒤에서 함께 쓰면 버퍼가 넘칩니다",
        ),
        since: Version(0, 9, 6),
        mended: &[Version(1, 30, 4), Version(1, 31, 3)],
        opened_by: |case| {
            case.view.all().any(|spot| {
                spot.name() == "map" && spot.inside().statements().any(|entry| entry.name().starts_with('~'))
            })
        },
    },
    Hole {
        id: OF_BACKGROUND_UPDATES,
        what: words(
            "unnamed captures with slice or background updates read uninitialised memory",
            "이름 없는 캡처를 slice나 백그라운드 갱신과 함께 쓰면 초기화되지 않은 메모리를 읽습니다",
        ),
        since: Version(1, 15, 8),
        mended: &[Version(1, 30, 4), Version(1, 31, 3)],
        opened_by: |case| uses_captures(case) && (on(case, "slice") || updates_in_background(case)),
    },
    Hole {
        id: "CVE-2026-42530",
        what: words("a crafted QUIC session uses freed memory", "조작된 QUIC 세션이 해제된 메모리를 사용합니다"),
        since: Version(1, 31, 0),
        mended: &[Version(1, 31, 2)],
        opened_by: |case| listens(case, "quic"),
    },
    Hole {
        id: "CVE-2026-42945",
        what: words(
            "rewrite with a question mark and a numbered capture overflows a buffer",
            "물음표와 번호 캡처가 있는 rewrite가 버퍼를 넘칩니다",
        ),
        since: Version(0, 6, 27),
        mended: &[Version(1, 30, 1), Version(1, 31, 0)],
        opened_by: rewrites_arguments,
    },
    Hole {
        id: "CVE-2026-42926",
        what: words(
            "proxy_set_body lets a client add to a request for an HTTP/2 origin",
            "proxy_set_body를 쓰면 클라이언트가 HTTP/2 오리진 요청에 내용을 덧붙일 수 있습니다",
        ),
        since: Version(1, 29, 4),
        mended: &[Version(1, 30, 1), Version(1, 31, 0)],
        opened_by: |case| says(case, "proxy_set_body"),
    },
    Hole {
        id: "CVE-2026-40701",
        what: words("ssl_ocsp uses freed memory", "ssl_ocsp가 해제된 메모리를 사용합니다"),
        since: Version(1, 19, 0),
        mended: &[Version(1, 30, 1), Version(1, 31, 0)],
        opened_by: |case| on(case, "ssl_ocsp"),
    },
    Hole {
        id: "CVE-2026-40460",
        what: words(
            "HTTP/3 migration accepts an address before it is validated",
            "HTTP/3 마이그레이션이 검증 전의 주소를 받아들입니다",
        ),
        since: Version(1, 25, 0),
        mended: &[Version(1, 30, 1), Version(1, 31, 0)],
        opened_by: |case| listens(case, "quic"),
    },
    Hole {
        id: "CVE-2026-27654",
        what: words(
            "COPY and MOVE in a location with alias leave the directory",
            "alias가 있는 location의 COPY와 MOVE가 디렉터리를 벗어납니다",
        ),
        since: Version(0, 5, 13),
        mended: &[Version(1, 28, 3), Version(1, 29, 7)],
        opened_by: |case| says(case, "dav_methods") && says(case, "alias"),
    },
    Hole {
        id: "CVE-2026-1642",
        what: words(
            "plain text can be put before the answer of a TLS origin",
            "TLS 오리진의 응답 앞에 평문을 끼워 넣을 수 있습니다",
        ),
        since: Version(1, 3, 0),
        mended: &[Version(1, 28, 2), Version(1, 29, 5)],
        opened_by: |case| {
            case.view.all().any(|spot| spot.name() == "proxy_pass" && spot.arg(0).starts_with("https://"))
        },
    },
    Hole {
        id: "CVE-2025-23419",
        what: words(
            "TLS sessions resumed on another server skip its check of client certificates",
            "다른 server에서 재개한 TLS 세션은 클라이언트 인증서 검사를 건너뜁니다",
        ),
        since: Version(1, 11, 4),
        mended: &[Version(1, 26, 3), Version(1, 27, 4)],
        opened_by: |case| on(case, "ssl_verify_client"),
    },
    Hole {
        id: "CVE-2024-7347",
        what: words("a crafted mp4 file ends a worker", "조작된 mp4 파일이 워커를 종료시킵니다"),
        since: Version(1, 5, 13),
        mended: &[Version(1, 26, 2), Version(1, 27, 1)],
        opened_by: |case| says(case, "mp4"),
    },
    Hole {
        id: "CVE-2024-32760",
        what: words(
            "a crafted QUIC session ends a worker or reads its memory",
            "조작된 QUIC 세션이 워커를 종료시키거나 메모리를 읽습니다",
        ),
        since: Version(1, 25, 0),
        mended: &[Version(1, 26, 1), Version(1, 27, 0)],
        opened_by: |case| listens(case, "quic"),
    },
    Hole {
        id: "CVE-2022-41741",
        what: words("a crafted mp4 file overwrites memory", "조작된 mp4 파일이 메모리를 덮어씁니다"),
        since: Version(1, 1, 3),
        mended: &[Version(1, 22, 1), Version(1, 23, 2)],
        opened_by: |case| says(case, "mp4"),
    },
    Hole {
        id: "CVE-2021-23017",
        what: words(
            "a forged answer of the resolver overwrites a byte",
            "위조된 resolver 응답이 한 바이트를 덮어씁니다",
        ),
        since: Version(0, 6, 18),
        mended: &[Version(1, 20, 1), Version(1, 21, 0)],
        opened_by: |case| says(case, "resolver"),
    },
    Hole {
        id: "CVE-2019-9511",
        what: words(
            "HTTP/2 clients can take memory and CPU without end",
            "HTTP/2 클라이언트가 메모리와 CPU를 끝없이 쓸 수 있습니다",
        ),
        since: Version(1, 9, 5),
        mended: &[Version(1, 16, 1), Version(1, 17, 3)],
        opened_by: |case| listens(case, "http2"),
    },
];

fn check(case: &Case<'_>, found: &mut Findings) {
    let Some(version) = case.facts.version_is_told else { return };
    for hole in HOLES {
        if hole.is_in(version) && (hole.opened_by)(case) {
            let fixed = hole.fixed_in();
            let what = Said::of_both(
                format!("{}: {}; fixed in {fixed}", hole.id, hole.what.en),
                format!("{}: {} ({fixed}에서 수정됨)", hole.id, hole.what.ko),
            );
            found.add(Finding::nowhere(what).write(format!("nginx {fixed} or newer")));
        }
    }
}
