//! 500 planted secrets of all kinds in all places: none is in a recording, equal ones stay equal, and the check finds
//! each one that is not replaced.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod planted {
    pub mod kinds;
}

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use planted::kinds::{Planted, planted};
use weir_recording::model::{Beginning, RecordedExchange, RecordedText, RecordedVersion, RecordingPart};
use weir_recording::read::Reader;
use weir_recording::write::Writer;
use weir_recording::{BlockWriter, LiveAnswer, LiveBody, LiveExchange, Secrets, check, seal};

const SECRETS: usize = 500;

fn secrets() -> Secrets {
    Secrets::new(*b"a key of a test!")
}

/// A message with one secret.
struct Carrier {
    place: &'static str,
    target: String,
    fields: Vec<(String, String)>,
    body: String,
    content_type: &'static str,
}

fn percent(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    value.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn json(value: &str) -> String {
    let quoted = serde_json::to_string(value).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

/// JSON with each letter as an escape.
fn escaped(value: &str) -> String {
    value.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
}

/// The places in which a value is a secret by its name.
fn by_name(value: &str) -> Vec<Carrier> {
    let form = "application/x-www-form-urlencoded";
    let (coded, quoted) = (percent(value), json(value));
    let twice = percent(&coded);
    vec![
        carrier("query", format!("/a?q=1&access_token={coded}&x=2"), &[], "", ""),
        carrier(
            "nested query",
            format!("/a?next={}", percent(&format!("https://h.example/?token={coded}"))),
            &[],
            "",
            "",
        ),
        carrier("twice coded", format!("/a?next=%2Fb%3Fcode%3D{twice}"), &[], "", ""),
        carrier("cookie", "/".to_owned(), &[("Cookie", format!("a=1; sid={coded}; b=2"))], "", ""),
        carrier("set-cookie", "/".to_owned(), &[("Set-Cookie", format!("sid={coded}; Path=/; HttpOnly"))], "", ""),
        carrier("key", "/".to_owned(), &[("X-Api-Key", coded.clone())], "", ""),
        carrier("bearer", "/".to_owned(), &[("Authorization", format!("Bearer {coded}"))], "", ""),
        carrier(
            "basic",
            "/".to_owned(),
            &[("Authorization", format!("Basic {}", STANDARD.encode(format!("u:{value}"))))],
            "",
            "",
        ),
        carrier(
            "referer",
            "/".to_owned(),
            &[("Referer", format!("https://u:{coded}@h.example/?session={coded}#token={coded}"))],
            "",
            "",
        ),
        carrier("location", "/".to_owned(), &[("Location", format!("/cb?code={coded}&state=1"))], "", ""),
        carrier("form", "/".to_owned(), &[], &format!("user=x&password={coded}&b=1"), form),
        carrier(
            "json",
            "/".to_owned(),
            &[],
            &format!(r#"{{"a":1,"user":{{"password":"{quoted}"}},"b":[2]}}"#),
            "application/json",
        ),
        carrier(
            "json in json",
            "/".to_owned(),
            &[],
            &format!(r#"{{"a":"{}"}}"#, json(&format!(r#"{{"token":"{quoted}"}}"#))),
            "application/json",
        ),
        carrier("escaped json", "/".to_owned(), &[], &format!(r#"{{"pin":"{}"}}"#, escaped(value)), "application/json"),
        carrier("json list", "/".to_owned(), &[], &format!(r#"{{"tokens":["{quoted}"],"z":1}}"#), "application/json"),
        carrier(
            "json pairs",
            "/".to_owned(),
            &[],
            &format!(r#"[{{"name":"otp","value":"{quoted}"}}]"#),
            "application/json",
        ),
        carrier(
            "parts",
            "/".to_owned(),
            &[],
            &format!("--B\r\nContent-Disposition: form-data; name=\"passwd\"\r\n\r\n{value}\r\n--B--\r\n"),
            "multipart/form-data; boundary=B",
        ),
        carrier(
            "html",
            "/".to_owned(),
            &[],
            &format!("<form><input type=\"hidden\" name=\"csrf_token\" value=\"{coded}\"></form>"),
            "text/html",
        ),
    ]
}

/// The places in which a value is a secret by its form.
fn by_form(value: &str) -> Vec<Carrier> {
    let form = "application/x-www-form-urlencoded";
    let (coded, quoted) = (percent(value), json(value));
    vec![
        carrier("path", format!("/users/{coded}/orders"), &[], "", ""),
        carrier("query", format!("/a?q={coded}&x=2"), &[], "", ""),
        carrier("field", "/".to_owned(), &[("X-Note", format!("of {value}, today"))], "", ""),
        carrier("form", "/".to_owned(), &[], &format!("q={coded}&b=1"), form),
        carrier("json", "/".to_owned(), &[], &format!(r#"{{"note":"see {quoted} now"}}"#), "application/json"),
        carrier(
            "escaped json",
            "/".to_owned(),
            &[],
            &format!(r#"{{"note":"{}"}}"#, escaped(value)),
            "application/json",
        ),
        carrier("text", "/".to_owned(), &[], &format!("a note of {value}, and more"), "text/plain"),
        carrier("html", "/".to_owned(), &[], &format!("<p>{value}</p>"), "text/html"),
        carrier(
            "parts",
            "/".to_owned(),
            &[],
            &format!("--B\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\n{value}\r\n--B--\r\n"),
            "multipart/form-data; boundary=B",
        ),
    ]
}

fn by_address(value: &str) -> Vec<Carrier> {
    let forwarded =
        if value.contains(':') { format!("for=\"[{value}]:80\"") } else { format!("for={value};proto=http") };
    vec![
        carrier("x-forwarded-for", "/".to_owned(), &[("X-Forwarded-For", format!("{value}, {value}"))], "", ""),
        carrier("x-real-ip", "/".to_owned(), &[("X-Real-IP", value.to_owned())], "", ""),
        carrier("forwarded", "/".to_owned(), &[("Forwarded", forwarded)], "", ""),
    ]
}

fn carrier(
    place: &'static str,
    target: String,
    fields: &[(&str, String)],
    body: &str,
    content_type: &'static str,
) -> Carrier {
    let mut fields: Vec<_> = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    fields.push(("Content-Type".to_owned(), content_type.to_owned()));
    Carrier { place, target, fields, body: body.to_owned(), content_type }
}

fn carriers(planted: &Planted) -> Vec<Carrier> {
    match planted {
        Planted::Name(value) => by_name(value),
        // A value of a known form is a secret by its name, too.
        Planted::Form(value) => by_form(value).into_iter().chain(by_name(value)).collect(),
        Planted::Address(value) => by_address(value),
    }
}

fn push(writer: &mut BlockWriter, number: usize, carrier: &Carrier) {
    let fields: Vec<(&[u8], &[u8])> =
        carrier.fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let fields = fields.as_slice();
    let body = LiveBody {
        length: carrier.body.len() as u64,
        content_type: carrier.content_type.as_bytes(),
        kept: Some(carrier.body.as_bytes()),
        ..LiveBody::default()
    };
    let exchange = LiveExchange {
        at_us: number as u64,
        client: 1,
        connection: 1,
        version: RecordedVersion::Http11,
        is_tls: false,
        port: 80,
        method: b"POST",
        target: carrier.target.as_bytes(),
        fields: &fields,
        body,
        answer: Some(LiveAnswer { status: 200, fields: &fields, body }),
        is_cut: false,
        took_us: 1,
        tries: &[],
        cache: None,
        generation: 1,
        location: 0,
        tunnel: 0,
    };
    writer.push(&exchange).unwrap();
}

fn beginning() -> Beginning {
    Beginning { unix_us: 0, program: "test".to_owned(), share_ppm: 1_000_000, key_id: 1, has_bodies: true }
}

fn contains(bytes: &[u8], part: &str) -> bool {
    memchr::memmem::find(bytes, part.as_bytes()).is_some()
}

#[test]
fn no_planted_secret_is_in_a_block() {
    let planted = planted(SECRETS);
    assert_eq!(planted.len(), SECRETS);
    for secret in &planted {
        for (number, carrier) in carriers(secret).iter().enumerate() {
            let mut writer = BlockWriter::new(secrets());
            push(&mut writer, number, carrier);
            let block = writer.take(Vec::new());
            let value = secret.value();
            let basic = STANDARD.encode(format!("u:{value}"));
            for form in
                [value.to_owned(), percent(value), percent(value).to_lowercase(), json(value), escaped(value), basic]
            {
                assert!(!contains(&block, &form), "{form} in {}: {}", carrier.place, block.escape_ascii());
            }
            // No finding of the check is a secret that is replaced.
            let mut file = Writer::new(Vec::new(), &beginning()).unwrap().finish().unwrap();
            file.extend(seal(&block).unwrap());
            let report = check(Reader::new(&file[..]).unwrap());
            let said: Vec<_> = report.findings.iter().map(|finding| finding.said().en().to_owned()).collect();
            assert!(report.is_clean(), "{value} in {}: {said:?}", carrier.place);
        }
    }
}

#[test]
fn equal_secrets_stay_equal_in_all_places() {
    for secret in planted(SECRETS).iter().filter(|secret| !matches!(secret, Planted::Address(_))) {
        let mut replaced: HashMap<String, &str> = HashMap::new();
        for carrier in carriers(secret) {
            let mut all = vec![secrets().target(carrier.target.as_bytes())];
            all.extend(carrier.fields.iter().map(|(name, value)| secrets().field(name.as_bytes(), value.as_bytes())));
            all.push(secrets().body(carrier.content_type.as_bytes(), carrier.body.as_bytes()));
            let last = all.iter().filter(|text| !text.hidden.is_empty()).flat_map(hidden);
            // The secret is the longest hidden text: other ones are the values of other cookies.
            let longest =
                last.map(|text| decoded(&text)).max_by_key(String::len).unwrap_or_else(|| panic!("{}", carrier.place));
            replaced.insert(longest, carrier.place);
        }
        assert_eq!(replaced.len(), 1, "{}: {replaced:?}", secret.value());
    }
}

fn hidden(text: &RecordedText) -> Vec<String> {
    let part = |(begin, end): &(u32, u32)| text.bytes[*begin as usize..*end as usize].to_vec();
    text.hidden.iter().map(|place| String::from_utf8(part(place)).unwrap()).collect()
}

/// The replacement without the coding of its place.
fn decoded(text: &str) -> String {
    let is_json = ["\\u", "\\\\", "\\\""].iter().any(|escape| text.contains(escape));
    if let Some(text) = is_json.then(|| serde_json::from_str::<String>(&format!("\"{text}\"")).ok()).flatten() {
        return decoded(&text);
    }
    if let Ok(basic) = STANDARD.decode(text)
        && let Some(password) =
            str::from_utf8(&basic).ok().and_then(|both| both.split_once(':')).filter(|both| both.0.len() == 1)
    {
        return password.1.to_owned();
    }
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = str::from_utf8(tail.get(..2).unwrap_or_default())
            .ok()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) if *first == b'%' => {
                bytes.push(code);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    let new = String::from_utf8(bytes).unwrap();
    if new == text { new } else { decoded(&new) }
}

#[test]
fn the_check_finds_each_secret_that_is_not_replaced() {
    for secret in planted(SECRETS) {
        for carrier in carriers(&secret) {
            let field = |(name, value): &(String, String)| weir_recording::model::RecordedField {
                name: name.to_ascii_lowercase().into_bytes(),
                value: RecordedText::plain(value.as_bytes()),
            };
            let body = weir_recording::model::RecordedBody {
                length: 0,
                hash: None,
                kept: Some(RecordedText::plain(carrier.body.as_bytes())),
            };
            let exchange = RecordedExchange {
                at_us: 0,
                client: 0,
                connection: 0,
                version: RecordedVersion::Http11,
                is_tls: false,
                port: 80,
                method: b"GET".to_vec(),
                target: RecordedText::plain(carrier.target.as_bytes()),
                fields: carrier.fields.iter().map(field).collect(),
                body,
                answer: None,
                is_cut: false,
                took_us: 0,
                tries: Vec::new(),
                cache: None,
                generation: 0,
                location: 0,
                tunnel: 0,
            };
            let mut writer = Writer::new(Vec::new(), &beginning()).unwrap();
            writer.put(&RecordingPart::Exchange(Box::new(exchange))).unwrap();
            let file = writer.finish().unwrap();
            let report = check(Reader::new(&file[..]).unwrap());
            assert!(!report.findings.is_empty(), "{} in {}", secret.value(), carrier.place);
            for finding in &report.findings {
                let said = finding.said();
                assert_eq!((finding.part, finding.parts), (1, finding.parts));
                assert!(!said.en().contains(secret.value()) || secret.value().len() < 4, "{said:?}");
                assert!(weir_words::is_korean(said.ko()));
            }
        }
    }
}
