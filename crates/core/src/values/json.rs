//! The strict JSON reader that every document goes through (D5), and the one writer.
//!
//! Duplicate names are refused at every depth, integers are plain digits, and a document that says which fields it
//! has refuses all others. Errors name the field, as in `artifact_signers[0].threshold`.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};

use crate::values::shown::shown_text;

/// Why bytes are not the document that they should be. Safe to show, though names in it come from strangers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The field at fault; empty where the whole document is.
    pub field: String,
    pub reason: String,
}

impl ParseError {
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: shown_text(&field.into()), reason: shown_text(&reason.into()) }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.reason),
            field => write!(f, "field `{field}`: {}", self.reason),
        }
    }
}

impl std::error::Error for ParseError {}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    Null,
    Bool(bool),
    Integer(u64),
    /// Negative, fractional, or too large for us.
    OtherNumber,
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn parse(bytes: &[u8]) -> Result<Json, ParseError> {
        serde_json::from_slice(bytes).map_err(|error| ParseError::new("", format!("not valid JSON: {error}")))
    }

    pub fn root(&self) -> Field<'_> {
        Field { path: String::new(), value: self }
    }
}

/// A document as we write it: two spaces of indentation, the type's own key order, one trailing newline.
pub fn write(document: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(document).expect("our documents have string keys only");
    bytes.push(b'\n');
    bytes
}

/// The same for a document whose first field says its version.
pub fn write_versioned(version: u64, document: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        version: u64,
        #[serde(flatten)]
        document: &'a T,
    }
    write(&Versioned { version, document })
}

/// A value inside a document, which knows its own name.
#[derive(Debug, Clone)]
pub struct Field<'a> {
    path: String,
    value: &'a Json,
}

impl<'a> Field<'a> {
    pub fn error(&self, reason: impl fmt::Display) -> ParseError {
        ParseError::new(&self.path, reason.to_string())
    }

    /// An object that has no other fields than these.
    pub fn object(&self, known: &[&str]) -> Result<Object<'a>, ParseError> {
        let object = self.open_object()?;
        for (name, _) in object.members {
            if !known.contains(&name.as_str()) {
                return Err(ParseError::new(object.name(name), "unknown field"));
            }
        }
        Ok(object)
    }

    /// An object whose unknown fields are ignored: request bodies only (D5).
    pub fn open_object(&self) -> Result<Object<'a>, ParseError> {
        match self.value {
            Json::Object(members) => Ok(Object { path: self.path.clone(), members }),
            _ => Err(self.error("must be an object")),
        }
    }

    /// An object used as a map: its names are data.
    pub fn entries(&self) -> Result<impl Iterator<Item = (&'a str, Field<'a>)>, ParseError> {
        let object = self.open_object()?;
        Ok(object.members.iter().map(move |(name, value)| {
            (name.as_str(), Field { path: format!("{}[{name:?}]", object.path), value })
        }))
    }

    pub fn array(&self) -> Result<Vec<Field<'a>>, ParseError> {
        match self.value {
            Json::Array(items) => Ok(items
                .iter()
                .enumerate()
                .map(|(i, value)| Field { path: format!("{}[{i}]", self.path), value })
                .collect()),
            _ => Err(self.error("must be a list")),
        }
    }

    pub fn string(&self) -> Result<&'a str, ParseError> {
        match self.value {
            Json::String(text) => Ok(text),
            _ => Err(self.error("must be a string")),
        }
    }

    pub fn integer(&self) -> Result<u64, ParseError> {
        match self.value {
            Json::Integer(number) => Ok(*number),
            _ => Err(self.error("must be a whole number in plain digits")),
        }
    }

    pub fn boolean(&self) -> Result<bool, ParseError> {
        match self.value {
            Json::Bool(value) => Ok(*value),
            _ => Err(self.error("must be true or false")),
        }
    }

    pub fn is_null(&self) -> bool {
        *self.value == Json::Null
    }

    pub fn is_integer(&self) -> bool {
        matches!(self.value, Json::Integer(_))
    }

    /// A string that `parse` accepts; its error is given this field's name.
    pub fn parsed<T, E: fmt::Display>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, ParseError> {
        parse(self.string()?).map_err(|error| self.error(error))
    }

    /// What `parse` makes of this field, where `null` stands for "none".
    pub fn nullable<T>(
        &self,
        parse: impl FnOnce(&Self) -> Result<T, ParseError>,
    ) -> Result<Option<T>, ParseError> {
        if self.is_null() { Ok(None) } else { parse(self).map(Some) }
    }
}

#[derive(Debug)]
pub struct Object<'a> {
    path: String,
    members: &'a [(String, Json)],
}

impl<'a> Object<'a> {
    pub fn required(&self, name: &str) -> Result<Field<'a>, ParseError> {
        self.optional(name).ok_or_else(|| ParseError::new(self.name(name), "missing"))
    }

    /// `None` where the name does not occur; a `null` is a value like another.
    pub fn optional(&self, name: &str) -> Option<Field<'a>> {
        let (_, value) = self.members.iter().find(|(member, _)| member == name)?;
        Some(Field { path: self.name(name), value })
    }

    /// The `version` that all our documents begin with.
    pub fn require_version(&self, version: u64) -> Result<(), ParseError> {
        let field = self.required("version")?;
        match field.integer()? {
            found if found == version => Ok(()),
            found => Err(field.error(format!("{found} is not supported; it must be {version}"))),
        }
    }

    fn name(&self, member: &str) -> String {
        if self.path.is_empty() { member.to_owned() } else { format!("{}.{member}", self.path) }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Integer(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
        Ok(Json::OtherNumber)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json::OtherNumber)
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element()? {
            array.push(item);
        }
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut object = Vec::new();
        let mut names = HashSet::new();
        while let Some((name, value)) = members.next_entry::<String, Json>()? {
            if !names.insert(name.clone()) {
                return Err(A::Error::custom(format!("the name {name:?} occurs twice in one object")));
            }
            object.push((name, value));
        }
        Ok(Json::Object(object))
    }
}
