//! Every message of kohort is Kafka's message, by Kafka's own schemas.
//!
//! The schemas are the JSON files in the jars `kafka-clients` and `kafka-group-coordinator`, in one
//! flat folder that `KOHORT_KAFKA_SCHEMAS` names. They are not part of this repository.

mod support;

use std::{env, fs, path::PathBuf};

use kohort_wire::{
    ApiKey, Request,
    codec::{
        Versions,
        schema::{FieldSchema, Kind, StructSchema},
    },
};
use serde_json::Value;
use support::{AnyMessage, every_message};

/// The folder of Kafka's schemas; `None` where there is none and none is demanded.
fn folder() -> Option<PathBuf> {
    if let Some(folder) = env::var_os("KOHORT_KAFKA_SCHEMAS") {
        return Some(folder.into());
    }
    assert!(
        env::var_os("CI").is_none(),
        "KOHORT_KAFKA_SCHEMAS must name the folder of Kafka's schemas: run this by `cargo xtask test`"
    );
    eprintln!("\nSKIPPED: KOHORT_KAFKA_SCHEMAS names no folder, nothing was compared with Kafka\n");
    None
}

#[test]
fn every_message_has_kafkas_versions_and_fields() {
    let Some(folder) = folder() else { return };
    let mut compared = 0;
    let mut differences = Vec::new();
    for message in every_message() {
        let kafka = Schema::read(&folder, message.name);
        let mut comparison = Comparison {
            kafka: &kafka,
            differences: Vec::new(),
        };
        comparison.message(&message);
        differences.extend(comparison.differences);
        compared += 1;
    }
    assert!(
        differences.is_empty(),
        "{} differences from Kafka's schemas:\n{}",
        differences.len(),
        differences.join("\n")
    );
    println!("{compared} messages are Kafka's");
}

#[test]
fn every_api_has_kafkas_number() {
    let Some(folder) = folder() else { return };
    macro_rules! check {
        ($($name:ident: $request:ident => $response:ident;)*) => {
            $({
                use kohort_wire::messages::{$request, $response};
                let (key, name) = (ApiKey::$name as i16, ApiKey::$name.name());
                assert_eq!(<$request as Request>::API_KEY, ApiKey::$name);
                let _: fn(<$request as Request>::Response) -> $response = |response| response;
                for (side, message) in [
                    ("request", stringify!($request)),
                    ("response", stringify!($response)),
                ] {
                    let kafka = Schema::read(&folder, message);
                    assert_eq!(kafka.json["apiKey"], key, "{message}");
                    assert_eq!(kafka.json["type"], side, "{message}");
                    assert!(message.starts_with(name), "{message} of {name}");
                }
            })*
        };
    }
    kohort_wire::for_each_api!(check);
}

/// The headers are written by hand: this says which of Kafka's headers that code follows.
#[test]
fn the_headers_are_those_that_the_code_was_written_for() {
    let Some(folder) = folder() else { return };
    let fields = |schema: &Schema| -> Vec<String> {
        let fields = schema.json["fields"].as_array().expect("fields");
        let text = |field: &Value, key: &str| field[key].as_str().unwrap_or("-").to_owned();
        fields
            .iter()
            .map(|field| {
                [
                    "name",
                    "type",
                    "versions",
                    "nullableVersions",
                    "flexibleVersions",
                ]
                .map(|key| text(field, key))
                .join(" ")
            })
            .collect()
    };
    let request = Schema::read(&folder, "RequestHeader");
    assert_eq!(request.json["validVersions"], "1-2");
    assert_eq!(request.json["flexibleVersions"], "2+");
    assert_eq!(
        fields(&request),
        [
            "RequestApiKey int16 0+ - -",
            "RequestApiVersion int16 0+ - -",
            "CorrelationId int32 0+ - -",
            "ClientId string 1+ 1+ none",
        ]
    );
    let response = Schema::read(&folder, "ResponseHeader");
    assert_eq!(response.json["validVersions"], "0-1");
    assert_eq!(response.json["flexibleVersions"], "1+");
    assert_eq!(fields(&response), ["CorrelationId int32 0+ - -"]);
}

/// One of Kafka's schemas.
struct Schema {
    json: Value,
}

impl Schema {
    fn read(folder: &std::path::Path, message: &str) -> Schema {
        let path = folder.join(format!("{message}.json"));
        let text = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()));
        let json = serde_json::from_str(&without_comments(&text))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Schema { json }
    }

    /// The fields of a struct that is declared apart from where it is used.
    fn common(&self, name: &str) -> Option<&Vec<Value>> {
        let structs = self.json["commonStructs"].as_array()?;
        let named = structs.iter().find(|common| common["name"] == name)?;
        named["fields"].as_array()
    }
}

/// Kafka's files are JSON with comments to the end of the line.
fn without_comments(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let (mut in_text, mut escaped, mut end) = (false, false, line.len());
        for (index, byte) in line.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = !in_text,
                b'/' if !in_text && line[index..].starts_with("//") => {
                    end = index;
                    break;
                }
                _ => {}
            }
        }
        out.push_str(&line[..end]);
        out.push('\n');
    }
    out
}

struct Comparison<'a> {
    kafka: &'a Schema,
    differences: Vec<String>,
}

impl Comparison<'_> {
    fn expect<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, kohort: T, kafka: T) {
        if kohort != kafka {
            let difference = format!("{what}: kohort {kohort:?}, Kafka {kafka:?}");
            self.differences.push(difference);
        }
    }

    fn message(&mut self, message: &AnyMessage) {
        let json = &self.kafka.json;
        let valid = versions(&json["validVersions"]);
        let flexible = both(versions(&json["flexibleVersions"]), valid);
        let name = message.name;
        self.expect(&format!("{name}, versions"), message.versions, valid);
        self.expect(
            &format!("{name}, flexible versions"),
            both(message.schema.flexible, valid),
            flexible,
        );
        let fields = json["fields"].as_array().expect("fields");
        self.fields(name, &message.schema.body, fields, valid);
    }

    /// Compares the fields of a struct that is there in `alive` versions only.
    fn fields(&mut self, path: &str, kohort: &StructSchema, kafka: &[Value], alive: Versions) {
        let alive_in = |field: &&Value| both(versions_of(field), alive) != Versions::NONE;
        let kafka: Vec<&Value> = kafka.iter().filter(alive_in).collect();
        let names = |field: &&Value| snake_case(field["name"].as_str().expect("a name"));
        self.expect(
            &format!("{path}, fields"),
            kohort
                .fields
                .iter()
                .map(|field| field.name.to_owned())
                .collect::<Vec<_>>(),
            kafka.iter().map(names).collect(),
        );
        let tags: Vec<u32> = kohort
            .fields
            .iter()
            .filter_map(|field| field.rule.tag)
            .collect();
        if !tags.is_sorted() {
            self.differences
                .push(format!("{path}: tags are not in order"));
        }
        for (kohort, kafka) in kohort.fields.iter().zip(kafka) {
            self.field(&format!("{path}.{}", kohort.name), kohort, kafka, alive);
        }
    }

    fn field(&mut self, path: &str, kohort: &FieldSchema, kafka: &Value, alive: Versions) {
        let rule = kohort.rule;
        let there = both(versions_of(kafka), alive);
        self.expect(
            &format!("{path}, versions"),
            both(rule.versions, alive),
            there,
        );
        let null = both(versions(&kafka["nullableVersions"]), there);
        self.expect(
            &format!("{path}, null versions"),
            both(rule.null, there),
            null,
        );
        self.expect(
            &format!("{path}, ignorable"),
            rule.ignorable,
            kafka["ignorable"].as_bool().unwrap_or(false),
        );
        let tag = kafka["tag"].as_u64().map(|tag| tag as u32);
        self.expect(&format!("{path}, tag"), rule.tag, tag);
        if tag.is_some() {
            let tagged = both(versions(&kafka["taggedVersions"]), alive);
            self.expect(&format!("{path}, tagged versions"), there, tagged);
        }
        self.expect(
            &format!("{path}, default"),
            kohort_default(&kohort.default),
            kafka_default(kafka),
        );

        let kafka_type = kafka["type"].as_str().expect("a type");
        let (is_list, element_type) = match kafka_type.strip_prefix("[]") {
            Some(element) => (true, element),
            None => (false, kafka_type),
        };
        let element = match &kohort.kind {
            Kind::List(element) if is_list => element,
            kind => kind,
        };
        match element {
            Kind::Struct(element) => {
                let declared = kafka["fields"].as_array();
                let Some(fields) = declared.or_else(|| self.kafka.common(element_type)) else {
                    let difference = format!("{path}: kohort has a struct, Kafka {kafka_type}");
                    self.differences.push(difference);
                    return;
                };
                // A struct that may be null has a byte before it that says so. In versions where it
                // may not be null it would have none, which no message makes use of.
                if !is_list && !kafka["nullableVersions"].is_null() {
                    self.expect(&format!("{path}, null in every version"), null, there);
                }
                self.fields(path, element, &fields.clone(), there);
            }
            Kind::Plain(plain) => {
                let kafka = match element_type {
                    "records" => "bytes",
                    other => other,
                };
                self.expect(&format!("{path}, type"), *plain, kafka);
            }
            Kind::List(_) => {
                let difference = format!("{path}: kohort has a list, Kafka {kafka_type}");
                self.differences.push(difference);
            }
        }
        self.expect(
            &format!("{path}, is a list"),
            matches!(kohort.kind, Kind::List(_)),
            is_list,
        );
    }
}

/// `none`, `3`, `3-5` or `3+`; what is not said is none.
fn versions(text: &Value) -> Versions {
    let number = |text: &str| text.parse().expect("a version is a number");
    match text.as_str() {
        None | Some("none") => Versions::NONE,
        Some(text) => match text.split_once('-') {
            Some((first, last)) => Versions::new(number(first), number(last)),
            None => match text.strip_suffix('+') {
                Some(first) => Versions::new(number(first), i16::MAX),
                None => Versions::new(number(text), number(text)),
            },
        },
    }
}

fn versions_of(field: &Value) -> Versions {
    versions(&field["versions"])
}

/// The versions that are in both.
fn both(one: Versions, other: Versions) -> Versions {
    let (first, last) = (one.first.max(other.first), one.last.min(other.last));
    if first <= last {
        Versions::new(first, last)
    } else {
        Versions::NONE
    }
}

/// Kafka's field names in the spelling of Rust.
fn snake_case(name: &str) -> String {
    if name == "Enable2Pc" {
        return "enable_2pc".into();
    }
    let mut out = String::new();
    for (index, letter) in name.char_indices() {
        if letter.is_uppercase() && index > 0 {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// A default as both sides say it: a number, `null`, or `empty`.
fn kohort_default(debug: &str) -> String {
    let inner = debug
        .strip_prefix("Some(")
        .and_then(|text| text.strip_suffix(')'));
    match inner.unwrap_or(debug) {
        "None" => "null".into(),
        "\"\"" | "[]" | "b\"\"" | "AAAAAAAAAAAAAAAAAAAAAA" => "empty".into(),
        "NONE" => "0".into(),
        // A struct with the defaults of its own fields, which are compared one by one.
        text if text.ends_with('}') => "empty".into(),
        text => text.into(),
    }
}

fn kafka_default(field: &Value) -> String {
    let kind = field["type"].as_str().expect("a type");
    let default = match &field["default"] {
        Value::String(text) => Some(text.clone()),
        // The text "null" is a null; a null of JSON is no default at all to Kafka's generator.
        Value::Null => None,
        other => Some(other.to_string()),
    };
    let number = |text: String| {
        let (digits, radix) = match text.strip_prefix("0x") {
            Some(digits) => (digits, 16),
            None => (text.as_str(), 10),
        };
        i64::from_str_radix(digits, radix).map_or(text.clone(), |number| number.to_string())
    };
    match (kind, default) {
        (_, Some(text)) if text == "null" => "null".into(),
        ("bool", default) => default.unwrap_or("false".into()),
        ("float64", default) => default.unwrap_or("0.0".into()),
        ("int8" | "int16" | "uint16" | "int32" | "uint32" | "int64", default) => {
            number(default.unwrap_or("0".into()))
        }
        (_, None) => "empty".into(),
        (_, Some(text)) if text.is_empty() => "empty".into(),
        (_, Some(text)) => text,
    }
}

#[test]
fn comments_are_taken_out_and_texts_left() {
    let text = "{ // a \"comment\"\n \"a\": \"http://b \\\" // c\" // d\n}";
    let json: Value = serde_json::from_str(&without_comments(text)).expect("JSON");
    assert_eq!(json["a"], "http://b \" // c");
}

#[test]
fn versions_are_read_as_kafka_writes_them() {
    let read = |text: &str| versions(&Value::from(text));
    assert_eq!(read("none"), Versions::NONE);
    assert_eq!(read("3"), Versions::new(3, 3));
    assert_eq!(read("3-5"), Versions::new(3, 5));
    assert_eq!(read("3+"), Versions::new(3, i16::MAX));
    assert_eq!(versions(&Value::Null), Versions::NONE);
}
