
tool=${SSH_KEYGEN:-ssh-keygen}
tool_hint='install OpenSSH, or name its program as SSH_KEYGEN=PROGRAM'

# key NAME TYPE BASE64: allowed_signers has this key under this name.
key() {
    new_key "$1" "$3"
    plain allowed_signers
    grep -qxF -e "$1 namespaces=\"file\" $2 $3" "$here/allowed_signers" || fail "allowed_signers has no such $1"
}

# signature NAME
signature() {
    case $names in *" $1 "*) ;; *) fail "$1 has no key" ;; esac
    plain SHA256SUMS
    plain "signatures/$1.sig"
    "$tool" -Y verify -f "$here/allowed_signers" -I "$1" -n file -s "$here/signatures/$1.sig" <"$here/SHA256SUMS" \
        >/dev/null 2>&1 || fail "signatures/$1.sig is no signature of $1 on SHA256SUMS"
    signed="$signed$1 "
    printf '%s has signed.\n' "$1"
}
