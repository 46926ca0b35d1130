//! A code forge whose documents and misbehaviours a test chooses: GitHub, GitLab or Forgejo, as their public APIs
//! describe them.

mod forge;
mod world;

pub(crate) use self::{
    forge::{Asset, FakeForge, ForgeAnswer, GateKeeper, KINDS, Kind},
    world::{ForgeWorld, configure},
};
