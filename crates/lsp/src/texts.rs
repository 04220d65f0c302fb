//! The texts of the language server, in English and in Korean.

weir_words::texts! {
    // Documents and files that weir does not read.
    DOCUMENT_TOO_LARGE: "weir lsp does not read this document: it has more than {0} bytes", "이 문서는 {0}바이트를 넘어 weir lsp가 읽지 않습니다";
    TOO_MANY_CHANGES: "weir lsp does not read this document: one message changed it too often; open it again", "메시지 하나에 변경이 너무 많아 weir lsp가 이 문서를 읽지 않습니다. 문서를 다시 여세요";
    TOO_MANY_DOCUMENTS: "weir lsp does not read this document: {0} documents or {1} bytes are open", "열린 문서가 {0}개이거나 {1}바이트여서 weir lsp가 이 문서를 읽지 않습니다";
    OUTSIDE: "weir lsp does not read {0}, because it is outside of the workspace: name a tree that has it with weir lsp --root DIR", "{0}은(는) 작업 영역 밖에 있어 weir lsp가 읽지 않습니다. 이 파일이 있는 디렉터리를 weir lsp --root DIR로 지정하세요";
    NOT_IN_ROOT: "weir lsp does not find {0} below --root", "--root 아래에 {0}이(가) 없습니다";
    SHIPPED: "weir lsp does not find {0} here; nginx's packages bring a file of this name", "여기에 {0}이(가) 없습니다. nginx 패키지에 같은 이름의 파일이 있습니다";
    PART_MISSES: "weir lsp does not find {0} below {1}: the setting prefix names the directory of nginx.conf", "{1} 아래에 {0}이(가) 없습니다. nginx.conf의 디렉터리를 prefix 설정으로 지정하세요";
    LINK_OUT: "weir lsp does not read {0}: it is a link that leads out of the workspace", "{0}은(는) 작업 영역 밖을 가리키는 링크이므로 weir lsp가 읽지 않습니다";
    NOT_REGULAR: "weir lsp does not read {0}: it is not a regular file", "{0}은(는) 일반 파일이 아니므로 weir lsp가 읽지 않습니다";
    OF_KERNEL: "weir lsp does not read {0}: it is a file of the kernel", "{0}은(는) 커널의 파일이므로 weir lsp가 읽지 않습니다";
    FILE_TOO_LARGE: "weir lsp does not read {0}: it has more than {1} bytes", "{0}은(는) {1}바이트를 넘어 weir lsp가 읽지 않습니다";
    TOO_MANY_FILES: "weir lsp does not read {0}: one configuration may have {1} files", "설정 하나의 파일은 {1}개까지이므로 weir lsp가 {0}을(를) 읽지 않습니다";
    TOO_MANY_BYTES: "weir lsp does not read {0}: the files of one configuration may have {1} bytes", "설정 하나의 파일은 모두 {1}바이트까지이므로 weir lsp가 {0}을(를) 읽지 않습니다";
    TOO_MANY_NAMES: "weir lsp does not read {0}: a directory may have {1} names, and a pattern {2} directories", "디렉터리의 이름은 {1}개, 패턴의 디렉터리는 {2}개까지이므로 weir lsp가 {0}을(를) 읽지 않습니다";

    // Diagnostics.
    MORE_PROBLEMS: "weir lsp shows {0} problems of a file; this file has {1} more", "weir lsp는 파일마다 문제를 {0}건 표시합니다. 이 파일에는 {1}건이 더 있습니다";
    SAYS_OF_PART: "nginx -t says: {0}", "nginx -t의 메시지: {0}";
    SAYS_OF_PART_HINT: "nginx -t says: {0} (hint: {1})", "nginx -t의 메시지: {0} (힌트: {1})";
    WRITE: "write: {0}", "쓸 줄: {0}";

    // Code actions.
    FIX: "Fix: {0}", "고치기: {0}";
    CHANGE_TO: "Change to {0}", "{0}(으)로 바꾸기";
    FIX_ALL: "Make all fixes that harm nothing", "문제를 일으키지 않는 수정을 모두 적용하기";
    NOT_FIXED: "weir does not make this fix: {0}", "이 수정은 하지 않습니다: {0}";
    NO_FIX: "no fix is left to make", "할 수정이 없습니다";
    STALE: "the text has changed since: ask again", "그동안 텍스트가 바뀌었습니다. 다시 요청하세요";

    // Requests and settings.
    CANCELLED: "the client cancelled the request", "클라이언트가 요청을 취소했습니다";
    QUEUE_FULL: "{0} messages wait already", "이미 메시지 {0}개가 기다리고 있습니다";
    MESSAGE_TOO_LARGE: "a message of {0} bytes is too large: weir lsp reads {1}", "메시지가 {0}바이트로 너무 큽니다. weir lsp는 {1}바이트까지 읽습니다";
    NO_LENGTH: "a header has no valid Content-Length", "헤더에 유효한 Content-Length가 없습니다";
    NOT_INITIALIZED: "the first request is initialize", "첫 요청은 initialize여야 합니다";
    SHUT_DOWN: "the server was shut down", "서버가 shutdown을 받았습니다";
    TWICE: "initialize came twice", "initialize를 두 번 받았습니다";
    NO_METHOD: "weir lsp has no method {0}", "weir lsp에 {0} 메서드가 없습니다";
    NOT_OPEN: "{0} is not open", "{0}은(는) 열려 있지 않습니다";
    OWN_MISTAKE: "weir lsp made a mistake: {0}", "weir lsp의 내부 오류입니다: {0}";
    BAD_SETTING: "weir lsp does not know this value of the setting {0}: {1}", "설정 {0}의 값을 알 수 없습니다: {1}";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_there_in_both_languages() {
        assert_eq!(weir_words::check_texts(ALL), Vec::<String>::new());
    }
}
