//! The policy that a signers file gives (D91).

use crate::{documents::transparency::Transparency, log::policy::Policy};

impl Transparency {
    pub fn policy(&self) -> Policy {
        Policy::of_groups(self.log().clone(), self.witnesses())
            .expect("no key occurs twice and each threshold can be reached: checked in parse")
    }
}
