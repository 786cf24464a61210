"""Policy: what a policy is, and the registry of those that have a name.

A policy is a pure generator over a frozen `View`. It yields proposals and gets each verdict back before it goes on:

    class Mine(Policy):
        name = "mine"

        def propose(self, view):
            verdict = yield Proposal(Move("join-1", 5, 2), "because")

It imports nothing but the view and the actions, and keeps nothing that matters: a restart begins with a new one.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from importlib import import_module
from typing import ClassVar

from anabranch.control.actions import Proposals
from anabranch.control.view import View
from anabranch.errors import SettingError


class Policy(ABC):
    name: ClassVar[str]
    reads_memory: ClassVar[bool] = False  # whether it looks at budgets, so that a driver without any can say so

    @abstractmethod
    def propose(self, view: View) -> Proposals:
        """Proposals, best first; each `yield` returns the guard's verdict."""


_known: dict[str, type[Policy]] = {}


def register(policy: type[Policy]) -> type[Policy]:
    """Make a policy known by its name. Another class of the same name is a mistake."""
    held = _known.get(policy.name)
    if held is not None and held is not policy:
        raise SettingError(f"two policies are called {policy.name}: {held.__qualname__} and {policy.__qualname__}")
    _known[policy.name] = policy
    return policy


def named(name: str) -> Policy:
    """The policy of that name, or the class at a dotted path (`package.module.Class`); several with commas between."""
    import_module("anabranch.control.policies")
    if "," in name:
        from anabranch.control.policies.several import Several

        return Several([named(part.strip()) for part in name.split(",")])
    if name in _known:
        return _known[name]()
    if not re.fullmatch(r"[A-Za-z_][\w]*(\.[A-Za-z_][\w]*)+", name):
        raise _unknown(name)
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError):
        raise _unknown(name) from None
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise SettingError(f"{name} is not a policy", where="option 'policies'",
                           fix="derive it from anabranch.control.policy.Policy")  # fmt: skip
    return found()


def _unknown(name: str) -> SettingError:
    return SettingError(
        f"there is no policy {name!r}", where="option 'policies'",
        fix=f"use one of {', '.join(sorted(_known))}, or the dotted path of a class of yours that can be imported",
    )  # fmt: skip
