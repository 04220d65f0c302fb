//! An application server with fewer workers than the edge may keep busy.

use weir_host::Pool;

use super::headroom::workers;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "app_workers",
    level: FindingLevel::Risk,
    group: Group::Limits,
    symptoms: &[Symptom::Timeout, Symptom::Slow, Symptom::Limit],
    says: words(
        "The application server behind this line has too few workers",
        "이 줄 뒤의 앱 서버에 워커가 부족합니다",
    ),
    remedy: words(
        "PHP-FPM and uWSGI give each connection a worker of its own. A kept connection holds its worker also while it is idle, and a request without a worker waits. Raise the number of workers as far as the memory allows: a worker of PHP often needs 30 to 100 MB. Or keep fewer connections.",
        "PHP-FPM과 uWSGI는 연결마다 워커 하나를 씁니다. 유지되는 연결은 놀고 있어도 워커를 차지하고, 워커를 얻지 못한 요청은 기다립니다. 메모리가 허용하는 만큼 워커 수를 늘리세요. PHP 워커 하나는 흔히 30~100MB가 필요합니다. 아니면 유지하는 연결을 줄이세요.",
    ),
    source: "PHP manual, FPM configuration, pm.max_children; nginx.org ngx_http_fastcgi_module, fastcgi_keep_conn",
    check,
    fires: Example::with(
        "worker_processes 2; http { upstream php { server unix:/run/php.sock; keepalive 8; } server { location / { fastcgi_keep_conn on; fastcgi_pass php; } } }",
        |facts| facts.pools = vec![example(5)],
    ),
    silent: Example::with(
        "worker_processes 2; http { upstream php { server unix:/run/php.sock; keepalive 8; } server { location / { fastcgi_keep_conn on; fastcgi_pass php; } } }",
        |facts| facts.pools = vec![example(40)],
    ),
};

fn example(workers: u64) -> Pool {
    Pool {
        program: "PHP-FPM",
        setting: "pm.max_children",
        listen: "unix:/run/php.sock".to_owned(),
        workers,
        file: "/etc/php/8.2/fpm/pool.d/www.conf".to_owned(),
    }
}

/// Idle connections that weir keeps for each worker and group if no `keepalive` limits them.
const KEPT_BY_WEIR: u64 = 1024;

fn check(case: &Case<'_>, found: &mut Findings) {
    for pass in ["fastcgi_pass", "uwsgi_pass"].iter().flat_map(|name| case.view.named(name)) {
        let group = case.view.upstream(pass.arg(0));
        let addresses: Vec<&str> = match group {
            Some(group) => group.inside().named("server").map(|server| server.arg(0)).collect(),
            None => vec![pass.arg(0)],
        };
        let behind = case.facts.pools.iter().filter(|pool| addresses.iter().any(|address| is_at(pool, address)));
        for pool in behind {
            let kept = kept(case, pass, group);
            if kept >= pool.workers {
                let what = said!(
                    "idle connections can hold {} workers, and {} has {} = {} ({})",
                    "놀고 있는 연결이 워커 {}개를 차지할 수 있는데 {}의 {} = {}입니다({})",
                    kept,
                    pool.program,
                    pool.setting,
                    pool.workers,
                    pool.file
                );
                found.add(Finding::at(pass, what));
            } else if let Some(need) = case.facts.load.clients().filter(|need| *need > pool.workers as f64) {
                let what = said!(
                    "the expected load has {:.0} requests at the same time, and {} has {} = {} ({})",
                    "예상 부하의 동시 요청은 {:.0}개인데 {}의 {} = {}입니다({})",
                    need.ceil(),
                    pool.program,
                    pool.setting,
                    pool.workers,
                    pool.file
                );
                found.add(Finding::at(pass, what));
            }
        }
    }
}

/// The idle connections that all workers of the edge together may keep to the servers of a pass.
fn kept(case: &Case<'_>, pass: Spot<'_>, group: Option<Spot<'_>>) -> u64 {
    if pass.name() != "fastcgi_pass" || !pass.scope().effective("fastcgi_keep_conn").is_some_and(|spot| spot.says("on"))
    {
        return 0;
    }
    let written = group.and_then(|group| group.inside().get("keepalive")).and_then(|spot| spot.arg(0).parse().ok());
    let each = written.unwrap_or(if case.is_weir() { KEPT_BY_WEIR } else { 0 });
    each.saturating_mul(workers(case))
}

/// Whether a pool listens at this address of the configuration.
fn is_at(pool: &Pool, address: &str) -> bool {
    let address = address.trim_end_matches(':');
    let here = |host: &str| matches!(host, "127.0.0.1" | "localhost" | "[::1]");
    match (pool.listen.rsplit_once(':'), address.rsplit_once(':')) {
        _ if pool.listen == address => true,
        (Some((of, port)), Some((host, same))) => {
            port == same && here(host) && (of.is_empty() || here(of) || of == "0.0.0.0")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_found_by_their_address() {
        for (listen, address, same) in [
            ("unix:/run/a.sock", "unix:/run/a.sock", true),
            ("unix:/run/a.sock", "unix:/run/a.sock:", true),
            ("unix:/run/a.sock", "unix:/run/b.sock", false),
            (":9000", "127.0.0.1:9000", true),
            (":9000", "localhost:9000", true),
            ("127.0.0.1:9000", "localhost:9000", true),
            ("127.0.0.1:9000", "127.0.0.1:9001", false),
            (":9000", "10.0.0.1:9000", false),
            (":9000", "php", false),
        ] {
            let pool = Pool { listen: listen.to_owned(), ..example(1) };
            assert_eq!(is_at(&pool, address), same, "{listen} {address}");
        }
    }
}
