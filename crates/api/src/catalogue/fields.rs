//! Reads the fields of answers.

use countersign_core::values::{
    json::{Field, Object, ParseError},
    time::Timestamp,
};

pub(super) fn list<T>(
    object: &Object<'_>,
    name: &str,
    parse: impl Fn(&Field<'_>) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    object.required(name)?.array()?.iter().map(parse).collect()
}

pub(super) fn count(object: &Object<'_>, name: &str) -> Result<usize, ParseError> {
    Ok(usize::try_from(object.required(name)?.integer()?).unwrap_or(usize::MAX))
}

pub(super) fn more(object: &Object<'_>) -> Result<bool, ParseError> {
    object.required("more")?.boolean()
}

pub(super) fn flag(object: &Object<'_>, name: &str) -> Result<bool, ParseError> {
    Ok(object.optional(name).map(|field| field.boolean()).transpose()?.unwrap_or_default())
}

pub(super) fn text(object: &Object<'_>, name: &str) -> Result<Option<String>, ParseError> {
    object.optional(name).map(|field| field.string().map(str::to_owned)).transpose()
}

pub(super) fn time(object: &Object<'_>, name: &str) -> Result<Option<Timestamp>, ParseError> {
    object.optional(name).map(|field| field.parsed(Timestamp::parse)).transpose()
}
