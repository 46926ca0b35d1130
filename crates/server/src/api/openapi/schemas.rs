//! Schemas of the types that are sent and received, and their fields for people.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde_json::Value;
use utoipa::{ToSchema, openapi::RefOr, openapi::Schema};

pub(crate) const SCHEMAS_REF: &str = "#/components/schemas/";

/// A type of `core`: the name of its schema, and how to get it.
#[derive(Clone, Copy)]
pub struct Type {
    name: fn() -> Cow<'static, str>,
    collect: fn(&mut Vec<(String, RefOr<Schema>)>),
}

/// Schemas by name.
pub(crate) type Schemas = BTreeMap<String, Value>;

impl Type {
    pub fn of<T: ToSchema>() -> Self {
        let collect = |schemas: &mut Vec<_>| {
            schemas.push((T::name().into_owned(), T::schema()));
            T::schemas(schemas);
        };
        Self { name: T::name, collect }
    }

    pub fn name(self) -> Cow<'static, str> {
        (self.name)()
    }

    /// The schema of this type, and those that it refers to.
    pub(crate) fn schemas(self) -> Schemas {
        let mut schemas = Vec::new();
        (self.collect)(&mut schemas);
        let write = |schema| serde_json::to_value(schema).expect("a schema is JSON");
        schemas.into_iter().map(|(name, schema)| (name, write(schema))).collect()
    }

    /// All fields of the type, at every depth.
    pub fn fields(self) -> Vec<SchemaField> {
        let mut fields = Vec::new();
        let schemas = self.schemas();
        if let Some(schema) = schemas.get(self.name().as_ref()) {
            list_fields(schema, "", &schemas, &mut fields);
        }
        fields
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Type({})", self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaField {
    /// The name after those of the fields around it, as in `history.entries[].timestamp`.
    pub name: String,
    pub kind: String,
    pub is_required: bool,
    pub about: String,
}

fn list_fields(schema: &Value, prefix: &str, schemas: &Schemas, fields: &mut Vec<SchemaField>) {
    let schema = resolve(schema, schemas);
    let dir = |suffix: &str| format!("{}{suffix}.", prefix.trim_end_matches('.'));
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let property = without_null(property);
        let is_required = schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name));
        let field = SchemaField {
            name: format!("{prefix}{name}"),
            kind: describe_kind(property, schemas),
            is_required,
            // What the field says about itself, or else what its type says.
            about: [property, resolve(property, schemas)]
                .into_iter()
                .find_map(|schema| schema["description"].as_str())
                .unwrap_or_default()
                .to_owned(),
        };
        let below = format!("{}.", field.name);
        // Each case of a type has its own fields, and some cases share fields.
        if !fields.iter().any(|known| known.name == field.name) {
            fields.push(field);
        }
        list_fields(property, &below, schemas, fields);
    }
    for case in schema["oneOf"].as_array().into_iter().flatten() {
        list_fields(case, prefix, schemas, fields);
    }
    if schema["items"].is_object() {
        list_fields(&schema["items"], &dir("[]"), schemas, fields);
    }
    if schema["additionalProperties"].is_object() {
        list_fields(&schema["additionalProperties"], &dir("[…]"), schemas, fields);
    }
}

/// The schema of a value that is not null.
fn without_null(schema: &Value) -> &Value {
    match schema["oneOf"].as_array().map(Vec::as_slice) {
        Some([case, null]) if null["type"] == "null" => case,
        _ => schema,
    }
}

fn resolve<'a>(schema: &'a Value, schemas: &'a Schemas) -> &'a Value {
    let target =
        schema["$ref"].as_str().and_then(|reference| schemas.get(reference.strip_prefix(SCHEMAS_REF)?));
    target.unwrap_or(schema)
}

fn describe_kind(schema: &Value, schemas: &Schemas) -> String {
    let schema = resolve(schema, schemas);
    let name = match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "object".to_owned(),
    };
    match name.as_str() {
        "array" => format!("array of {}", describe_kind(&schema["items"], schemas)),
        "string" if schema["format"] == "date-time" => "time".to_owned(),
        "string" if schema["format"] == "uri" => "URL".to_owned(),
        _ => name,
    }
}
