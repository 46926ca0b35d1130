//! Where requests may go (D28), and the exceptions from it (D49).

use countersign_forge::guard::{AllowFetch, Guard, GuardRefusal, OTHER_PORT, Reach, non_public_reason};
use countersign_forge::{file_server::FileServerRule, file_server::FileServers, url::Host};
use url::Url;

use crate::support::guard;

fn admit(guard: &Guard, url: &str) -> Result<Reach, GuardRefusal> {
    guard.admit(&Url::parse(url).unwrap())
}

#[test]
fn public_addresses_are_public() {
    let addresses = "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
        168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 \
        192.0.3.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 \
        198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 2001:200::1 \
        2001:4860:4860::8888 2001:db7:ffff::1 2001:db9::1 2606:4700::1111 2a00::1 3ffe::1 3fff:1000::1 \
        ::ffff:1.1.1.1 64:ff9b::1.1.1.1 2002:101:101::1";
    for address in addresses.split_whitespace() {
        assert_eq!(non_public_reason(address.parse().unwrap()), None, "{address}");
    }
}

#[test]
fn special_addresses_are_not_public_in_any_wrapping() {
    let addresses = "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.0 100.100.100.200 100.127.255.255 127.0.0.1 \
        127.255.255.255 168.63.129.16 169.254.0.0 169.254.169.254 172.16.0.0 172.31.255.255 192.0.0.0 \
        192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.0 198.19.255.255 198.51.100.1 203.0.113.1 \
        224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255";
    for address in addresses.split_whitespace() {
        let v4: std::net::Ipv4Addr = address.parse().unwrap();
        let [a, b, c, d] = v4.octets();
        for spelling in [
            address.to_owned(),
            format!("::ffff:{address}"),
            format!("::{address}"),
            format!("64:ff9b::{address}"),
            format!("64:ff9b:1::{address}"),
            format!("2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1"),
        ] {
            assert!(non_public_reason(spelling.parse().unwrap()).is_some(), "{spelling}");
        }
    }
    let addresses = ":: ::1 ::2 ::1.1.1.1 ::ffff:0:1.1.1.1 64:ff9b:1::1.1.1.1 64:ff9b:2::1 100::1 1::1 1fff:ffff::1 \
        2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:20::1 2001:1ff:ffff::1 \
        2001:db8::1 3fff::1 3fff:fff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 febf::1 fec0::1 \
        feff::1 ff02::1 ffff::1";
    for address in addresses.split_whitespace() {
        assert!(non_public_reason(address.parse().unwrap()).is_some(), "{address}");
    }
}

#[test]
fn addresses_in_urls_are_checked_in_every_spelling() {
    let hosts = "127.0.0.1 127.1 0x7f.1 0x7f000001 0177.0.0.1 017700000001 2130706433 [::1] [0:0:0:0:0:0:0:1] \
        [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b:1::7f00:1] \
        [2002:7f00:1::] 0 169.254.169.254 [fd00:ec2::254] 10.1.2.3";
    for host in hosts.split_whitespace() {
        let refusal = admit(&Guard::default(), &format!("https://{host}/x")).unwrap_err();
        assert!(matches!(refusal, GuardRefusal::NotPublic { .. }), "{host}: {refusal}");
        assert!(refusal.to_string().contains("--allow-fetch"), "{refusal}");
    }
    assert_eq!(admit(&Guard::default(), "https://1.1.1.1/x"), Ok(Reach::PublicAndExceptions));
    assert_eq!(admit(&Guard::default(), "https://[2606:4700::1111]/x"), Ok(Reach::PublicAndExceptions));
}

#[test]
fn only_http_urls_without_user_information_are_admitted() {
    for url in ["file:///etc/passwd", "ftp://h/x", "data:,x", "gopher://h/x"] {
        assert!(matches!(admit(&Guard::default(), url), Err(GuardRefusal::Scheme { .. })), "{url}");
    }
    assert_eq!(admit(&Guard::default(), "https://u:p@h/x"), Err(GuardRefusal::UserInfo));
    assert!(matches!(admit(&Guard::default(), "https://h./x"), Err(GuardRefusal::Host(_))));
}

#[test]
fn a_network_is_excepted_by_address() {
    let guard = guard(&["10.1.0.0/16", "192.168.7.7", "fd12::/32", "[::1]"]);
    for host in ["10.1.2.3", "192.168.7.7", "[fd12::5]", "[::1]", "[::ffff:a01:203]"] {
        for scheme in ["http", "https"] {
            assert!(admit(&guard, &format!("{scheme}://{host}/x")).is_ok(), "{scheme} {host}");
        }
    }
    for host in ["10.2.0.0", "192.168.7.8", "[fd13::5]", "127.0.0.1"] {
        assert!(admit(&guard, &format!("https://{host}/x")).is_err(), "{host}");
    }
}

#[test]
fn a_host_is_excepted_at_every_address() {
    let guard = guard(&["Git.Internal:3000"]);
    let (git, other) = (Host::parse("git.internal").unwrap(), Host::parse("other.internal").unwrap());
    let private = "10.0.0.1".parse().unwrap();
    for reach in [Reach::PublicAndExceptions, Reach::ExceptionsOnly] {
        assert_eq!(guard.check_address(reach, &git, private, 3000), Ok(()));
        assert!(guard.check_address(reach, &other, private, 3000).is_err());
    }
    assert_eq!(admit(&guard, "http://git.internal:3000/x"), Ok(Reach::PublicAndExceptions));
}

#[test]
fn plain_http_needs_a_permission() {
    let plain_http = |result| matches!(result, Err(GuardRefusal::PlainHttp { .. }));
    assert!(plain_http(admit(&Guard::default(), "http://files.example/x")));
    assert!(plain_http(admit(&Guard::default(), "http://1.1.1.1/x")));
    // The name may resolve into the network, so its address decides.
    assert_eq!(admit(&guard(&["10.0.0.0/8"]), "http://files.example/x"), Ok(Reach::ExceptionsOnly));
    let files = Host::parse("files.example").unwrap();
    let (inside, outside) = ("10.0.0.1".parse().unwrap(), "1.1.1.1".parse().unwrap());
    let guard = guard(&["10.0.0.0/8"]);
    assert_eq!(guard.check_address(Reach::ExceptionsOnly, &files, inside, 80), Ok(()));
    assert!(plain_http(
        guard.check_address(Reach::ExceptionsOnly, &files, outside, 80).map(|()| Reach::ExceptionsOnly)
    ));
}

#[test]
fn a_file_server_may_use_plain_http_at_a_public_address_only() {
    let rules: Vec<FileServerRule> =
        vec!["files.example:8080".parse().unwrap(), "127.0.0.1".parse().unwrap()];
    let guard = Guard { file_servers: FileServers { rules, loopback: false }, ..Guard::default() };
    assert_eq!(admit(&guard, "http://files.example:8080/x"), Ok(Reach::PublicAndExceptions));
    assert!(admit(&guard, "http://files.example/x").is_err());
    assert!(matches!(admit(&guard, "http://127.0.0.1/x"), Err(GuardRefusal::NotPublic { .. })));
}

#[test]
fn dev_reaches_loopback_and_nothing_else() {
    let guard = Guard {
        loopback: true,
        file_servers: FileServers { rules: Vec::new(), loopback: true },
        ..Guard::default()
    };
    for url in
        ["http://127.0.0.1:8080/x", "https://127.0.0.1/x", "http://[::1]:1/x", "http://localhost:3000/x"]
    {
        assert!(admit(&guard, url).is_ok(), "{url}");
    }
    for url in ["http://10.0.0.1/x", "http://169.254.169.254/x", "https://192.168.0.1/x", "http://0.0.0.0/x"]
    {
        assert!(admit(&guard, url).is_err(), "{url}");
    }
}

#[test]
fn a_refusal_does_not_tell_how_a_name_resolves() {
    let host = Host::parse("git.internal").unwrap();
    let address = "10.20.30.40".parse().unwrap();
    let refusal =
        Guard::default().check_address(Reach::PublicAndExceptions, &host, address, 443).unwrap_err();
    let text = refusal.to_string();
    assert!(text.contains("git.internal") && !text.contains("10.20.30.40"), "{text}");
}

#[test]
fn an_exception_is_for_the_ports_that_it_names() {
    let ports = [80, 443, 1, 79, 81, 3000, 8080, 65_535];
    let reached = |allow: &str, host: &str, scheme: &str| -> Vec<u16> {
        let guard = guard(&[allow]);
        let may_reach = |port: &u16| admit(&guard, &format!("{scheme}://{host}:{port}/x")).is_ok();
        ports.into_iter().filter(may_reach).collect()
    };
    for (what, host) in [
        ("10.1.2.3", "10.1.2.3"),
        ("10.1.0.0/16", "10.1.2.3"),
        ("::1", "[::1]"),
        ("[::1]", "[::1]"),
        ("fd12::/32", "[fd12::5]"),
    ] {
        for scheme in ["http", "https"] {
            assert_eq!(reached(what, host, scheme), [80, 443], "{what} {scheme}");
            if !what.contains("::") || what.contains(['[', '/']) {
                assert_eq!(reached(&format!("{what}:8080"), host, scheme), [8080], "{what} {scheme}");
                assert_eq!(reached(&format!("{what}:*"), host, scheme), ports, "{what} {scheme}");
            }
        }
    }
    // A name's exception gives plain http as well, on its port.
    let guard = guard(&["git.internal:3000"]);
    let private = "10.0.0.1".parse().unwrap();
    let git = Host::parse("git.internal").unwrap();
    for (port, is_open) in [(3000, true), (80, false), (443, false), (3001, false), (OTHER_PORT, false)] {
        let checked = guard.check_address(Reach::PublicAndExceptions, &git, private, port);
        assert_eq!(checked.is_ok(), is_open, "{port}");
        assert_eq!(admit(&guard, &format!("http://git.internal:{port}/x")).is_ok(), is_open, "{port}");
    }
}

#[test]
fn ports_are_of_one_class_unless_an_exception_tells_them_apart() {
    let classes = |allow: &[&str]| Vec::from_iter(guard(allow).port_classes());
    assert_eq!(classes(&[]), [OTHER_PORT]);
    assert_eq!(classes(&["10.0.0.1:*", "git.internal:*"]), [OTHER_PORT]);
    assert_eq!(classes(&["10.0.0.1"]), [OTHER_PORT, 80, 443]);
    assert_eq!(classes(&["10.0.0.1:443", "a.b:3000", "a.b:3000"]), [OTHER_PORT, 443, 3000]);
}

#[test]
fn exceptions_are_hosts_addresses_or_networks() {
    let table = [
        ("10.0.0.1", "10.0.0.1/32"),
        ("::1", "::1/128"),
        ("[::1]", "::1/128"),
        ("[::1]:8080", "::1/128:8080"),
        ("::ffff:10.0.0.1", "10.0.0.1/32"),
        ("10.0.0.1:80", "10.0.0.1/32:80"),
        ("10.0.0.1:*", "10.0.0.1/32:*"),
        ("Git.Internal", "git.internal"),
        ("Git.Internal:3000", "git.internal:3000"),
    ];
    for (text, expected) in table {
        assert_eq!(text.parse::<AllowFetch>(), expected.parse(), "{text}");
        assert!(text.parse::<AllowFetch>().is_ok(), "{text}");
    }
    for text in [
        "", "*", "10.0.0.0/33", "h/8", "https://h", "h:", "h:0", "h:080", "h:65536", "h:**", "h:3000:*",
        "*:3000", "10.0.0.0/8:", "10.0.0.0/8:0", "10.0.0.0/8:1:2", "10.0.0.0:80/8", "[fd12::]/32", "::1:*",
        "0x7f.1", "10.0", "fe80::1%eth0",
    ] {
        let error = text.parse::<AllowFetch>().unwrap_err().to_string();
        assert!(error.contains("`:*` for all ports"), "{text}: {error}");
    }
}
