//! Bodies of requests. Those that the server keeps as evidence are documents of `core`.

pub use countersign_core::documents::bodies::{ProposeBody, RevokeBody, SignaturesBody};
use countersign_core::values::json::{Json, ParseError};
use serde::{Serialize, Serializer, ser::SerializeStruct as _};

/// Where a release is published. Exactly one of the two.
#[derive(Debug, Clone, PartialEq, Eq, utoipa::ToSchema)]
pub enum AssetsBody {
    /// The page of a release on a code forge.
    #[schema(rename = "forge_release_url")]
    Release(String),
    /// Checksums files, all in one directory of one server.
    #[schema(rename = "csum_files")]
    Checksums(Vec<String>),
}

impl AssetsBody {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        let given = |name| object.optional(name).filter(|field| !field.is_null());
        match (given("forge_release_url"), given("csum_files")) {
            (Some(_), Some(_)) => {
                Err(ParseError::new("", "forge_release_url and csum_files are mutually exclusive"))
            }
            (None, None) => Err(ParseError::new("", "one of forge_release_url and csum_files is required")),
            (Some(url), None) => Ok(Self::Release(url.string()?.to_owned())),
            (None, Some(list)) => {
                let urls = list.array()?;
                let urls = urls.iter().map(|url| url.string().map(str::to_owned));
                Ok(Self::Checksums(urls.collect::<Result<_, _>>()?))
            }
        }
    }
}

impl Serialize for AssetsBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_struct("AssetsBody", 1)?;
        match self {
            Self::Release(url) => body.serialize_field("forge_release_url", url)?,
            Self::Checksums(urls) => body.serialize_field("csum_files", urls)?,
        }
        body.end()
    }
}
