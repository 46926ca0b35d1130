//! What server, client and mirror must agree on: formats, keys, quorum, decisions and verification.
//!
//! Pure: no I/O, no clock, no randomness, no async. A decision gets everything it needs as a parameter. Read the chapters in
//! their order here: each uses only the ones before it.

pub mod values {
    //! Values: what documents and requests are made of. `parse` is the only door for text from outside.

    pub mod bounds;
    pub mod digest;
    pub mod json;
    pub mod key;
    pub mod other_format;
    pub mod path;
    pub mod shown;
    pub(crate) mod sshsig;
    pub mod time;
    pub mod verifier_key;
    pub mod wire;
}

pub mod documents {
    //! Documents: each stored document in a file of its own, with how it is read, checked and written.

    pub mod fields;
    pub mod history;
    pub mod index;
    pub mod layout;
    pub mod said;
    pub mod signatures;
    pub mod signed_request;
    pub mod signers;
    pub mod statement;
    pub mod transparency;
}

pub mod rules {
    //! Rules: who may do what, when enough have agreed, and what changes then.

    pub mod auth;
    pub mod chain;

    pub mod decide {
        //! The decisions: each reads a snapshot, changes nothing, and says what should change or why not.
        //!
        //! The store may run a decision more than once; it must give the same answer for the same snapshot and time.

        pub mod activate;
        pub mod assets;
        pub mod proposal;
        pub mod rebuild;
        pub mod register;
        pub mod sign;
        pub mod statement;
        pub mod update;
        pub mod withdraw;
    }

    pub mod place;
    pub mod quorum;
    pub mod reproduction;
    pub mod snapshot;
    pub mod stored;
}

pub mod log {
    //! The log: what happened, in an order that no one can change unseen. Leaves and statuses follow from the commits,
    //! and witnesses cosign the root of all leaves.

    pub mod checkpoint;
    pub mod network;
    pub mod note;
    pub mod policy;
    pub mod record;
    pub mod status;
    pub mod tile;
    pub mod tree;
    pub mod trie;
}

pub mod proof {
    //! Proofs: from evidence to something verified, and what may be signed.

    pub mod bundle;
    pub mod freshness;
    pub mod log_pin;
    pub mod state;
    pub mod state_lie;
    pub mod to_sign;
    pub mod to_state;
    pub mod trust;
    pub mod verify;
}
