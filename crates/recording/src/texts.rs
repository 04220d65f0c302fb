//! The sentences about a recording, in English and Korean.

use weir_words::{Text, texts};

use crate::secrets::SecretKind;

texts! {
    RECORD_COOKIE: "the value of a cookie", "쿠키의 값";
    RECORD_CREDENTIALS: "credentials", "인증 정보";
    RECORD_NAMED: "a value whose name says that it is a secret or personal", "이름으로 보아 비밀이거나 개인 정보인 값";
    RECORD_JWT: "a JSON Web Token", "JSON 웹 토큰(JWT)";
    RECORD_SERVICE_KEY: "a key of a known service", "알려진 서비스의 키";
    RECORD_PRIVATE_KEY: "a private key", "개인 키";
    RECORD_USER_INFO: "user and password in a URL", "URL에 든 사용자와 비밀번호";
    RECORD_CARD: "the number of a payment card", "카드 번호";
    RECORD_EMAIL: "an e-mail address", "이메일 주소";
    RECORD_PHONE: "a phone number", "전화번호";
    RECORD_PERSON: "the number of a person, such as a resident registration number", "주민등록번호 같은 개인 식별 번호";
    RECORD_IBAN: "a bank account", "은행 계좌";
    RECORD_ADDRESS: "the address of a client", "클라이언트의 주소";
    RECORD_RANDOM: "a long random text that looks like a secret", "비밀처럼 보이는 긴 무작위 문자열";

    RECORD_LEAK: "part {0}, {1}: {2} is not replaced", "{0}번째 항목, {1}: 바뀌지 않은 값이 있습니다. {2}";
    RECORD_LEAKS: "part {0} and {3} more, {1}: {2} is not replaced", "{0}번째 항목과 그 밖의 {3}개, {1}: 바뀌지 않은 값이 있습니다. {2}";
    RECORD_CLEAN: "{0} parts: no secret that is not replaced", "항목 {0}개: 바뀌지 않은 비밀이 없습니다";
    RECORD_NOT_CLEAN:
        "{0} parts: {1} places with secrets that are not replaced; keep this file as secret as they are",
        "항목 {0}개: 바뀌지 않은 비밀이 {1}곳에 있습니다. 이 파일도 비밀로 보관하세요";
    RECORD_MORE: "{0} more places are not listed", "표시하지 않은 곳이 {0}곳 더 있습니다";

    RECORD_TARGET: "target", "요청 대상";
    RECORD_REQUEST_FIELD: "request field {0}", "요청 필드 {0}";
    RECORD_ANSWER_FIELD: "answer field {0}", "응답 필드 {0}";
    RECORD_REQUEST_BODY: "request body", "요청 본문";
    RECORD_ANSWER_BODY: "answer body", "응답 본문";
    RECORD_MESSAGE: "message of a WebSocket", "WebSocket 메시지";
    RECORD_AT: "{0}, {1}", "{0}, {1}";
    RECORD_BYTE: "byte {0}", "{0}바이트 위치";
}

/// The kind as a text.
pub(crate) fn of_kind(kind: SecretKind) -> Text {
    match kind {
        SecretKind::Cookie => RECORD_COOKIE,
        SecretKind::Credentials => RECORD_CREDENTIALS,
        SecretKind::Named => RECORD_NAMED,
        SecretKind::Jwt => RECORD_JWT,
        SecretKind::ServiceKey => RECORD_SERVICE_KEY,
        SecretKind::PrivateKey => RECORD_PRIVATE_KEY,
        SecretKind::UserInfo => RECORD_USER_INFO,
        SecretKind::Card => RECORD_CARD,
        SecretKind::Email => RECORD_EMAIL,
        SecretKind::Phone => RECORD_PHONE,
        SecretKind::PersonNumber => RECORD_PERSON,
        SecretKind::Iban => RECORD_IBAN,
        SecretKind::Address => RECORD_ADDRESS,
        SecretKind::Random => RECORD_RANDOM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_in_both_languages() {
        assert_eq!(weir_words::check_texts(ALL), [] as [String; 0]);
    }
}
