"""The streams and tables that every query test uses."""

from __future__ import annotations

import pytest

from anabranch.query.relation import Relation


@pytest.fixture(scope="session")
def streams() -> dict[str, Relation]:
    return {
        "calls": Relation.source("calls", ["phone", "ts", "duration", "city", "tags"], "ts"),
        "suspects": Relation.source("suspects", ["phone", "ts", "level"], "ts"),
        "alarms": Relation.source("alarms", ["phone", "at", "kind"], "at"),
        "untimed": Relation.source("untimed", ["phone", "note"]),
    }


@pytest.fixture(scope="session")
def statics() -> dict[str, list[str]]:
    return {"cities": ["city", "country"], "tariffs": ["country", "price"]}
