
# sqv counts keys itself. Where there is none, gpgv says which keys have signed, and the script counts.
tool=${SQV:-sqv} judge=sqv
command -v "$tool" >/dev/null 2>&1 || tool=${GPGV:-gpgv} judge=gpgv
tool_hint='install sqv or gpgv, or name one as SQV=PROGRAM or GPGV=PROGRAM'
valid='' owner='' public=''
line_end='
'

# judge [OPTION ...] KEYRING: runs the program on the signatures.
judge() {
    plain SHA256SUMS
    plain SHA256SUMS.asc
    "$tool" "$@" "$here/SHA256SUMS.asc" "$here/SHA256SUMS" 2>/dev/null
}

# count NEEDED KEYRING: sqv counts different keys in the keyring of a group. For gpgv, group does.
count() {
    plain "$2"
    [ "$judge" = gpgv ] || judge -n "$1" --keyring "$here/$2" >/dev/null ||
        fail "SHA256SUMS.asc has fewer than $1 signatures by the keys of $2"
}

# key NAME FINGERPRINT
key() {
    new_key "$1" "$2"
    owner=$1 public=$2
}

# signature NAME: by the key before it.
signature() {
    [ "$1" = "$owner" ] || fail "$1 has no key"
    plain keys.pgp
    if [ -z "$valid" ]; then
        case $judge in
        sqv) valid=$(judge --keyring "$here/keys.pgp") ;;
        *) valid=$(judge --status-fd 1 --keyring "$here/keys.pgp") ;;
        esac || fail 'SHA256SUMS.asc has a signature that does not hold'
    fi
    case $judge in
    sqv) case $line_end$valid$line_end in *"$line_end$public$line_end"*) is_valid=yes ;; *) is_valid=no ;; esac ;;
    *) case $line_end$valid in *"${line_end}[GNUPG:] VALIDSIG $public "*) is_valid=yes ;; *) is_valid=no ;; esac ;;
    esac
    [ "$is_valid" = yes ] || fail "SHA256SUMS.asc has no signature of $1"
    signed="$signed$1 "
    printf '%s has signed.\n' "$1"
}
