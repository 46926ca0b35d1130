//! A tool for the walk-through in the README, until the client exists: it makes keys and sends signed requests.
//!
//! For trying things out only: a secret key lies unencrypted in `NAME.key` in the current directory.

use std::{
    env,
    error::Error,
    fs::{self, File, OpenOptions},
    io::{BufRead as _, BufReader, ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    process::ExitCode,
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use countersign_core::{
    auth,
    digest::{HexDigest, Sha512},
    index::ReleaseIndex,
    key::{PublicKey, SecretKey},
    layout::{self, Signable},
    metadata::Metadata,
    path::RepoPath,
    revocation::Revocation,
    signers::SignersFile,
    time::Timestamp,
    wire,
};

const USAGE: &str = "\
usage:
  walk key NAME                        make NAME.key unless it is there, and print its public key
  walk signers THRESHOLD NAME...       print a signers file for these keys
  walk files DIR PORT                  serve the files below DIR on 127.0.0.1
  walk call NAME METHOD PATH [BODY]    send a request signed by NAME, and print the answer
  walk sign NAME FILE                  sign a release index, or a pending signers file and its metadata
  walk revoke NAME FILE REASON         revoke a release index

The server is COUNTERSIGN_SERVER, or http://127.0.0.1:3000.";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["key", name] => print_key(name),
        ["signers", threshold, ref names @ ..] => print_signers(threshold, names),
        ["files", dir, port] => serve_files(dir, port),
        ["call", name, method, path] => call(name, method, path, ""),
        ["call", name, method, path, body] => call(name, method, path, body),
        ["sign", name, file] => sign(name, file),
        ["revoke", name, file, reason] => revoke(name, file, reason),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn print_key(name: &str) -> Outcome<()> {
    let mut seed = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut seed)?;
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(format!("{name}.key")) {
        Ok(mut file) => writeln!(file, "{}", HexDigest::from_bytes(seed))?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    println!("{}", read_key(name)?.public_key());
    Ok(())
}

fn read_key(name: &str) -> Outcome<SecretKey> {
    let file = format!("{name}.key");
    let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let seed = HexDigest::<32>::parse(text.trim()).ok_or_else(|| format!("{file} holds no key"))?;
    Ok(SecretKey::from_seed(seed.as_bytes()))
}

fn print_signers(threshold: &str, names: &[&str]) -> Outcome<()> {
    let threshold: u32 = threshold.parse()?;
    let mut signers = Vec::new();
    for name in names {
        let key = read_key(name)?.public_key();
        let (name, key) = (quote(name), quote(&key.to_string()));
        signers.push(format!(r#"{{"kind": "key", "data": {{"pubkey": {key}}}, "name": {name}}}"#));
    }
    let time = quote(&now()?.to_whole_seconds().to_string());
    let groups = format!(r#"[{{"threshold": {threshold}, "signers": [{}]}}]"#, signers.join(", "));
    let text = format!(r#"{{"version": 1, "timestamp": {time}, "artifact_signers": {groups}}}"#);
    std::io::stdout().write_all(&SignersFile::parse(text.as_bytes())?.write())?;
    Ok(())
}

fn serve_files(dir: &str, port: &str) -> Outcome<()> {
    let listener = TcpListener::bind(("127.0.0.1", port.parse()?))?;
    let root = fs::canonicalize(dir)?;
    println!("Serving {} on http://{}", root.display(), listener.local_addr()?);
    for stream in listener.incoming() {
        let root = root.clone();
        thread::spawn(move || {
            if let Err(error) = answer_file(stream?, &root) {
                eprintln!("file server: {error}");
            }
            Ok::<_, std::io::Error>(())
        });
    }
    Ok(())
}

fn answer_file(mut stream: TcpStream, root: &Path) -> Outcome<()> {
    let mut lines = BufReader::new(stream.try_clone()?.take(64 << 10)).lines();
    let request = lines.next().ok_or("an empty request")??;
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    // Links are resolved before the file is looked for below the directory.
    let file = fs::canonicalize(root.join(path)).ok().filter(|file| file.starts_with(root) && file.is_file());
    let (status, content) = match file {
        Some(file) => ("200 OK", fs::read(file)?),
        None => ("404 Not Found", Vec::new()),
    };
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", content.len())?;
    Ok(stream.write_all(&content)?)
}

fn call(name: &str, method: &str, path: &str, body: &str) -> Outcome<()> {
    let (status, content) = send(Some(&read_key(name)?), method, path, body)?;
    let content = String::from_utf8_lossy(&content);
    if status >= 400 {
        return Err(format!("{status} {content}").into());
    }
    println!("{status} {content}");
    Ok(())
}

/// Signs only what it can read as the kind of file that the path names: a server that lies gets no signature on
/// something else.
fn sign(name: &str, file: &str) -> Outcome<()> {
    let key = read_key(name)?;
    let file = RepoPath::parse(file)?;
    let content = fetch(file.as_str())?;
    let mut files = Vec::new();
    match layout::signable(&file) {
        Some(Signable::Index) => {
            let index = ReleaseIndex::parse(&content)?;
            if !file.is_inside(&index.project_id) {
                return Err(format!("{file} does not belong to {}", index.project_id).into());
            }
            eprintln!("{name} signs {} file(s) of {}", index.published_files.len(), index.project_id);
        }
        Some(Signable::PendingSigners { project }) => {
            let signers = SignersFile::parse(&content)?;
            let metadata_path = layout::metadata_of(&file);
            let metadata_content = fetch(metadata_path.as_str())?;
            let metadata = Metadata::parse(&metadata_content)?;
            if metadata.project_id != project || metadata.signers_file_digest != Sha512::of(&content) {
                return Err(format!("{metadata_path} does not belong to {file}").into());
            }
            eprintln!("{name} signs {} signers of {project}", signers.keys().len());
            files.push((metadata_path, metadata_content));
        }
        None => return Err(format!("{file} is nothing to sign").into()),
    }
    files.push((file.clone(), content));
    let signatures: Vec<String> = files
        .iter()
        .map(|(path, content)| {
            let signature = key.sign(&Sha512::of(content)).to_base64();
            format!("{}: {}", quote(path.as_str()), quote(&signature))
        })
        .collect();
    let body = format!(
        r#"{{"file_path": {}, "public_key": {}, "signatures": {{{}}}}}"#,
        quote(file.as_str()),
        quote_key(key.public_key()),
        signatures.join(", ")
    );
    call(name, "POST", wire::SIGNATURES_ROUTE, &body)
}

fn revoke(name: &str, file: &str, reason: &str) -> Outcome<()> {
    let key = read_key(name)?;
    let file = RepoPath::parse(file)?;
    let document = Revocation {
        reason: reason.to_owned(),
        timestamp: now()?.to_whole_seconds(),
        subject_digest: Some(Sha512::of(&fetch(file.as_str())?)),
        initiator: Some(key.public_key()),
    };
    let document = String::from_utf8(document.write())?;
    let body = format!(
        r#"{{"file_path": {}, "revocation_json": {}, "signature": {}, "public_key": {}}}"#,
        quote(file.as_str()),
        quote(&document),
        quote(&key.sign(&Sha512::of(document.as_bytes())).to_base64()),
        quote_key(key.public_key())
    );
    call(name, "POST", "/v1/revoke", &body)
}

fn fetch(file: &str) -> Outcome<Vec<u8>> {
    match send(None, "GET", &format!("/v1/files/{}", encode_path(file)), "")? {
        (200, content) => Ok(content),
        (status, content) => Err(format!("{status} {}", String::from_utf8_lossy(&content)).into()),
    }
}

/// One request, signed where there is a key. HTTP/1.0, so that the answer ends where the connection does.
fn send(key: Option<&SecretKey>, method: &str, path: &str, body: &str) -> Outcome<(u16, Vec<u8>)> {
    let server = env::var("COUNTERSIGN_SERVER").unwrap_or_else(|_| "http://127.0.0.1:3000".to_owned());
    let host = server.strip_prefix("http://").ok_or("COUNTERSIGN_SERVER must begin with http://")?;
    let host = host.trim_end_matches('/');
    let mut head = format!("{method} {path} HTTP/1.0\r\nHost: {host}\r\nContent-Length: {}\r\n", body.len());
    if let Some(key) = key {
        let (time, nonce) = (now()?, random_uuid()?);
        let signature = auth::sign_request(key, time, &nonce, body.as_bytes());
        for (header, value) in [
            (wire::HEADER_TIMESTAMP, time.to_header()),
            (wire::HEADER_NONCE, nonce),
            (wire::HEADER_SIGNATURE, signature.to_header()),
            (wire::HEADER_PUBLIC_KEY, key.public_key().to_string()),
        ] {
            head.push_str(&format!("{header}: {value}\r\n"));
        }
    }
    let mut stream = TcpStream::connect(host).map_err(|error| format!("{server}: {error}"))?;
    stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end =
        answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or("the answer has no end of headers")?;
    let content = answer.split_off(end + 4);
    let status =
        String::from_utf8_lossy(&answer).split(' ').nth(1).ok_or("the answer has no status")?.parse()?;
    Ok((status, content))
}

/// A UUID of version 4 from 16 random bytes.
fn random_uuid() -> Outcome<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = HexDigest::from_bytes(bytes).to_string();
    Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

fn now() -> Outcome<Timestamp> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(Timestamp::from_unix_nanos(i128::try_from(since_1970.as_nanos())?)?)
}

/// Text as a JSON string.
fn quote(text: &str) -> String {
    let mut json = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json + "\""
}

fn quote_key(key: PublicKey) -> String {
    quote(&key.to_base64())
}

/// A path as it stands in a URL.
fn encode_path(path: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~/:".contains(byte);
    path.bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
