#![no_main]

use std::sync::{LazyLock, Mutex};

use countersign_model::model::{Server, play};

static SERVER: LazyLock<Mutex<Server>> = LazyLock::new(|| Mutex::new(Server::start()));

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // A longer sequence shows little that a shorter one does not, and takes more time.
    if data.len() <= 1_500 {
        play(data, &mut SERVER.lock().unwrap());
    }
});
