"""Writes tests/vectors/cosignature/ml-dsa-44.json with the ML-DSA of Python's `cryptography` (48 or newer):

    python3 crates/core/tests/oracle/ml_dsa.py crates/core/tests/vectors/cosignature/ml-dsa-44.json

The message is put together here from c2sp.org/tlog-cosignature. A case that Countersign has signed stays as it is, and
is verified. Signatures of Python are made with chance, so each run writes others.
"""

import base64
import hashlib
import json
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey, MLDSA44PublicKey

TIME = 1_700_000_000
NAME = "witness.example/w"
ORIGIN = "example.com/log"
ROOT = hashlib.sha256(b"a root").digest()
OURS = "signed-by-countersign"
# What is wrong with these is no matter of the signature.
RIGHT_BUT_REFUSED = ["no-time", "time-out-of-range"]


def private(first):
    return MLDSA44PrivateKey.from_seed_bytes(bytes(range(first, first + 32)))


def key_id(name, public, kind=6):
    return hashlib.sha256(name.encode() + b"\n" + bytes([kind]) + public).digest()[:4]


def spell(name, public):
    return f"{name}+{key_id(name, public).hex()}+{base64.b64encode(bytes([6]) + public).decode()}"


def message(name=NAME, time=TIME, origin=ORIGIN, start=0, size=9, root=ROOT):
    def named(text):
        return bytes([len(text.encode())]) + text.encode()

    numbers = [number.to_bytes(8, "big") for number in (time, start, size)]
    return b"subtree/v1\n\0" + named(name) + numbers[0] + named(origin) + numbers[1] + numbers[2] + root


def checkpoint(origin=ORIGIN, size=9, root=ROOT, extension=""):
    return f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n{extension}"


def note(text, signature, name=NAME, time=TIME, kind=6, signer=None):
    public = (signer or KEY).public_key().public_bytes_raw()
    line = key_id(name, public, kind) + time.to_bytes(8, "big") + signature
    return f"{text}\n— {name} {base64.b64encode(line).decode()}\n"


KEY, OTHER = private(0x60), private(0x20)
LONG = "w" * 255


def cases():
    text, right = checkpoint(), KEY.sign(message())

    def case(name, expect, of, vkey_name=NAME):
        vkey = spell(vkey_name, KEY.public_key().public_bytes_raw())
        return {"name": name, "expect": expect, "key": vkey, "note": of}

    def wrong(name, signed, **parts):
        return case(name, "refused", note(text, KEY.sign(signed), **parts))

    def flipped(at):
        changed = bytearray(right)
        changed[at] ^= 1
        return bytes(changed)

    most = dict(name=LONG, time=2**63 - 1, origin="o" * 255, size=2**63 - 1)
    long_text = checkpoint("o" * 255, 2**63 - 1)
    return [
        case("right", "verified", note(text, right)),
        case("extension-lines-are-not-signed", "verified", note(checkpoint(extension="more\n"), right)),
        case("longest-names-and-numbers", "verified",
             note(long_text, KEY.sign(message(**most)), LONG, 2**63 - 1), LONG),
        wrong("another-time", message(time=TIME - 1)),
        wrong("another-name", message(name="witness.example/v")),
        wrong("another-origin", message(origin="example.com/fog")),
        wrong("another-size", message(size=8)),
        wrong("another-root", message(root=hashlib.sha256(b"another").digest())),
        wrong("subtree-that-begins-later", message(start=8)),
        wrong("message-of-ed25519", f"cosignature/v1\ntime {TIME}\n{text}".encode()),
        wrong("no-time", message(time=0), time=0),
        wrong("time-out-of-range", message(time=2**63), time=2**63),
        case("with-a-context", "refused", note(text, KEY.sign(message(), b"c2sp"))),
        case("key-of-another", "refused", note(text, OTHER.sign(message()))),
        case("first-bit-flipped", "refused", note(text, flipped(0))),
        case("last-bit-flipped", "refused", note(text, flipped(-1))),
        case("truncated", "refused", note(text, right[:-1])),
        case("overlong", "refused", note(text, right + b"\0")),
        case("only-a-time", "refused", note(text, b"")),
        case("no-checkpoint", "refused", note("no checkpoint\n", right)),
        case("id-of-an-ed25519-key", "ignored", note(text, right, kind=4)),
        case("id-of-another-key", "ignored", note(text, OTHER.sign(message()), signer=OTHER)),
    ]


def verify(case):
    name, _, encoded = case["key"].split("+", 2)
    text, line = case["note"].rsplit("\n\n", 1)
    origin, size, root = text.split("\n")[:3]
    signed = base64.b64decode(line.split(" ")[2])
    time = int.from_bytes(signed[4:12], "big")
    made = message(name, time, origin, 0, int(size), base64.b64decode(root))
    MLDSA44PublicKey.from_public_bytes(base64.b64decode(encoded)[1:]).verify(signed[12:], made)


def main(path):
    try:
        kept = [case for case in json.load(open(path))["cases"] if case["name"] == OURS]
    except FileNotFoundError:
        kept = []
    made = cases() + kept
    for case in made:
        try:
            verify(case)
            is_right = True
        except (InvalidSignature, ValueError, IndexError):
            is_right = False
        has_a_right_signature = case["expect"] == "verified" or case["name"] in RIGHT_BUT_REFUSED
        if case["expect"] != "ignored" and has_a_right_signature != is_right:
            sys.exit(f"{case['name']} is {is_right}")
    words = "Cosignatures of type 06 (c2sp.org/tlog-cosignature): a key, a note, and whether the key has signed it. "
    words += "Python's cryptography made them with tests/oracle/ml_dsa.py; Countersign made the last one from the seed of 60 to 7f."
    with open(path, "w") as file:
        json.dump({"description": words, "cases": made}, file, indent=2, ensure_ascii=False)
        file.write("\n")
    print(f"{len(made)} cases")


main(sys.argv[1])
