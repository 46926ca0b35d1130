//! Writes documents as D5 demands: two spaces, fixed order, a line end.

use serde_json::Value;

#[derive(Debug, Clone)]
pub(crate) enum JsonNode {
    Null,
    Number(u64),
    Text(String),
    List(Vec<JsonNode>),
    Object(Vec<(String, JsonNode)>),
}

pub(crate) fn text(text: impl Into<String>) -> JsonNode {
    JsonNode::Text(text.into())
}

pub(crate) fn object<const N: usize>(members: [(&str, JsonNode); N]) -> JsonNode {
    JsonNode::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

impl JsonNode {
    pub(crate) fn document(&self) -> String {
        self.write(0) + "\n"
    }

    pub(crate) fn to_value(&self) -> Value {
        serde_json::from_str(&self.document()).expect("a document is JSON")
    }

    fn write(&self, depth: usize) -> String {
        let quote = |text: &str| Value::from(text).to_string();
        let lines = |open: &str, items: Vec<String>, close: &str| {
            let (inner, outer) = ("  ".repeat(depth + 1), "  ".repeat(depth));
            match items.is_empty() {
                true => format!("{open}{close}"),
                false => format!("{open}\n{inner}{}\n{outer}{close}", items.join(&format!(",\n{inner}"))),
            }
        };
        match self {
            Self::Null => "null".to_owned(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => quote(text),
            Self::List(items) => lines("[", items.iter().map(|item| item.write(depth + 1)).collect(), "]"),
            Self::Object(members) => {
                let member = |(name, value): &(String, JsonNode)| {
                    format!("{}: {}", quote(name), value.write(depth + 1))
                };
                lines("{", members.iter().map(member).collect(), "}")
            }
        }
    }
}
