//! Checksums files (D24).

use countersign_core::values::bounds::{ASSET_NAME_BYTES, INDEX_FILES, INDEX_NAMES_BYTES};
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_forge::checksums::{Checksums, ChecksumsError};
use countersign_testing::{assert_mentions, steady};
use proptest::prelude::*;

fn sha256(content: &str) -> String {
    Sha256::of(content.as_bytes()).to_string()
}

fn sha512(content: &str) -> String {
    Sha512::of(content.as_bytes()).to_string()
}

/// `name: which digests of what it has`, for every file.
fn read(files: &[(&str, &str)]) -> Result<Vec<String>, ChecksumsError> {
    let mut checksums = Checksums::default();
    for (file, text) in files {
        checksums.add_file(file, text.as_bytes())?;
    }
    let shown = |content: &Option<String>| content.clone().unwrap_or_else(|| "-".to_owned());
    Ok(checksums
        .files
        .iter()
        .map(|(name, digests)| {
            let (short, long) =
                (digests.sha256.map(|d| d.to_string()), digests.sha512.map(|d| d.to_string()));
            format!("{name} {} {}", shown(&short), shown(&long))
        })
        .collect())
}

/// The one file that this line names, where it gives the SHA-256 digest of `one`.
#[track_caller]
fn assert_names(line: &str, name: &str) {
    assert_eq!(read(&[("SHA256SUMS", line)]), Ok(vec![format!("{name} {} -", sha256("one"))]), "{line}");
}

#[track_caller]
fn assert_refused_at_line(text: &str, line: usize) -> String {
    let error = read(&[("SHA256SUMS", text)]).expect_err(text);
    assert_eq!((error.file.as_str(), error.line), ("SHA256SUMS", line), "{error}");
    assert_mentions(&error.to_string(), &["SHA256SUMS", &line.to_string()]);
    error.reason
}

#[test]
fn every_form_of_a_line_is_read() {
    let (hex, capitals, long) = (sha256("one"), sha256("one").to_uppercase(), sha512("one"));
    for (text, name) in [
        (format!("{hex}  app.tar.gz\n"), "app.tar.gz"),
        (format!("{hex} *app.tar.gz\n"), "app.tar.gz"),
        (format!("{hex}  a file with spaces\n"), "a file with spaces"),
        (format!("{hex}  app (x86) = y\n"), "app (x86) = y"),
        (format!("SHA256 (app.tar.gz) = {hex}\n"), "app.tar.gz"),
        (format!("SHA256 (app (x86).tar.gz) = {hex}\n"), "app (x86).tar.gz"),
        (format!("{capitals}  no line break"), "no line break"),
        (format!("# c\r\n\r\n{hex}  a\r\n"), "a"),
        (format!("SHA256 (a) = {hex}\r\n"), "a"),
        (format!("{hex}  ./app"), "app"),
        (format!("SHA256 (./sub/app) = {hex}"), "sub/app"),
        (format!("{hex}  sub/dir/app"), "sub/dir/app"),
        (format!("{hex}  a\n{hex} *./a\nSHA256 (a) = {capitals}\n"), "a"),
        (format!("{hex}  {}", "a".repeat(200)), &"a".repeat(200)),
    ] {
        assert_names(&text, name);
    }
    let both = read(&[("SUMS", &format!("{hex}  a\n{long}  b\nSHA512 (c) = {long}\n"))]);
    assert_eq!(both, Ok(vec![format!("a {hex} -"), format!("b - {long}"), format!("c - {long}")]));
}

#[test]
fn comments_and_blank_lines_are_skipped_and_still_counted() {
    let good = format!("{}  a", sha256("one"));
    assert_names(&format!("# made by hand\n\n  \n{good}\n\n#end"), "a");
    assert_refused_at_line(&format!("# one\n\n{good}\nnonsense\n"), 4);
}

#[test]
fn several_files_merge_the_digests_of_a_name() {
    let (short, long) = (sha256("one"), sha512("one"));
    let sums256 = format!("{short}  a\n{short}  only\n");
    let sums512 = format!("SHA512 (a) = {long}\n");
    let merged = read(&[("SHA256SUMS", &sums256), ("SHA512SUMS", &sums512)]);
    assert_eq!(merged, Ok(vec![format!("a {short} {long}"), format!("only {short} -")]));
}

#[test]
fn a_conflict_is_an_error_that_names_file_and_line() {
    let (one, two) = (format!("{}  a\n", sha256("one")), format!("# second\n{}  a\n", sha256("two")));
    let error = read(&[("first", &one), ("second", &two)]).unwrap_err();
    assert_eq!((error.file.as_str(), error.line), ("second", 2));
    assert_mentions(&error.reason, &["a"]);
    assert_refused_at_line(&format!("{}  a\n{}  a\n", sha256("one"), sha256("two")), 2);
    assert_refused_at_line(&format!("{}  a\n{}  a\n", sha512("one"), sha512("two")), 2);
}

/// The vector `names` of core has those at the edges.
#[test]
fn names_that_are_no_safe_relative_path_are_refused() {
    let long = "a".repeat(201);
    for name in
        ["/etc/passwd", "../app", "sub/./app", "././app", "./", "sub//app", "a\\b", "a\u{202e}b", &long]
    {
        assert_refused_at_line(&format!("{}  {name}\n", sha256("one")), 1);
        assert_refused_at_line(&format!("SHA256 ({name}) = {}\n", sha256("one")), 1);
    }
}

#[test]
fn an_escaped_line_is_refused() {
    assert_refused_at_line(&format!("\\{}  a\\nb\n", sha256("one")), 1);
    assert_refused_at_line(&format!("\\{}  a\n", sha256("one")), 1);
    assert_refused_at_line(&format!("\\SHA256 (a) = {}\n", sha256("one")), 1);
}

#[test]
fn any_other_line_is_refused() {
    let (short, long) = (sha256("one"), sha512("one"));
    for line in [
        "hello".to_owned(),
        short.clone(),
        format!("{short} "),
        format!("{short}  "),
        format!("{short} a"),
        format!("{short}\ta"),
        format!("{short}a  a"),
        format!("{}  a", &short[1..]),
        format!("g{}  a", &short[1..]),
        format!(" {short}  a"),
        format!("\u{feff}{short}  a"),
        "d41d8cd98f00b204e9800998ecf8427e  md5".to_owned(),
        "da39a3ee5e6b4b0d3255bfef95601890afd80709  sha1".to_owned(),
        format!("{}  sha384", &long[..96]),
        "MD5 (a) = d41d8cd98f00b204e9800998ecf8427e".to_owned(),
        format!("SHA256 (a) = {long}"),
        format!("SHA512 (a) = {short}"),
        format!("SHA256 () = {short}"),
        format!("SHA256 (a) = {short} "),
        format!("SHA3-256 (a) = {short}"),
        format!("SHA256(a)= {short}"),
        format!("sha256 (a) = {short}"),
        format!("SHA256 a = {short}"),
        "-----BEGIN PGP SIGNED MESSAGE-----".to_owned(),
        "<html>".to_owned(),
    ] {
        assert_refused_at_line(&format!("{short}  good\n{line}\n"), 2);
    }
}

#[test]
fn text_that_is_not_utf8_is_refused_at_its_line() {
    let mut bytes = format!("{}  a\n{}  ", sha256("one"), sha256("one")).into_bytes();
    bytes.extend(b"\xff\n");
    let error = Checksums::default().add_file("SHA256SUMS", &bytes).unwrap_err();
    assert_eq!((error.file.as_str(), error.line), ("SHA256SUMS", 2));
}

proptest! {
    #![proptest_config(steady())]

    #[test]
    fn every_accepted_name_is_a_safe_relative_path(name in prop_oneof![any::<String>(), "[./a-c\\\\]{1,9}", "\\PC{1,9}"]) {
        let Ok(files) = read(&[("SHA256SUMS", &format!("{}  {name}", sha256("one")))]) else { return Ok(()) };
        let read = files[0].strip_suffix(&format!(" {} -", sha256("one"))).expect("one digest");
        prop_assert_eq!(read, name.strip_prefix("./").unwrap_or(&name));
        prop_assert!(read.split('/').all(|part| !matches!(part, "" | "." | "..") && part.len() <= 200));
        prop_assert!(!read.chars().any(|c| c == '\\' || c.is_control()));
    }

    #[test]
    fn any_bytes_are_read_or_refused_without_a_panic(bytes in any::<Vec<u8>>(), text in "[ -~\\n\\r(]{0,80}") {
        let mut checksums = Checksums::default();
        let refused = checksums.add_file("a", &bytes).is_err();
        prop_assert!(refused || bytes.len() > 64);
        prop_assert!(checksums.add_file("b", text.as_bytes()).is_err() || text.len() > 64);
    }
}

/// A name of so many bytes, and one of its own.
fn name(length: usize, number: usize) -> String {
    let mut name = format!("{number:06}/");
    while length - name.len() > 201 {
        name.push_str(&format!("{}/", "a".repeat(199)));
    }
    let rest = length - name.len();
    name + &"b".repeat(rest)
}

fn line(name: &str) -> String {
    format!("{}  {name}\n", Sha256::of(b"one"))
}

fn read_checksums(text: &str) -> Result<usize, String> {
    let mut checksums = Checksums::default();
    let read = checksums.add_file("https://h/SHA256SUMS", text.as_bytes());
    read.map(|()| checksums.files.len()).map_err(|error| error.to_string())
}

#[test]
fn checksums_files_are_read_up_to_what_an_index_can_hold() {
    let longest = line(&name(ASSET_NAME_BYTES, 0));
    assert_eq!(read_checksums(&longest), Ok(1));
    let error = read_checksums(&line(&name(ASSET_NAME_BYTES + 1, 0))).unwrap_err();
    assert_mentions(&error, &["https://h/SHA256SUMS", "line 1", &ASSET_NAME_BYTES.to_string()]);

    let full: String = (0..512).map(|i| line(&name(ASSET_NAME_BYTES, i))).collect();
    assert_eq!(read_checksums(&full), Ok(512));
    assert_eq!(
        read_checksums(&format!("{full}{longest}")),
        Ok(512),
        "a name that is there already is no more"
    );
    // What follows is not read any more, or its own fault would be told.
    let error = read_checksums(&format!("{full}{}nonsense\n", line("a"))).unwrap_err();
    assert_mentions(&error, &["line 513", &INDEX_NAMES_BYTES.to_string()]);

    let many: String = (0..INDEX_FILES).map(|i| line(&i.to_string())).collect();
    assert_eq!(read_checksums(&many), Ok(INDEX_FILES));
    let error = read_checksums(&format!("{many}{}nonsense\n", line("a"))).unwrap_err();
    assert_mentions(&error, &["line 10001", &INDEX_FILES.to_string()]);
}
