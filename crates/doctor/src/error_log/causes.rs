//! What nginx's error messages mean: a row for each, with its cause and its remedy.

use weir_meter::Message;
use weir_words::{Words, words};

use crate::symptom::Symptom;

/// What is known of one message.
pub struct Cause {
    /// The message.
    pub message: Message,
    /// nginx's words, short.
    pub words: &'static str,
    /// The symptoms that it explains. Never empty.
    pub symptoms: &'static [Symptom],
    /// Whether only lines that name an upstream count: the same words also stand in lines about clients.
    pub needs_upstream: bool,
    /// What happened.
    pub cause: Words,
    /// What to do.
    pub remedy: Words,
    /// A command or lines of a configuration. `{peer}` and `{port}` are those of the server that the log names most.
    pub write: &'static str,
    /// Rules about the same cause.
    pub rules: &'static [&'static str],
}

use Symptom::{BadGateway, Limit, ServerError, Slow, Timeout, WebSocket};

const AFTER_CLOSE: Words = words(
    "Read the application's own log of the same seconds; `dmesg` names processes that the kernel killed. gunicorn writes WORKER TIMEOUT: raise its --timeout, or make the request faster. If only idle connections are closed, the application must keep them longer than nginx does (Node.js: server.keepAliveTimeout = 65000; gunicorn: --keep-alive), or nginx shorter (keepalive_timeout in the upstream).",
    "같은 시각의 앱 로그를 보세요. 커널이 종료한 프로세스는 `dmesg`에 있습니다. gunicorn이 WORKER TIMEOUT을 남겼다면 --timeout을 늘리거나 요청을 빠르게 하세요. 유휴 연결만 닫힌다면 앱이 nginx보다 오래 연결을 유지하거나(Node.js: server.keepAliveTimeout = 65000, gunicorn: --keep-alive), nginx가 더 짧게 유지해야 합니다(upstream의 keepalive_timeout).",
);

/// The rows, in the order in which messages of equal number are told: causes before their effects.
pub static CAUSES: &[Cause] = &[
    Cause {
        message: Message::Refused,
        words: "connect() failed (111: Connection refused)",
        symptoms: &[BadGateway],
        needs_upstream: true,
        cause: words(
            "Nothing listens at this address: the application is stopped or restarts, or it listens at another port or address (only [::1], or only 127.0.0.1).",
            "이 주소에서 리슨하는 프로그램이 없습니다. 앱이 멈췄거나 다시 시작하는 중이거나, 다른 포트나 주소([::1]만, 또는 127.0.0.1만)에서 리슨합니다.",
        ),
        remedy: words(
            "Look at what listens, on the application's machine. Then start the application, or correct the address in the configuration.",
            "앱이 있는 머신에서 무엇이 리슨하는지 확인하세요. 그다음 앱을 시작하거나 설정의 주소를 고치세요.",
        ),
        write: "ss -ltnp 'sport = :{port}'",
        rules: &["origin_listens_elsewhere", "localhost_dual_stack", "missing_resolver"],
    },
    Cause {
        message: Message::NoPort,
        words: "connect() failed (99: Cannot assign requested address)",
        symptoms: &[BadGateway, Limit],
        needs_upstream: true,
        cause: words(
            "No local port is left towards this server: each request opens a connection, and the port of a closed connection rests (TIME_WAIT).",
            "이 서버로 나갈 로컬 포트가 남지 않았습니다. 요청마다 연결을 새로 열고, 닫힌 연결의 포트는 한동안 쉽니다(TIME_WAIT).",
        ),
        remedy: words(
            "Keep the connections to the application, over HTTP/1.1 and without `Connection: close`.",
            "앱과의 연결을 HTTP/1.1로, `Connection: close` 없이 유지하세요.",
        ),
        write: "upstream … { keepalive 32; }  proxy_http_version 1.1; proxy_set_header Connection \"\";",
        rules: &["upstream_without_keepalive", "inert_upstream_keepalive", "inert_fastcgi_keepalive"],
    },
    Cause {
        message: Message::Closed,
        words: "upstream prematurely closed connection",
        symptoms: &[BadGateway, WebSocket],
        needs_upstream: true,
        cause: words(
            "The application closed the connection before its answer was whole. It crashed or restarted, something killed its worker (out of memory, a timeout of PHP-FPM or gunicorn), or it closed an idle connection in the moment in which nginx used it.",
            "앱이 응답을 다 보내기 전에 연결을 닫았습니다. 앱이 죽었거나 다시 시작했거나, 워커가 강제로 종료됐거나(메모리 부족, PHP-FPM이나 gunicorn의 시간 제한), nginx가 쓰려는 순간에 유휴 연결을 닫았습니다.",
        ),
        remedy: AFTER_CLOSE,
        write: "",
        rules: &["upstream_idle_timeout"],
    },
    Cause {
        message: Message::Reset,
        words: "(104: Connection reset by peer)",
        symptoms: &[BadGateway, WebSocket],
        needs_upstream: true,
        cause: words(
            "The application's side reset the connection: the process died, it closed the connection with unread bytes in it, or it closed an idle connection in the moment in which nginx used it.",
            "앱 쪽이 연결을 리셋했습니다. 프로세스가 죽었거나, 읽지 않은 바이트가 있는 채로 닫았거나, nginx가 쓰려는 순간에 유휴 연결을 닫았습니다.",
        ),
        remedy: AFTER_CLOSE,
        write: "",
        rules: &["upstream_idle_timeout"],
    },
    Cause {
        message: Message::ReadTimeout,
        words: "upstream timed out (110: Connection timed out) while reading",
        symptoms: &[Timeout, Slow],
        needs_upstream: true,
        cause: words(
            "The application took the request and sent nothing for proxy_read_timeout (60 s by default).",
            "앱이 요청을 받고 proxy_read_timeout(기본 60초) 동안 아무것도 보내지 않았습니다.",
        ),
        remedy: words(
            "Find what the application waits for: its slow log, its database, its number of workers. A longer proxy_read_timeout helps only if such long answers are intended.",
            "앱이 무엇을 기다리는지 찾으세요: 앱의 느린 요청 로그, 데이터베이스, 워커 수. proxy_read_timeout을 늘리는 것은 원래 오래 걸리는 응답일 때만 도움이 됩니다.",
        ),
        write: "",
        rules: &["single_event_loop", "app_workers", "retry_amplification", "cache_stampede"],
    },
    Cause {
        message: Message::ConnectTimeout,
        words: "upstream timed out (110: Connection timed out) while connecting",
        symptoms: &[Timeout],
        needs_upstream: true,
        cause: words(
            "The server did not take the connection: its machine is off, the address is wrong, a firewall drops the packets, or the application's listen queue is full.",
            "서버가 연결을 받지 않았습니다. 머신이 꺼졌거나, 주소가 틀렸거나, 방화벽이 패킷을 버리거나, 앱의 리슨 대기열이 가득 찼습니다.",
        ),
        remedy: words(
            "Connect by hand from nginx's machine. On the application's machine `nstat -az TcpExtListenOverflows` counts connections that found the queue full.",
            "nginx가 있는 머신에서 직접 연결해 보세요. 앱이 있는 머신에서 `nstat -az TcpExtListenOverflows`는 대기열이 가득 차서 버린 연결을 셉니다.",
        ),
        write: "curl -v -m 5 http://{peer}/",
        rules: &["missing_resolver", "app_workers", "single_event_loop"],
    },
    Cause {
        message: Message::SendTimeout,
        words: "upstream timed out (110: Connection timed out) while sending",
        symptoms: &[Timeout, Slow],
        needs_upstream: true,
        cause: words(
            "The application did not read the request for proxy_send_timeout (60 s by default): it is blocked.",
            "앱이 proxy_send_timeout(기본 60초) 동안 요청을 읽지 않았습니다. 앱이 막혀 있습니다.",
        ),
        remedy: words(
            "Find what the application does in these seconds: its CPU, its locks, its number of workers.",
            "그 시각에 앱이 무엇을 하는지 찾으세요: CPU, 잠금, 워커 수.",
        ),
        write: "",
        rules: &["single_event_loop", "app_workers"],
    },
    Cause {
        message: Message::TunnelTimeout,
        words: "upstream timed out (110: Connection timed out) while proxying upgraded connection",
        symptoms: &[WebSocket],
        needs_upstream: true,
        cause: words(
            "The WebSocket was silent for proxy_read_timeout or proxy_send_timeout (60 s by default), so nginx closed it.",
            "WebSocket에 proxy_read_timeout이나 proxy_send_timeout(기본 60초) 동안 메시지가 없어 nginx가 닫았습니다.",
        ),
        remedy: words(
            "Let the application send pings more often than that, or raise the timeouts in this location.",
            "앱이 그보다 자주 ping을 보내게 하거나, 이 location의 시간 제한을 늘리세요.",
        ),
        write: "proxy_read_timeout 1h; proxy_send_timeout 1h;",
        rules: &["websocket_timeout"],
    },
    Cause {
        message: Message::TooBigHeader,
        words: "upstream sent too big header",
        symptoms: &[BadGateway],
        needs_upstream: true,
        cause: words(
            "The fields of the answer (often cookies) are larger than proxy_buffer_size (4 or 8 KiB by default).",
            "응답 헤더(흔히 쿠키)가 proxy_buffer_size(기본 4 또는 8 KiB)보다 큽니다.",
        ),
        remedy: words(
            "Raise the buffer, or send fewer cookies. With FastCGI the names begin with fastcgi_.",
            "버퍼를 늘리거나 쿠키를 줄이세요. FastCGI에서는 이름이 fastcgi_로 시작합니다.",
        ),
        write: "proxy_buffer_size 16k; proxy_buffers 8 16k; proxy_busy_buffers_size 32k;",
        rules: &[],
    },
    Cause {
        message: Message::InvalidHeader,
        words: "upstream sent invalid header",
        symptoms: &[BadGateway],
        needs_upstream: true,
        cause: words(
            "The answer is not what nginx expects: the port speaks TLS, HTTP/2 (gRPC) or FastCGI, or the application writes a broken field.",
            "nginx가 기대한 응답이 아닙니다. 포트가 TLS, HTTP/2(gRPC), FastCGI를 쓰거나, 앱이 잘못된 헤더를 보냅니다.",
        ),
        remedy: words(
            "Ask the application without nginx. Use the directive of its protocol: `proxy_pass https://…`, grpc_pass or fastcgi_pass.",
            "nginx 없이 앱에 직접 요청해 보세요. 프로토콜에 맞는 지시어를 쓰세요: `proxy_pass https://…`, grpc_pass, fastcgi_pass.",
        ),
        write: "curl -v --http1.1 http://{peer}/",
        rules: &[],
    },
    Cause {
        message: Message::Unreachable,
        words: "connect() failed (113: No route to host)",
        symptoms: &[BadGateway],
        needs_upstream: true,
        cause: words(
            "No way leads to this server: its machine is off, its address has changed, or a firewall rejects the packets.",
            "이 서버로 가는 길이 없습니다. 머신이 꺼졌거나, 주소가 바뀌었거나, 방화벽이 패킷을 거절합니다.",
        ),
        remedy: words(
            "Connect by hand from nginx's machine. A container that started anew often has another address.",
            "nginx가 있는 머신에서 직접 연결해 보세요. 다시 시작한 컨테이너는 흔히 주소가 바뀝니다.",
        ),
        write: "curl -v -m 5 http://{peer}/",
        rules: &["missing_resolver"],
    },
    Cause {
        message: Message::NoSocket,
        words: "connect() failed (2: No such file or directory)",
        symptoms: &[BadGateway],
        needs_upstream: true,
        cause: words(
            "The Unix socket does not exist: the application is stopped, or it uses another path.",
            "Unix 소켓이 없습니다. 앱이 멈췄거나 다른 경로를 씁니다.",
        ),
        remedy: words(
            "Look at which sockets exist. Then start the application, or correct the path in the configuration.",
            "어떤 소켓이 있는지 확인하세요. 그다음 앱을 시작하거나 설정의 경로를 고치세요.",
        ),
        write: "ss -lxp",
        rules: &[],
    },
    Cause {
        message: Message::NotAllowed,
        words: "connect() failed (13: Permission denied)",
        symptoms: &[BadGateway],
        needs_upstream: true,
        cause: words(
            "nginx may not connect: its user may not write to the Unix socket, or SELinux forbids it.",
            "nginx에 연결할 권한이 없습니다. nginx의 사용자가 Unix 소켓에 쓸 수 없거나 SELinux가 막습니다.",
        ),
        remedy: words(
            "Give nginx's user the right (PHP-FPM: listen.owner, listen.group). With SELinux: setsebool -P httpd_can_network_connect 1.",
            "nginx의 사용자에게 권한을 주세요(PHP-FPM: listen.owner, listen.group). SELinux라면 setsebool -P httpd_can_network_connect 1을 실행하세요.",
        ),
        write: "namei -l /PATH/TO/SOCKET",
        rules: &[],
    },
    Cause {
        message: Message::QueueFull,
        words: "connect() failed (11: Resource temporarily unavailable)",
        symptoms: &[BadGateway, Limit],
        needs_upstream: true,
        cause: words(
            "The listen queue of the application's Unix socket is full: it has too few workers for this load.",
            "앱 Unix 소켓의 리슨 대기열이 가득 찼습니다. 이 부하에 비해 워커가 부족합니다.",
        ),
        remedy: words(
            "Raise the number of workers (PHP-FPM: pm.max_children), and the queue for short peaks (listen.backlog, net.core.somaxconn).",
            "워커 수를 늘리고(PHP-FPM: pm.max_children), 짧은 피크를 위해 대기열도 늘리세요(listen.backlog, net.core.somaxconn).",
        ),
        write: "ss -lx",
        rules: &["app_workers", "backlog_over_somaxconn"],
    },
    Cause {
        message: Message::Unresolved,
        words: "could not be resolved, or host not found in upstream",
        symptoms: &[BadGateway],
        needs_upstream: false,
        cause: words(
            "A name of an application has no address: the name is wrong, or the resolver does not answer.",
            "앱 이름의 주소를 찾을 수 없습니다. 이름이 틀렸거나 resolver가 응답하지 않습니다.",
        ),
        remedy: words(
            "Ask for the name on nginx's machine. A name with a variable in proxy_pass needs `resolver`.",
            "nginx가 있는 머신에서 이름을 조회해 보세요. proxy_pass에 변수가 있는 이름에는 `resolver`가 필요합니다.",
        ),
        write: "getent ahosts NAME",
        rules: &["missing_resolver"],
    },
    Cause {
        message: Message::Certificate,
        words: "upstream SSL certificate verify error",
        symptoms: &[BadGateway],
        needs_upstream: true,
        cause: words(
            "nginx checks the certificate of the application (proxy_ssl_verify) and does not trust it: another issuer, another name, or it has ended.",
            "nginx가 앱의 인증서를 검사하고(proxy_ssl_verify) 신뢰하지 않습니다. 발급자나 이름이 다르거나 만료되었습니다.",
        ),
        remedy: words(
            "Name the issuer's certificate in proxy_ssl_trusted_certificate, and the name in proxy_ssl_name.",
            "proxy_ssl_trusted_certificate에 발급자의 인증서를, proxy_ssl_name에 이름을 쓰세요.",
        ),
        write: "openssl s_client -connect {peer} -servername NAME </dev/null",
        rules: &[],
    },
    Cause {
        message: Message::TlsHandshake,
        words: "SSL_do_handshake() failed while SSL handshaking to upstream",
        symptoms: &[BadGateway],
        needs_upstream: true,
        cause: words(
            "The TLS handshake with the application failed: it needs the name of the host (nginx sends none by default), it has no version of TLS in common with nginx, or the port speaks no TLS.",
            "앱과의 TLS 핸드셰이크가 실패했습니다. 앱이 호스트 이름을 요구하거나(nginx는 기본으로 보내지 않음), 공통 TLS 버전이 없거나, 포트가 TLS를 쓰지 않습니다.",
        ),
        remedy: words(
            "Send the name first; it is the most frequent cause.",
            "먼저 이름을 보내 보세요. 가장 흔한 원인입니다.",
        ),
        write: "proxy_ssl_server_name on;",
        rules: &[],
    },
    Cause {
        message: Message::NoFile,
        words: "(24: Too many open files)",
        symptoms: &[ServerError, Limit, WebSocket],
        needs_upstream: false,
        cause: words(
            "A worker may open no more files. Each connection, to a client or to an application, takes one.",
            "워커가 파일을 더 열 수 없습니다. 클라이언트나 앱과의 연결마다 하나씩 씁니다.",
        ),
        remedy: words(
            "Raise the limit of the running process, not that of a shell. `weir doctor --pid PID` names the limit and the file that sets it.",
            "셸이 아니라 실행 중인 프로세스의 한도를 올리세요. `weir doctor --pid PID`가 한도와 그 한도를 정한 파일을 알려 줍니다.",
        ),
        write: "worker_rlimit_nofile 65536;",
        rules: &["fd_limit_running", "worker_rlimit_nofile_vs_connections", "pam_limits_do_not_apply"],
    },
    Cause {
        message: Message::TableFull,
        words: "worker_connections are not enough",
        symptoms: &[ServerError, Limit, WebSocket],
        needs_upstream: false,
        cause: words(
            "All connections of a worker are in use. A proxied client takes two, a WebSocket also while it is silent.",
            "워커의 연결을 모두 쓰고 있습니다. 프록시된 클라이언트는 연결 2개를 쓰고, WebSocket은 메시지가 없어도 씁니다.",
        ),
        remedy: words(
            "Raise worker_connections to twice the clients at once, and the limit of open files with it.",
            "worker_connections를 동시 클라이언트 수의 두 배로 올리고, 열린 파일 한도도 함께 올리세요.",
        ),
        write: "events { worker_connections 4096; }",
        rules: &["connection_table", "connections_dropped"],
    },
    Cause {
        message: Message::Recycled,
        words: "worker_connections are not enough, reusing connections",
        symptoms: &[Limit],
        needs_upstream: false,
        cause: words(
            "Nearly all connections of a worker were in use, so nginx closed idle clients to make room.",
            "워커의 연결을 거의 다 써서 nginx가 유휴 클라이언트를 닫아 자리를 만들었습니다.",
        ),
        remedy: words(
            "Raise worker_connections, or lower keepalive_timeout.",
            "worker_connections를 올리거나 keepalive_timeout을 낮추세요.",
        ),
        write: "events { worker_connections 4096; }",
        rules: &["connection_table"],
    },
    Cause {
        message: Message::Cycle,
        words: "rewrite or internal redirection cycle",
        symptoms: &[ServerError],
        needs_upstream: false,
        cause: words(
            "try_files, error_page, index or rewrite sends the request to the same place again and again; nginx stops after ten times.",
            "try_files, error_page, index, rewrite가 요청을 같은 곳으로 계속 보냅니다. nginx는 열 번 뒤에 멈춥니다.",
        ),
        remedy: words(
            "The line names the place in its text. Often the last argument of try_files is a file that does not exist: end it with =404.",
            "로그 줄에 그 위치가 있습니다. 흔히 try_files의 마지막 인자가 없는 파일입니다. 끝을 =404로 하세요.",
        ),
        write: "try_files $uri $uri/ =404;",
        rules: &[],
    },
    Cause {
        message: Message::Script,
        words: "FastCGI sent in stderr",
        symptoms: &[ServerError],
        needs_upstream: false,
        cause: words(
            "The FastCGI application (often PHP) reports an error of its own script.",
            "FastCGI 앱(흔히 PHP)이 자기 스크립트의 오류를 알립니다.",
        ),
        remedy: words(
            "The line has the application's own words. \"Primary script unknown\": SCRIPT_FILENAME names no file.",
            "로그 줄에 앱의 메시지가 있습니다. \"Primary script unknown\"이면 SCRIPT_FILENAME의 파일이 없습니다.",
        ),
        write: "",
        rules: &[],
    },
    Cause {
        message: Message::RequestRefused,
        words: "limiting requests",
        symptoms: &[Limit],
        needs_upstream: false,
        cause: words(
            "limit_req refused requests with 503, as configured.",
            "limit_req가 설정대로 요청을 503으로 거절했습니다.",
        ),
        remedy: words(
            "If these were honest clients, raise rate= of the zone, or burst= with nodelay.",
            "정상 클라이언트였다면 zone의 rate=를 올리거나 burst=와 nodelay를 쓰세요.",
        ),
        write: "limit_req zone=NAME burst=20 nodelay;",
        rules: &[],
    },
    Cause {
        message: Message::RequestDelayed,
        words: "delaying request",
        symptoms: &[Slow, Limit],
        needs_upstream: false,
        cause: words(
            "limit_req held requests back to keep the rate of its zone, as configured.",
            "limit_req가 설정대로 zone의 속도를 지키려고 요청을 늦췄습니다.",
        ),
        remedy: words(
            "With nodelay, the requests of a burst go on at once.",
            "nodelay를 쓰면 burst 안의 요청은 바로 처리됩니다.",
        ),
        write: "limit_req zone=NAME burst=20 nodelay;",
        rules: &[],
    },
    Cause {
        message: Message::ConnectionRefused,
        words: "limiting connections by zone",
        symptoms: &[Limit],
        needs_upstream: false,
        cause: words(
            "limit_conn refused requests with 503, as configured.",
            "limit_conn이 설정대로 요청을 503으로 거절했습니다.",
        ),
        remedy: words(
            "Clients behind one address (an office, a load balancer) share one limit: raise it, or key the zone otherwise.",
            "주소 하나를 같이 쓰는 클라이언트(사무실, 로드 밸런서)는 한도도 같이 씁니다. 한도를 올리거나 zone의 키를 바꾸세요.",
        ),
        write: "limit_conn NAME 100;",
        rules: &[],
    },
    Cause {
        message: Message::Temporary,
        words: "is buffered to a temporary file",
        symptoms: &[Slow],
        needs_upstream: false,
        cause: words(
            "A body did not fit into the buffers and went through a file on the disk.",
            "본문이 버퍼에 들어가지 않아 디스크의 파일을 거쳤습니다.",
        ),
        remedy: words(
            "Raise proxy_buffers for answers, client_body_buffer_size for requests, as far as the memory allows.",
            "메모리가 허용하는 만큼 응답은 proxy_buffers, 요청은 client_body_buffer_size를 늘리세요.",
        ),
        write: "proxy_buffers 16 16k;",
        rules: &[],
    },
    Cause {
        message: Message::NoLive,
        words: "no live upstreams",
        symptoms: &[BadGateway],
        needs_upstream: false,
        cause: words(
            "Every server of the group failed shortly before, so nginx asks none of them for fail_timeout (10 s by default). This is an effect: the cause is in the other lines.",
            "그룹의 모든 서버가 조금 전에 실패해서 nginx가 fail_timeout(기본 10초) 동안 어느 서버에도 요청하지 않습니다. 이것은 결과이고, 원인은 다른 줄에 있습니다.",
        ),
        remedy: words(
            "Mend the cause first. With max_fails=3, a single failure takes no server out.",
            "먼저 원인을 고치세요. max_fails=3으로 하면 실패 한 번으로 서버가 빠지지 않습니다.",
        ),
        write: "server {peer} max_fails=3 fail_timeout=5s;",
        rules: &["passive_ejection", "retry_amplification"],
    },
];

/// The row of a message. `None` for messages that explain no symptom.
pub fn of(message: Message) -> Option<&'static Cause> {
    CAUSES.iter().find(|cause| cause.message == message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_whole_and_shares_a_symptom_with_its_rules() {
        for cause in CAUSES {
            let name = cause.message.name();
            assert!(
                !cause.symptoms.is_empty() && of(cause.message).is_some_and(|it| std::ptr::eq(it, cause)),
                "{name}"
            );
            for Words { en, ko } in [cause.cause, cause.remedy] {
                assert!(en.ends_with('.') && ko.chars().any(|c| ('가'..='힣').contains(&c)), "{name}: {en}");
                assert_eq!(weir_words::glossary::forbidden_in(ko), None, "{name}: {ko}");
            }
            for id in cause.rules {
                let rule = crate::rules::lookup(id);
                let shares = rule.is_some_and(|rule| rule.symptoms.iter().any(|it| cause.symptoms.contains(it)));
                assert!(shares, "{name}: {id}");
            }
        }
    }

    #[test]
    fn only_refusals_as_configured_explain_no_symptom() {
        let silent: Vec<Message> = Message::all().filter(|message| of(*message).is_none()).collect();
        assert_eq!(silent, [Message::Forbidden]);
    }
}
