//! JSON and its schema from one declaration.
//!
//! What programs read, from the command line's `--json` and in Python, are structs declared inside
//! [`described!`](crate::described!). Serde writes them; the schema has their fields, types and
//! documentation. A field that is renamed or added is so in both.

use std::collections::BTreeMap;

pub use serde_json::Value;
use serde_json::{Map, json};

/// A type whose JSON has a schema.
pub trait Described {
    /// The JSON Schema of its values.
    fn schema() -> Value;
}

/// Declares structs whose schema is made of their fields and the words above these. A field that serde
/// flattens has its own fields there; one that it may leave out is not required, one that it skips is not there.
#[macro_export]
macro_rules! described {
    ($(
        $(#[doc = $about:literal])*
        $(#[derive $derive:tt])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])*
                $(#[serde $serde:tt])*
                pub $field:ident: $type:ty,
            )*
        }
    )*) => {$(
        $(#[doc = $about])*
        $(#[derive $derive])*
        pub struct $name {
            $( $(#[doc = $doc])* $(#[serde $serde])* pub $field: $type, )*
        }

        impl $crate::described::Described for $name {
            fn schema() -> $crate::described::Value {
                let mut object = $crate::described::Object::new(concat!($($about,)* ""));
                $(
                    object.field(
                        stringify!($field),
                        concat!($($doc,)* ""),
                        concat!($(stringify!($serde),)* ""),
                        <$type as $crate::described::Described>::schema(),
                    );
                )*
                object.schema()
            }
        }
    )*};
}

/// The schema of a struct, field by field.
#[derive(Default)]
pub struct Object {
    about: String,
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Object {
    /// One without fields yet; `about` is its documentation.
    pub fn new(about: &str) -> Self {
        Self {
            about: plain(about),
            ..Self::default()
        }
    }

    /// Adds a field: its name, its documentation, what serde is told of it, and its type's schema.
    pub fn field(&mut self, name: &str, doc: &str, serde: &str, mut schema: Value) {
        if serde == "(skip)" {
            return;
        }
        if serde.contains("flatten") {
            if let Value::Object(inner) = schema["properties"].take() {
                self.properties.extend(inner);
            }
            if let Value::Array(inner) = schema["required"].take() {
                self.required.extend(inner);
            }
            return;
        }
        let doc = plain(doc);
        if !doc.is_empty() {
            schema["description"] = doc.into();
        }
        if !serde.contains("skip_serializing_if") {
            self.required.push(name.into());
        }
        self.properties.insert(name.into(), schema);
    }

    /// All of it.
    pub fn schema(self) -> Value {
        json!({
            "description": self.about,
            "type": "object",
            "additionalProperties": false,
            "required": self.required,
            "properties": self.properties,
        })
    }
}

/// Documentation without its links.
fn plain(doc: &str) -> String {
    let doc = doc.replace("[`", "`").replace("`]", "`");
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

macro_rules! simple {
    ($($type:ty => $schema:expr;)*) => {
        $(impl Described for $type {
            fn schema() -> Value {
                $schema
            }
        })*
    };
}

simple! {
    bool => json!({ "type": "boolean" });
    u64 => json!({ "type": "integer", "minimum": 0 });
    usize => json!({ "type": "integer", "minimum": 0 });
    String => json!({ "type": "string" });
    // JSON has no infinity and no NaN: `null` stands for them
    f64 => json!({ "type": ["number", "null"] });
    (String, f64) => json!({
        "type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [String::schema(), f64::schema()],
    });
    (f64, f64) => json!({
        "type": "array", "minItems": 2, "maxItems": 2, "items": f64::schema(),
    });
}

impl<T: Described> Described for Vec<T> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
}

impl<T: Described> Described for BTreeMap<String, T> {
    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}

impl<T: Described> Described for Option<T> {
    fn schema() -> Value {
        json!({ "anyOf": [T::schema(), { "type": "null" }] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::described! {
        /// A pair, see [`Whole`].
        #[derive(serde::Serialize)]
        pub struct Pair {
            /// The one
            /// before.
            pub first: usize,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub second: Option<bool>,
        }

        #[derive(serde::Serialize)]
        pub struct Whole {
            #[serde(flatten)]
            pub pair: Pair,
            pub names: Vec<String>,
        }
    }

    #[test]
    fn the_schema_has_the_fields_that_serde_writes() {
        let schema = Pair::schema();
        assert_eq!(schema["description"], "A pair, see `Whole`.");
        assert_eq!(
            schema["properties"]["first"]["description"],
            "The one before."
        );
        assert_eq!(schema["required"], json!(["first"]));
        let schema = Whole::schema();
        assert_eq!(schema["required"], json!(["first", "names"]));
        let pair = Pair {
            first: 1,
            second: Some(true),
        };
        let written = json!(Whole {
            pair,
            names: vec![]
        });
        let written: Vec<&String> = written.as_object().unwrap().keys().collect();
        let described: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(written, described);
    }
}
