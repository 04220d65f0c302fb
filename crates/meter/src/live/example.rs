//! A shop's edge in a bad minute, for tests of code that reads snapshots.

use super::*;

fn counts<K: Ord + From<&'static str>>(all: &[(&'static str, u64)]) -> BTreeMap<K, u64> {
    all.iter().map(|(name, count)| (K::from(name), *count)).collect()
}

fn times(count: u64, p50_us: u64, p95_us: u64, p99_us: u64, max_us: u64) -> Times {
    Times { count, sum_us: count * p50_us, p50_us, p95_us, p99_us, max_us }
}

fn zone_times(rate: f64, p50_us: u64, p99_us: u64) -> ZoneTimes {
    let recent = times((rate * 10.0) as u64, p50_us, p99_us / 2, p99_us, p99_us * 2);
    let total = times(48_900, p50_us, p99_us / 2, p99_us, p99_us * 4);
    ZoneTimes { rate, rate_max: rate * 1.3, recent, total }
}

fn zone_account(rate: f64, p50_us: u64, p99_us: u64, failed: u64) -> ZoneAccount {
    ZoneAccount { times: zone_times(rate, p50_us, p99_us), failed, refused: 0 }
}

fn responses(all: &[(u16, u64)]) -> Responses {
    let mut responses = Responses::default();
    for (status, count) in all {
        responses.add(*status, *count);
    }
    responses
}

/// A database behind the edge: one peer, and 17 sessions at the moment.
fn stream() -> StreamObjects {
    let sessions = SessionStatuses { c2xx: 203, c4xx: 1, c5xx: 2, total: 206 };
    let zone =
        SessionZone { processing: 17, connections: 223, sessions, discarded: 0, received: 91_000, sent: 4_200_000 };
    let peer = SessionPeer {
        server: "10.0.0.21:5432".to_owned(),
        name: "10.0.0.21:5432".to_owned(),
        weight: 1,
        state: PeerState::Up,
        active: 17,
        connections: 222,
        connect_time: Some(1),
        first_byte_time: Some(3),
        response_time: Some(48_000),
        sent: 91_000,
        received: 4_200_000,
        fails: 2,
        ..SessionPeer::default()
    };
    StreamObjects {
        server_zones: BTreeMap::from([("0.0.0.0:5432".to_owned(), zone)]),
        limit_conns: BTreeMap::from([("db".to_owned(), LimitConn { passed: 222, rejected: 1, rejected_dry_run: 0 })]),
        upstreams: BTreeMap::from([(
            "db".to_owned(),
            SessionUpstream { peers: vec![peer], zombies: 0, zone: "db".to_owned() },
        )]),
    }
}

impl Snapshot {
    /// A snapshot with data in every part and with consistent counts: one shop with an application of two servers,
    /// one of them failing, a cache, limits and WebSockets.
    pub fn example() -> Snapshot {
        let now = Timestamp(1_795_363_200_250);
        Snapshot {
            nginx: Nginx {
                version: "0.1.0".to_owned(),
                build: "weir".to_owned(),
                address: "127.0.0.1:8080".to_owned(),
                generation: 2,
                load_timestamp: Timestamp(now.0 - 3_600_000),
                timestamp: now,
                pid: 4711,
                ppid: 1,
            },
            processes: Processes { respawned: 0 },
            connections: Connections { accepted: 1_280, dropped: 3, active: 41, idle: 380 },
            ssl: ssl(),
            slabs: BTreeMap::from([(
                "per_ip".to_owned(),
                Slab { pages: Pages { used: 12, free: 2_548 }, slots: BTreeMap::new() },
            )]),
            http: http(now),
            stream: stream(),
            resolvers: BTreeMap::from([(
                "127.0.0.53".to_owned(),
                Resolver {
                    requests: ResolverRequests { name: 122, srv: 0, addr: 0 },
                    responses: ResolverResponses { noerror: 120, nxdomain: 1, timedout: 1, ..Default::default() },
                },
            )]),
            workers: vec![worker(0, 700, 24_500, 21), worker(1, 580, 24_424, 20)],
            weir: weir(now),
        }
    }
}

fn ssl() -> Ssl {
    let verify_failures = VerifyFailures::default();
    Ssl {
        handshakes: 900,
        handshakes_failed: 4,
        session_reuses: 610,
        no_common_protocol: 2,
        no_common_cipher: 0,
        handshake_timeout: 1,
        peer_rejected_cert: 1,
        verify_failures,
    }
}

fn worker(id: u64, accepted: u64, total: u64, current: u64) -> Worker {
    let connections = Connections { accepted, dropped: id * 3, active: current, idle: 190 };
    Worker { id, pid: 4712 + id as u32, connections, http: WorkerHttp { requests: Requests { total, current } } }
}

fn http(now: Timestamp) -> Http {
    let all = [(101, 120), (200, 48_000), (304, 112), (404, 300), (499, 20), (502, 260), (504, 50)];
    let shop = responses(&[(101, 120), (200, 48_000), (206, 112), (304, 112), (404, 300), (502, 160), (504, 50)]);
    let server = ServerZone {
        processing: 41,
        requests: 48_924,
        discarded: 48_924 - 41 - shop.total,
        responses: shop.clone(),
        received: 19_000_000,
        sent: 734_000_000,
        ssl: Some(ssl().into()),
    };
    let location = |share: u64| LocationZone {
        requests: 48_883 / share,
        responses: responses(&all.map(|(status, count)| (status, count / share))),
        discarded: 7,
        received: 19_000_000 / share,
        sent: 734_000_000 / share,
    };
    Http {
        requests: Requests { total: 48_924, current: 41 },
        server_zones: BTreeMap::from([("shop.example".to_owned(), server)]),
        location_zones: BTreeMap::from([
            ("shop.example/".to_owned(), location(2)),
            ("shop.example/api/".to_owned(), location(3)),
            ("shop.example/socket.io/".to_owned(), location(100)),
        ]),
        caches: BTreeMap::from([("pages".to_owned(), cache())]),
        limit_conns: BTreeMap::from([(
            "per_ip".to_owned(),
            LimitConn { passed: 48_000, rejected: 12, rejected_dry_run: 0 },
        )]),
        limit_reqs: BTreeMap::from([(
            "logins".to_owned(),
            LimitReq { passed: 900, delayed: 40, rejected: 7, ..Default::default() },
        )]),
        upstreams: BTreeMap::from([("app".to_owned(), upstream(now))]),
    }
}

fn cache() -> Cache {
    let read = |responses| CacheRead { responses, bytes: responses * 14_000 };
    let fetch = |responses: u64| CacheFetch {
        responses,
        bytes: responses * 14_000,
        responses_written: responses / 2,
        bytes_written: responses / 2 * 14_000,
    };
    Cache {
        size: 41_000_000,
        max_size: Some(64 << 20),
        cold: false,
        hit: read(17_400),
        stale: read(20),
        updating: read(510),
        revalidated: read(3),
        miss: fetch(60),
        expired: fetch(22),
        bypass: fetch(7),
    }
}

fn upstream(now: Timestamp) -> Upstream {
    let good = Peer {
        id: 0,
        server: "10.0.0.11:3000".to_owned(),
        name: "app1:3000".to_owned(),
        weight: 1,
        state: PeerState::Up,
        active: 31,
        max_conns: Some(200),
        requests: 46_290,
        responses: responses(&[(101, 120), (200, 45_800), (304, 70), (404, 300)]),
        sent: 17_000_000,
        received: 700_000_000,
        selected: Some(now),
        header_time: Some(4),
        response_time: Some(5),
        response_time_hist: ResponseTimeHist::new(
            &[40_100, 4_000, 1_500, 500, 90, 40, 30, 15, 8, 4, 2, 1, 0, 0, 0],
            231_450,
        ),
        ..Default::default()
    };
    let bad = Peer {
        id: 1,
        server: "10.0.0.12:3000".to_owned(),
        name: "app2:3000".to_owned(),
        weight: 1,
        state: PeerState::Unavail,
        active: 0,
        requests: 2_600,
        responses: responses(&[(200, 2_200), (502, 100)]),
        sent: 900_000,
        received: 33_000_000,
        fails: 300,
        unavail: 3,
        health_checks: HealthChecks { checks: 720, fails: 8, unhealthy: 2, last_passed: Some(true) },
        downtime: 41_000,
        downstart: Some(Timestamp(now.0 - 8_200)),
        selected: Some(Timestamp(now.0 - 8_200)),
        header_time: Some(38),
        response_time: Some(41),
        response_time_hist: ResponseTimeHist::new(
            &[400, 700, 600, 300, 100, 100, 60, 20, 10, 5, 3, 2, 0, 0, 0],
            94_300,
        ),
        ..Default::default()
    };
    let queue = Some(QueueCounts { size: 2, max_size: 100, overflows: 7 });
    Upstream { peers: vec![good, bad], keepalive: 24, zombies: 0, zone: "app".to_owned(), queue }
}

fn fleet() -> FleetView {
    let member = |edge: &str, rate, p99_us| FleetMember {
        edge: edge.to_owned(),
        version: "0.1.0".to_owned(),
        generation: 3,
        heard_ms_ago: 420,
        rate,
        failed: 12,
        refused: 4_102,
        p99_us,
        connections: 310,
        cpu: 0.42,
    };
    FleetView {
        server: "10.0.0.5:6379".to_owned(),
        name: "shop".to_owned(),
        edge: "paris-1".to_owned(),
        is_alone: false,
        lost: None,
        share: 1.0 / 3.0,
        edges: 3,
        debts: 2,
        dropped: 0,
        members: vec![
            member("paris-1", 812.0, 9_100),
            member("paris-2", 790.5, 8_800),
            member("paris-3", 801.0, 31_000),
        ],
    }
}

fn canary() -> Canary {
    let aspect = |name: &str, old, new, margin| CanaryAspect {
        name: name.to_owned(),
        old,
        new,
        upper: Some(new - old + 0.02),
        margin,
        evidence: 1.1,
    };
    Canary {
        sentence: "/etc/nginx/new.conf has 10.0 % of the clients".to_owned(),
        file: "/etc/nginx/new.conf".to_owned(),
        generation: 4,
        key: "address".to_owned(),
        share: 0.1,
        next_shares: vec![0.5],
        since: Timestamp(1_795_362_600_250),
        seconds: 740,
        old: CanaryLane { clients: 3_610, requests: 41_200 },
        new: CanaryLane { clients: 402, requests: 4_630 },
        evidence: 0.8,
        evidence_limit: 40.0,
        aspects: vec![aspect("errors", 0.003, 0.004, 0.005), aspect("slower", 0.5, 0.51, 0.03)],
        clients_needed: Some(13_100),
        largest_client: 0.01,
        ..Canary::default()
    }
}

fn weir(now: Timestamp) -> Weir {
    let step = |step: &str, p50_us: u64, p99_us: u64| StepTimes {
        step: step.to_owned(),
        recent: times(5_000, p50_us, p99_us / 2, p99_us, p99_us * 2),
        total: times(48_900, p50_us, p99_us / 2, p99_us, p99_us * 5),
    };
    let path = [
        (12, 90),
        (410, 2_900),
        (0, 0),
        (900, 4_000),
        (70, 2_100),
        (6, 52_000),
        (1, 30),
        (240, 4_100),
        (4_100, 63_000),
        (350, 8_000),
        (40, 900),
        (0, 0),
    ];
    Weir {
        queues: BTreeMap::from([("app".to_owned(), QueueAccount { waited: 310, timed_out: 3 })]),
        changeable: vec!["app".to_owned()],
        uptime_ms: 7_200_000,
        recent_ms: 10_000,
        reset: None,
        loads_refused: 1,
        is_last_load_refused: false,
        path: PATH.iter().zip(path).map(|(name, (p50, p99))| step(name, p50, p99)).collect(),
        protocols: protocols(),
        quic: quic(),
        server_zones: BTreeMap::from([("shop.example".to_owned(), zone_account(512.0, 4_600, 65_000, 310))]),
        location_zones: BTreeMap::from([
            ("shop.example/".to_owned(), zone_account(260.0, 310, 9_000, 0)),
            ("shop.example/api/".to_owned(), zone_account(240.0, 4_900, 71_000, 310)),
            ("shop.example/socket.io/".to_owned(), zone_account(2.0, 6_000, 80_000, 0)),
        ]),
        upstreams: BTreeMap::from([("app".to_owned(), peers())]),
        caches: BTreeMap::from([("pages".to_owned(), account())]),
        websockets: WebSockets {
            open: 96,
            opened: 120,
            closes: counts(&[("client", 15), ("upstream", 3), ("timeout", 6)]),
            received: 410_000,
            sent: 2_900_000,
            messages_received: Some(5_400),
            messages_sent: Some(38_200),
            lost: 0,
            codes: closes(),
            age: times(24, 61_000_000, 300_000_000, 600_000_000, 612_000_000),
            ages: ages(),
            rtt_client: times(410, 38_000, 210_000, 640_000, 702_000),
            rtt_upstream: times(12, 400, 900, 900, 880),
            timeout_ms: 60_000,
        },
        certificates: certificates(now),
        recordings: vec![Recording {
            file: "/var/log/weir/traffic.weir".to_owned(),
            is_on: true,
            is_ending: false,
            share: 0.1,
            since: Some(Timestamp(1_795_362_600_250)),
            until: None,
            exchanges: 41_203,
            recorded: 41_200,
            lost: RecordingLosses { queue: 3, ..RecordingLosses::default() },
            messages: 0,
            bytes: 6_120_004,
            max_bytes: 256 << 20,
            totals: RecordingTotals {
                exchanges: 41_203,
                recorded: 41_200,
                lost: RecordingLosses { queue: 3, ..RecordingLosses::default() },
            },
        }],
        canary: Some(canary()),
        fleet: Some(fleet()),
        traces: Traces { endpoint: Some("http://127.0.0.1:4317".to_owned()), exported: 1_204, dropped: 0, failed: 0 },
        limits: limits(),
        host: host(),
        workers: vec![
            WorkerCpu { id: 0, cpu: 0.93, wait: Some(0.11), wakeups: Some(21_400.0) },
            WorkerCpu { id: 1, cpu: 0.71, wait: Some(0.04), wakeups: Some(19_800.0) },
        ],
        errors: errors(now),
        names_merged: 0,
    }
}

fn protocols() -> Vec<ProtocolAccount> {
    let all = [(30_124, 4_900_000, 402_000_000), (14_200, 2_100_000, 240_000_000), (4_600, 800_000, 90_000_000)];
    let account = |(name, (requests, received, sent)): (&&str, (u64, u64, u64))| ProtocolAccount {
        protocol: (*name).to_owned(),
        requests,
        received,
        sent,
    };
    PROTOCOLS.iter().zip(all).map(account).collect()
}

fn quic() -> Quic {
    Quic {
        active: 44,
        accepted: 310,
        refused: 1,
        handshakes_failed: counts(&[("no_application_protocol", 2), ("timeout", 5)]),
        version_negotiations: 1,
        retries: 12,
        early_data: 61,
        stateless_resets: 4,
        migrations: 7,
        lost_packets: 820,
        datagrams: Datagrams {
            received: 52_000,
            sent: 91_000,
            unsent: 0,
            dropped: counts(&[("full", 0), ("garbage", 19), ("unknown_id", 6)]),
            forwarded: counts(&[("process", 0), ("worker", 140)]),
        },
    }
}

fn certificates(Timestamp(now): Timestamp) -> Vec<Certificate> {
    const DAY_MS: u64 = 24 * 3600 * 1000;
    let certificate = |source: &str, host: &str| Certificate {
        source: source.to_owned(),
        hosts: vec![host.to_owned()],
        begins: Some(Timestamp(now - 60 * DAY_MS)),
        ..Certificate::default()
    };
    vec![
        Certificate { ends: Some(Timestamp(now + 5 * DAY_MS)), ..certificate("/etc/ssl/shop.pem", "shop.example") },
        Certificate {
            is_renewed: true,
            ends: Some(Timestamp(now + 30 * DAY_MS)),
            next: Some(Timestamp(now + DAY_MS / 2)),
            failures: 1,
            error: Some("directory update failed (connect() failed (111: Connection refused))".to_owned()),
            ..certificate("letsencrypt", "www.shop.example")
        },
    ]
}

fn closes() -> Vec<CloseCode> {
    let code = |code, by: &str, count| CloseCode { code, by: by.to_owned(), count };
    vec![code(1000, "client", 4), code(1001, "client", 11), code(1001, "upstream", 3), code(1006, "nobody", 6)]
}

fn ages() -> Vec<AgeBucket> {
    let counts = [0, 1, 1, 2, 0, 12, 2, 3, 3, 0, 0, 0, 0];
    let ends = CLOSE_AGES_S.into_iter().map(Some).chain([None]);
    ends.zip(counts).map(|(to_s, count)| AgeBucket { to_s, count }).collect()
}

fn peers() -> Vec<PeerTimes> {
    vec![
        PeerTimes {
            server: "10.0.0.11:3000".to_owned(),
            opened: 390,
            reused: 45_900,
            idle: 24,
            retries: 210,
            connect: zone_times(2.0, 240, 1_100),
            header: zone_times(470.0, 4_000, 59_000),
            response: zone_times(470.0, 4_500, 64_000),
            fails: BTreeMap::new(),
            last_error: String::new(),
        },
        PeerTimes {
            server: "10.0.0.12:3000".to_owned(),
            opened: 410,
            reused: 2_190,
            idle: 0,
            retries: 4,
            connect: zone_times(0.0, 300, 4_100),
            header: zone_times(0.0, 38_000, 900_000),
            response: zone_times(0.0, 41_000, 910_000),
            fails: counts(&[("refused", 250), ("timeout", 50)]),
            last_error: "connect() failed (111: Connection refused)".to_owned(),
        },
    ]
}

fn account() -> CacheAccount {
    CacheAccount {
        requests: 18_032,
        hit: 17_400,
        stale: 20,
        updating: 510,
        revalidated: 3,
        miss: 60,
        expired: 22,
        bypass: 7,
        error: 10,
        fetches: 92,
        waited: 140,
        wait: times(140, 12_000, 48_000, 52_000, 52_400),
        objects: 2_900,
        memory: 30_000_000,
        memory_max: 32 << 20,
        purged: 12,
        reasons: counts(&[("set_cookie", 31), ("cache_control_no_store", 14)]),
    }
}

fn limits() -> Vec<Limit> {
    let limit =
        |kind: &str, of: &str, unit: &str, (used, limit, max): (f64, f64, f64), hits: u64, set_by: &str| Limit {
            kind: kind.to_owned(),
            of: of.to_owned(),
            unit: unit.to_owned(),
            used,
            limit,
            max,
            hits,
            set_by: set_by.to_owned(),
        };
    vec![
        limit("connections", "worker 0", "count", (236.0, 512.0, 511.0), 3, "worker_connections"),
        limit("connections", "worker 1", "count", (209.0, 512.0, 340.0), 0, "worker_connections"),
        limit("fds", "", "count", (470.0, 1024.0, 880.0), 0, "RLIMIT_NOFILE"),
        limit("ports", "10.0.0.11:3000", "count", (5_100.0, 28_232.0, 21_900.0), 0, "net.ipv4.ip_local_port_range"),
        limit("accept_queue", "0.0.0.0:80", "count", (4.0, 511.0, 190.0), 0, "listen backlog"),
        limit("pool", "app", "count", (24.0, 32.0, 32.0), 0, "keepalive"),
        limit("upstream_conns", "app 10.0.0.11:3000", "count", (31.0, 200.0, 77.0), 0, "max_conns"),
        limit("worker_cpu", "worker 0", "cores", (0.93, 1.0, 0.98), 0, "one CPU a worker"),
        limit("worker_cpu", "worker 1", "cores", (0.71, 1.0, 0.97), 0, "one CPU a worker"),
        limit("machine_cpu", "", "cores", (1.78, 2.0, 1.99), 0, "the machine's CPUs"),
        limit("cpu_quota", "", "cores", (1.7, 2.0, 1.99), 14, "cpu.max"),
        limit("cache_size", "pages", "bytes", (41_000_000.0, 67_108_864.0, 52_000_000.0), 0, "max_size"),
    ]
}

fn host() -> Host {
    Host {
        cpus: 2,
        cpu: CpuShares { user: 0.61, system: 0.22, interrupts: 0.06, steal: 0.03, idle: 0.07, wait: 0.01 },
        run_queue_wait: Some(0.15),
        runnable: Some(3),
        load: Some(1.9),
        psi_cpu: Some(0.12),
        psi_memory: Some(0.0),
        psi_io: Some(0.01),
        quota_cpus: Some(2.0),
        throttled: Some(0.1),
        memory_total: 1 << 30,
        memory_available: 400 << 20,
        rss: 61 << 20,
        time_wait: Some(5_060),
        retransmits: Some(0.4),
        vm: Some(VmRow { r: 3, free: 900 << 20, cache: 2 << 30, interrupts: 4100.0, cs: 9300.0, ..VmRow::default() }),
        busiest: None,
        busiest_of_group: None,
    }
}

fn errors(now: Timestamp) -> Vec<ErrorClass> {
    let sample = ErrorSample {
        number: 1,
        at: Timestamp(now.0 - 8_200),
        client: "203.0.113.9".to_owned(),
        server: "shop.example".to_owned(),
        zone: "shop.example/api/".into(),
        request: "GET /api/cart".to_owned(),
        status: 502,
        upstream: "10.0.0.12:3000".to_owned(),
        took_us: 900,
        line:
            "2026/11/22 15:59:52 [error] 4711#4712: *1277 connect() failed (111: Connection refused) while connecting \
               to upstream, client: 203.0.113.9, server: shop.example, request: \"GET /api/cart HTTP/1.1\", \
               upstream: \"http://10.0.0.12:3000/api/cart\", host: \"shop.example\""
                .to_owned(),
        ids: vec!["5d41402abc4b2a76b9719d911017c592".to_owned()],
    };
    let timeout = ErrorSample { number: 2, status: 504, took_us: 60_000_100, line: String::new(), ..sample.clone() };
    vec![
        ErrorClass {
            class: "502".to_owned(),
            kind: ErrorKind::Failed,
            count: 260,
            last: sample.at,
            samples: vec![sample],
        },
        ErrorClass {
            class: "504".to_owned(),
            kind: ErrorKind::Failed,
            count: 50,
            last: timeout.at,
            samples: vec![timeout],
        },
    ]
}
