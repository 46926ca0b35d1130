//! What the fuzz targets check. The checks do not need a fuzzer. Tests of the workspace run them over the seeds in
//! `corpus` (`crates/server/tests/suite/corpus.rs`) and play the model (`crates/server/tests/suite/model.rs`).

pub mod checks;

pub mod model {
    //! The specification as a model in memory, played against the real server.
    //!
    //! The model (`rulebook`) is written only from the API specification and the decisions. It shares keys and digests
    //! with the server's `core`, but no rule. A sequence of requests grows from bytes (`Choices`); most of them
    //! succeed. The model compares each answer and, at the end, every stored file, byte for byte.

    mod act;
    mod ask;
    mod cast;
    mod generate;
    mod request;
    mod rulebook;
    mod server;

    use crate::model::act::Player;
    pub use crate::model::{act::Played, cast::Choices, server::Server};

    /// Plays the sequence that grows from `bytes`. Panics if the server and the model differ.
    pub fn play(bytes: &[u8], server: &mut Server) -> Played {
        let mut player = Player::new(server);
        let mut choices = Choices::new(bytes);
        while !choices.is_empty() {
            player.act(&mut choices);
        }
        player.finish()
    }
}
