#!/bin/sh
{ # The shell reads up to the closing brace before it runs anything: half a script is an error.
# Installs Countersign, after it has verified who signed it.
#
#   sh install.sh
#
# COUNTERSIGN_VERSION   the version to install                          [default: @VERSION@]
# COUNTERSIGN_PREFIX    the program goes to PREFIX/bin                  [default: ~/.local]
# COUNTERSIGN_URL       where releases lie: a URL or a directory that   [default: @URL@]
#                       has a directory for each version
#
# It needs OpenSSL 3, tar, gzip, and curl or wget. It trusts the keys in this file and nothing else: it checks the signatures
# on the release's index, counts those of distinct keys, takes the archive's digest from the index, and compares.
# It does not check whether the release was revoked or is the newest. `countersign download` does.
set -eu
umask 022
LC_ALL=C
export LC_ALL

version='@VERSION@'
url='@URL@'
project='@PROJECT@'
# One group a line: how many of its keys must have signed, then the keys. Every group must agree.
groups='@GROUPS@'

fail() {
    echo "error: $1" >&2
    [ -z "${2:-}" ] || echo "hint: $2" >&2
    exit 1
}

# fetch NAME BLOCKS: a file of the release, of so many blocks of 512 bytes at most.
fetch() (
    ulimit -f "$2" || exit 1
    case $url in
    /*) cp "$url/$version/$1" "$work/$1" ;;
    *)
        if command -v curl >/dev/null; then
            curl -fsSL --retry 2 -o "$work/$1" "$url/$version/$1"
        else
            wget -q -O "$work/$1" "$url/$version/$1"
        fi
        ;;
    esac
)

# is_signed_by KEY: whether this key has signed the index. What is signed are the 64 bytes of its SHA-512.
is_signed_by() {
    awk -v key="\"svc-pub:$1\":" '
        $1 == key { getline; if ($1 == "\"signature\":") { gsub(/[",]/, "", $2); print $2 } exit }
    ' "$work/svc.index.json.signatures.json" | openssl base64 -d -A > "$work/signature" || return 1
    # The 12 bytes before an Ed25519 key in its usual form (RFC 8410) are 16 letters of base64.
    printf '%s\n' '-----BEGIN PUBLIC KEY-----' "MCowBQYDK2VwAyEA$1=" '-----END PUBLIC KEY-----' > "$work/key"
    openssl pkeyutl -verify -pubin -inkey "$work/key" -rawin -in "$work/digest" -sigfile "$work/signature" \
        >/dev/null 2>&1
}

check_signatures() {
    openssl dgst -sha512 -binary "$work/svc.index.json" > "$work/digest"
    [ "$(wc -c < "$work/digest")" -eq 64 ] || fail "openssl cannot compute a SHA-512"
    checked=0
    while read -r needed keys; do
        [ "$needed" -ge 1 ] || fail "a group has no threshold"
        count=0
        for key in $keys; do
            if is_signed_by "$key"; then count=$((count + 1)); fi
        done
        [ "$count" -ge "$needed" ] || fail "the release is signed by $count keys of a group that needs $needed" \
            "do not use it; if the project has new signers, get the newest install.sh"
        checked=$((checked + 1))
    done <<GROUPS
$groups
GROUPS
    [ "$checked" -gt 0 ] || fail "no group of keys was checked"
}

# digest_of NAME: as the index has it. Servers write an index in this layout; any other is refused.
digest_of() {
    awk -v name="$1" -v project="$project" '
        NR == 3 && $0 != "  \"project_id\": \"" project "\"," { exit }
        $0 == "      \"file_name\": \"" name "\"," { at = NR }
        at && NR == at + 1 && !/^      "size": (null|[0-9]+),$/ { exit }
        at && NR == at + 2 && !/^      "source": "[^"\\]*",$/ { exit }
        at && NR == at + 3 && $0 != "      \"digests\": {" { exit }
        at && NR == at + 4 {
            if (/^        "sha256": "[0-9a-f]+",?$/) { gsub(/[",]/, "", $2); print $2 }
            exit
        }
    ' "$work/svc.index.json"
}

main() {
    case $version$url$project$groups in
    *@*) fail "this is the template of the script" "packaging/release fills it in; use the install.sh of a release" ;;
    esac
    version=${COUNTERSIGN_VERSION:-$version}
    version=${version#v}
    url=${COUNTERSIGN_URL:-$url}
    url=${url%/}
    prefix=${COUNTERSIGN_PREFIX:-${HOME:?is not set. Set COUNTERSIGN_PREFIX}/.local}
    case $version in
    '' | .* | *[!0-9A-Za-z.+-]*) fail "\`$version\` is not a version" "write it as 1.2.3 in COUNTERSIGN_VERSION" ;;
    esac
    case $url in
    http://* | https://* | /*) ;;
    *) fail "\`$url\` is not a place for releases" "write COUNTERSIGN_URL as https://HOST/PATH, or as a directory with its whole path" ;;
    esac
    case $(openssl version 2>/dev/null) in
    'OpenSSL '[3-9]* | 'OpenSSL '[1-9][0-9]*) ;;
    *) fail "there is no OpenSSL 3 here" "install it, or verify as docs/install.md says" ;;
    esac
    case $(uname -s)/$(uname -m) in
    Linux/x86_64) target=x86_64-unknown-linux-gnu ;;
    Linux/aarch64) target=aarch64-unknown-linux-gnu ;;
    *) fail "there are no programs for $(uname -s) on $(uname -m)" "build it from source: docs/install.md" ;;
    esac
    name=countersign-$version-$target
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM

    for evidence in svc.index.json svc.index.json.signatures.json; do
        fetch "$evidence" 8192 || fail "$url/$version/$evidence cannot be fetched" "check COUNTERSIGN_VERSION and COUNTERSIGN_URL"
    done
    check_signatures
    expected=$(digest_of "$name.tar.gz")
    [ ${#expected} -eq 64 ] || fail "the signed index is not one of $project, or has no $name.tar.gz"
    fetch "$name.tar.gz" 1048576 || fail "$url/$version/$name.tar.gz cannot be fetched" "try again later"
    found=$(openssl dgst -sha256 -r "$work/$name.tar.gz")
    [ "${found%% *}" = "$expected" ] || fail "$name.tar.gz does not match the signed digest" "do not use it; download it again"
    echo "Verified $name.tar.gz: enough of the project's keys have signed it."

    gzip -d "$work/$name.tar.gz"
    tar -C "$work" -xf "$work/$name.tar"
    mkdir -p "$prefix/bin" "$prefix/share"
    # Under another name first, so that a running program can be replaced, and never half of it. It is tried here, because
    # some systems run no programs in temporary directories.
    new=$prefix/bin/.countersign.new
    cp "$work/$name/bin/countersign" "$new"
    if ! "$new" --version >/dev/null; then
        rm -f "$new"
        fail "the program does not run in $prefix/bin" \
            "if that directory is mounted with noexec, set COUNTERSIGN_PREFIX; else build from source: docs/install.md"
    fi
    cp -R "$work/$name/share/." "$prefix/share/"
    mv -f "$new" "$prefix/bin/countersign"
    echo "Installed $("$prefix/bin/countersign" --version) as $prefix/bin/countersign"
}

main
exit 0
}
