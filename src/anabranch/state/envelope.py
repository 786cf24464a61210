"""The form of the checkpoint's JSON files: what it is, its format version, a checksum, and a body.

The checksum is over the canonical text of the body (sorted keys, no spaces, ASCII), so that a file which a person has
reindented is still good, and one where a value was altered is not. The version is read before the checksum is
verified: a later version may compute it in another way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from anabranch.errors import CheckpointDamaged, UnknownFormat


def seal(kind: str, version: int, body: Mapping[str, Any]) -> bytes:
    text = _canonical(body)
    head = f'{{"kind":{json.dumps(kind)},"format":{version},"checksum":"{_checksum(text)}","body":'
    return f"{head}{text}}}\n".encode()


def unseal(kind: str, version: int, raw: bytes, *, where: str, fix: str) -> dict[str, Any]:
    """The body; CheckpointDamaged or UnknownFormat, which say `where` it is and what to do."""
    try:
        sealed = json.loads(raw)
        found, checksum = sealed["format"], sealed["checksum"]
        body: dict[str, Any] = sealed["body"]
        known = sealed["kind"] == kind and type(found) is int and isinstance(body, dict)
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointDamaged(f"the {kind} cannot be read: {error!r}", where=where, fix=fix) from error
    if not known:
        raise CheckpointDamaged(f"the file is not a {kind}", where=where, fix=fix)
    if found != version:
        raise UnknownFormat(
            f"the {kind} has format {found}, and this version of Anabranch knows {version}",
            where=where,
            fix="open the checkpoint with the version of Anabranch that wrote it",
        )
    if checksum != _checksum(_canonical(body)):
        raise CheckpointDamaged(f"the {kind} was altered: its checksum does not match", where=where, fix=fix)
    return body


def _canonical(body: Mapping[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _checksum(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
