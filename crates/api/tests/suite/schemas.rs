//! The schema of the signers file knows every field of it.

use std::collections::{BTreeMap, BTreeSet};

use countersign_api::schemas::SignersConfig;
use countersign_testing::documents::kind;
use serde_json::Value;
use utoipa::{PartialSchema as _, ToSchema as _};

/// Notes the names of what an object has, and whose schema that is. An array stands for its items.
fn note(
    schemas: &BTreeMap<String, Value>,
    schema: &Value,
    value: &Value,
    found: &mut BTreeSet<(String, String)>,
) {
    if let Value::Array(items) = value {
        return items.iter().for_each(|item| note(schemas, &schema["items"], item, found));
    }
    let Value::Object(members) = value else { return };
    let known = [&schema["oneOf"], &schema["allOf"]]
        .into_iter()
        .filter_map(Value::as_array)
        .flatten()
        .chain([schema]);
    for name in known.filter_map(|one| one["$ref"].as_str()?.rsplit('/').next()) {
        for (member, value) in members {
            found.insert((name.to_owned(), member.clone()));
            note(schemas, &schemas[name]["properties"][member], value, found);
        }
    }
}

#[test]
fn the_schema_of_the_signers_file_has_its_fields_and_no_others() {
    let mut collected = vec![(SignersConfig::name().into_owned(), SignersConfig::schema())];
    SignersConfig::schemas(&mut collected);
    let schemas: BTreeMap<String, Value> =
        collected.into_iter().map(|(name, schema)| (name, serde_json::to_value(schema).unwrap())).collect();
    let names = |(name, schema): (&String, &Value)| -> Vec<(String, String)> {
        let properties = schema["properties"].as_object().into_iter().flatten();
        properties.map(|(property, _)| (name.clone(), property.clone())).collect()
    };
    let described: BTreeSet<(String, String)> = schemas.iter().flat_map(names).collect();

    let full: Value = serde_json::from_str(&kind("signers file").example_text()).unwrap();
    let root = serde_json::json!({ "$ref": "#/components/schemas/SignersConfig" });
    let mut found = BTreeSet::new();
    note(&schemas, &root, &full, &mut found);
    // The example's witnesses are keys, without the word of the admins.
    let others: Vec<_> =
        described.symmetric_difference(&found).filter(|(name, _)| name != "ReplayingWitness").collect();
    assert_eq!(others, Vec::<&(String, String)>::new());
}
