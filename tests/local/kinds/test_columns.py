"""Properties of tables that hold for every kind."""

from __future__ import annotations

from kruise.local.kinds import NATIVE_KINDS


def test_every_kind_has_a_name_column() -> None:
    for kind in NATIVE_KINDS:
        columns = kind.table_columns
        assert [column.format for column in columns].count("name") == 1, kind.plural
        assert len({column.name for column in columns}) == len(columns), kind.plural
