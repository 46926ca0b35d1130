//! Documents at the edges of what is accepted.

use countersign_core::values::digest::Sha512;
use countersign_testing::{alice, bob, key};

/// A list of signatures with one entry, as it should be and as it should not.
pub(crate) fn documents() -> Vec<String> {
    let key = alice().public_key().to_string();
    let signature = alice().sign(&Sha512::of(b"content")).to_base64();
    let entry = format!(r#"{{"signature":"{signature}","collected_at":"2026-01-31T10:00:00Z"}}"#);
    let set = |entries: &str| format!(r#"{{"entries":{{{entries}}}}}"#);
    let one = format!(r#""{key}":{entry}"#);
    let good = set(&one);
    let far = format!(r#""{key}"{}:{entry}"#, " ".repeat(100));
    let escaped = format!(r#""\u0073{}":{entry}"#, &key[1..]);
    vec![
        good.clone(),
        set(""),
        format!(" \t\r\n{good}\n"),
        set(&far),
        set(&escaped),
        set(&format!("{one},{one}")),
        set(&format!("{one},{escaped}")),
        set(&format!("{far},{one}")),
        format!(r#"{{"entries":{{}},"entries":{{{one}}}}}"#),
        format!(r#"{{"entries":{{}},"\u0065ntries":{{{one}}}}}"#),
        set(&one.replace("\"collected_at\"", "\"signature\":\"\",\"collected_at\"")),
        set(&one.replace("\"collected_at\"", "\"extra\":1,\"collected_at\"")),
        set(&one.replace("\"collected_at\"", "\"__proto__\":1,\"collected_at\"")),
        set(&one.replace("\"collected_at\"", "\"constructor\":1,\"collected_at\"")),
        set(&one.replace("\"collected_at\"", "\"collected_at?\":1,\"collected_at\"")),
        set(&one.replace("\"2026-01-31T10:00:00Z\"", "1")),
        set(&one.replace("\"2026-01-31T10:00:00Z\"", "null")),
        set(&one.replace("2026-01", "2026\\u002d01")),
        set(&one.replace("2026-01", "\\ud800")),
        set(&format!(r#""{key}=":{entry}"#)),
        set(&format!(r#""{}":{entry}"#, &key["svc-pub:".len()..])),
        set(&one.replace(&signature, signature.trim_end_matches('='))),
        set(&one.replace(&signature, &signature[..signature.len() - 1])),
        set(&format!("{one},")),
        format!("{good}x"),
        format!("{good},"),
        format!("\u{feff}{good}"),
        good.replace(':', " "),
        good.replace('"', "'"),
        good[..good.len() - 1].to_owned(),
        format!("{good}//"),
        r#"{"entries":[]}"#.to_owned(),
        r#"{"entries":null}"#.to_owned(),
        r#"{"entries":""}"#.to_owned(),
        r#"{"entries":{},"a":-1}"#.to_owned(),
        r#"{"entries":{},"version":1}"#.to_owned(),
        "{}".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        "0".to_owned(),
        String::new(),
    ]
}

fn numbered_servers(count: usize) -> String {
    (0..count).map(|number| format!(r#""https://sign{number}.example.org""#)).collect::<Vec<_>>().join(",")
}

fn registrars(members: &[String]) -> String {
    format!(r#""registrars":[{}]"#, members.join(","))
}

fn numbered_registrars(count: u8) -> Vec<String> {
    let one = |number| format!(r#"{{"kind":"key","data":{{"pubkey":"{}"}}}}"#, key(number).public_key());
    (0..count).map(|number| one(100 + number)).collect()
}

pub(crate) fn signers() -> Vec<String> {
    let [alice, bob] = [alice(), bob()].map(|key| key.public_key().to_string());
    let one =
        |key: &str, name: &str| format!(r#"{{"kind":"key","data":{{"pubkey":"{key}"}},"name":"{name}"}}"#);
    let group =
        |threshold: &str, members: &str| format!(r#"[{{"threshold":{threshold},"signers":[{members}]}}]"#);
    let file = |roles: &str| format!(r#"{{"version":1,"timestamp":"2026-01-01T00:00:00Z",{roles}}}"#);
    let artifact = |threshold: &str, members: &[String]| {
        file(&format!(r#""artifact_signers":{}"#, group(threshold, &members.join(","))))
    };
    let named = |name: &str| artifact("1", &[one(&alice, name), one(&bob, "bob")]);
    let with = |role: &str| {
        let own = group("1", &one(&alice, "alice"));
        file(&format!(r#""artifact_signers":{own},{role}"#))
    };
    let good = named("alice");
    vec![
        good.clone(),
        named(""),
        named("a b <c>"),
        named(&"ü".repeat(64)),
        named(&"ü".repeat(65)),
        named("a\\u202eb"),
        named("a\\u0000"),
        named("a\\u3164"),
        named("bob"),
        artifact("1", &[one(&alice, ""), one(&bob, "")]),
        artifact("1", &[one(&alice, "alice"), one(&alice, "alice")]),
        artifact("1", &[one(&alice, "alice"), one(alice.trim_start_matches("svc-pub:"), "alice")]),
        artifact("2", &[one(&alice, "alice"), one(&bob, "bob")]),
        artifact("3", &[one(&alice, "alice"), one(&bob, "bob")]),
        artifact("1", &[]),
        artifact("0", &[one(&alice, "alice")]),
        artifact("-1", &[one(&alice, "alice")]),
        artifact("-0", &[one(&alice, "alice")]),
        artifact("1.0", &[one(&alice, "alice")]),
        artifact("1e0", &[one(&alice, "alice")]),
        artifact("1E0", &[one(&alice, "alice")]),
        artifact("\"1\"", &[one(&alice, "alice")]),
        artifact("01", &[one(&alice, "alice")]),
        artifact("18446744073709551617", &[one(&alice, "alice")]),
        artifact("null", &[one(&alice, "alice")]),
        with(&format!(r#""admin_keys":{}"#, group("1", &one(&bob, "bob")))),
        with(&format!(r#""admin_keys":{}"#, group("1", &one(&alice, "bob")))),
        with(&format!(r#""admin_keys":{}"#, group("1", &one(&bob, "alice")))),
        with(&format!(r#""master_keys":{}"#, group("1", &one(&bob, "bob")))),
        with(&format!(r#""master_keys":{}"#, group("1", &one(&alice, "alice")))),
        with(&format!(r#""revocation_keys":{}"#, group("1", &one(&alice, "alice")))),
        with(&format!(r#""other_keys":{}"#, group("1", &one(&alice, "alice")))),
        with(r#""servers":["https://sign.example.org","http://127.0.0.1:3000/base"]"#),
        with(r#""servers":[]"#),
        with(r#""servers":null"#),
        with(r#""servers":"https://sign.example.org""#),
        with(r#""servers":["https://"]"#),
        with(r#""servers":["ftp://sign.example.org"]"#),
        with(r#""servers":["HTTPS://sign.example.org"]"#),
        with(r#""servers":["https://sign example.org"]"#),
        with(r#""servers":["https://s\u00fcgn.example.org"]"#),
        with(r#""servers":["https://sign.example.org\n"]"#),
        with(&format!(r#""servers":["https://{}"]"#, "a".repeat(247))),
        with(&format!(r#""servers":["https://{}"]"#, "a".repeat(248))),
        with(&format!(r#""servers":[{}]"#, numbered_servers(8))),
        with(&format!(r#""servers":[{}]"#, numbered_servers(9))),
        with(&registrars(&[one(&bob, "ci")])),
        with(&registrars(&[one(&bob, "alice")])),
        with(&registrars(&[one(&alice, "alice")])),
        with(&registrars(&[one(&alice, "ci")])),
        with(&registrars(&[one(&bob, "ci"), one(&bob, "ci")])),
        with(&registrars(&[one(&bob, "ci"), one(bob.trim_start_matches("svc-pub:"), "ci")])),
        with(&registrars(&numbered_registrars(16))),
        with(&registrars(&numbered_registrars(17))),
        with(&registrars(&[])),
        with(r#""registrars":null"#),
        with(r#""registrars":{}"#),
        with(&registrars(&[format!("\"{bob}\"")])),
        with(&registrars(&[one(&bob, "ci").replace("\"key\"", "\"gpg\"")])),
        with(&format!(r#""registrars":{}"#, group("1", &one(&bob, "ci")))),
        with(r#""formats":["ssh"]"#),
        with(r#""formats":["minisign","ssh"]"#),
        with(r#""formats":["ssh","minisign"]"#),
        with(r#""formats":["ssh","ssh"]"#),
        with(r#""formats":["ssh","minisign","ssh"]"#),
        with(r#""formats":["SSH"]"#),
        with(r#""formats":["openpgp"]"#),
        with(r#""formats":[null]"#),
        with(r#""formats":[[]]"#),
        with(r#""formats":[]"#),
        with(r#""formats":{}"#),
        with(r#""formats":null"#),
        with(r#""formats":"ssh""#),
        with(r#""rotation_delay_hours":1"#),
        with(r#""rotation_delay_hours":720"#),
        with(r#""rotation_delay_hours":0"#),
        with(r#""rotation_delay_hours":721"#),
        with(r#""rotation_delay_hours":18446744073709551616"#),
        with(r#""rotation_delay_hours":-1"#),
        with(r#""rotation_delay_hours":1.5"#),
        with(r#""rotation_delay_hours":"48""#),
        with(r#""rotation_delay_hours":null"#),
        with(r#""rotation_delay_hours":[48]"#),
        with(r#""rotation_delay_hours":true"#),
        with(r#""admin_keys":null"#),
        with(r#""admin_keys":[]"#),
        with(r#""admin_keys":{}"#),
        file(r#""admin_keys":[]"#),
        good.replace("\"version\":1", "\"version\":2"),
        good.replace("\"version\":1", "\"version\":1.0"),
        good.replace("\"version\":1", "\"version\":true"),
        good.replace("\"version\":1,", ""),
        good.replace("2026-01-01T", "2026-01-01 "),
        good.replace("\"kind\":\"key\"", "\"kind\":\"gpg\""),
        good.replace("\"kind\":\"key\",", ""),
        good.replace("\"data\":{", "\"data\":{\"format\":\"ed25519\","),
        good.replace("\"data\":{", "\"data\":{\"format\":\"rsa\","),
        good.replace("\"data\":{", "\"data\":{\"format\":null,"),
        good.replace("\"name\":\"alice\"", "\"name\":null"),
        good.replace("\"name\":\"alice\"", "\"name\":1"),
        good.replace("\"name\":\"alice\"", "\"Name\":\"alice\""),
    ]
}

pub(crate) fn indexes() -> Vec<String> {
    let digest = "0".repeat(64);
    let entry = |name: &str| {
        format!(
            r#"{{"file_name":"{name}","size":1,"source":"https://a.example/x","digests":{{"sha256":"{digest}"}}}}"#
        )
    };
    let of = |names: &[&str]| {
        let files = names.iter().map(|name| entry(name)).collect::<Vec<_>>().join(",");
        format!(
            r#"{{"version":1,"project_id":"https/a.example/443/x","release_url":null,"mirrored_on":"2026-01-01T00:00:00Z","published_on":null,"published_files":[{files}]}}"#
        )
    };
    let good = of(&["a"]);
    vec![
        good.clone(),
        of(&[]),
        of(&["a", "b"]),
        of(&["a", "ab", "a/b"]),
        of(&["a", "a/b", "ab"]),
        of(&["b", "a"]),
        of(&["a", "a"]),
        of(&["a", "\\u0061"]),
        of(&["B", "a"]),
        of(&["a", "B"]),
        // In UTF-16 the second comes first.
        of(&["\u{ff61}", "\u{10000}"]),
        of(&["\u{10000}", "\u{ff61}"]),
        good.replace(&format!("\"sha256\":\"{digest}\""), ""),
        good.replace(&digest, &digest.replace('0', "A")),
        good.replace(&digest, &digest[1..]),
        good.replace("sha256", "sha512"),
        good.replace("sha256", "md5"),
        good.replace("\"size\":1", "\"size\":null"),
        good.replace("\"size\":1", "\"size\":9007199254740991"),
        good.replace("\"size\":1", "\"size\":-1"),
        good.replace("\"size\":1", "\"size\":1.5"),
        good.replace("\"size\":1", "\"size\":1e3"),
        good.replace("\"size\":1", "\"size\":\"1\""),
        good.replace("\"size\":1,", ""),
        good.replace("/x\"", "/\\ud800\""),
        good.replace("/x\"", "/\\ud83d\\ude00\""),
        good.replace("\"release_url\":null", "\"release_url\":\"\""),
        good.replace("\"release_url\":null,", ""),
        good.replace("\"published_on\":null", "\"published_on\":\"2026\""),
        good.replace("https/a.example/443/x", "https/a.example/x"),
        good.replace("\"version\":1", "\"version\":1,\"version\":1"),
    ]
}
