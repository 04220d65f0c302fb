//! The texts about the inside of PHP-FPM, MariaDB, MySQL and Redis.
//!
//! long: a table, one row a text.

use weir_words::texts;

texts! {
    LABEL_COMMAND: "command", "명령";
    LABEL_QUERY: "query", "쿼리";
    LABEL_SCRIPT: "script", "스크립트";
    LABEL_PLACE: "slow log", "슬로 로그";
    COMMAND_TOOK: "{0} took {1} of Redis's time: {2} calls, {3} ms each", "{0}이(가) Redis 시간의 {1} 차지: 호출 {2}번, 평균 {3} ms";
    COMMAND_TOOK_AT_MOST: "{0} took {1} of Redis's time: {2} calls, {3} ms each, {4} ms at most", "{0}이(가) Redis 시간의 {1} 차지: 호출 {2}번, 평균 {3} ms, 최대 {4} ms";
    SCAN_INSTEAD_OF_KEYS: "use SCAN, or a set of your own, instead of KEYS: each call reads all {0} keys, and no other command runs meanwhile", "KEYS 대신 SCAN이나 직접 관리하는 set을 쓰세요: 호출마다 키 {0}개를 모두 읽고, 그동안 다른 명령은 실행되지 않습니다";
    SHORTER_SCRIPT: "make the Lua script shorter, or do its work in the application: no other command runs while it runs", "Lua 스크립트를 줄이거나 그 일을 앱에서 하세요: 스크립트가 실행되는 동안 다른 명령은 실행되지 않습니다";
    READ_LESS_AT_ONCE: "let {0} read less at once: a smaller value, or a part of it", "{0}(으)로 한 번에 읽는 양을 줄이세요: 더 작은 값이나 값의 일부만 읽습니다";
    CHEAPER_COMMAND: "make {0} cheaper, or call it less often: no other command runs while it runs", "{0}의 비용을 줄이거나 호출을 줄이세요: 실행되는 동안 다른 명령은 실행되지 않습니다";
    NO_COMMAND_WAITS_FOR_IT: "no other command waits for it", "다른 명령이 기다리지 않습니다";
    REDIS_LACKS_SLOWLOG: "its slow commands: allow SLOWLOG to the user of the probe (ACL SETUSER … +slowlog)", "느린 명령: 프로브의 사용자에게 SLOWLOG를 허용하세요 (ACL SETUSER … +slowlog)";
    QUERY_TOOK: "{0} took {1} of the time of all queries: {2} times, {3} ms each", "{0}이(가) 전체 쿼리 시간의 {1} 차지: {2}번, 평균 {3} ms";
    QUERY_TOOK_ROWS: "{0} took {1} of the time of all queries: {2} times, {3} ms each; it read {4} rows for each row that it sent", "{0}이(가) 전체 쿼리 시간의 {1} 차지: {2}번, 평균 {3} ms; 보낸 행 하나마다 행 {4}개를 읽었습니다";
    QUERY_SEEN: "{0} was {1} of the {2} running statements, on the average of the readings", "조회할 때 평균 {2}개인 실행 중 문장의 {1}이(가) {0}";
    INDEX_FOR_THE_QUERY: "give this query an index for its WHERE (EXPLAIN shows the one that it uses): it reads {0} rows for each row that it sends", "이 쿼리의 WHERE에 맞는 인덱스를 만드세요 (EXPLAIN이 쓰는 인덱스를 보여 줍니다): 보내는 행 하나마다 행 {0}개를 읽습니다";
    INDEX_FOR_SCANS: "give this query an index for its WHERE (EXPLAIN shows the one that it uses): queries without one read {0} rows each", "이 쿼리의 WHERE에 맞는 인덱스를 만드세요 (EXPLAIN이 쓰는 인덱스를 보여 줍니다): 인덱스 없는 쿼리는 각각 행 {0}개를 읽습니다";
    ROWS_HELD_BY: "rows of {0}: {1} waits at a moment, most by {2}; the holder runs {3}", "{0}의 행: 평균 {1}개가 대기, 대부분 {2}; 잠금을 가진 트랜잭션은 {3} 실행 중";
    ROWS_HELD_IDLE: "rows of {0}: {1} waits at a moment, most by {2}; the holder runs no statement: its application keeps the transaction open", "{0}의 행: 평균 {1}개가 대기, 대부분 {2}; 잠금을 가진 트랜잭션은 실행 중인 문장이 없습니다: 앱이 트랜잭션을 열어 두고 있습니다";
    MYSQL_LACKS_DIGESTS: "the time of each query and the rows that it reads: write performance_schema = ON below [mysqld], and restart the database", "쿼리마다 걸린 시간과 읽은 행: [mysqld] 아래에 performance_schema = ON을 쓰고 데이터베이스를 다시 시작하세요";
    SCRIPT_HOLDS: "{0} holds {1} of the busy workers: {2} of them on the average, one for {3} ms; most requests are {4}", "{0}이(가) 바쁜 워커의 {1} 차지: 평균 {2}개, 가장 오래 {3} ms; 대부분의 요청은 {4}";
    SLOW_LOG_PLACE: "{0}, {1} times", "{0}, {1}번";
    SCRIPTS_TERMINATED: "PHP-FPM ended {0} scripts that ran longer than request_terminate_timeout", "PHP-FPM이 request_terminate_timeout보다 오래 실행된 스크립트 {0}개를 종료했습니다";
    NODES_THREADS_FOR_NAMES: "application {0}: lookups of names wait for the threads of Node.js (libuv)", "앱 {0}: 이름 조회가 Node.js(libuv)의 스레드를 기다립니다";
    LOOKUPS_AT_ONCE: "{0} lookups at once on the average, of {1} that its pool of {2} threads allows (libuv leaves half of the pool to other work)", "평균 {0}개를 동시에 조회, 스레드 {2}개의 풀이 허용하는 수는 {1}개 (libuv는 풀의 절반을 다른 작업에 남겨 둡니다)";
    LARGER_LIBUV_POOL: "UV_THREADPOOL_SIZE={0}, or keep names in the application (a cache of lookups, dns.resolve instead of dns.lookup, kept connections)", "UV_THREADPOOL_SIZE={0}, 또는 앱에서 이름을 기억하세요 (조회 캐시, dns.lookup 대신 dns.resolve, 연결 유지)";
    NO_LOOKUP_WAITS: "no lookup waits for another one", "조회가 다른 조회를 기다리지 않습니다";
    PHP_FPM_LACKS_WORKERS: "the scripts of its workers: its status page has no list of them (full)", "워커의 스크립트: 상태 페이지에 워커 목록(full)이 없습니다";
    PHP_FPM_LACKS_SLOW_LOG: "the line at which a script waits: write slowlog = FILE and request_slowlog_timeout = 1s into the pool", "스크립트가 기다리는 줄: 풀에 slowlog = FILE과 request_slowlog_timeout = 1s를 쓰세요";
}
