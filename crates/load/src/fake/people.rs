//! People, places, companies.

use fake::locales::{Data, EN};

use super::draw::{capital, digits, pick};
use super::numbers;
use super::options::{FakeOptions, Make};
use crate::random;
use crate::value::Value;

pub(super) const FUNCTIONS: &[(&str, Make)] = &[
    ("personFirstName", |_| first_name().into()),
    ("personLastName", |_| last_name().into()),
    ("personMiddleName", |_| first_name().into()),
    ("personFullName", |_| full_name().into()),
    ("personPrefix", |_| pick(EN::NAME_TITLE).into()),
    ("personSuffix", |_| pick(EN::NAME_SUFFIX).into()),
    ("personSex", |_| pick(&["female", "male"]).into()),
    ("personSexType", |_| pick(&["female", "male"]).into()),
    ("personGender", |_| pick(&["female", "male", "non-binary", "agender", "genderfluid"]).into()),
    ("personJobTitle", |_| job_title().into()),
    ("personJobDescriptor", |_| pick(EN::JOB_SENIORITY).into()),
    ("personJobArea", |_| pick(EN::JOB_FIELD).into()),
    ("personJobType", |_| pick(EN::JOB_POSITION).into()),
    ("personZodiacSign", |_| pick(&ZODIAC).into()),
    ("personBio", |_| format!("{}, {}", pick(EN::COMPANY_PROFESSION), pick(EN::COMPANY_PROFESSION)).into()),
    ("phoneNumber", |_| digits(pick(EN::PHONE_NUMBER_FORMATS)).into()),
    ("phoneImei", |_| digits("##-######-######-#").into()),
    ("locationCity", |_| city().into()),
    ("locationCountry", |_| pick(EN::ADDRESS_COUNTRY).into()),
    ("locationCountryCode", |_| pick(EN::ADDRESS_COUNTRY_CODE).into()),
    ("locationCounty", |_| format!("{} County", last_name()).into()),
    ("locationContinent", |_| pick(&CONTINENTS).into()),
    ("locationState", |_| pick(EN::ADDRESS_STATE).into()),
    ("locationStreet", |_| street().into()),
    ("locationStreetAddress", |_| street_address().into()),
    ("locationSecondaryAddress", |_| digits(pick(&["Apt. ###", "Suite ###"])).into()),
    ("locationPostalAddress", |_| {
        let zip = digits(pick(EN::ADDRESS_ZIP_FORMATS));
        format!("{}\n{}\n{}\n{zip}", street_address(), city(), pick(EN::ADDRESS_STATE)).into()
    }),
    ("locationBuildingNumber", |_| building().into()),
    ("locationZipCode", |_| digits(pick(&["#####", "#####-####"])).into()),
    ("locationTimeZone", |_| pick(EN::ADDRESS_TIME_ZONE).into()),
    ("locationDirection", |_| pick(&DIRECTIONS).into()),
    ("locationCardinalDirection", |_| pick(&["North", "East", "South", "West"]).into()),
    ("locationOrdinalDirection", |_| pick(&["Northeast", "Northwest", "Southeast", "Southwest"]).into()),
    ("locationLatitude", |options| degrees(options, 90.0)),
    ("locationLongitude", |options| degrees(options, 180.0)),
    ("locationNearbyGPSCoordinate", |_| {
        let none = FakeOptions(&Value::Undefined);
        vec![degrees(&none, 90.0), degrees(&none, 180.0)].into()
    }),
    ("companyName", |_| company().into()),
    ("companyCatchPhrase", |_| {
        let [head, middle, tail] = [EN::COMPANY_BUZZWORD_HEAD, EN::COMPANY_BUZZWORD_MIDDLE, EN::COMPANY_BUZZWORD_TAIL];
        format!("{} {} {}", pick(head), pick(middle), pick(tail)).into()
    }),
    ("companyCatchPhraseAdjective", |_| pick(EN::COMPANY_BUZZWORD_HEAD).into()),
    ("companyCatchPhraseDescriptor", |_| pick(EN::COMPANY_BUZZWORD_MIDDLE).into()),
    ("companyCatchPhraseNoun", |_| pick(EN::COMPANY_BUZZWORD_TAIL).into()),
    ("companyBuzzPhrase", |_| {
        format!("{} {} {}", pick(EN::COMPANY_BS_VERBS), pick(EN::COMPANY_BS_ADJ), pick(EN::COMPANY_BS_NOUNS)).into()
    }),
    ("companyBuzzVerb", |_| pick(EN::COMPANY_BS_VERBS).into()),
    ("companyBuzzAdjective", |_| pick(EN::COMPANY_BS_ADJ).into()),
    ("companyBuzzNoun", |_| pick(EN::COMPANY_BS_NOUNS).into()),
    ("commerceDepartment", |_| pick(&DEPARTMENTS).into()),
    ("commerceProduct", |_| pick(&PRODUCTS).into()),
    ("commerceProductAdjective", |_| pick(&ADJECTIVES).into()),
    ("commerceProductMaterial", |_| pick(&MATERIALS).into()),
    ("commerceProductName", |_| product_name().into()),
    ("commerceProductDescription", |_| {
        format!("The {} {} comes in {}.", product_name(), pick(EN::COMPANY_BUZZWORD_HEAD), pick(&COLOURS)).into()
    }),
    ("commercePrice", |options| {
        let number = numbers::float(options.number("min").unwrap_or(1.0), options.number("max").unwrap_or(1000.0));
        format!("{}{number:.2}", options.text("symbol").unwrap_or_default()).into()
    }),
    ("commerceIsbn", |_| digits("978-#-####-####-#").into()),
    ("commerceUpc", |_| digits("############").into()),
    ("colorHuman", |_| pick(&COLOURS).into()),
    ("colorRgb", |_| format!("#{:06x}", random::below(1 << 24)).into()),
    ("animalType", |_| pick(&ANIMALS).into()),
    ("animalPetName", |_| first_name().into()),
];

const ZODIAC: [&str; 12] = [
    "Aries",
    "Taurus",
    "Gemini",
    "Cancer",
    "Leo",
    "Virgo",
    "Libra",
    "Scorpio",
    "Sagittarius",
    "Capricorn",
    "Aquarius",
    "Pisces",
];
const CONTINENTS: [&str; 7] = ["Africa", "Antarctica", "Asia", "Australia", "Europe", "North America", "South America"];
const DIRECTIONS: [&str; 8] = ["North", "East", "South", "West", "Northeast", "Northwest", "Southeast", "Southwest"];
const DEPARTMENTS: [&str; 12] = [
    "Books",
    "Movies",
    "Music",
    "Games",
    "Electronics",
    "Computers",
    "Home",
    "Garden",
    "Grocery",
    "Toys",
    "Sports",
    "Tools",
];
const PRODUCTS: [&str; 16] = [
    "Chair", "Car", "Computer", "Keyboard", "Mouse", "Bike", "Ball", "Gloves", "Shirt", "Table", "Shoes", "Hat",
    "Towels", "Soap", "Lamp", "Cheese",
];
const ADJECTIVES: [&str; 12] = [
    "Small",
    "Ergonomic",
    "Rustic",
    "Gorgeous",
    "Incredible",
    "Practical",
    "Sleek",
    "Awesome",
    "Handmade",
    "Licensed",
    "Refined",
    "Unbranded",
];
const MATERIALS: [&str; 11] =
    ["Steel", "Wooden", "Concrete", "Plastic", "Cotton", "Granite", "Rubber", "Metal", "Soft", "Fresh", "Bronze"];
const COLOURS: [&str; 20] = [
    "red",
    "green",
    "blue",
    "yellow",
    "purple",
    "teal",
    "white",
    "black",
    "orange",
    "pink",
    "grey",
    "maroon",
    "violet",
    "turquoise",
    "tan",
    "plum",
    "salmon",
    "lime",
    "magenta",
    "gold",
];
const ANIMALS: [&str; 12] =
    ["dog", "cat", "snake", "bear", "lion", "horse", "bird", "cow", "fish", "rabbit", "panda", "otter"];

pub(super) fn first_name() -> &'static str {
    pick(EN::NAME_FIRST_NAME)
}

pub(super) fn last_name() -> &'static str {
    pick(EN::NAME_LAST_NAME)
}

pub(super) fn company() -> String {
    match random::below(3) {
        0 => format!("{} {}", last_name(), pick(EN::COMPANY_SUFFIX)),
        1 => format!("{} - {}", last_name(), last_name()),
        _ => format!("{}, {} and {}", last_name(), last_name(), last_name()),
    }
}

fn full_name() -> String {
    let name = format!("{} {}", first_name(), last_name());
    match random::below(8) {
        0 => format!("{} {name}", pick(EN::NAME_TITLE)),
        1 => format!("{name} {}", pick(EN::NAME_SUFFIX)),
        _ => name,
    }
}

fn job_title() -> String {
    format!("{} {} {}", pick(EN::JOB_SENIORITY), pick(EN::JOB_FIELD), pick(EN::JOB_POSITION))
}

fn city() -> String {
    match random::below(2) {
        0 => format!("{} {}", pick(EN::ADDRESS_CITY_PREFIX), first_name()),
        _ => capital(&format!("{}{}", last_name(), pick(EN::ADDRESS_CITY_SUFFIX))),
    }
}

fn street() -> String {
    format!("{} {}", last_name(), pick(EN::ADDRESS_STREET_SUFFIX))
}

fn building() -> String {
    digits(pick(&["^##", "^###", "^####"]))
}

fn street_address() -> String {
    format!("{} {}", building(), street())
}

fn product_name() -> String {
    format!("{} {} {}", pick(&ADJECTIVES), pick(&MATERIALS), pick(&PRODUCTS))
}

fn degrees(options: &FakeOptions<'_>, end: f64) -> Value {
    let (min, max) = (options.number("min").unwrap_or(-end), options.number("max").unwrap_or(end));
    Value::Number((numbers::float(min, max) * 10_000.0).round() / 10_000.0)
}
