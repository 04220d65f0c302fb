//! `plugins.fake-data`: invented names, addresses, numbers for templates (artillery.md §5.5).
//!
//! Supports Faker's names (`$internetEmail()`) and falso's names (`$randEmail()`) that have a natural counterpart. As
//! in Artillery, the options are in the plugin's configuration under the function's name, never in the template.

use std::collections::HashMap;

use crate::template::TemplateFunctions;
use crate::value::Value;
use options::{FakeOptions, Make};

mod dates;
mod draw;
mod internet;
mod numbers;
mod options;
mod people;
mod words;

/// Every function, family by family.
const FAMILIES: [&[(&str, Make)]; 5] =
    [people::FUNCTIONS, internet::FUNCTIONS, numbers::FUNCTIONS, words::FUNCTIONS, dates::FUNCTIONS];

/// falso's names: first Artillery's own list, whose names Artillery reports as deprecated; then others with a
/// counterpart.
const ALIASES: [(&str, &str); 82] = [
    ("randEmail", "internetEmail"),
    ("randFullName", "personFullName"),
    ("randFirstName", "personFirstName"),
    ("randLastName", "personLastName"),
    ("randUserName", "internetUsername"),
    ("randPassword", "internetPassword"),
    ("randUuid", "stringUuid"),
    ("randPhoneNumber", "phoneNumber"),
    ("randCity", "locationCity"),
    ("randCountry", "locationCountry"),
    ("randStreetAddress", "locationStreetAddress"),
    ("randZipCode", "locationZipCode"),
    ("randCompanyName", "companyName"),
    ("randNumber", "numberInt"),
    ("randBoolean", "datatypeBoolean"),
    ("randUrl", "internetUrl"),
    ("randIp", "internetIpv4"),
    ("randWord", "loremWord"),
    ("randSentence", "loremSentence"),
    ("randParagraph", "loremParagraph"),
    ("randText", "loremText"),
    ("randJobTitle", "personJobTitle"),
    ("randColor", "colorHuman"),
    ("randProductName", "commerceProductName"),
    ("randAbbreviation", "hackerAbbreviation"),
    ("randAccount", "financeAccountNumber"),
    ("randAlpha", "stringAlpha"),
    ("randAlphaNumeric", "stringAlphanumeric"),
    ("randAmount", "financeAmount"),
    ("randAvatar", "imageAvatar"),
    ("randBetweenDate", "dateBetween"),
    ("randBitcoinAddress", "financeBitcoinAddress"),
    ("randBrand", "companyName"),
    ("randBuildingNumber", "locationBuildingNumber"),
    ("randCatchPhrase", "companyCatchPhrase"),
    ("randCountryCode", "locationCountryCode"),
    ("randCounty", "locationCounty"),
    ("randCreditCardCVV", "financeCreditCardCVV"),
    ("randCreditCardNumber", "financeCreditCardNumber"),
    ("randCurrencyCode", "financeCurrencyCode"),
    ("randCurrencyName", "financeCurrencyName"),
    ("randCurrencySymbol", "financeCurrencySymbol"),
    ("randDepartment", "commerceDepartment"),
    ("randDirectoryPath", "systemDirectoryPath"),
    ("randDomainName", "internetDomainName"),
    ("randDomainSuffix", "internetDomainSuffix"),
    ("randDomainWord", "internetDomainWord"),
    ("randEthereumAddress", "financeEthereumAddress"),
    ("randFileExt", "systemFileExt"),
    ("randFileName", "systemFileName"),
    ("randFilePath", "systemFilePath"),
    ("randFloat", "numberFloat"),
    ("randFutureDate", "dateFuture"),
    ("randGender", "personSex"),
    ("randHexaDecimal", "stringHexadecimal"),
    ("randHttpMethod", "internetHttpMethod"),
    ("randIban", "financeIban"),
    ("randIpv6", "internetIpv6"),
    ("randJobArea", "personJobArea"),
    ("randJobDescriptor", "personJobDescriptor"),
    ("randJobType", "personJobType"),
    ("randLatitude", "locationLatitude"),
    ("randLine", "loremSentence"),
    ("randLongitude", "locationLongitude"),
    ("randMac", "internetMac"),
    ("randMimeType", "systemMimeType"),
    ("randMonth", "dateMonth"),
    ("randPastDate", "datePast"),
    ("randPort", "internetPort"),
    ("randProduct", "commerceProduct"),
    ("randProductAdjective", "commerceProductAdjective"),
    ("randProductMaterial", "commerceProductMaterial"),
    ("randRecentDate", "dateRecent"),
    ("randRgb", "colorRgb"),
    ("randSemver", "systemSemver"),
    ("randSlug", "loremSlug"),
    ("randSoonDate", "dateSoon"),
    ("randState", "locationState"),
    ("randStreetName", "locationStreet"),
    ("randTimeZone", "locationTimeZone"),
    ("randUserAgent", "internetUserAgent"),
    ("randWeekday", "dateWeekday"),
];
/// Number of names at the start of [`ALIASES`] that Artillery 2.0.33 and later still know.
const NOTED: usize = 24;

/// The functions, with the plugin's options.
pub struct Fake {
    functions: HashMap<&'static str, (Make, Value)>,
}

impl Fake {
    /// With the plugin's configuration.
    pub fn new(options: &Value) -> Fake {
        let all = FAMILIES.iter().flat_map(|family| family.iter());
        let with = |name: &'static str| match options {
            Value::Map(map) => map.get(name).cloned().unwrap_or_default(),
            _ => Value::Undefined,
        };
        let mut functions: HashMap<&'static str, (Make, Value)> =
            all.map(|(name, make)| (*name, (*make, with(name)))).collect();
        for (alias, name) in ALIASES {
            if let Some(function) = functions.get(name).cloned() {
                functions.insert(alias, function);
            }
        }
        Fake { functions }
    }
}

impl TemplateFunctions for Fake {
    fn call(&self, name: &str, _arguments: &[Value]) -> Option<Value> {
        let (make, options) = self.functions.get(name.strip_prefix('$')?)?;
        Some(make(&FakeOptions(options)))
    }
}

/// True if a function with this name exists (with the `$`).
pub fn is_known(name: &str) -> bool {
    let Some(name) = name.strip_prefix('$') else { return false };
    ALIASES.iter().any(|(alias, _)| *alias == name)
        || FAMILIES.iter().any(|family| family.iter().any(|(known, _)| *known == name))
}

/// Artillery's warning, printed once, for a deprecated name (with the `$`).
pub fn deprecation(name: &str) -> Option<String> {
    let name = name.strip_prefix('$')?;
    let (_, better) = ALIASES.iter().take(NOTED).find(|(alias, _)| *alias == name)?;
    Some(format!("[fake-data] ${name} is deprecated and will be removed in a future release. Use ${better} instead."))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random;
    use crate::regexp;
    use crate::value::parse_json;

    fn call(name: &str, options: &str) -> Value {
        Fake::new(&parse_json(options.as_bytes()).unwrap()).call(name, &[]).unwrap()
    }

    #[test]
    fn every_function_makes_something() {
        random::seed(11);
        let fake = Fake::new(&Value::Undefined);
        assert_eq!(fake.functions.len(), FAMILIES.iter().map(|family| family.len()).sum::<usize>() + ALIASES.len());
        for name in fake.functions.keys() {
            let name = format!("${name}");
            for _ in 0..20 {
                let value = fake.call(&name, &[]).unwrap();
                assert!(!value.to_text().is_empty() && value != Value::Undefined, "{name}");
                // All signs of the format are replaced.
                let has_signs = ["Rgb", "Symbol", "Password", "Sample"].iter().any(|with| name.contains(with));
                assert!(has_signs || !value.to_text().contains(['#', '^']), "{name}: {value}");
            }
            assert!(is_known(&name));
        }
        assert!(!is_known("$nosuch") && !is_known("randEmail"));
        assert_eq!(fake.call("$nosuch", &[]), None);
    }

    #[test]
    fn values_look_like_what_they_are() {
        random::seed(12);
        for (name, shape) in [
            ("$internetEmail", "^[\\w.'-]+@[a-z]+\\.com$"),
            ("$randEmail", "^[\\w.'-]+@[a-z]+\\.com$"),
            ("$stringUuid", "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"),
            ("$internetIpv4", "^\\d{1,3}(\\.\\d{1,3}){3}$"),
            ("$internetMac", "^([0-9a-f]{2}:){5}[0-9a-f]{2}$"),
            ("$internetUrl", "^https://[a-z-]+\\.[a-z]+/?$"),
            ("$numberInt", "^\\d+$"),
            ("$datatypeBoolean", "^(true|false)$"),
            ("$locationZipCode", "^\\d{5}(-\\d{4})?$"),
            ("$loremSentence", "^[A-Z][a-z ]+\\.$"),
            ("$financeIban", "^[A-Z]{2}\\d{2}[A-Z0-9]+$"),
            (
                "$datePast",
                "^[A-Z][a-z]{2} [A-Z][a-z]{2} \\d{2} \\d{4} \\d\\d:\\d\\d:\\d\\d GMT\\+0000 \\(Coordinated Universal Time\\)$",
            ),
            ("$colorRgb", "^#[0-9a-f]{6}$"),
            ("$commercePrice", "^\\d+\\.\\d\\d$"),
        ] {
            let regex = regexp::compile(shape, "").unwrap();
            for _ in 0..50 {
                let text = call(name, "{}").to_string();
                assert!(regex.find(&text).is_some(), "{name}: {text}");
            }
        }
    }

    #[test]
    fn options_are_the_functions() {
        for (name, options, expected) in [
            ("$numberInt", r#"{"numberInt":{"min":10,"max":10}}"#, Value::Number(10.0)),
            ("$randNumber", r#"{"numberInt":{"min":10,"max":10}}"#, Value::Number(10.0)),
            ("$numberFloat", r#"{"numberFloat":{"min":1.5,"max":1.5,"fractionDigits":2}}"#, Value::Number(1.5)),
        ] {
            assert_eq!(call(name, options), expected);
        }
        for (name, options, len) in [
            ("$internetPassword", r#"{"internetPassword":{"length":5}}"#, 5),
            ("$stringAlphanumeric", r#"{"stringAlphanumeric":{"length":{"min":7,"max":7}}}"#, 7),
            ("$stringAlpha", r#"{"stringAlpha":4}"#, 4),
        ] {
            assert_eq!(call(name, options).as_str().unwrap().len(), len, "{name}");
        }
    }

    #[test]
    fn luhn_holds() {
        for _ in 0..50 {
            let number = call("$financeCreditCardNumber", "{}").to_string();
            let digits: Vec<u32> = number.chars().rev().filter_map(|char| char.to_digit(10)).collect();
            let sum: u32 = digits
                .iter()
                .enumerate()
                .map(|(at, &digit)| match (at % 2, digit * 2) {
                    (0, _) => digit,
                    (_, double) => double / 10 + double % 10,
                })
                .sum();
            assert_eq!(sum % 10, 0, "{number}");
        }
    }

    #[test]
    fn artillerys_note() {
        assert!(deprecation("$randEmail").is_some_and(|note| note.ends_with("Use $internetEmail instead.")));
        assert_eq!(deprecation("$randSlug"), None);
        assert_eq!(deprecation("$internetEmail"), None);
    }
}
