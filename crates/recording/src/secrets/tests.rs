//! Each place and each form of a secret.

use super::*;

fn secrets() -> Secrets {
    Secrets::new(*b"sixteen bytes ok")
}

/// The replaced texts, and the whole text.
fn shown(text: &RecordedText) -> (Vec<String>, String) {
    let part =
        |(begin, end): &(u32, u32)| String::from_utf8_lossy(&text.bytes[*begin as usize..*end as usize]).into_owned();
    (text.hidden.iter().map(part).collect(), String::from_utf8_lossy(&text.bytes).into_owned())
}

/// The original texts in the replaced places.
fn hidden<'o>(text: &RecordedText, original: &'o str) -> Vec<&'o str> {
    assert_eq!(text.bytes.len(), original.len(), "{original}");
    text.hidden.iter().map(|(begin, end)| &original[*begin as usize..*end as usize]).collect()
}

#[test]
fn fields_have_their_secrets() {
    let rows: &[(&str, &str, &[&str])] = &[
        ("Cookie", "sid=abc; theme=\"dark\"; x; y=", &["abc", "dark", "x"]),
        ("set-cookie", "sid=abc; Path=/; Expires=Wed, 21 Oct 2026 07:28:00 GMT", &["abc"]),
        ("authorization", "Bearer abc.def", &["abc.def"]),
        ("Proxy-Authorization", "Basic dXNlcjpwYXNz", &["dXNlcjpwYXNz"]),
        ("authorization", "Digest username=\"Mufasa\", uri=/x, nc=01", &["Mufasa", "/x", "01"]),
        ("authorization", "Negotiate YIIabc==", &["YIIabc=="]),
        ("authorization", "abcdef", &["abcdef"]),
        ("x-api-key", " k1 ", &["k1"]),
        ("X-Auth-Token", "t", &["t"]),
        (
            "x-forwarded-for",
            "192.0.2.1, 2001:db8::1, unknown, 192.0.2.1:80",
            &["192.0.2.1", "2001:db8::1", "192.0.2.1"],
        ),
        ("forwarded", "for=192.0.2.43;proto=http, for=\"[2001:db8::17]:47\"", &["192.0.2.43", "2001:db8::17"]),
        ("referer", "https://u:p@h.example/a?q=1&token=t%20x#id_token=z", &["u", "p", "t%20x", "z"]),
        ("location", "/login?next=%2Fa%3Femail%3Dx%2540y.example", &["x%2540y.example"]),
        ("link", "<https://h.example/?sig=abc>; rel=next", &["abc"]),
        ("x-note", "from alice@shop.example, 010-1234-5678", &["alice@shop.example", "010-1234-5678"]),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==", &[]),
        ("www-authenticate", "Bearer realm=\"x\"", &[]),
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/126.0.0.0 Safari/537.36", &[]),
        ("etag", "\"66f1-1234567890\"", &[]),
        ("date", "Mon, 30 Nov 2026 08:00:00 GMT", &[]),
        ("content-type", "multipart/form-data; boundary=----x", &[]),
        ("cache-control", "max-age=31536000, s-maxage=1", &[]),
    ];
    for (name, value, expected) in rows {
        let text = secrets().field(name.as_bytes(), value.as_bytes());
        assert_eq!(hidden(&text, value), *expected, "{name}: {value}");
    }
}

#[test]
fn targets_have_their_secrets() {
    for (target, expected) in [
        ("/", &[][..]),
        ("/a/b.css?v=3&page=2", &[]),
        ("/?token=abc&q=1", &["abc"]),
        ("/?user%5Bpassword%5D=a+b%21&x", &["a+b%21"]),
        ("/?accessToken=", &[]),
        ("/u/alice%40shop.example/x", &["alice%40shop.example"]),
        ("/a;jsessionid=77aa?x=1", &["77aa"]),
        ("/?to=%2B82+10-1234-5678", &["82+10-1234-5678"]),
        ("/?d=%7B%22pin%22%3A%221234%22%2C%22a%22%3A1%7D", &["1234"]),
        ("/?r=https%3A%2F%2Fx.example%2F%3Fcode%3Dzz%26b%3D1", &["zz"]),
        ("/?card=4111-1111-1111-1111", &["4111-1111-1111-1111"]),
        ("/?n=4111111111111111", &["4111111111111111"]),
        ("http://a:b@x.example/?비밀번호=x&q=", &["a", "b", "x"]),
        ("/?%EC%A0%84%ED%99%94=1", &["1"]),
        ("/rrn/900101-1234567", &["900101-1234567"]),
        ("*", &[]),
    ] {
        assert_eq!(hidden(&secrets().target(target.as_bytes()), target), expected, "{target}");
    }
}

#[test]
fn bodies_have_their_secrets() {
    const FORM: &str = "application/x-www-form-urlencoded";
    const PARTS: &str = "multipart/form-data; boundary=XX";
    let rows: &[(&str, &str, &[&str])] = &[
        (FORM, "user=bob&pass=a%26b&phone=010", &["a%26b", "010"]),
        ("application/json", r#"{"a":1,"token":"V","n":{"pin":1234,"e":true},"x":"y"}"#, &["V", "1234"]),
        ("application/json", r#"{"session":{"a":"b","c":[1,"d"]},"z":"z"}"#, &["b", "1", "d"]),
        ("application/json", r#"{"password":"a\"\u0062"}"#, &[r#"a\"\u0062"#]),
        ("application/json", r#"{"key":"password","value":"V"}"#, &["V"]),
        ("application/json", r#"[{"name":"email","value":"V"},{"name":"q","value":"W"}]"#, &["V"]),
        (
            "application/json",
            r#"{"note":"call 010-1234-5678","n":4111111111111111}"#,
            &["010-1234-5678", "4111111111111111"],
        ),
        ("application/json", r#"{"inner":"{\"token\":\"V\"}"}"#, &["V"]),
        ("application/json", r#"{"secret":"cut off he"#, &["cut off he"]),
        ("", r#" {token: "V", x: 'y'}"#, &["V"]),
        ("application/vnd.api+json", r#"{"data":{"email":"x"}}"#, &["x"]),
        (PARTS, "--XX\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nV\r\n--XX--\r\n", &["V"]),
        (
            PARTS,
            "--XX\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\nx a@b.example\r\n--XX--\r\n",
            &["a@b.example"],
        ),
        ("text/html", "<input name=\"csrf_token\" value='V'/><p>x</p>", &["V"]),
        ("text/html", "<input value=\"V\" type=hidden name=authenticity_token>", &["V"]),
        ("text/html", "<meta content=V name=csrf-token>", &["V"]),
        ("text/xml", "<a><password>V</password><q>W</q><secret/>X</a>", &["V"]),
        ("text/plain", "password: V, session = \"W W\", x=y", &["V", "W W"]),
        ("text/plain", "Authorization: Bearer abcdefgh1", &["Bearer", "abcdefgh1"]),
        ("text/plain", "Basic dXNlcjpwYXNzd29yZDE= ok", &["dXNlcjpwYXNzd29yZDE="]),
        ("text/plain", "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0. end", &["eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0."]),
        (
            "text/plain",
            "AKIAIOSFODNN7EXAMPLE ghp_0123456789abcdefghijABCDEFGHIJ0123",
            &["AKIAIOSFODNN7EXAMPLE", "ghp_0123456789abcdefghijABCDEFGHIJ0123"],
        ),
        ("text/plain", "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", &["\nabc\n"]),
        ("text/plain", "pay DE89370400440532013000 now", &["DE89370400440532013000"]),
        ("application/json", "\u{1}{\"a\":1}", &["\u{1}{\"a\":1}"]),
        ("text/plain", "the bearer of this basic message", &[]),
    ];
    for (content_type, body, expected) in rows {
        let text = secrets().body(content_type.as_bytes(), body.as_bytes());
        let flat: Vec<_> = hidden(&text, body);
        // Adjacent signs of a private key are of one place.
        assert_eq!(flat, *expected, "{content_type}: {body}");
    }
}

#[test]
fn a_compressed_body_is_a_secret() {
    let body = b"\x1f\x8b\x08\0abcdefgh\xff";
    let text = secrets().body(b"", body);
    assert_eq!(text.hidden, [(0, body.len() as u32)]);
    assert!(!text.bytes.windows(4).any(|bytes| bytes == b"abcd"));
    // A message of gRPC is no text, and has only secrets of known forms.
    let text = secrets().body(b"application/grpc", b"\0\0\0\0\x14\x0a\x12a@shop.example.com\x01");
    assert_eq!(text.hidden, [(7, 25)]);
}

#[test]
fn equal_secrets_are_equal_in_each_place() {
    let secrets = secrets();
    let value = "Ab1-cd@é";
    let encoded = "Ab1-cd%40%C3%A9";
    let basic = secrets.field(b"authorization", b"Basic dTpBYjEtY2RAw6k=");
    let places = [
        secrets.field(b"set-cookie", format!("sid={encoded}; Path=/").as_bytes()),
        secrets.field(b"cookie", format!("a=b; sid={encoded}").as_bytes()),
        secrets.field(b"x-api-key", value.as_bytes()),
        secrets.field(b"authorization", format!("Bearer {value}").as_bytes()),
        secrets.target(format!("/?token={encoded}").as_bytes()),
        secrets.body(b"application/x-www-form-urlencoded", format!("token={encoded}").as_bytes()),
        secrets.body(b"application/json", format!("{{\"token\":\"{value}\"}}").as_bytes()),
        secrets.body(b"application/json", br#"{"token":"\u0041b1-cd@\u00e9"}"#),
    ];
    let expected = shown(&places[2]).1;
    assert_ne!(expected, value);
    for place in &places {
        let last = shown(place).0.pop().unwrap();
        let view = View::new(last.as_bytes());
        let percent = view.percent(false);
        let json = view.json_string();
        let decoded = percent.as_ref().or(json.as_ref()).map_or(view, |decoded| decoded.view());
        assert_eq!(str::from_utf8(decoded.bytes).unwrap(), expected, "{}", shown(place).1);
    }
    use base64::Engine;
    let plain = base64::engine::general_purpose::STANDARD.decode(&basic.bytes[6..]).unwrap();
    assert_eq!(str::from_utf8(&plain).unwrap().split_once(':').unwrap().1, expected);
}

#[test]
fn another_key_gives_other_replacements_and_numbers() {
    let (one, other) = (secrets(), Secrets::new([1; 16]));
    assert_ne!(one.field(b"cookie", b"a=secret-value"), other.field(b"cookie", b"a=secret-value"));
    assert_ne!(one.id(), other.id());
    let address = "192.0.2.1".parse().unwrap();
    assert_eq!(one.client(address), one.client(address));
    assert_ne!(one.client(address), other.client(address));
    let hash = |pieces: &[&[u8]]| {
        let mut hash = one.body_hash();
        pieces.iter().for_each(|piece| hash.update(piece));
        hash.finish()
    };
    assert_eq!(hash(&[b"ab", b"c"]), hash(&[b"abc"]));
    assert_ne!(hash(&[b"abc"]), hash(&[b"abd"]));
}

#[test]
fn hostile_texts_take_time_in_proportion_to_their_length() {
    // A quadratic walk would take many minutes.
    let pieces = [
        "@",
        "a@",
        "a@b.",
        "://",
        "a://",
        "eyJ.",
        "eyJa.",
        "Bearer ",
        "1-",
        "11 ",
        "+1",
        "token=",
        "token=\"",
        "token:'",
        "<",
        "<a ",
        "<token>",
        "<input name=token value=",
        "{\"token\":",
        "[",
        "\"",
        "\\u0041",
        "%25",
        "%2525",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "sk-",
        "DE89 ",
        "AKIA",
        "=",
        ":",
        ";",
        "&a=%7B",
        "--XX\r\n",
        "비밀번호=",
        "a.",
        "((",
        "sess",
        "A",
    ];
    for piece in pieces {
        let text = piece.repeat((1 << 16) / piece.len());
        for content_type in
            ["", "application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=XX"]
        {
            assert_eq!(secrets().body(content_type.as_bytes(), text.as_bytes()).bytes.len(), text.len());
        }
        secrets().target(text.as_bytes());
        ["cookie", "authorization", "forwarded", "x-forwarded-for", "accept"].iter().for_each(|name| {
            secrets().field(name.as_bytes(), text.as_bytes());
        });
    }
}
