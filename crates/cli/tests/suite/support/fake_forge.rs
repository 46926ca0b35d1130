//! A code forge whose documents and misbehaviours a test chooses: GitHub, GitLab or Forgejo, as their public APIs
//! describe them.

pub(crate) use self::forge::{Asset, FakeForge, ForgeAnswer, GateKeeper, KINDS, Kind};
pub(crate) use self::world::ForgeWorld;

mod forge;
mod world;
