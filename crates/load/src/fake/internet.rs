//! Internet names, files, money.

use fake::locales::{Data, EN};

use super::draw::{digits, hex, pick};
use super::options::{FakeOptions, Make};
use super::{numbers, people, words};
use crate::random;
use crate::value::Value;

pub(super) const FUNCTIONS: &[(&str, Make)] = &[
    ("internetEmail", |options| {
        let provider = options.text("provider").unwrap_or_else(|| pick(EN::INTERNET_FREE_EMAIL_PROVIDER).to_owned());
        format!("{}@{provider}", username(options)).into()
    }),
    ("internetExampleEmail", |options| format!("{}@example.com", username(options)).into()),
    ("internetUsername", |options| username(options).into()),
    ("internetDisplayName", |options| username(options).into()),
    ("internetPassword", |options| numbers::of_letters(PASSWORD, options.length("length", 15))),
    ("internetUrl", |options| {
        let slash = if options.value("appendSlash").is_truthy() { "/" } else { "" };
        let scheme = options.text("protocol").unwrap_or_else(|| "https".to_owned());
        format!("{scheme}://{}{slash}", domain()).into()
    }),
    ("internetDomainName", |_| domain().into()),
    ("internetDomainWord", |_| domain_word().into()),
    ("internetDomainSuffix", |_| pick(EN::INTERNET_DOMAIN_SUFFIX).into()),
    ("internetProtocol", |_| pick(&["http", "https"]).into()),
    ("internetHttpMethod", |_| pick(&["GET", "POST", "PUT", "DELETE", "PATCH"]).into()),
    ("internetHttpStatusCode", |_| Value::Number(random::one_of(&STATUSES).copied().map_or(200.0, f64::from))),
    ("internetIp", |_| if random::below(2) == 0 { ipv4() } else { ipv6() }.into()),
    ("internetIpv4", |_| ipv4().into()),
    ("internetIpv6", |_| ipv6().into()),
    ("internetPort", |_| Value::Number(random::below(65_536) as f64)),
    ("internetMac", |options| {
        let separator = options.text("separator").unwrap_or_else(|| ":".to_owned());
        let parts: Vec<String> = (0..6).map(|_| hex(2)).collect();
        parts.join(&separator).into()
    }),
    ("internetUserAgent", |_| pick(EN::INTERNET_USER_AGENT).into()),
    ("internetEmoji", |_| pick(&["😀", "🎉", "🚀", "🏉", "🍕", "🐙", "🌍", "⚡"]).into()),
    ("internetJwtAlgorithm", |_| pick(&["HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "ES256", "none"]).into()),
    ("imageAvatar", |_| format!("https://avatars.githubusercontent.com/u/{}", random::below(100_000_000)).into()),
    ("imageAvatarGitHub", |_| format!("https://avatars.githubusercontent.com/u/{}", random::below(100_000_000)).into()),
    ("imageUrl", |options| image(options).into()),
    ("imageUrlPicsumPhotos", |options| image(options).into()),
    ("systemFileName", |_| file_name().into()),
    ("systemCommonFileName", |_| file_name().into()),
    ("systemFileExt", |_| pick(EN::PATH_EXTENSIONS).into()),
    ("systemCommonFileExt", |_| pick(EN::PATH_EXTENSIONS).into()),
    ("systemFileType", |_| pick(&FILE_TYPES).into()),
    ("systemCommonFileType", |_| pick(&FILE_TYPES).into()),
    ("systemMimeType", |_| pick(&MIME_TYPES).into()),
    ("systemDirectoryPath", |_| directory().into()),
    ("systemFilePath", |_| format!("{}/{}", directory(), file_name()).into()),
    ("systemSemver", |_| format!("{}.{}.{}", random::below(10), random::below(21), random::below(21)).into()),
    ("systemNetworkInterface", |_| format!("{}{}", pick(&["eth", "wlan", "ens", "enp0s"]), random::below(10)).into()),
    ("systemCron", |_| {
        format!("{} {} {} {} *", random::below(60), random::below(24), 1 + random::below(28), 1 + random::below(12))
            .into()
    }),
    ("financeAccountNumber", |options| numbers::of_letters(b"0123456789", options.length("length", 8))),
    ("financeAccountName", |_| {
        format!("{} Account", pick(&["Savings", "Checking", "Money Market", "Investment"])).into()
    }),
    ("financeRoutingNumber", |_| digits("#########").into()),
    ("financePin", |options| numbers::of_letters(b"0123456789", options.length("length", 4))),
    ("financeAmount", |options| {
        let number = numbers::float(options.number("min").unwrap_or(0.0), options.number("max").unwrap_or(1000.0));
        let digits = options.number("dec").unwrap_or(2.0).clamp(0.0, 20.0) as usize;
        format!("{}{number:.digits$}", options.text("symbol").unwrap_or_default()).into()
    }),
    ("financeTransactionType", |_| pick(&["deposit", "withdrawal", "payment", "invoice"]).into()),
    ("financeTransactionDescription", |_| {
        format!("{} at {}", pick(&["deposit", "withdrawal", "payment", "invoice"]), people::company()).into()
    }),
    ("financeCurrencyCode", |_| pick(EN::CURRENCY_CODE).into()),
    ("financeCurrencyName", |_| pick(EN::CURRENCY_NAME).into()),
    ("financeCurrencySymbol", |_| pick(EN::CURRENCY_SYMBOL).into()),
    ("financeCreditCardNumber", |_| credit_card().into()),
    ("financeCreditCardCVV", |_| digits("###").into()),
    ("financeCreditCardIssuer", |_| pick(&["visa", "mastercard", "discover", "american_express", "maestro"]).into()),
    ("financeIban", |_| iban().into()),
    ("financeBic", |_| {
        format!("{}{}XXX", letters(4), pick(&["DE", "FR", "GB", "NL", "US"]).to_owned() + &letters(2)).into()
    }),
    ("financeBitcoinAddress", |_| {
        format!("1{}", numbers::of_letters(b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 33)).into()
    }),
    ("financeEthereumAddress", |_| format!("0x{}", hex(40)).into()),
    ("databaseMongodbObjectId", |_| hex(24).into()),
    ("databaseColumn", |_| {
        pick(&["id", "title", "name", "email", "phone", "token", "group", "category", "createdAt"]).into()
    }),
    ("databaseType", |_| pick(&["int", "varchar", "text", "date", "bigint", "boolean", "decimal", "float"]).into()),
    ("databaseEngine", |_| pick(&["InnoDB", "MyISAM", "MEMORY", "CSV", "BLACKHOLE", "ARCHIVE"]).into()),
    ("gitBranch", |_| format!("{}-{}", words::latin(), words::latin()).into()),
    ("gitCommitSha", |options| hex(options.length("length", 40)).into()),
    ("gitCommitMessage", |_| format!("{} {}", pick(EN::COMPANY_BS_VERBS), pick(EN::COMPANY_BS_NOUNS)).into()),
];

const PASSWORD: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
const STATUSES: [u16; 16] = [100, 101, 200, 201, 202, 204, 301, 302, 304, 400, 401, 403, 404, 429, 500, 503];
const FILE_TYPES: [&str; 6] = ["video", "audio", "image", "text", "application", "font"];
const MIME_TYPES: [&str; 10] = [
    "application/json",
    "application/pdf",
    "application/zip",
    "audio/mpeg",
    "image/gif",
    "image/jpeg",
    "image/png",
    "text/css",
    "text/html",
    "video/mp4",
];

fn letters(len: usize) -> String {
    digits(&"?".repeat(len))
}

fn username(options: &FakeOptions<'_>) -> String {
    let first = options.text("firstName").unwrap_or_else(|| people::first_name().to_owned());
    let last = options.text("lastName").unwrap_or_else(|| people::last_name().to_owned());
    let is_word = |char: &char| char.is_alphanumeric() || *char == '-';
    let name: String = format!("{first}{}{last}", pick(&[".", "_"]))
        .chars()
        .filter(|char| is_word(char) || "._".contains(*char))
        .collect();
    if random::below(2) == 0 { name } else { format!("{name}{}", random::below(100)) }
}

fn domain_word() -> String {
    format!("{}-{}", words::latin(), words::latin())
}

fn domain() -> String {
    format!("{}.{}", domain_word(), pick(EN::INTERNET_DOMAIN_SUFFIX))
}

fn ipv4() -> String {
    let parts: Vec<String> = (0..4).map(|_| random::below(256).to_string()).collect();
    parts.join(".")
}

fn ipv6() -> String {
    let parts: Vec<String> = (0..8).map(|_| hex(4)).collect();
    parts.join(":")
}

fn image(options: &FakeOptions<'_>) -> String {
    let side = |name: &str| options.number(name).unwrap_or_else(|| random::between(1.0, 3999.0)) as u32;
    format!("https://picsum.photos/seed/{}/{}/{}", random::string(10), side("width"), side("height"))
}

fn file_name() -> String {
    format!("{}_{}.{}", pick(EN::PATH_SEGMENTS), pick(EN::PATH_SEGMENTS), pick(EN::PATH_EXTENSIONS))
}

fn directory() -> String {
    pick(EN::PATH_ROOT_DIRS.get(1..).unwrap_or_default()).to_owned()
}

/// Sixteen digits; the last one is the check digit (Luhn).
fn credit_card() -> String {
    let body = digits(pick(&["4##############", "51#############", "6011###########"]));
    let sum: u32 = body
        .chars()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let digit = digit.to_digit(10).unwrap_or(0);
            if at % 2 == 0 { digit * 2 / 10 + digit * 2 % 10 } else { digit }
        })
        .sum();
    let number = format!("{body}{}", (10 - sum % 10) % 10);
    let group = |at: usize| number.get(at * 4..at * 4 + 4).unwrap_or("").to_owned();
    (0..4).map(group).collect::<Vec<String>>().join("-")
}

/// A German or Dutch account number with correct check digits (ISO 13616).
fn iban() -> String {
    let (country, account) = match random::below(2) {
        0 => ("DE", digits("##################")),
        _ => ("NL", format!("{}{}", letters(4), digits("##########"))),
    };
    let value = |char: char| char.to_digit(36).unwrap_or(0);
    let step = |rest: u32, char: char| {
        let value = value(char);
        (if value > 9 { rest * 100 } else { rest * 10 } + value) % 97
    };
    let rest = format!("{account}{country}00").chars().fold(0, step);
    format!("{country}{:02}{account}", 98 - rest)
}
