//! The strict JSON reader that every document goes through (D5), and the one writer.
//!
//! Duplicate names are refused at every depth, integers are plain digits, and a document that says which fields it
//! has refuses all others. Errors name the field, as in `artifact_signers[0].threshold`.

use std::{borrow::Cow, collections::HashSet, fmt};

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::values::shown::{shown_bytes, shown_text};

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

/// A value that documents have, in the spelling that most of them give it.
pub trait FromField: Sized {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError>;
}

/// Reads the fields of a struct, in the order of the list. The compiler refuses a list that forgets one.
///
/// | line | reads |
/// |---|---|
/// | `document X { … }` | a whole document, with `X::parse` and `X::write`; unknown fields are refused |
/// | `document X version V within BOUND "an x has" { … }` | one that says its version, of at most so many bytes |
/// | `object X { … }` | an object inside a document; unknown fields are refused |
/// | `object X { … } then check` | one that `X::check` can still refuse |
/// | `body X { … }` | the body of a request or answer, with `X::parse`; unknown fields are ignored (D5) |
/// | `part X { … }` | an object inside such a body; unknown fields are ignored |
/// | `field` | by its type; `null` stands for `None` |
/// | `field as "name"` | from a field of another name |
/// | `field: maybe` | with the method of [`Object`] that has this name, here `maybe` |
/// | `field = value` | nothing: it always has this value |
#[macro_export]
macro_rules! json_fields {
    (document $name:ident $(version $version:ident)? $(within $bound:ident $words:literal)? { $($fields:tt)* }) => {
        $crate::json_fields!(object $name $(version $version)? { $($fields)* });
        $crate::json_fields!(@parse $name $($bound $words)?);
        impl $name {
            pub fn write(&self) -> Vec<u8> {
                $crate::json_fields!(@write self $($version)?)
            }
        }
    };
    (object $name:ident $(version $version:ident)? { $($fields:tt)* } $(then $check:ident)?) => {
        $crate::json_fields!(@fields Refused $name $(version $version)? { $($fields)* } $($check)?);
    };
    (body $name:ident { $($fields:tt)* }) => {
        $crate::json_fields!(part $name { $($fields)* });
        $crate::json_fields!(@parse $name);
    };
    (part $name:ident { $($fields:tt)* }) => {
        $crate::json_fields!(@fields Ignored $name { $($fields)* });
    };
    (@fields $others:ident $name:ident $(version $version:ident)? { $(
        $field:ident $(as $wire:literal)? $(: $how:ident $(($parse:expr))?)? $(= $value:expr)?
    ),* $(,)? } $($check:ident)?) => {
        impl $crate::values::json::FromField for $name {
            fn parse_field(
                field: &$crate::values::json::Field<'_>,
            ) -> Result<Self, $crate::values::json::ParseError> {
                let known = [
                    $($crate::json_fields!(@version $version),)?
                    $($crate::json_fields!(@name $field $($wire)?)),*
                ];
                let object = field.object_with($crate::values::json::OtherFields::$others, &known)?;
                $(object.require_version($version)?;)?
                let read = Self { $($field: $crate::json_fields!(
                    @read object, $crate::json_fields!(@name $field $($wire)?), $($how $(($parse))?)? $(= $value)?
                )),* };
                $(read.$check()?;)?
                Ok(read)
            }
        }
    };
    (@parse $name:ident $($bound:ident $words:literal)?) => {
        impl $name {
            pub fn parse(bytes: &[u8]) -> Result<Self, $crate::values::json::ParseError> {
                $($crate::values::json::check_len(bytes, $bound, $words)?;)?
                $crate::values::json::read(bytes)
            }
        }
    };
    (@write $document:ident) => { $crate::values::json::write($document) };
    (@write $document:ident $version:ident) => { $crate::values::json::write_versioned($version, $document) };
    (@version $version:ident) => { "version" };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $wire:literal) => { $wire };
    (@read $object:ident, $name:expr,) => { $object.get($name)? };
    (@read $object:ident, $name:expr, $how:ident) => { $object.$how($name)? };
    (@read $object:ident, $name:expr, $how:ident ($parse:expr)) => { $object.$how($name, $parse)? };
    (@read $object:ident, $name:expr, = $value:expr) => { $value };
}

/// Types that documents have as strings, each with its parser.
#[macro_export]
macro_rules! json_texts {
    ($($name:ty: $parse:expr),+ $(,)?) => {$(
        impl $crate::values::json::FromField for $name {
            fn parse_field(
                field: &$crate::values::json::Field<'_>,
            ) -> Result<Self, $crate::values::json::ParseError> {
                field.parsed($parse)
            }
        }
    )+};
}

/// An enum whose cases are words in documents, with the error for any other word.
#[macro_export]
macro_rules! json_words {
    ($name:ident { $($case:ident = $word:literal),+ $(,)? } $expected:literal) => {
        impl $name {
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$case),+];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$case => $word,)+
                }
            }

            pub fn parse(text: &str) -> Result<Self, &'static str> {
                Self::ALL.into_iter().find(|case| case.name() == text).ok_or($expected)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        $crate::json_texts!($name: $name::parse);
    };
}

/// What becomes of fields that a reader does not know (D5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherFields {
    Refused,
    /// In the bodies of requests and answers.
    Ignored,
}

/// Reads a whole document.
pub fn read<T: FromField>(bytes: &[u8]) -> Result<T, ParseError> {
    T::parse_field(&Json::parse(bytes)?.root())
}

/// Refuses what is larger than any such document. `words` are what stands before the bound, as "an index has".
pub fn check_len(bytes: &[u8], bound: usize, words: &str) -> Result<(), ParseError> {
    if bytes.len() > bound {
        return Err(ParseError::new("", format!("{words} at most {}", shown_bytes(bound))));
    }
    Ok(())
}

/// A document as it was read. Text that is written without escapes stays where it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json<'a> {
    Null,
    Bool(bool),
    Integer(u64),
    /// A number that is negative, fractional, or too large for us.
    OtherNumber,
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        serde_json::from_slice(bytes).map_err(|error| ParseError::new("", format!("not valid JSON: {error}")))
    }

    pub fn root(&self) -> Field<'_> {
        Field { path: Path::default(), value: self }
    }
}

/// A document as we write it: two spaces of indentation, the type's own key order, one trailing newline.
pub fn write(document: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(document).expect("our documents have string keys only");
    bytes.push(b'\n');
    bytes
}

/// Writes a document whose first field says its version.
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
    path: Path<'a>,
    value: &'a Json<'a>,
}

/// The most steps of a path. No document of ours is deeper.
const MAX_STEPS: usize = 10;

/// The way to a value from the root. It becomes text only in errors: most documents have none.
#[derive(Debug, Clone, Copy, Default)]
struct Path<'a> {
    steps: [Step<'a>; MAX_STEPS],
    depth: usize,
}

#[derive(Debug, Clone, Copy, Default)]
enum Step<'a> {
    #[default]
    Root,
    Member(&'a str),
    /// A member of an object that is used as a map.
    Entry(&'a str),
    Item(usize),
}

impl<'a> Path<'a> {
    fn then(mut self, step: Step<'a>) -> Self {
        if let Some(slot) = self.steps.get_mut(self.depth) {
            *slot = step;
            self.depth += 1;
        }
        self
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps[..self.depth].iter().enumerate() {
            match step {
                Step::Root => {}
                Step::Member(name) if at == 0 => f.write_str(name)?,
                Step::Member(name) => write!(f, ".{name}")?,
                Step::Entry(name) => write!(f, "[{name:?}]")?,
                Step::Item(number) => write!(f, "[{number}]")?,
            }
        }
        Ok(())
    }
}

impl<'a> Field<'a> {
    pub fn error(&self, reason: impl fmt::Display) -> ParseError {
        ParseError::new(self.path.to_string(), reason.to_string())
    }

    /// An object that has no other fields than these.
    pub fn object(&self, known: &[&str]) -> Result<Object<'a>, ParseError> {
        self.object_with(OtherFields::Refused, known)
    }

    pub fn object_with(&self, others: OtherFields, known: &[&str]) -> Result<Object<'a>, ParseError> {
        let object = self.open_object()?;
        match object.members.iter().find(|(name, _)| !known.contains(&&**name)) {
            Some((name, _)) if others == OtherFields::Refused => Err(object.error(name, "unknown field")),
            Some(_) | None => Ok(object),
        }
    }

    /// An object whose unknown fields are ignored: request bodies only (D5).
    pub fn open_object(&self) -> Result<Object<'a>, ParseError> {
        match self.value {
            Json::Object(members) => Ok(Object { path: self.path, members }),
            _ => Err(self.error("must be an object")),
        }
    }

    /// An object used as a map: its names are data.
    pub fn entries(&self) -> Result<impl Iterator<Item = (&'a str, Field<'a>)>, ParseError> {
        let object = self.open_object()?;
        let field = move |(name, value): &'a (Cow<'a, str>, Json<'a>)| {
            (&**name, Field { path: object.path.then(Step::Entry(name)), value })
        };
        Ok(object.members.iter().map(field))
    }

    pub fn array(&self) -> Result<Vec<Field<'a>>, ParseError> {
        match self.value {
            Json::Array(items) => Ok(items
                .iter()
                .enumerate()
                .map(|(i, value)| Field { path: self.path.then(Step::Item(i)), value })
                .collect()),
            _ => Err(self.error("must be a list")),
        }
    }

    /// What `parse` makes of each entry of a list.
    pub fn list<T, C: FromIterator<T>>(
        &self,
        parse: impl Fn(&Self) -> Result<T, ParseError>,
    ) -> Result<C, ParseError> {
        self.array()?.iter().map(parse).collect()
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
    path: Path<'a>,
    members: &'a [(Cow<'a, str>, Json<'a>)],
}

impl<'a> Object<'a> {
    pub fn required(&self, name: &str) -> Result<Field<'a>, ParseError> {
        self.optional(name).ok_or_else(|| self.error(name, "missing"))
    }

    /// The field with this name; `None` if it does not occur. A `null` is a value like another.
    pub fn optional(&self, name: &str) -> Option<Field<'a>> {
        let (name, value) = self.members.iter().find(|(member, _)| member == name)?;
        Some(Field { path: self.path.then(Step::Member(name)), value })
    }

    pub fn get<T: FromField>(&self, name: &str) -> Result<T, ParseError> {
        T::parse_field(&self.required(name)?)
    }

    /// `None` where the name does not occur; a `null` must be a value of the type.
    pub fn maybe<T: FromField>(&self, name: &str) -> Result<Option<T>, ParseError> {
        self.maybe_with(name, T::parse_field)
    }

    pub fn maybe_with<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&Field<'a>) -> Result<T, ParseError>,
    ) -> Result<Option<T>, ParseError> {
        self.optional(name).map(|field| parse(&field)).transpose()
    }

    pub fn maybe_text<T, E: fmt::Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, ParseError> {
        self.maybe_with(name, |field| field.parsed(parse))
    }

    /// The default where the name does not occur.
    pub fn or_default<T: FromField + Default>(&self, name: &str) -> Result<T, ParseError> {
        Ok(self.maybe(name)?.unwrap_or_default())
    }

    pub fn or_default_with<T: Default>(
        &self,
        name: &str,
        parse: impl FnOnce(&Field<'a>) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        Ok(self.maybe_with(name, parse)?.unwrap_or_default())
    }

    /// The default where the name does not occur, or has something else: for text that no program depends on.
    pub fn lenient<T: FromField + Default>(&self, name: &str) -> Result<T, ParseError> {
        Ok(self.maybe(name).ok().flatten().unwrap_or_default())
    }

    /// What `parse` makes of a field that must be there.
    pub fn with<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&Field<'a>) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        parse(&self.required(name)?)
    }

    /// What `parse` makes of a string that must be there.
    pub fn text<T, E: fmt::Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, ParseError> {
        self.required(name)?.parsed(parse)
    }

    /// The `version` that all our documents begin with.
    pub fn require_version(&self, version: u64) -> Result<(), ParseError> {
        let field = self.required("version")?;
        match field.integer()? {
            found if found == version => Ok(()),
            found => Err(field.error(format!("{found} is not supported; it must be {version}"))),
        }
    }

    fn error(&self, member: &str, reason: &str) -> ParseError {
        let path: Path<'_> = self.path;
        ParseError::new(path.then(Step::Member(member)).to_string(), reason)
    }
}

impl FromField for String {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        field.string().map(str::to_owned)
    }
}

impl FromField for bool {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        field.boolean()
    }
}

impl FromField for u64 {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        field.integer()
    }
}

impl FromField for usize {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        Ok(Self::try_from(field.integer()?).unwrap_or(Self::MAX))
    }
}

impl<T: FromField> FromField for Option<T> {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        field.nullable(T::parse_field)
    }
}

impl<T: FromField> FromField for Vec<T> {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        field.list(T::parse_field)
    }
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json<'de>, E> {
        Ok(Json::Integer(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json<'de>, E> {
        Ok(Json::OtherNumber)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json<'de>, E> {
        Ok(Json::OtherNumber)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json<'de>, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element()? {
            array.push(item);
        }
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json<'de>, A::Error> {
        let mut object: Vec<(Cow<'de, str>, Json<'de>)> = Vec::new();
        let mut names: HashSet<Cow<'de, str>> = HashSet::new();
        while let Some(Name(name)) = members.next_key()? {
            // Most objects are small, and to look at each name costs less than to hash it.
            let is_repeated = if object.len() < SMALL_OBJECT {
                object.iter().any(|(other, _)| *other == name)
            } else {
                if names.is_empty() {
                    names.extend(object.iter().map(|(name, _)| name.clone()));
                }
                !names.insert(name.clone())
            };
            if is_repeated {
                return Err(A::Error::custom(format!("the name {name:?} occurs twice in one object")));
            }
            object.push((name, members.next_value()?));
        }
        Ok(Json::Object(object))
    }
}

const SMALL_OBJECT: usize = 16;

/// The name of a member, which stays where it was read from.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
