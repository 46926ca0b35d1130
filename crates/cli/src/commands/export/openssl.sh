
tool=${OPENSSL:-openssl}

# OpenSSL computes digests as well: nothing else has to be there.
sha256() {
    sha256_line=$("$tool" dgst -sha256 -r) || return 1
    printf '%s\n' "${sha256_line%% *}"
}

check_tool() {
    version=$("$tool" version 2>/dev/null) || fail "$tool does not run: install OpenSSL 3, or name it as OPENSSL=PROGRAM"
    case $version in
    'OpenSSL '[3-9].* | 'OpenSSL '[1-9][0-9].*) ;;
    *) fail "$tool is $version: install OpenSSL 3 or newer, or name it as OPENSSL=PROGRAM" ;;
    esac
}

# hex FILE
hex() {
    od -A n -v -t x1 "$here/$1" | tr -d ' \n'
}

# signed_text FILE SHA512: this text, whose digest is signed. OpenSSL reads the digest from a file of its own.
signed_text() {
    plain "$1"
    plain "$1.sha512"
    found=$("$tool" dgst -sha512 -r <"$here/$1") || fail "$1 cannot be read"
    [ "${found%% *}" = "$2" ] || fail "$1 was changed"
    found=$(hex "$1.sha512") || fail "$1.sha512 cannot be read"
    [ "$found" = "$2" ] || fail "$1.sha512 was changed"
}

# index SHA512
index() {
    signed_text svc.index.json "$1"
}

# key NAME BASE64: keys/NAME.pem is this key and nothing else.
key() {
    new_key "$1" "$2"
    pem=$(printf '%s\n' '-----BEGIN PUBLIC KEY-----' "$2" '-----END PUBLIC KEY-----' | sha256) ||
        fail 'no SHA-256 can be computed'
    expect "$pem" "keys/$1.pem"
}

# signature NAME [TEXT]: on the index, or on another text.
signature() {
    signature_on "$1" "${2-svc.index.json}.sha512" "${2-the index}"
}

# signature_on NAME FILE WHAT
signature_on() {
    case $names in *" $1 "*) ;; *) fail "$1 has no key" ;; esac
    plain "keys/$1.pem"
    plain "signatures/$1.sig"
    "$tool" pkeyutl -verify -pubin -inkey "$here/keys/$1.pem" -rawin -in "$here/$2" \
        -sigfile "$here/signatures/$1.sig" >/dev/null 2>&1 || fail "signatures/$1.sig is no signature of $1 on $3"
    signed="$signed$1 "
    printf '%s has signed.\n' "$1"
}

# check_line SHA256 NAME: the signatures are on the index.
check_line() {
    grep -qF -e "\"$1\"" "$here/svc.index.json" || fail "the signed index has no file with the digest of $2"
}
