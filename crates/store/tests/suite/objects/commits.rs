//! Which commits are written as the store writes them.

use countersign_store::objects::commit::Commit;

const OURS: &str = "\
tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904
parent 0123456789abcdef0123456789abcdef01234567
author Countersign <countersign@localhost> 1700000000 +0000
committer Countersign <countersign@localhost> 1700000000 +0000

Sign x\u{fffd}
";

fn is_ours(bytes: &[u8]) -> bool {
    Commit::parse(bytes).is_ok_and(|commit| commit.author.is_some())
}

#[test]
fn a_commit_is_ours_byte_for_byte() {
    assert!(is_ours(OURS.as_bytes()));
    assert!(is_ours(OURS.replace("Countersign <", "Some Body <").as_bytes()));
    for (from, to) in [
        ("author Countersign", "author Someone"),
        ("author Countersign <countersign@localhost> 1700000000", "author nonsense"),
        ("author Countersign <countersign@localhost> 17", "author Countersign <countersign@localhost> 16"),
        ("+0000", "+0200"),
        ("0 +0000\n\n", "0 +0000\r\n\n"),
        (
            "committer Countersign <countersign@localhost> 17",
            "committer Countersign <countersign@localhost> +17",
        ),
        (" 1700000000 +0000", " 1600000000 +0000 1700000000 +0000"),
        ("Countersign <countersign@localhost>", "<countersign@localhost>"),
        ("Countersign", "Counter\0sign"),
        ("4b825dc642cb", "4B825DC642CB"),
        ("parent 0123456789abcdef", "parent 0123456789ABCDEF"),
        ("\nauthor", "\nparent 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor"),
    ] {
        assert!(OURS.contains(from), "{from}");
        assert!(!is_ours(OURS.replace(from, to).as_bytes()), "{to}");
    }
    let mut bytes = OURS.as_bytes().to_vec();
    let at = bytes.windows(3).position(|window| window == "\u{fffd}".as_bytes()).unwrap();
    bytes.splice(at..at + 3, [0xff]);
    assert!(!is_ours(&bytes), "a message that is not UTF-8");
}
