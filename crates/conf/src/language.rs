//! The languages of weir's output, and the Korean words that all of its parts share.

/// A language for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Korean.
    Korean,
}

/// The Korean glossary: a preferred word, and the words that must not be used instead. Sentences end in 합니다.
pub const GLOSSARY: [(&str, &[&str]); 6] = [
    ("오리진", &["원본 서버", "원본"]),
    ("앱", &["애플리케이션", "응용 프로그램"]),
    ("워커", &["작업자", "worker가", "worker는", "worker마다", "worker의"]),
    ("쿼터", &["할당량", "quota"]),
    ("연결 테이블", &["연결 표"]),
    ("WebSocket", &["웹소켓"]),
];

/// A text in every language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// English.
    pub en: &'static str,
    /// Korean.
    pub ko: &'static str,
}

/// A text in every language.
pub const fn words(en: &'static str, ko: &'static str) -> Words {
    Words { en, ko }
}

impl Words {
    /// The text in this language.
    pub fn say(self, language: Language) -> &'static str {
        match language {
            Language::English => self.en,
            Language::Korean => self.ko,
        }
    }
}
