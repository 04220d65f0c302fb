//! What a user sees when something is wrong, in the user's words: `weir doctor 502`.

use weir_words::{Words, words};

/// A symptom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symptom {
    /// Clients get 502.
    BadGateway,
    /// Clients get 504.
    Timeout,
    /// Clients get 500.
    ServerError,
    /// A WebSocket does not open, or it closes.
    WebSocket,
    /// Answers are slow.
    Slow,
    /// Connections, open files or ports are used up.
    Limit,
}

/// The line that puts the upstream's figures into the access log.
const LOG_FORMAT: &str = "log_format upstream '$time_iso8601 $status $request_time $upstream_addr $upstream_status $upstream_connect_time $upstream_header_time $upstream_response_time \"$request\"';";

impl Symptom {
    /// All symptoms.
    pub const ALL: [Symptom; 6] = [
        Symptom::BadGateway,
        Symptom::Timeout,
        Symptom::ServerError,
        Symptom::WebSocket,
        Symptom::Slow,
        Symptom::Limit,
    ];

    /// Its word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Symptom::BadGateway => "502",
            Symptom::Timeout => "504",
            Symptom::ServerError => "500",
            Symptom::WebSocket => "websocket",
            Symptom::Slow => "slow",
            Symptom::Limit => "limit",
        }
    }

    /// The symptom of a word, in any case of letters.
    pub fn of(word: &str) -> Option<Symptom> {
        Symptom::ALL.into_iter().find(|symptom| symptom.name().eq_ignore_ascii_case(word))
    }

    /// What it means, in one sentence.
    pub const fn means(self) -> Words {
        match self {
            Symptom::BadGateway => words(
                "502: nginx got no usable answer from the application, or the application itself answered 502",
                "502: nginx가 앱에서 쓸 수 있는 응답을 받지 못했거나, 앱이 직접 502로 응답했습니다",
            ),
            Symptom::Timeout => {
                words("504: the application did not answer nginx in time", "504: 앱이 제때 nginx에 응답하지 않았습니다")
            }
            Symptom::ServerError => words(
                "500: nginx could not handle the request, or the application itself answered 500",
                "500: nginx가 요청을 처리하지 못했거나, 앱이 직접 500으로 응답했습니다",
            ),
            Symptom::WebSocket => words(
                "websocket: the handshake does not get through, or an open connection closes",
                "websocket: 핸드셰이크가 통과하지 못하거나, 열린 연결이 닫힙니다",
            ),
            Symptom::Slow => words(
                "slow: the time goes by in the application, in nginx, or before nginx accepts",
                "slow: 앱에서, nginx에서, 또는 nginx가 연결을 수락하기 전에 시간이 걸립니다",
            ),
            Symptom::Limit => words(
                "limit: connections, open files, ports or requests have reached a limit",
                "limit: 연결, 열린 파일, 포트, 요청 가운데 하나가 한도에 이르렀습니다",
            ),
        }
    }

    /// Where to look next: commands or lines of a configuration, each with what it shows.
    pub fn next(self) -> Vec<(String, Words)> {
        // long: a table of sentences.
        let row = |what: &str, shows: Words| (what.to_owned(), shows);
        let log = |shows: Words| row(LOG_FORMAT, shows);
        let why = row(
            "weir lab why --edge /usr/sbin/nginx nginx.conf --rate 200 /PATH",
            words(
                "names what limits the configuration under a load, with a proof",
                "부하를 보내 설정의 병목을 근거와 함께 알려 줍니다",
            ),
        );
        let errors = row(
            "weir top",
            words(
                "if weir is the edge: the dashboard's view Errors has each failed request with its line of the log; Upstreams has the state of each server",
                "weir가 엣지라면: 대시보드의 오류 화면에 실패한 요청과 그 로그 줄이, 업스트림 화면에 서버마다의 상태가 있습니다",
            ),
        );
        match self {
            Symptom::BadGateway => vec![
                log(words(
                    "$upstream_header_time is `-` if no answer came from the application. A number there beside $upstream_status 502: the application itself, or a proxy before it, answered 502",
                    "앱에서 응답이 오지 않았으면 $upstream_header_time이 `-`입니다. $upstream_status가 502인데 여기에 수가 있으면 앱이나 그 앞의 프록시가 직접 502로 응답했습니다",
                )),
                row(
                    "weir load http://HOST/PATH -R 20 -d 30s",
                    words("repeats it, and counts the errors by their step", "부하로 재현하고, 오류를 단계별로 셉니다"),
                ),
                errors,
                why,
            ],
            Symptom::Timeout => vec![
                log(words(
                    "$upstream_connect_time is `-` if the application took no connection. A number there: it took the request and did not answer within proxy_read_timeout",
                    "앱이 연결을 받지 않았으면 $upstream_connect_time이 `-`입니다. 수가 있으면 앱이 요청을 받고도 proxy_read_timeout 안에 응답하지 않았습니다",
                )),
                errors,
                why,
            ],
            Symptom::ServerError => vec![
                log(words(
                    "$upstream_status is `-` if nginx itself answered 500: its error log has the reason. 500 there: the application did, and its own log has the reason",
                    "nginx가 직접 500으로 응답했으면 $upstream_status가 `-`이고 이유는 nginx의 오류 로그에 있습니다. 500이면 앱이 응답한 것이고 이유는 앱의 로그에 있습니다",
                )),
                errors,
            ],
            Symptom::WebSocket => vec![
                row(
                    "curl -i --http1.1 -m 5 -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' http://HOST/PATH",
                    words(
                        "101 is a handshake that got through. Ask nginx, then the application itself: the first that answers otherwise is at fault (Socket.IO: /socket.io/?EIO=4&transport=websocket)",
                        "101이면 핸드셰이크가 통과했습니다. nginx에, 그다음 앱에 직접 보내 보세요. 다르게 응답하는 쪽이 원인입니다 (Socket.IO: /socket.io/?EIO=4&transport=websocket)",
                    ),
                ),
                log(words(
                    "$request_time of a line with 101 is the age of the WebSocket when it closed. If many lines have one age, a timeout closed them",
                    "101인 줄의 $request_time은 WebSocket이 닫힐 때의 나이입니다. 같은 나이가 많으면 시간 제한이 닫은 것입니다",
                )),
                row(
                    "weir top",
                    words(
                        "if weir is the edge: the dashboard's view WebSockets has the side that closed, the code, and the ages beside proxy_read_timeout",
                        "weir가 엣지라면: 대시보드의 WebSocket 화면에 닫은 쪽, 코드, proxy_read_timeout과 비교한 나이가 있습니다",
                    ),
                ),
            ],
            Symptom::Slow => vec![
                log(words(
                    "$upstream_header_time is the application's time. The rest of $request_time is nginx and the client's network",
                    "$upstream_header_time은 앱이 쓴 시간입니다. $request_time의 나머지는 nginx와 클라이언트의 네트워크입니다",
                )),
                why,
                row(
                    "weir load http://HOST/PATH -R 20 -d 30s",
                    words(
                        "measures from outside; `weir load compare` sets two runs side by side",
                        "밖에서 측정합니다. `weir load compare`는 두 실행을 비교합니다",
                    ),
                ),
                row(
                    "weir top",
                    words(
                        "if weir is the edge: the dashboard's first view has the time of a request by step",
                        "weir가 엣지라면: 대시보드의 첫 화면에 요청의 시간이 단계별로 있습니다",
                    ),
                ),
            ],
            Symptom::Limit => vec![
                row(
                    "weir doctor --pid $(cat /run/nginx.pid)",
                    words(
                        "the limits of the running process, and the file that sets each",
                        "실행 중인 프로세스의 한도와, 그 한도를 정한 파일을 보여 줍니다",
                    ),
                ),
                row(
                    "weir top",
                    words(
                        "if weir is the edge: the dashboard's first view has each limit beside its use",
                        "weir가 엣지라면: 대시보드의 첫 화면에 한도마다 사용량이 있습니다",
                    ),
                ),
                why,
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symptom_has_its_word_and_a_next_step() {
        for symptom in Symptom::ALL {
            assert_eq!(Symptom::of(&symptom.name().to_uppercase()), Some(symptom));
            let said = symptom.next().into_iter().map(|(_, shows)| shows).chain([symptom.means()]);
            for Words { en, ko } in said {
                assert!(ko.chars().any(|c| ('가'..='힣').contains(&c)) && !en.ends_with('.'), "{en}");
                assert_eq!(weir_words::glossary::forbidden_in(ko), None, "{ko}");
            }
            assert!(symptom.next().len() > 1, "{symptom:?}");
        }
        assert_eq!(Symptom::of("503"), None);
    }
}
