//! How the client speaks where no server is there. The rest is text (`client_output.txt`).

use std::thread;

use crate::support::client::{Computer, NO_SERVER};

#[test]
fn a_server_that_is_not_there_is_code_5_for_every_command_that_asks_the_server() {
    let computer = Computer::offline();
    computer.write("file", "content");
    let list = "register http://127.0.0.1:9/acme/svc.signers.json; update http://127.0.0.1:9/acme/svc.signers.json;
        release http://127.0.0.1:9/acme/app/releases/tag/v1; release --checksums http://127.0.0.1:9/acme/SHA256SUMS;
        pending; sign PATH --yes; sign --all --yes; status PATH; revoke PATH --reason x --yes; download URL;
        verify file --url URL; bundle URL -o b.json; signers history PATH; ping";
    let list = list.replace("PATH", "http/127.0.0.1/80/acme/svc.index.json");
    let list = list.replace("URL", "http://127.0.0.1:9/acme/app");
    computer.key_of("alice");
    let computer = &computer;
    // Each tries for a second, so they do it at once.
    thread::scope(|scope| {
        for args in list.split(';') {
            let args: Vec<&str> = args.split_whitespace().collect();
            let json = [&args[..], &["--json"]].concat();
            scope.spawn(move || computer.run_as("alice", &args).failed(5).says(&[NO_SERVER, "--server"]));
            scope.spawn(move || computer.run_as("alice", &json).json_error(5));
        }
    });
    assert_eq!(computer.listing(), ["file"], "nothing is written");
}
