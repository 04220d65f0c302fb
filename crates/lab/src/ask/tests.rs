//! Tests of orders for a keeper: nothing here is started.

use super::*;

/// Settings that are never run.
pub(crate) fn ask() -> Ask {
    Ask {
        weir: PathBuf::from("weir"),
        load: Load::Path { path: "/".to_owned(), connections: 1, rate: None },
        block: Duration::from_secs(1),
        warm_up: Duration::ZERO,
        raises_warm_up: false,
        warm_script: None,
        origin: None,
        is_noisy: false,
        is_isolated: false,
        port: None,
        cpus: Cpus::default(),
        quota: None,
        headers: Vec::new(),
        link: None,
    }
}

#[test]
fn a_loads_fields_are_sent() {
    let ask = Ask { headers: vec!["Accept-Encoding: gzip".to_owned()], ..ask() };
    let stack = Stack {
        layout: Layout::default(),
        target: SocketAddr::from(([127, 0, 0, 1], 80)),
        fresh: Vec::new(),
        globals: Vec::new(),
        protocol: LoadProtocol::Http1,
    };
    let argv = ask.client_argv(&ask.load, ask.block, &stack, Path::new("/o"), 1);
    assert!(argv.windows(2).any(|pair| pair == ["-H", "Accept-Encoding: gzip"]), "{argv:?}");
    let warm = ask.spec(&side(), &Stack { ..stack }, Path::new("/d"), 1);
    assert!(warm.client.argv.contains(&"-H".to_owned()));
}

/// At five requests a second, Node would compile the path's code while it is measured.
#[test]
fn a_small_load_is_warmed_up_by_more_requests_than_it_sends() {
    let stack = Stack {
        layout: Layout::default(),
        target: SocketAddr::from(([127, 0, 0, 1], 80)),
        fresh: Vec::new(),
        globals: Vec::new(),
        protocol: LoadProtocol::Http1,
    };
    let small = |rate| Ask {
        load: Load::Path { path: "/".to_owned(), connections: 32, rate },
        block: Duration::from_secs(8),
        warm_up: Duration::from_secs(6),
        raises_warm_up: true,
        ..ask()
    };
    let rate_of = |argv: &[String]| {
        let at = argv.iter().position(|word| word == "-R")?;
        argv.get(at + 1).cloned()
    };
    let rates = |ask: &Ask| {
        let spec = ask.spec(&side(), &stack, Path::new("/d"), 1);
        (spec.warm.as_ref().and_then(|warm| rate_of(&warm.argv)), rate_of(&spec.client.argv))
    };
    let said = |warm: &str, load: &str| (Some(warm.to_owned()), Some(load.to_owned()));
    assert_eq!(rates(&small(Some(5.0))), said("167", "5"));
    assert_eq!(rates(&small(Some(500.0))), said("500", "500"), "enough requests");
    assert_eq!(rates(&small(None)), (None, None), "a closed loop");
    let short = Ask { warm_up: Duration::from_secs(1), ..small(Some(5.0)) };
    assert_eq!(rates(&short), said("200", "5"), "a small application carries no more");
    let alone = Ask { raises_warm_up: false, ..small(Some(5.0)) };
    assert_eq!(rates(&alone), said("5", "5"));
    let limited = "http { server { location / { limit_req zone=a; } } }";
    let side_of = |text: &str| {
        let files = weir_conf::MemoryFiles::new().with("/n.conf", text);
        Side { tree: weir_conf::load(&files, "/n.conf", "/", &|_| false).0, ..side() }
    };
    let (free, limited) = (side_of("http { server { } }"), side_of(limited));
    assert_eq!((may_raise_warm_up(&[&free, &free]), may_raise_warm_up(&[&free, &limited])), (true, false));
    // 32 connections are open after 6.4 s.
    assert!((small(Some(5.0)).asked().opening_s - 6.4).abs() < 1e-9);
    assert_eq!(small(None).asked().opening_s, 0.0);
}

pub(crate) fn side() -> Side {
    let tree = weir_conf::load(&weir_conf::MemoryFiles::new().with("/n.conf", ""), "/n.conf", "/", &|_| false).0;
    Side { file: "/n.conf".into(), tree, edge: EdgeProgram::Weir, protocol: LoadProtocol::Http1, application: None }
}

#[test]
fn each_arm_may_have_its_application() {
    let text = "http { upstream a { server 127.0.0.1:81; } server { listen 127.0.0.1:80; location / { proxy_pass http://a; } } }";
    let files = weir_conf::MemoryFiles::new().with("/n.conf", text);
    let plain = Side { tree: weir_conf::load(&files, "/n.conf", "/", &|_| false).0, ..side() };
    let own = ArmApplication { command: "./b".to_owned(), directory: "/b".into() };
    let ask = Ask { origin: Some("./a".to_owned()), ..ask() };
    for (side, command, directory) in
        [(plain.clone(), "./a", None), (Side { application: Some(own), ..plain }, "./b", Some(PathBuf::from("/b")))]
    {
        let stack = ask.stack(&side).unwrap_or_else(|why| unreachable!("{why}"));
        let spec = ask.spec(&side, &stack, Path::new("/d"), 1);
        let origin = spec
            .processes
            .iter()
            .find(|process| process.name == crate::block::APPLICATION)
            .cloned()
            .unwrap_or_default();
        assert_eq!((origin.argv.last().map(String::as_str), origin.cwd), (Some(command), directory));
    }
}

#[test]
fn each_side_has_its_protocol_and_both_the_same_link() {
    let text = "http { server { listen 443 ssl; listen 443 quic; } }";
    let files = weir_conf::MemoryFiles::new().with("/n.conf", text);
    let tree = weir_conf::load(&files, "/n.conf", "/", &|_| false).0;
    let of = |protocol| Side { tree: tree.clone(), protocol, ..side() };
    let ask = Ask { is_isolated: true, link: Some(BadLink::late(20_000, 20_000)), ..ask() };
    let flags =
        [(LoadProtocol::Http1, None), (LoadProtocol::Http2, Some("--http2")), (LoadProtocol::Http3, Some("--http3"))];
    for (protocol, flag) in flags {
        let side = of(protocol);
        let stack = ask.stack(&side).unwrap_or_else(|why| unreachable!("{why}"));
        let spec = ask.spec(&side, &stack, Path::new("/d"), 9);
        let said = spec.client.argv.iter().find(|word| word.starts_with("--http"));
        assert_eq!(said.map(String::as_str), flag);
        let link = spec.hosts.iter().find(|host| host.name == stack::CLIENT).and_then(|host| host.link);
        assert_eq!(link, Some(BadLink { seed: Some(9), ..BadLink::late(20_000, 20_000) }));
    }
    let near = Ask { is_isolated: false, ..ask.clone() };
    assert!(near.stack(&of(LoadProtocol::Http2)).is_err_and(|why| why.contains("needs a client on a host of its own")));
    let plain = Side {
        tree: weir_conf::load(
            &weir_conf::MemoryFiles::new().with("/n.conf", "http { server { listen 80; } }"),
            "/n.conf",
            "/",
            &|_| false,
        )
        .0,
        ..of(LoadProtocol::Http3)
    };
    assert!(ask.stack(&plain).is_err_and(|why| why.contains("HTTP/3 needs TLS")));
}

#[test]
fn the_client_is_kept_away_from_the_edge() {
    for count in 2..=64usize {
        let all: Vec<usize> = (0..count).collect();
        let cpus = Cpus::of(&all);
        assert!(!cpus.edge.is_empty() && !cpus.client.is_empty() && !cpus.origin.is_empty(), "{count}");
        assert!(cpus.client.iter().all(|cpu| !cpus.edge.contains(cpu)), "{count}");
        assert!(count < 3 || cpus.origin.iter().all(|cpu| !cpus.client.contains(cpu)), "{count}");
    }
    assert_eq!(Cpus::of(&[5]).client, [5]);
}

#[test]
fn what_would_escape_a_lab_is_refused() {
    let survey = |process: &[(&str, &str)]| Survey {
        process: process.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..Survey::default()
    };
    assert_eq!(globals(&survey(&[]), true), Ok(vec!["daemon off;".to_owned(), "pid @DIR@/edge.pid;".to_owned()]));
    assert_eq!(globals(&survey(&[("daemon", "off"), ("pid", "/run/nginx.pid")]), true), Ok(vec![]));
    assert!(globals(&survey(&[("daemon", "on")]), true).is_err_and(|why| why.contains("remove the directive")));
    assert!(globals(&survey(&[("pid", "/run/nginx.pid")]), false).is_err_and(|why| why.contains("would overwrite")));
}
