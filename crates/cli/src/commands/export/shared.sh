
fail() {
    printf 'verify.sh: %s\n' "$1" >&2
    printf 'NOT VERIFIED. Do not use the files.\n' >&2
    exit 1
}

# digest FILE: what is not a plain file, such as a pipe, is never opened.
digest() {
    [ -f "$1" ] || return 1
    sha256 <"$1"
}

# plain NAME: a file of the export that a program is about to read.
plain() {
    [ -f "$here/$1" ] || fail "$1 cannot be read, or is not a plain file"
}

# about RELEASE PROJECT, in percent code
about() {
    about="$1 of $2"
}

# expect SHA256 FILE
expect() {
    found=$(digest "$here/$2") || fail "$2 cannot be read"
    [ "$found" = "$1" ] || fail "$2 was changed"
}

# new_key NAME BASE64
new_key() {
    case $keys in *" $2 "*) fail "$1 has the key of another signer" ;; esac
    case $names in *" $1 "*) fail "$1 has two keys" ;; esac
    keys="$keys$2 "
    names="$names$1 "
}

# group THRESHOLD NAME...: a name counts once, however often it stands here.
group() {
    needed=$1 count=0 counted=' '
    shift
    [ "$needed" -ge 1 ] || fail 'a group has no threshold'
    for name in "$@"; do
        case $counted in *" $name "*) continue ;; esac
        counted="$counted$name "
        case $signed in *" $name "*) count=$((count + 1)) ;; esac
    done
    [ "$count" -ge "$needed" ] || fail "$count have signed in a group that needs $needed"
    groups=$((groups + 1))
    printf 'Group %s: %s signed, %s needed.\n' "$groups" "$count" "$needed"
}

# is_own NAME: if the files are looked for in the export itself, this is a file of the export and none of the release.
is_own() {
    [ "$inside" = yes ] || return 1
    case $1 in
    SHA256SUMS | verify.sh | allowed_signers | svc.* | keys/signer-[0-9]* | signatures/signer-[0-9]*) return 0 ;;
    rebuilds/builder-[0-9]* | keys/builder-[0-9]* | signatures/builder-[0-9]*) return 0 ;;
    SHA256SUMS.asc | keys.asc | keys.pgp | keys-[0-9]*.asc | keys-[0-9]*.pgp) return 0 ;;
    *) return 1 ;;
    esac
}

# Each line is 64 digits, two spaces and a name.
files() {
    plain SHA256SUMS
    while IFS= read -r line; do
        sum=${line%%  *} name=${line#*  }
        [ "${#sum}" -eq 64 ] || fail 'SHA256SUMS has a line of another form'
        check_line "$sum" "$name"
        if is_own "$name"; then
            printf '%s: a file of the export is here instead, not checked\n' "$name"
            absent=$((absent + 1))
            continue
        fi
        if [ ! -e "$dir/$name" ] && [ ! -h "$dir/$name" ]; then
            printf '%s: not there, not checked\n' "$name"
            absent=$((absent + 1))
            continue
        fi
        found=$(digest "$dir/$name") || fail "$name cannot be read"
        [ "$found" = "$sum" ] || fail "$name is not the file that was signed"
        printf '%s: OK\n' "$name"
        present=$((present + 1))
    done <"$here/SHA256SUMS"
}

[ "$#" -le 1 ] || fail 'usage: sh verify.sh [DIRECTORY OF THE FILES]'
dir=${1-.}
[ -d "$dir" ] || fail "$dir is not a directory"
case $dir in -*) dir=./$dir ;; esac
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
case $here in -*) here=./$here ;; esac
inside=no
[ "$(CDPATH='' cd -- "$dir" && pwd -P)" != "$(CDPATH='' cd -- "$here" && pwd -P)" ] || inside=yes
check_tool

keys=' ' names=' ' signed=' ' begun='' differs='' lacks='' rebuilt='' groups=0 present=0 absent=0
release
[ "$groups" -ge 1 ] || fail 'there is no group of signers'
files
[ "$present" -ge 1 ] || fail "$dir has none of the $absent files of the release"

printf '\nThis does not check that this script was not changed, how the project came to have these signers, whether the\n'
printf 'release was revoked since, or whether it is the newest. Countersign itself does. Files that SHA256SUMS does not\n'
printf 'list were not looked at.\n\n'
if [ -n "$lacks" ]; then
    printf 'Not reproduced: has %s.\n' "$lacks"
elif [ -n "$rebuilt" ]; then
    printf 'Reproduced: enough builders got %s from the source, byte for byte.\n' "$rebuilt"
fi
but=''
[ -z "$begun" ] || but=", but $begun revokers wanted it revoked when it was exported"
[ -z "$differs" ] || but="$but, but $differs got something else from the source"
printf 'VERIFIED%s: %s. Enough signers have signed it, and %s of its %s files are there and unchanged.\n' \
    "$but" "$about" "$present" "$((present + absent))"
