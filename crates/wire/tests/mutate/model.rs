//! A second reader of HTTP/1 messages, written from RFC 9112 and independent of weir's: it uses nothing of `weir_wire`.
//!
//! It is slow and plain: each rule is a few lines in the order of the RFC. Where the RFC leaves a recipient the choice,
//! or where weir follows nginx instead of the RFC, the model reads the message in the one sensible way and notes a
//! [`Choice`]. [`Choice::of`] says whether weir takes such messages; `framing.rs` compares.
//!
//! long: one standard, in its order

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    Client,
    Origin,
}

/// Name and value of a field.
pub type Pair = (Vec<u8>, Vec<u8>);

/// A message as the model reads it.
#[derive(Debug)]
pub struct Message {
    /// The method of a request, the status of an answer.
    pub start: Vec<u8>,
    /// The target of a request, the reason of an answer.
    pub subject: Vec<u8>,
    /// Names and values of the field lines that count.
    pub fields: Vec<Pair>,
    /// The first byte after the head.
    pub head_end: usize,
    /// The payload of the body, as far as it has come.
    pub payload: Vec<u8>,
    pub end: End,
    /// Another message may follow on the connection.
    pub persists: bool,
    pub choices: Vec<Choice>,
}

/// The end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The next message begins here.
    At(usize),
    /// More bytes of the body have to come.
    Later,
    /// As `Later`, in the middle of a line: the line may still become wrong.
    InLine,
    /// The body lasts until the connection closes.
    Close,
}

/// The model's verdict.
#[derive(Debug)]
pub enum Reading {
    Message(Message),
    /// The head is not complete.
    Incomplete,
    /// The message has no reading, or more than one; the section that says so.
    Wrong(&'static str),
}

/// A form of a message of which a recipient may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Bytes CR and LF before a request line.
    LeadingLineEnds,
    /// A line that ends in LF alone.
    BareLineFeed,
    /// Several spaces between the words of a request line, or spaces after its version.
    Spaces,
    /// A method with other bytes than `[A-Z_-]`.
    OddMethod,
    /// `*`, or an absolute form with other parts than scheme, plain host, port, path and query.
    OddTarget,
    /// A request line without a version.
    SimpleRequest,
    /// A Host, or the authority of a target, that is not a plain name or address.
    OddHost,
    /// A name with other bytes than `[0-9A-Za-z-]`: of a client's head, the field does not count.
    OddName,
    /// A client's name that is not ASCII.
    NameNotAscii,
    /// A value with a control byte.
    ControlInValue,
    /// A field that is allowed only once comes twice, and does not frame the message.
    RepeatedField,
    /// Several Content-Length with one value.
    RepeatedLength,
    /// A length above 2^63-1, or many digits of one.
    LargeLength,
    /// A coding besides `chunked`, or empty members in the list of codings, or several field lines of them.
    OtherCodings,
    /// An answer of HTTP/1.0 in chunks.
    CodingInHttp10,
    /// TRACE, or CONNECT with a body.
    OddUseOfMethod,
    /// Faulty framing fields of an answer that has no body whatever they say.
    FaultyFieldsWithoutBody,
    /// Spaces after a chunk's size without an extension.
    PaddedChunkSize,
    /// Text after a chunk's size that is no extension of the grammar.
    OddExtension,
    /// A trailer line that ends in LF alone.
    BareLineFeedInTrailer,
    /// More trailer fields, or longer extensions, than anybody needs.
    ManyTrailers,
    /// A status line with several spaces, a sub-status, a version of several digits, no space after the code, or a
    /// control byte in its reason.
    OddStatusLine,
    /// A status below 100.
    StatusBelow100,
    /// CRs before a line end.
    ExtraCr,
    /// A line without a colon, or a status line among the fields.
    LineWithoutName,
    /// Spaces between a name and its colon.
    SpaceBeforeColon,
}

/// weir's treatment of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    Takes,
    Refuses,
    /// It depends on details that are not part of the model.
    Either,
}

impl Choice {
    /// weir's treatment of messages of this form. `fuzz/README.md` explains the list.
    pub fn of(self, sender: Sender) -> Treatment {
        let origin = |treatment| if sender == Sender::Origin { treatment } else { Treatment::Refuses };
        match self {
            Choice::LeadingLineEnds
            | Choice::BareLineFeed
            | Choice::Spaces
            | Choice::SimpleRequest
            | Choice::OddName
            | Choice::OddStatusLine => Treatment::Takes,
            Choice::CodingInHttp10
            | Choice::ControlInValue
            | Choice::PaddedChunkSize
            | Choice::OddExtension
            | Choice::ExtraCr
            | Choice::LineWithoutName => origin(Treatment::Takes),
            Choice::OddHost | Choice::OddTarget | Choice::ManyTrailers => Treatment::Either,
            Choice::OddMethod
            | Choice::NameNotAscii
            | Choice::RepeatedField
            | Choice::RepeatedLength
            | Choice::LargeLength
            | Choice::OtherCodings
            | Choice::OddUseOfMethod
            | Choice::FaultyFieldsWithoutBody
            | Choice::BareLineFeedInTrailer
            | Choice::StatusBelow100
            | Choice::SpaceBeforeColon => Treatment::Refuses,
        }
    }
}

/// Why the model stops: the section.
type Wrong = &'static str;

/// A line without its end, the position after it, and whether its end is CRLF.
struct Line<'a> {
    text: &'a [u8],
    next: usize,
    has_cr: bool,
}

/// The line at a position; `None` while it has no LF.
fn line(data: &[u8], at: usize) -> Option<Line<'_>> {
    let rest = data.get(at..)?;
    let length = rest.iter().position(|&byte| byte == b'\n')?;
    let text = &rest[..length];
    let without = text.strip_suffix(b"\r");
    Some(Line { text: without.unwrap_or(text), next: at + length + 1, has_cr: without.is_some() })
}

fn is_token_byte(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z')
        || matches!(byte, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+')
        || matches!(byte, b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| is_token_byte(byte))
}

fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// The fields of a head, and its end.
struct Section {
    fields: Vec<Pair>,
    end: usize,
}

/// Whether the head that begins at a position is complete: it has an empty line.
fn is_complete(data: &[u8], mut at: usize) -> bool {
    while let Some(line) = line(data, at) {
        if line.text.is_empty() {
            return true;
        }
        at = line.next;
    }
    false
}

/// §5: the field lines from a position up to the empty line.
fn section(data: &[u8], mut at: usize, sender: Sender, choices: &mut Vec<Choice>) -> Result<Section, Wrong> {
    let mut fields = Vec::new();
    while let Some(Line { text, next, has_cr }) = line(data, at) {
        if !has_cr {
            choices.push(Choice::BareLineFeed);
        }
        at = next;
        if text.is_empty() {
            return Ok(Section { fields, end: at });
        }
        if let Some(field) = field(text, sender, choices)? {
            fields.push(field);
        }
    }
    Err("9112 2.1: no empty line")
}

/// One field line; `None` for a line that does not count.
fn field(text: &[u8], sender: Sender, choices: &mut Vec<Choice>) -> Result<Option<Pair>, Wrong> {
    if matches!(text.first(), Some(b' ' | b'\t')) {
        return Err("9112 5.2: obsolete line folding");
    }
    let colon = text.iter().position(|&byte| byte == b':');
    if sender == Sender::Origin && text.starts_with(b"HTTP/") {
        choices.push(Choice::LineWithoutName);
        return Ok(None);
    }
    let (name, value) = match colon {
        Some(colon) => (&text[..colon], &text[colon + 1..]),
        None => (text, &b""[..]),
    };
    // A CR at the end of a value may count as a space (§2.2).
    let (mut name, mut value) = (name, value);
    while sender == Sender::Origin
        && let [rest @ .., b'\r'] = if colon.is_some() { value } else { name }
    {
        choices.push(Choice::ExtraCr);
        if colon.is_some() { value = rest } else { name = rest }
    }
    if text.contains(&0) || value.contains(&b'\r') || name.contains(&b'\r') {
        return Err("9112 2.2, 9110 5.5: a bare CR or NUL");
    }
    if sender == Sender::Client && (colon.is_none() || matches!(name.last(), Some(b' ' | b'\t'))) {
        return Err("9112 5, 5.1: no colon directly after a name");
    }
    if colon.is_none() {
        choices.push(Choice::LineWithoutName);
    }
    if matches!(name.last(), Some(b' ' | b'\t')) {
        choices.push(Choice::SpaceBeforeColon);
        return Ok(None);
    }
    if !is_visible(name) {
        return Err("9112 5: a name with a control byte or a space, or no name");
    }
    let is_plain = name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !is_plain {
        choices.push(Choice::OddName);
    }
    if !is_plain && sender == Sender::Client {
        choices.extend((!name.is_ascii()).then_some(Choice::NameNotAscii));
        return Ok(None);
    }
    if value.iter().any(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
        choices.push(Choice::ControlInValue);
    }
    Ok(Some((name.to_vec(), trim(value).to_vec())))
}

/// A text without spaces and control bytes.
fn is_visible(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| byte > b' ' && byte != 0x7f)
}

/// The values of all fields of a name.
fn values<'f>(fields: &'f [Pair], name: &str) -> Vec<&'f [u8]> {
    let is_it = |field: &&Pair| field.0.eq_ignore_ascii_case(name.as_bytes());
    fields.iter().filter(is_it).map(|(_, value)| value.as_slice()).collect()
}

/// §9.3: whether the Connection fields let the connection go on.
fn persists(fields: &[Pair], is_http11: bool) -> bool {
    let values = values(fields, "Connection");
    let has = |option: &str| {
        let mut options = values.iter().flat_map(|value| value.split(|&byte| byte == b','));
        options.any(|one| trim(one).eq_ignore_ascii_case(option.as_bytes()))
    };
    !has("close") && (is_http11 || has("keep-alive"))
}

/// The body's framing by the fields.
enum Framing {
    Nothing,
    Length(u64),
    Chunks,
    /// §6.3 rule 4: an answer whose last coding is not `chunked`.
    UntilClose,
}

/// §6.1 to §6.3: the framing that the fields give; `Nothing` without any.
fn framing(fields: &[Pair], is_http11: bool, sender: Sender, choices: &mut Vec<Choice>) -> Result<Framing, Wrong> {
    let lengths = values(fields, "Content-Length");
    let codings = values(fields, "Transfer-Encoding");
    if !codings.is_empty() && !lengths.is_empty() {
        return Err("9112 6.3 rule 3: both framings");
    }
    if !codings.is_empty() {
        if !is_http11 && sender == Sender::Client {
            return Err("9112 6.1: a coding in HTTP/1.0 is faulty framing");
        }
        if !is_http11 {
            choices.push(Choice::CodingInHttp10);
        }
        if codings.len() > 1 {
            choices.push(Choice::OtherCodings);
        }
        return coding(&codings.join(&b','), sender, choices);
    }
    if lengths.is_empty() {
        return Ok(Framing::Nothing);
    }
    // §6.3 rule 5: a list of one value may be taken as that value.
    let all = lengths.join(&b',');
    let numbers: Vec<&[u8]> = all.split(|&byte| byte == b',').map(trim).collect();
    if numbers.len() > 1 {
        choices.push(Choice::RepeatedLength);
    }
    if numbers.iter().any(|number| number.is_empty() || !number.iter().all(u8::is_ascii_digit)) {
        return Err("9112 6.3 rule 5: a length that is not digits");
    }
    if numbers.iter().any(|number| Some(number) != numbers.first()) {
        return Err("9112 6.3 rule 5: two lengths");
    }
    Ok(Framing::Length(number(numbers[0], 10, choices)))
}

/// A number, and a choice if it is above 2^63-1.
fn number(digits: &[u8], radix: u32, choices: &mut Vec<Choice>) -> u64 {
    let digits = std::str::from_utf8(digits).unwrap_or_default();
    match u128::from_str_radix(digits.trim_start_matches('0'), radix) {
        Ok(number) if number <= u128::from(u64::MAX) / 2 => number as u64,
        Err(error) if *error.kind() == std::num::IntErrorKind::Empty => 0,
        _ => {
            choices.push(Choice::LargeLength);
            u64::MAX
        }
    }
}

/// §6.1, §7: the list of codings.
fn coding(list: &[u8], sender: Sender, choices: &mut Vec<Choice>) -> Result<Framing, Wrong> {
    let members: Vec<&[u8]> = list.split(|&byte| byte == b',').map(trim).collect();
    if members.iter().any(|member| member.is_empty()) {
        choices.push(Choice::OtherCodings);
    }
    let members: Vec<&[u8]> = members.into_iter().filter(|member| !member.is_empty()).collect();
    let is_chunked = |member: &&[u8]| member.eq_ignore_ascii_case(b"chunked");
    for member in members.iter().filter(|member| !is_chunked(member)) {
        choices.push(Choice::OtherCodings);
        let (name, parameters) = match member.iter().position(|&byte| byte == b';') {
            Some(end) => (trim(&member[..end]), true),
            None => (*member, false),
        };
        if !is_token(name) {
            return Err("9112 7: not a coding");
        }
        if parameters && is_chunked(&name) {
            return Err("9112 7.1: chunked has no parameters");
        }
    }
    let chunked = members.iter().filter(|member| is_chunked(member)).count();
    match (chunked, members.last().is_some_and(is_chunked), sender) {
        (2.., ..) => Err("9112 6.1: chunked more than once"),
        (_, true, _) => Ok(Framing::Chunks),
        (_, false, Sender::Client) => Err("9112 6.3 rule 4: chunked is not the last coding"),
        (1, false, Sender::Origin) => Err("9112 6.1: chunked is not the last coding"),
        (_, false, Sender::Origin) => Ok(Framing::UntilClose),
    }
}

/// The payload from a position, and the end.
fn body(data: &[u8], at: usize, framing: &Framing, choices: &mut Vec<Choice>) -> Result<(Vec<u8>, End), Wrong> {
    let rest = &data[at..];
    Ok(match framing {
        Framing::Nothing => (Vec::new(), End::At(at)),
        Framing::UntilClose => (rest.to_vec(), End::Close),
        Framing::Length(length) if *length <= rest.len() as u64 => {
            (rest[..*length as usize].to_vec(), End::At(at + *length as usize))
        }
        Framing::Length(_) => (rest.to_vec(), End::Later),
        Framing::Chunks => return chunks(data, at, choices),
    })
}

/// Extension bytes of a chunk that weir reads.
const EXTENSION_BYTES: usize = 1024;
/// Digits of a chunk's size that weir reads.
const SIZE_DIGITS: usize = 32;
/// Trailer fields that weir reads.
const TRAILERS: usize = 64;

/// §7.1: `*chunk last-chunk trailer-section CRLF`.
fn chunks(data: &[u8], mut at: usize, choices: &mut Vec<Choice>) -> Result<(Vec<u8>, End), Wrong> {
    let mut payload = Vec::new();
    loop {
        let Some(Line { text, next, has_cr }) = line(data, at) else { return Ok((payload, End::InLine)) };
        if !has_cr || text.contains(&b'\r') {
            return Err("9112 7.1: a chunk line ends in CRLF");
        }
        let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits == 0 {
            return Err("9112 7.1: a chunk size is 1*HEXDIG");
        }
        if digits > SIZE_DIGITS {
            choices.push(Choice::LargeLength);
        }
        let size = number(&text[..digits], 16, choices);
        extensions(&text[digits..], choices)?;
        at = next;
        if size == 0 {
            return Ok((payload, trailers(data, at, choices)?));
        }
        let rest = &data[at..];
        if (rest.len() as u64) < size {
            payload.extend_from_slice(rest);
            return Ok((payload, End::Later));
        }
        let size = size as usize;
        payload.extend_from_slice(&rest[..size]);
        match rest[size..] {
            [] | [b'\r'] => return Ok((payload, End::Later)),
            [b'\r', b'\n', ..] => at += size + 2,
            _ => return Err("9112 7.1: CRLF follows chunk data"),
        }
    }
}

/// §7.1.1: `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )`.
fn extensions(text: &[u8], choices: &mut Vec<Choice>) -> Result<(), Wrong> {
    if text.len() > EXTENSION_BYTES {
        choices.push(Choice::ManyTrailers);
    }
    let mut rest = text;
    while !rest.is_empty() {
        rest = blanks(rest);
        let Some(after) = rest.strip_prefix(b";") else {
            // Spaces alone are padding; other text after a size has no reading.
            if !rest.is_empty() && blanks(text).first() != Some(&b';') {
                return Err("9112 7.1: text after a chunk size");
            }
            choices.push(if rest.is_empty() && blanks(text).is_empty() {
                Choice::PaddedChunkSize
            } else {
                Choice::OddExtension
            });
            break;
        };
        match extension(blanks(after)) {
            Some(after) => rest = after,
            None => {
                choices.push(Choice::OddExtension);
                break;
            }
        }
    }
    if text.iter().any(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
        return Err("9112 7.1.1: a control byte in an extension");
    }
    Ok(())
}

/// A name and its value; returns the text after them.
fn extension(text: &[u8]) -> Option<&[u8]> {
    let after_name = token(text)?;
    let Some(value) = blanks(after_name).strip_prefix(b"=") else { return Some(after_name) };
    let value = blanks(value);
    let Some(mut rest) = value.strip_prefix(b"\"") else { return token(value) };
    loop {
        rest = match rest {
            [b'"', after @ ..] => return Some(after),
            [b'\\', _, after @ ..] => after,
            [b'\\'] | [] => return None,
            [_, after @ ..] => after,
        };
    }
}

fn token(text: &[u8]) -> Option<&[u8]> {
    let length = text.iter().take_while(|&&byte| is_token_byte(byte)).count();
    (length > 0).then(|| &text[length..])
}

fn blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    text
}

/// §7.1.2: the trailer section, and the end of the message.
fn trailers(data: &[u8], at: usize, choices: &mut Vec<Choice>) -> Result<End, Wrong> {
    if !is_complete(data, at) {
        return Ok(End::InLine);
    }
    let mut own = Vec::new();
    // The rules of a client's head hold for the trailers of an origin too.
    let read = section(data, at, Sender::Client, &mut own)?;
    let text = &data[at..read.end];
    if text.iter().filter(|&&byte| byte == b'\n').count() > TRAILERS + 1 {
        choices.push(Choice::ManyTrailers);
    }
    for choice in own {
        match choice {
            Choice::BareLineFeed => choices.push(Choice::BareLineFeedInTrailer),
            // A field that the recipient may leave out; weir does.
            Choice::OddName | Choice::NameNotAscii | Choice::ControlInValue => {}
            other => choices.push(other),
        }
    }
    Ok(End::At(read.end))
}

/// §2.2, §3: the request that begins at a position.
pub fn request(data: &[u8], at: usize) -> Reading {
    let mut choices = Vec::new();
    match read_request(data, at, &mut choices) {
        Ok(Some(message)) => Reading::Message(Message { choices, ..message }),
        Ok(None) => Reading::Incomplete,
        Err(section) => Reading::Wrong(section),
    }
}

fn read_request(data: &[u8], mut at: usize, choices: &mut Vec<Choice>) -> Result<Option<Message>, Wrong> {
    while let Some(b'\r' | b'\n') = data.get(at) {
        choices.push(Choice::LeadingLineEnds);
        at += 1;
    }
    let Some(first) = line(data, at) else { return Ok(None) };
    let words = request_line(first.text, choices)?;
    if !first.has_cr {
        choices.push(Choice::BareLineFeed);
    }
    let (method, target) = (words.method.to_vec(), words.target.to_vec());
    let Some(is_http11) = words.is_http11 else {
        if target.first() != Some(&b'/') {
            choices.push(Choice::OddTarget);
        }
        // RFC 1945 §4.1: only bytes that mean nothing may follow.
        choices.push(Choice::SimpleRequest);
        if method != b"GET" || data[first.next..].iter().any(|byte| !byte.is_ascii_whitespace()) {
            return Err("1945 4.1: more than a simple request");
        }
        return Ok(Some(Message {
            start: method,
            subject: target,
            fields: Vec::new(),
            head_end: first.next,
            payload: Vec::new(),
            end: End::At(first.next),
            persists: false,
            choices: Vec::new(),
        }));
    };
    if !is_complete(data, first.next) {
        return Ok(None);
    }
    let Section { fields, end } = section(data, first.next, Sender::Client, choices)?;
    hosts(&fields, is_http11, choices)?;
    for name in ONCE {
        if values(&fields, name).len() > 1 {
            choices.push(Choice::RepeatedField);
        }
    }
    let framing = framing(&fields, is_http11, Sender::Client, choices)?;
    if method == b"TRACE"
        || (method == b"CONNECT" && (!matches!(framing, Framing::Nothing | Framing::Length(0)) || !is_http11))
    {
        choices.push(Choice::OddUseOfMethod);
    }
    let (payload, message_end) = body(data, end, &framing, choices)?;
    let persists = persists(&fields, is_http11);
    Ok(Some(Message {
        start: method,
        subject: target,
        fields,
        head_end: end,
        payload,
        end: message_end,
        persists,
        choices: Vec::new(),
    }))
}

/// Fields of a request that are allowed once, and that weir, like nginx, refuses otherwise.
const ONCE: [&str; 9] = [
    "Expect",
    "If-Match",
    "If-Range",
    "Authorization",
    "Content-Range",
    "If-None-Match",
    "If-Modified-Since",
    "If-Unmodified-Since",
    "Proxy-Authorization",
];

/// The words of a request line; `is_http11` is `None` without a version.
struct Words<'a> {
    method: &'a [u8],
    target: &'a [u8],
    is_http11: Option<bool>,
}

/// §3: words between spaces. Bytes that are no URI's stay in a target: they do not move its ends.
fn request_line<'a>(text: &'a [u8], choices: &mut Vec<Choice>) -> Result<Words<'a>, Wrong> {
    if text.iter().any(|&byte| byte < b' ' || byte == 0x7f) {
        return Err("9112 3: a control byte in a request line");
    }
    let pieces: Vec<&[u8]> = text.split(|&byte| byte == b' ').collect();
    let words: Vec<&[u8]> = pieces.iter().copied().filter(|word| !word.is_empty()).collect();
    if pieces.len() != words.len() {
        choices.push(Choice::Spaces);
    }
    let (method, target, version) = match words[..] {
        [method, target] => (method, target, None),
        [method, target, version] => (method, target, Some(version)),
        _ => return Err("9112 3: not a request line"),
    };
    if text.first() == Some(&b' ') || !is_token(method) {
        return Err("9112 3.1: not a method");
    }
    if !method.iter().all(|&byte| byte.is_ascii_uppercase() || byte == b'_' || byte == b'-') {
        choices.push(Choice::OddMethod);
    }
    form(method, target, choices)?;
    let is_http11 = match version {
        None => None,
        Some([b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor @ b'0'..=b'9']) => Some(*minor != b'0'),
        Some(_) => return Err("9112 2.3: not a version of HTTP/1"),
    };
    Ok(Words { method, target, is_http11 })
}

/// §3.2: the form of the target.
fn form(method: &[u8], target: &[u8], choices: &mut Vec<Choice>) -> Result<(), Wrong> {
    if method == b"CONNECT" {
        let Some(colon) = target.iter().rposition(|&byte| byte == b':') else {
            return Err("9112 3.2.3: CONNECT without host and port");
        };
        let (host, port) = (&target[..colon], &target[colon + 1..]);
        if port.is_empty() || !port.iter().all(u8::is_ascii_digit) {
            return Err("9112 3.2.3: CONNECT without a port");
        }
        if !is_plain_host(host) || port.len() > 4 {
            choices.push(Choice::OddHost);
        }
        return Ok(());
    }
    if target.first() == Some(&b'/') {
        return Ok(());
    }
    if target == b"*" {
        choices.push(Choice::OddTarget);
        return Ok(());
    }
    let scheme = target.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)).count();
    if !target.first().is_some_and(u8::is_ascii_alphabetic) || target.get(scheme) != Some(&b':') {
        return Err("9112 3.2: a target of no form");
    }
    let Some(rest) = target[scheme..].strip_prefix(b"://") else {
        choices.push(Choice::OddTarget);
        return Ok(());
    };
    let end = rest.iter().position(|&byte| byte == b'/' || byte == b'?').unwrap_or(rest.len());
    if !is_plain_authority(&rest[..end]) {
        choices.push(Choice::OddTarget);
    }
    Ok(())
}

/// A host of letters, digits, hyphens and single dots.
fn is_plain_host(host: &[u8]) -> bool {
    let labels: Vec<&[u8]> = host.split(|&byte| byte == b'.').collect();
    labels
        .iter()
        .all(|label| !label.is_empty() && label.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'-'))
}

fn is_plain_authority(text: &[u8]) -> bool {
    match text.iter().position(|&byte| byte == b':') {
        None => is_plain_host(text),
        Some(colon) => {
            let port = &text[colon + 1..];
            is_plain_host(&text[..colon]) && port.len() <= 4 && port.iter().all(u8::is_ascii_digit)
        }
    }
}

/// §3.2: exactly one Host in HTTP/1.1.
fn hosts(fields: &[Pair], is_http11: bool, choices: &mut Vec<Choice>) -> Result<(), Wrong> {
    let hosts = values(fields, "Host");
    match hosts[..] {
        [] if is_http11 => Err("9112 3.2: no Host"),
        [] => Ok(()),
        [host] => {
            if !is_plain_authority(host) {
                choices.push(Choice::OddHost);
            }
            Ok(())
        }
        _ => Err("9112 3.2: two Host fields"),
    }
}

/// §4, §6.3: the answer that begins at a position, to a request of this method.
pub fn answer(data: &[u8], at: usize, method: &[u8]) -> Reading {
    let mut choices = Vec::new();
    match read_answer(data, at, method, &mut choices) {
        Ok(Some(message)) => Reading::Message(Message { choices, ..message }),
        Ok(None) => Reading::Incomplete,
        Err(section) => Reading::Wrong(section),
    }
}

fn read_answer(data: &[u8], at: usize, method: &[u8], choices: &mut Vec<Choice>) -> Result<Option<Message>, Wrong> {
    let Some(first) = line(data, at) else { return Ok(None) };
    let status = status_line(first.text, choices)?;
    if !first.has_cr {
        choices.push(Choice::BareLineFeed);
    }
    if !is_complete(data, first.next) {
        return Ok(None);
    }
    let Section { fields, end } = section(data, first.next, Sender::Origin, choices)?;
    // §6.3 rules 1 and 2.
    let is_interim = status.code / 100 == 1;
    let has_no_body = is_interim || method == b"HEAD" || matches!(status.code, 204 | 304);
    let is_tunnel = status.code == 101 || (method == b"CONNECT" && status.code / 100 == 2);
    let mut own = Vec::new();
    let framing = framing(&fields, status.is_http11, Sender::Origin, &mut own);
    // §6.1: the framing of a message of HTTP/1.0 with a coding is faulty: the connection closes after it.
    let is_faulty = own.contains(&Choice::CodingInHttp10);
    let framing = if has_no_body || is_tunnel {
        let is_odd = |choice: &Choice| choice.of(Sender::Origin) == Treatment::Refuses;
        if framing.is_err() || own.iter().any(is_odd) || matches!(framing, Ok(Framing::UntilClose)) {
            // weir does not read the framing fields of interim answers.
            choices.extend((!is_interim || status.code == 101).then_some(Choice::FaultyFieldsWithoutBody));
        }
        Framing::Nothing
    } else {
        choices.append(&mut own);
        match framing? {
            Framing::Nothing => Framing::UntilClose,
            other => other,
        }
    };
    let (payload, message_end) = body(data, end, &framing, choices)?;
    let message_end = if is_tunnel { End::Close } else { message_end };
    let persists = persists(&fields, status.is_http11) && !is_faulty;
    Ok(Some(Message {
        start: status.code.to_string().into_bytes(),
        subject: status.reason.to_vec(),
        fields,
        head_end: end,
        payload,
        end: message_end,
        persists,
        choices: Vec::new(),
    }))
}

struct Status<'a> {
    is_http11: bool,
    code: u16,
    reason: &'a [u8],
}

/// §4: `HTTP-version SP status-code SP [ reason-phrase ]`.
fn status_line<'a>(text: &'a [u8], choices: &mut Vec<Choice>) -> Result<Status<'a>, Wrong> {
    let rest = text.strip_prefix(b"HTTP/1.").ok_or("9112 2.3: not a version of HTTP/1")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=3).contains(&digits) {
        return Err("9112 2.3: not a version");
    }
    let is_http11 = rest[..digits].iter().any(|&byte| byte != b'0');
    let spaces = rest[digits..].iter().take_while(|&&byte| byte == b' ').count();
    if spaces == 0 {
        return Err("9112 4: no space after the version");
    }
    let rest = &rest[digits + spaces..];
    let Some((code, rest)) = rest.split_at_checked(3).filter(|(code, _)| code.iter().all(u8::is_ascii_digit)) else {
        return Err("9112 4: no status code");
    };
    let reason = match rest {
        [b' ', reason @ ..] => reason,
        [b'.', ..] | [] => rest.get(1..).unwrap_or_default(),
        _ => return Err("9112 4: text after the status code"),
    };
    if reason.iter().any(|&byte| byte == b'\r' || byte == 0) {
        return Err("9112 2.2: a bare CR or NUL");
    }
    let has_control = reason.iter().any(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f);
    if digits > 1 || spaces > 1 || rest.first() != Some(&b' ') || has_control {
        choices.push(Choice::OddStatusLine);
    }
    let code = code.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    if code < 100 {
        choices.push(Choice::StatusBelow100);
    }
    Ok(Status { is_http11, code, reason })
}
