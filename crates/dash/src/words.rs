//! Names of limits and remedies against each, in English and Korean.

use weir_words::{Said, Words, words};

/// A kind of limit, as `meter::live::Limit::kind` names it.
pub struct LimitKind {
    /// Its name in a snapshot.
    pub name: &'static str,
    /// Its name for people.
    pub title: Words,
    /// True if a full limit refuses or slows requests. A full cache only removes its oldest objects, as it should.
    pub counts: bool,
    /// The effect on clients when it is full.
    pub full: Words,
    /// The remedy.
    pub remedy: Words,
}

/// All kinds. A kind that is not in this table is shown by its own name.
pub static KINDS: &[LimitKind] = &[
    LimitKind {
        name: "connections",
        title: words("Connections", "연결"),
        counts: true,
        full: words("weir closes idle clients and drops new ones", "weir가 유휴 연결을 닫고 새 클라이언트를 끊습니다"),
        remedy: words(
            "raise worker_connections, or remove the line: weir then derives it from RLIMIT_NOFILE",
            "worker_connections를 늘리거나 그 줄을 지우세요: 지우면 weir가 RLIMIT_NOFILE에서 값을 정합니다",
        ),
    },
    LimitKind {
        name: "fds",
        title: words("Open files", "열린 파일"),
        counts: true,
        full: words(
            "weir closes idle connections for new ones, then refuses new connections",
            "weir가 유휴 연결을 닫아 새 연결을 받고, 그래도 부족하면 새 연결을 거절합니다",
        ),
        remedy: words(
            "LimitNOFILE= in the systemd unit, or worker_rlimit_nofile",
            "systemd 유닛의 LimitNOFILE=이나 worker_rlimit_nofile을 늘리세요",
        ),
    },
    LimitKind {
        name: "own_memory",
        title: words("Memory of weir", "weir의 메모리"),
        counts: true,
        full: words(
            "weir closes idle clients, and refuses new connections and streams",
            "weir가 유휴 연결을 닫고 새 연결과 스트림을 거절합니다",
        ),
        remedy: words(
            "find the clients that hold it (connections, buffers, caches), or raise limit_memory",
            "메모리를 쓰는 곳(연결, 버퍼, 캐시)을 찾거나 limit_memory를 늘리세요",
        ),
    },
    LimitKind {
        name: "buffers",
        title: words("Buffers of exchanges", "요청 처리 버퍼"),
        counts: true,
        full: words(
            "weir does not compress, and reads answers no faster than clients take them",
            "weir가 압축하지 않고, 클라이언트가 받는 속도로만 응답을 읽습니다",
        ),
        remedy: words(
            "find the clients that take large answers slowly, or raise limit_buffers",
            "큰 응답을 느리게 받는 클라이언트를 찾거나 limit_buffers를 늘리세요",
        ),
    },
    LimitKind {
        name: "temp_files",
        title: words("Temporary files", "임시 파일"),
        counts: true,
        full: words(
            "large request bodies get 503, and upstreams wait for slow clients",
            "큰 요청 본문은 503을 받고, 업스트림은 느린 클라이언트를 기다립니다",
        ),
        remedy: words("free the disk, or raise limit_temp_files", "디스크를 비우거나 limit_temp_files를 늘리세요"),
    },
    LimitKind {
        name: "streams",
        title: words("HTTP/2 streams", "HTTP/2 스트림"),
        counts: true,
        full: words(
            "weir refuses new streams with REFUSED_STREAM, and clients repeat them",
            "weir가 새 스트림을 REFUSED_STREAM으로 거절하고, 클라이언트가 다시 보냅니다",
        ),
        remedy: words(
            "find the clients that open so many, or raise limit_streams",
            "스트림을 많이 여는 클라이언트를 찾거나 limit_streams를 늘리세요",
        ),
    },
    LimitKind {
        name: "ports",
        title: words("Ports to", "업스트림 포트"),
        counts: true,
        full: words(
            "connect fails with EADDRNOTAVAIL, clients get 502",
            "connect가 EADDRNOTAVAIL로 실패하고, 클라이언트는 502를 받습니다",
        ),
        remedy: words(
            "keep connections: upstream { keepalive 64; } with proxy_http_version 1.1 and proxy_set_header Connection \"\"",
            "연결을 유지하세요: upstream { keepalive 64; }와 proxy_http_version 1.1, proxy_set_header Connection \"\"",
        ),
    },
    LimitKind {
        name: "accept_queue",
        title: words("Accept queue", "accept 큐"),
        counts: true,
        full: words(
            "the kernel drops new connections; clients wait a second or more",
            "커널이 새 연결을 버리고, 클라이언트는 1초 이상 기다립니다",
        ),
        remedy: words(
            "listen … backlog= and net.core.somaxconn, if a worker's CPU is not the cause",
            "워커의 CPU가 원인이 아니면 listen … backlog=와 net.core.somaxconn을 늘리세요",
        ),
    },
    LimitKind {
        name: "pool",
        title: words("Kept connections", "keepalive 연결"),
        counts: false,
        full: words("weir closes further connections after use", "weir가 넘치는 연결을 쓴 뒤에 닫습니다"),
        remedy: words("raise keepalive in the upstream block", "upstream 블록의 keepalive를 늘리세요"),
    },
    LimitKind {
        name: "worker_cpu",
        title: words("CPU of", "CPU"),
        counts: true,
        full: words("requests wait for their turn", "요청이 차례를 기다립니다"),
        remedy: words(
            "more CPUs with worker_processes auto, or less work for each request",
            "worker_processes auto로 CPU를 더 쓰거나, 요청마다 하는 일을 줄이세요",
        ),
    },
    LimitKind {
        name: "machine_cpu",
        title: words("Machine CPU", "머신 CPU"),
        counts: true,
        full: words("weir and the applications wait for a CPU", "weir와 앱이 CPU를 기다립니다"),
        remedy: words("more CPUs, or less work for each request", "CPU를 늘리거나 요청마다 하는 일을 줄이세요"),
    },
    LimitKind {
        name: "cpu_quota",
        title: words("CPU quota", "CPU 쿼터"),
        counts: true,
        full: words(
            "the kernel stops all threads for the rest of each period",
            "커널이 주기가 끝날 때까지 모든 스레드를 멈춥니다",
        ),
        remedy: words("raise the container's or unit's CPU quota", "컨테이너나 유닛의 CPU 쿼터를 늘리세요"),
    },
    LimitKind {
        name: "cpu_credits",
        title: words("CPU time from the hypervisor", "하이퍼바이저가 주는 CPU 시간"),
        counts: true,
        full: words("requests wait while other machines use the CPU", "다른 머신이 CPU를 쓰는 동안 요청이 기다립니다"),
        remedy: words(
            "a machine without CPU credits, or unlimited credits",
            "CPU 크레딧이 없는 머신이나 무제한 크레딧을 쓰세요",
        ),
    },
    LimitKind {
        name: "tx_link",
        title: words("Sent a second by", "초당 송신"),
        counts: true,
        full: words(
            "answers queue in the kernel, and clients get them slower",
            "응답이 커널에 쌓여 클라이언트가 늦게 받습니다",
        ),
        remedy: words("compress (gzip on), cache, or a faster link", "압축(gzip on), 캐시 또는 더 빠른 링크를 쓰세요"),
    },
    LimitKind {
        name: "cache_size",
        title: words("Cache", "캐시"),
        counts: false,
        full: words("weir removes the least recently used object", "weir가 가장 오래 쓰이지 않은 객체를 지웁니다"),
        remedy: words(
            "raise max_size in proxy_cache_path if misses grow",
            "미스가 늘어나면 proxy_cache_path의 max_size를 늘리세요",
        ),
    },
    LimitKind {
        name: "upstream_conns",
        title: words("max_conns of", "max_conns"),
        counts: true,
        full: words(
            "requests go to other peers, wait, or get 502",
            "요청이 다른 피어로 가거나, 기다리거나, 502를 받습니다",
        ),
        remedy: words("raise max_conns, or add a server to the group", "max_conns를 늘리거나 그룹에 서버를 추가하세요"),
    },
    LimitKind {
        name: "upstream_queue",
        title: words("Queue of", "대기열(queue)"),
        counts: true,
        full: words("further requests get 502", "이후의 요청은 502를 받습니다"),
        remedy: words(
            "raise max_conns, or add a server to the group; a longer queue only makes clients wait longer",
            "max_conns를 늘리거나 그룹에 서버를 추가하세요. 대기열이 길어지면 클라이언트가 더 오래 기다릴 뿐입니다",
        ),
    },
    LimitKind {
        name: "memory",
        title: words("Memory", "메모리"),
        counts: true,
        full: words("the kernel ends the process", "커널이 프로세스를 강제 종료합니다"),
        remedy: words("more memory, or smaller caches and buffers", "메모리를 늘리거나 캐시와 버퍼를 줄이세요"),
    },
];

static OTHER: LimitKind = LimitKind {
    name: "",
    title: words("", ""),
    counts: true,
    full: words("weir refuses the next one", "weir가 그다음 요청을 거절합니다"),
    remedy: words("", ""),
};

/// The kind with this name; for an unknown one, a kind without words.
pub fn kind(name: &str) -> &'static LimitKind {
    KINDS.iter().find(|kind| kind.name == name).unwrap_or(&OTHER)
}

/// The setting of a limit. Names of settings are the same in every language; limits of the machine have words.
pub fn setter(kind: &str, set_by: &str) -> Said {
    let korean = match kind {
        "memory" => "머신의 메모리",
        "worker_cpu" => "워커마다 CPU 하나",
        "machine_cpu" => "머신의 CPU 수",
        "cpu_credits" => "하이퍼바이저 (steal)",
        "tx_link" => "링크 속도",
        _ => set_by,
    };
    Said::of_both(set_by, korean)
}

/// The object of a limit for people: a worker, an address, a name of the configuration.
pub fn object(of: &str) -> Said {
    let korean = of.strip_prefix("worker ").map_or_else(|| of.to_owned(), |number| format!("워커 {number}"));
    Said::of_both(of, korean)
}

/// A limit by its kind and its object: `Ports to 10.0.0.1:3000`.
pub fn title(name: &str, of: &str) -> Said {
    let kind = kind(name);
    let (en, ko) = if kind.name.is_empty() { (name, name) } else { (kind.title.en, kind.title.ko) };
    let object = object(of);
    let with = |name: &str, of: &str| format!("{name} {of}").trim_end().to_owned();
    Said::of_both(with(en, object.en()), with(ko, object.ko()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_words::is_korean;

    #[test]
    fn every_kind_has_all_its_words() {
        for kind in KINDS {
            for text in [kind.title.en, kind.title.ko, kind.full.en, kind.full.ko, kind.remedy.en, kind.remedy.ko] {
                assert!(!text.is_empty(), "{}", kind.name);
            }
            assert!(is_korean(kind.title.ko) || is_korean(kind.full.ko), "{}", kind.name);
            assert_eq!(KINDS.iter().filter(|other| other.name == kind.name).count(), 1);
        }
    }

    #[test]
    fn a_limit_that_is_not_known_goes_by_its_own_name() {
        assert_eq!(title("ports", "10.0.0.1:80").en(), "Ports to 10.0.0.1:80");
        assert_eq!(title("fds", ""), Said::of_both("Open files", "열린 파일"));
        assert_eq!(title("connections", "worker 0"), Said::of_both("Connections worker 0", "연결 워커 0"));
        assert_eq!(title("llamas", "x"), Said::of_both("llamas x", "llamas x"));
        assert_eq!(title("worker_cpu", "worker 0"), Said::of_both("CPU of worker 0", "CPU 워커 0"));
    }
}
