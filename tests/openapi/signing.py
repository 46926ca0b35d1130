"""Signs what Schemathesis sends, so that it comes beyond 401, and sends some of it to where something is.

Read by Schemathesis (SCHEMATHESIS_HOOKS). `run` says in the environment which key signs, and what there is.
"""

import base64
import datetime
import hashlib
import os
import uuid
import zlib

import requests.auth
import schemathesis
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
)
from schemathesis.core.parameters import ParameterLocation

with open(os.environ["OPENAPI_KEY"], "rb") as file:
    KEY = load_ssh_private_key(file.read(), password=None)
RAW_PUBLIC_KEY = KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
# Paths of stored files, and a URL of a signers file that the server may fetch.
PATHS = os.environ["OPENAPI_PATHS"].split()
SIGNERS_URL = os.environ["OPENAPI_SIGNERS_URL"]
CHECKSUMS_URL = os.environ["OPENAPI_CHECKSUMS_URL"]

# Ours alone, and never sent: what lacks headers on purpose must not get them.
UNSIGNED = "x-unsigned"


def encode(data):
    return base64.b64encode(data).decode().rstrip("=")


class SignedRequest(requests.auth.AuthBase):
    """The four headers, over the body as it is sent."""

    def __call__(self, request):
        if request.headers.pop(UNSIGNED, None):
            return request
        body = request.body or b""
        body = body.encode() if isinstance(body, str) else body
        now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
        timestamp, nonce = now.isoformat(), str(uuid.uuid4())
        digest = hashlib.sha512(f"{timestamp}##{nonce}##".encode() + body).digest()
        request.headers["x-svc-timestamp"] = timestamp
        request.headers["x-svc-nonce"] = nonce
        request.headers["x-svc-sig"] = encode(KEY.sign(digest))
        request.headers["x-svc-pk"] = "svc-pub:" + encode(RAW_PUBLIC_KEY)
        return request


schemathesis.auth.set_from_requests(SignedRequest())


def one_of(values, case):
    """The same one for the same case, whatever came before."""
    seed = zlib.crc32(repr((case.path, case.path_parameters, case.body)).encode())
    return values[seed % len(values)]


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is not None and case.meta.is_negative_at(ParameterLocation.HEADER):
        case.headers[UNSIGNED] = "yes"
    is_valid = case.meta is not None and case.meta.generation.mode.is_positive
    if is_valid and "path" in (case.path_parameters or {}):
        case.path_parameters["path"] = one_of([*PATHS, case.path_parameters["path"]], case)
    body = case.body
    if not isinstance(body, dict):
        return
    # The server must not fetch from anywhere but from this computer.
    if str(body.get("signers_file_url")).startswith("http"):
        body["signers_file_url"] = SIGNERS_URL
    if is_valid:
        real = {
            "public_key": base64.b64encode(RAW_PUBLIC_KEY).decode(),
            "file_path": one_of(PATHS, case),
            "csum_files": [CHECKSUMS_URL],
        }
        body.update({name: value for name, value in real.items() if name in body})
        if "signatures" in body:
            body["signatures"] = {body["file_path"]: encode(bytes(64))}
