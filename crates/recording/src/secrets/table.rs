//! The lists that make a value a secret: by the name of a field, of a parameter or of a member, and by the first letters of a key.
//!
//! A secret too many costs little: its replacement has the same shape, and equal values stay equal. A secret too few is on a
//! disk. So the lists are generous, and `harmless` lists the exceptions that traffic needs.

/// The kind of a secret, for a person who reads a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecretKind {
    /// The value of a cookie.
    Cookie,
    /// Credentials of a field such as `Authorization`.
    Credentials,
    /// A value whose name says that it is a secret or personal.
    Named,
    /// A JSON Web Token.
    Jwt,
    /// A key with the form of a known service.
    ServiceKey,
    /// A private key.
    PrivateKey,
    /// User and password in a URL.
    UserInfo,
    /// The number of a payment card.
    Card,
    /// An e-mail address.
    Email,
    /// A phone number.
    Phone,
    /// A number of a person, from a state: of Korea's residents and foreigners, of the USA's social security.
    PersonNumber,
    /// A bank account, as IBAN.
    Iban,
    /// The address of a client.
    Address,
    /// A long random text, which may be a secret. Nothing is replaced for this reason.
    Random,
}

/// How a field's value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldForm {
    /// `name=value; name=value`: each value.
    Cookies,
    /// `name=value; attribute`: the first value.
    SetCookie,
    /// A scheme and credentials.
    Credentials,
    /// Addresses of clients.
    Addresses,
    /// `for=ADDRESS;by=ADDRESS`.
    Forwarded,
    /// A URL.
    Url,
    /// The value is a secret.
    Whole,
    /// A text that may have secrets.
    Text,
}

/// Fields with a form of their own, in lower case. Other fields are secrets by their names ([`is_secret_name`]), or texts.
const FIELDS: &[(&str, FieldForm)] = &[
    ("cookie", FieldForm::Cookies),
    ("cookie2", FieldForm::Cookies),
    ("set-cookie", FieldForm::SetCookie),
    ("set-cookie2", FieldForm::SetCookie),
    ("authorization", FieldForm::Credentials),
    ("proxy-authorization", FieldForm::Credentials),
    ("x-authorization", FieldForm::Credentials),
    ("x-forwarded-authorization", FieldForm::Credentials),
    ("authentication-info", FieldForm::Credentials),
    ("proxy-authentication-info", FieldForm::Credentials),
    ("x-forwarded-for", FieldForm::Addresses),
    ("x-original-forwarded-for", FieldForm::Addresses),
    ("x-real-ip", FieldForm::Addresses),
    ("x-client-ip", FieldForm::Addresses),
    ("x-cluster-client-ip", FieldForm::Addresses),
    ("x-remote-addr", FieldForm::Addresses),
    ("x-remote-ip", FieldForm::Addresses),
    ("x-originating-ip", FieldForm::Addresses),
    ("x-envoy-external-address", FieldForm::Addresses),
    ("x-appengine-user-ip", FieldForm::Addresses),
    ("x-azure-clientip", FieldForm::Addresses),
    ("x-azure-socketip", FieldForm::Addresses),
    ("client-ip", FieldForm::Addresses),
    ("true-client-ip", FieldForm::Addresses),
    ("cf-connecting-ip", FieldForm::Addresses),
    ("cf-connecting-ipv6", FieldForm::Addresses),
    ("cf-pseudo-ipv4", FieldForm::Addresses),
    ("fastly-client-ip", FieldForm::Addresses),
    ("fly-client-ip", FieldForm::Addresses),
    ("cloudfront-viewer-address", FieldForm::Addresses),
    ("forwarded", FieldForm::Forwarded),
    ("referer", FieldForm::Url),
    ("location", FieldForm::Url),
    ("content-location", FieldForm::Url),
    ("origin", FieldForm::Url),
    ("x-original-url", FieldForm::Url),
    ("x-original-uri", FieldForm::Url),
    ("x-rewrite-url", FieldForm::Url),
    ("x-forwarded-uri", FieldForm::Url),
    ("sourcemap", FieldForm::Url),
    ("x-hub-signature", FieldForm::Whole),
    ("x-hub-signature-256", FieldForm::Whole),
    ("x-forwarded-user", FieldForm::Whole),
    ("x-remote-user", FieldForm::Whole),
    ("remote-user", FieldForm::Whole),
    ("x-webauth-user", FieldForm::Whole),
    ("x-amzn-oidc-data", FieldForm::Whole),
    ("x-amzn-oidc-identity", FieldForm::Whole),
    ("x-goog-iap-jwt-assertion", FieldForm::Whole),
    ("cf-access-jwt-assertion", FieldForm::Whole),
    ("x-ms-client-principal", FieldForm::Whole),
    ("x-ms-client-principal-name", FieldForm::Whole),
    ("from", FieldForm::Whole),
    // Their names have a word of `WORDS`.
    ("sec-websocket-key", FieldForm::Text),
    ("sec-ch-ua-mobile", FieldForm::Text),
    ("surrogate-key", FieldForm::Text),
    ("cache-key", FieldForm::Text),
    ("x-cache-key", FieldForm::Text),
    ("x-pingback", FieldForm::Text),
];

/// Words of a name (`access_token`, `accessToken`, `user[token]`) that make its value a secret.
const WORDS: &[&str] = &[
    "account",
    "accountno",
    "accountnumber",
    "acct",
    "apikey",
    "appkey",
    "assertion",
    "auth",
    "authcode",
    "authenticity",
    "authorization",
    "bearer",
    "birth",
    "birthdate",
    "birthday",
    "card",
    "cardno",
    "cardnum",
    "cardnumber",
    "cell",
    "cellphone",
    "code",
    "cookie",
    "credential",
    "credentials",
    "creditcard",
    "csrf",
    "cvc",
    "cvv",
    "dob",
    "email",
    "hmac",
    "hp",
    "iban",
    "jumin",
    "jwt",
    "key",
    "keys",
    "mail",
    "mfa",
    "mobile",
    "nonce",
    "otp",
    "pass",
    "passcode",
    "passphrase",
    "passport",
    "passwd",
    "password",
    "passwords",
    "phone",
    "pin",
    "pincode",
    "privatekey",
    "pw",
    "pwd",
    "rrn",
    "samlresponse",
    "secret",
    "secrets",
    "secretkey",
    "sess",
    "sessid",
    "session",
    "sessions",
    "sid",
    "sig",
    "sign",
    "signature",
    "ssn",
    "tel",
    "telephone",
    "ticket",
    "token",
    "tokens",
    "totp",
    "xsrf",
];

/// The lengths of [`WORDS`] by their first letter, as bits.
const WORD_LENGTHS: [u32; 256] = {
    let mut lengths = [0; 256];
    let mut number = 0;
    while number < WORDS.len() {
        let word = WORDS[number].as_bytes();
        lengths[word[0] as usize] |= 1 << word.len();
        number += 1;
    }
    lengths
};

/// Words that make a value a secret within a word of a name: `jsessionid`, `userpassword`.
const PARTS: &[&str] = &[
    "apikey",
    "authtoken",
    "cardnumber",
    "cellphone",
    "credential",
    "email",
    "passwd",
    "password",
    "passphrase",
    "phone",
    "privatekey",
    "secret",
    "sessid",
    "session",
    "token",
];

/// Korean words that make a value a secret wherever a name has them.
const KOREAN: &[&str] = &[
    "주민",
    "비밀번호",
    "비번",
    "암호",
    "전화",
    "휴대폰",
    "휴대전화",
    "핸드폰",
    "연락처",
    "이메일",
    "메일",
    "카드",
    "계좌",
    "인증",
    "토큰",
    "여권",
    "면허",
    "생년월일",
    "외국인등록",
];

/// Names with a word of [`WORDS`] whose values are no secrets: they say how something looks, not who someone is.
const HARMLESS: &[&str] = &[
    "cache_key",
    "country_code",
    "currency_code",
    "error_code",
    "key_type",
    "lang_code",
    "language_code",
    "locale_code",
    "partition_key",
    "response_code",
    "result_code",
    "return_code",
    "sort_key",
    "status_code",
    "sub_code",
    "token_type",
    "key_id",
    "session_state_type",
    "card_type",
    "email_verified",
    "phone_verified",
    "account_type",
];

/// The form of a field. `lower`: its name in lower case.
pub(super) fn form_of_field(lower: &[u8]) -> FieldForm {
    let known = FIELDS.iter().find(|(name, _)| name.as_bytes() == lower);
    match known {
        Some((_, form)) => *form,
        None if is_secret_name(lower) => FieldForm::Whole,
        None => FieldForm::Text,
    }
}

/// Longest name that is looked at.
const NAME_BYTES_MAX: usize = 96;

/// Most words of a name.
const NAME_WORDS_MAX: usize = 16;

/// Whether a value with this name is a secret. The name may have words in any case, with any signs between them.
pub(super) fn is_secret_name(name: &[u8]) -> bool {
    // The last words of a long name tell the most: `a[b][c][password]`.
    let name = name.get(name.len().saturating_sub(NAME_BYTES_MAX)..).unwrap_or(name);
    if !name.is_ascii() && KOREAN.iter().any(|word| memchr::memmem::find(name, word.as_bytes()).is_some()) {
        return true;
    }
    let mut lower = [0; NAME_BYTES_MAX];
    let mut words = [(0, 0); NAME_WORDS_MAX];
    let mut count = 0;
    let mut begin = None;
    for (at, byte) in name.iter().enumerate() {
        lower[at] = byte.to_ascii_lowercase();
        let is_hump = byte.is_ascii_uppercase()
            && (name.get(at.wrapping_sub(1)).is_some_and(u8::is_ascii_lowercase)
                || begin.is_some() && name.get(at + 1).is_some_and(u8::is_ascii_lowercase));
        if (!byte.is_ascii_alphabetic() || is_hump)
            && let Some(begin) = begin.take()
            && count < NAME_WORDS_MAX
        {
            words[count] = (begin, at);
            count += 1;
        }
        if byte.is_ascii_alphabetic() && begin.is_none() {
            begin = Some(at);
        }
    }
    if let Some(begin) = begin.filter(|_| count < NAME_WORDS_MAX) {
        words[count] = (begin, name.len());
        count += 1;
    }
    let words = &words[..count];
    let word = |(begin, end): (usize, usize)| &lower[begin..end];
    words.iter().any(|place| is_secret_word(word(*place))) && !is_harmless(words, &lower)
}

fn is_secret_word(word: &[u8]) -> bool {
    // Most words of traffic have no more in common with these than some letters.
    let may_be = word.first().is_some_and(|first| WORD_LENGTHS[usize::from(*first)] >> word.len().min(31) & 1 == 1);
    may_be && WORDS.iter().any(|secret| secret.as_bytes() == word)
        || word.len() > 5 && PARTS.iter().any(|part| memchr::memmem::find(word, part.as_bytes()).is_some())
}

/// Whether the last two words are a name of [`HARMLESS`].
fn is_harmless(words: &[(usize, usize)], lower: &[u8]) -> bool {
    let [.., (a, b), (c, d)] = words else { return false };
    HARMLESS.iter().any(|name| {
        let (first, second) = name.split_once('_').unwrap_or((name, ""));
        lower.get(*a..*b) == Some(first.as_bytes()) && lower.get(*c..*d) == Some(second.as_bytes())
    })
}

/// The bytes behind the prefix of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyBytes {
    /// Letters and digits.
    Word,
    /// Letters, digits, `_`, `-`.
    Url,
    /// These, and `.`.
    Dotted,
}

impl KeyBytes {
    pub(super) fn has(self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-') && self != KeyBytes::Word
            || byte == b'.' && self == KeyBytes::Dotted
    }
}

/// Keys of known services: the prefix, the bytes behind it, and the least number of these.
const SERVICE_KEYS: &[(&str, KeyBytes, usize)] = &[
    // Amazon
    ("AKIA", KeyBytes::Word, 16),
    ("ASIA", KeyBytes::Word, 16),
    ("ABIA", KeyBytes::Word, 16),
    ("ACCA", KeyBytes::Word, 16),
    // Google
    ("AIza", KeyBytes::Url, 30),
    ("ya29.", KeyBytes::Dotted, 16),
    ("GOCSPX-", KeyBytes::Url, 20),
    // GitHub, GitLab
    ("ghp_", KeyBytes::Word, 30),
    ("gho_", KeyBytes::Word, 30),
    ("ghu_", KeyBytes::Word, 30),
    ("ghs_", KeyBytes::Word, 30),
    ("ghr_", KeyBytes::Word, 30),
    ("github_pat_", KeyBytes::Url, 20),
    ("glpat-", KeyBytes::Dotted, 16),
    // Slack
    ("xoxb-", KeyBytes::Url, 10),
    ("xoxp-", KeyBytes::Url, 10),
    ("xoxa-", KeyBytes::Url, 10),
    ("xoxr-", KeyBytes::Url, 10),
    ("xoxs-", KeyBytes::Url, 10),
    ("xoxe-", KeyBytes::Url, 10),
    ("xoxe.", KeyBytes::Dotted, 10),
    ("xapp-", KeyBytes::Url, 10),
    // Stripe, OpenAI, Anthropic
    ("sk_live_", KeyBytes::Word, 16),
    ("sk_test_", KeyBytes::Word, 16),
    ("rk_live_", KeyBytes::Word, 16),
    ("rk_test_", KeyBytes::Word, 16),
    ("whsec_", KeyBytes::Word, 16),
    ("sk-", KeyBytes::Url, 20),
    // Registries, clouds, mail
    ("npm_", KeyBytes::Word, 30),
    ("pypi-", KeyBytes::Url, 16),
    ("hf_", KeyBytes::Word, 30),
    ("dop_v1_", KeyBytes::Word, 30),
    ("shpat_", KeyBytes::Word, 30),
    ("SG.", KeyBytes::Dotted, 20),
    ("key-", KeyBytes::Word, 32),
    ("EAACEdEose0cBA", KeyBytes::Word, 10),
    ("hvs.", KeyBytes::Url, 20),
];

/// The numbers of [`SERVICE_KEYS`] by their first byte, as bits.
const SERVICE_KEYS_BY_BYTE: [u64; 256] = {
    let mut numbers = [0; 256];
    let mut number = 0;
    while number < SERVICE_KEYS.len() {
        numbers[SERVICE_KEYS[number].0.as_bytes()[0] as usize] |= 1 << number;
        number += 1;
    }
    numbers
};

/// Whether a key of [`SERVICE_KEYS`] begins with this byte.
pub(super) const fn begins_service_key(byte: u8) -> bool {
    SERVICE_KEYS_BY_BYTE[byte as usize] != 0
}

/// Entries of [`SERVICE_KEYS`] that begin with this byte.
pub(super) fn service_keys(byte: u8) -> impl Iterator<Item = &'static (&'static str, KeyBytes, usize)> {
    let mut rest = SERVICE_KEYS_BY_BYTE[usize::from(byte)];
    std::iter::from_fn(move || {
        let entry = SERVICE_KEYS.get(rest.trailing_zeros() as usize)?;
        rest &= rest - 1;
        Some(entry)
    })
}

/// Fields whose long random values are no secrets: numbers of requests, of contents, of nodes.
pub(super) const RANDOM_FIELDS: &[&str] = &[
    "accept",
    "accept-encoding",
    "accept-language",
    "akamai-grn",
    "alt-svc",
    "cf-ray",
    "content-digest",
    "content-disposition",
    "content-md5",
    "content-security-policy",
    "content-security-policy-report-only",
    "content-type",
    "digest",
    "etag",
    "host",
    "if-match",
    "if-none-match",
    "if-range",
    "nel",
    "permissions-policy",
    "priority",
    "repr-digest",
    "report-to",
    "reporting-endpoints",
    "request-id",
    "sec-ch-ua",
    "sec-websocket-accept",
    "sec-websocket-key",
    "server",
    "server-timing",
    "trace-id",
    "traceparent",
    "tracestate",
    "user-agent",
    "via",
    "x-amz-cf-id",
    "x-amz-cf-pop",
    "x-amz-id-2",
    "x-amz-request-id",
    "x-amzn-requestid",
    "x-amzn-trace-id",
    "x-b3-parentspanid",
    "x-b3-spanid",
    "x-b3-traceid",
    "x-cache-key",
    "x-cloud-trace-context",
    "x-correlation-id",
    "x-request-id",
    "x-served-by",
    "x-trace-id",
    "x-vercel-id",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_that_their_value_is_a_secret() {
        for name in [
            "token",
            "access_token",
            "accessToken",
            "X-Auth-Token",
            "csrfmiddlewaretoken",
            "user[password]",
            "newPassword2",
            "PWD",
            "apiKey",
            "api-key",
            "APIKey",
            "JSESSIONID",
            "PHPSESSID",
            "sid",
            "connect.sid",
            "auth",
            "code",
            "otp",
            "pin",
            "userEmail",
            "e.mail",
            "phoneNumber",
            "tel",
            "MOBILE",
            "ssn",
            "주민등록번호",
            "비밀번호",
            "내전화번호",
            "card_no",
            "cardNumber",
            "a[b][c][password]",
            "__RequestVerificationToken",
            "XSRF-TOKEN",
            "X-Amz-Signature",
            "pw",
        ] {
            assert!(is_secret_name(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "q",
            "page",
            "author",
            "keyword",
            "keyboard",
            "passenger",
            "mailbox_id",
            "country_code",
            "statusCode",
            "pinned",
            "sidebar",
            "tell",
            "compass",
            "sort_key",
            "encoded",
            "제목",
            "telemetry",
            "content-type",
            "accept",
        ] {
            assert!(!is_secret_name(name.as_bytes()), "{name}");
        }
        assert!(is_secret_name(&[&[b'a'; 500][..], b"[token]"].concat()));
        assert!(!is_secret_name(&b"a_".repeat(500)));
    }

    #[test]
    fn lists_are_in_lower_case_and_have_a_name_once() {
        let all =
            WORDS.iter().chain(PARTS).chain(HARMLESS).chain(RANDOM_FIELDS).chain(FIELDS.iter().map(|(name, _)| name));
        assert!(all.clone().all(|name| name.chars().all(|c| !c.is_ascii_uppercase())));
        for list in
            [WORDS, PARTS, KOREAN, HARMLESS, RANDOM_FIELDS, &FIELDS.iter().map(|(name, _)| *name).collect::<Vec<_>>()]
        {
            for (number, name) in list.iter().enumerate() {
                assert!(!list[..number].contains(name), "{name} twice");
            }
        }
        assert!(HARMLESS.iter().all(|name| is_secret_word(name.split('_').next().unwrap().as_bytes())
            || is_secret_word(name.split('_').nth(1).unwrap().as_bytes())));
    }
}
