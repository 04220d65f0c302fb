//! The languages of weir's output, and the particles of Korean.

/// A language for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Korean.
    Korean,
}

/// The variables that choose the language, the strongest first. An empty variable counts as unset, as in POSIX.
const VARIABLES: [&str; 4] = ["WEIR_LANG", "LC_ALL", "LC_MESSAGES", "LANG"];

impl Language {
    /// The language of an environment, by its variables. The first that is set decides: a value such as `ko_KR.UTF-8`
    /// means Korean, any other English.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Language {
        let set = VARIABLES.iter().filter_map(|name| variable(name)).find(|value| !value.is_empty());
        let language = set.unwrap_or_default();
        match language.split(['_', '.', '@', '-']).next() {
            Some("ko") => Language::Korean,
            _ => Language::English,
        }
    }
}

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

/// Particles in their two forms: as written in a text with holes, after a consonant, after a vowel.
const PARTICLES: [(&str, &str, &str); 5] = [
    ("이(가)", "이", "가"),
    ("을(를)", "을", "를"),
    ("은(는)", "은", "는"),
    ("과(와)", "과", "와"),
    ("(으)로", "으로", "로"),
];

/// Chooses the form of each Korean particle such as `이(가)` by the word before it. Both forms stay after a Latin word whose
/// spelling does not show its last sound (`chat`, `app`).
pub fn particles(text: &str) -> String {
    let mut chosen = String::with_capacity(text.len());
    let mut rest = text;
    let next = |rest: &str| {
        let found = PARTICLES.iter().filter_map(|particle| Some((rest.find(particle.0)?, *particle)));
        found.min_by_key(|(at, _)| *at)
    };
    while let Some((at, (both, after_consonant, after_vowel))) = next(rest) {
        let (before, after) = rest.split_at(at);
        chosen.push_str(before);
        let form = match ending(&chosen) {
            Some(Ending::Vowel) => after_vowel,
            Some(Ending::Rieul) if both == "(으)로" => after_vowel,
            Some(Ending::Rieul | Ending::Consonant) => after_consonant,
            None => both,
        };
        chosen.push_str(form);
        rest = after.strip_prefix(both).unwrap_or_default();
    }
    chosen + rest
}

/// The last sound of a word.
enum Ending {
    Vowel,
    /// The consonant ㄹ, which takes 로.
    Rieul,
    Consonant,
}

/// The last sound of a text, without quotes and without brackets at its end. `None` if its spelling does not show it.
fn ending(text: &str) -> Option<Ending> {
    let text = text.trim_end_matches(['"', '\'', '`', ' ']);
    if let Some(open) = text.strip_suffix(')').and_then(|inside| inside.rfind('(')) {
        return ending(text.get(..open)?);
    }
    Some(match text.chars().next_back()? {
        syllable @ '가'..='힣' => match (u32::from(syllable) - u32::from('가')) % 28 {
            0 => Ending::Vowel,
            8 => Ending::Rieul,
            _ => Ending::Consonant,
        },
        // An abbreviation such as CPU: its letters are read one by one.
        letter @ 'A'..='Z' if is_abbreviation(text) => match letter {
            'L' | 'R' => Ending::Rieul,
            'M' | 'N' => Ending::Consonant,
            _ => Ending::Vowel,
        },
        // 퍼센트, 이, 사, 오, 구.
        '%' | '2' | '4' | '5' | '9' => Ending::Vowel,
        // 일, 칠, 팔.
        '1' | '7' | '8' => Ending::Rieul,
        // 영 or 십, 삼, 육.
        '0' | '3' | '6' => Ending::Consonant,
        letter @ 'a'..='z' => return latin(text, letter),
        _ => return None,
    })
}

/// The last sound of a Latin word in Korean: 온(on), 파일(file), 서비스(service), 호스트(host). `None` if words of this
/// spelling differ: 앱(app), 맵(map) but 루프(loop).
fn latin(text: &str, last: char) -> Option<Ending> {
    let before = text.chars().rev().nth(1).unwrap_or(' ');
    Some(match (before, last) {
        // The name of a letter (`location /b`), or a word without a vowel (`http`, `rps`), which is read by its letters.
        (before, _) if !before.is_ascii_lowercase() => return None,
        ('m' | 'n', 'e') | (_, 'm' | 'n') | ('n', 'g') => Ending::Consonant,
        ('l', 'e') | (_, 'l') => Ending::Rieul,
        ('p', 'e') => return None,
        ('a' | 'e' | 'i' | 'o' | 'u', 'r') | ('c' | 'f' | 'l' | 'n' | 'p' | 'r' | 's' | 'x', 't') => Ending::Vowel,
        ('n' | 'r' | 's', 'k') | ('m', 'p') => Ending::Vowel,
        (_, 'b' | 'c' | 'j' | 'k' | 'p' | 'r' | 't') => return None,
        _ => Ending::Vowel,
    })
}

/// True if the last word of a text has at least two letters and only capitals.
fn is_abbreviation(text: &str) -> bool {
    let word = text.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
    word.len() >= 2 && word.chars().all(|c| c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_particle_fits_the_word_before_it() {
        for (text, chosen) in [
            ("블록이(가) 없고 서버이(가) 없음", "블록이 없고 서버가 없음"),
            ("3000(으)로 71(으)로 2(으)로 풀(으)로", "3000으로 71로 2로 풀로"),
            ("풀 (POOL)을(를) 1320건(66 %)을(를) 66 %을(를)", "풀 (POOL)을 1320건(66 %)을 66 %를"),
            ("\"keepalive 64\"은(는) 앱과(와)", "\"keepalive 64\"는 앱과"),
            ("app이(가) chat(으)로 /b이(가)", "app이(가) chat(으)로 /b이(가)"),
            ("nginx(으)로 on은(는) file(으)로 host을(를)", "nginx로 on은 file로 host를"),
            ("nginx.service은(는) name이(가) log과(와) server이(가)", "nginx.service는 name이 log와 server가"),
            ("CPU과(와) URL(으)로 RAM을(를) POOL_SIZE을(를)", "CPU와 URL로 RAM을 POOL_SIZE을(를)"),
            ("", ""),
        ] {
            assert_eq!(particles(text), chosen);
        }
    }
}
