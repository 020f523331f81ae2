"""Are tables and files of all kinds read alike, and wrong ones refused in one line?"""

import gzip
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sb3_fair.audit import audit, audit_file

LIGHT = {"n_boot": 20, "n_permutations": 20}
ASKED = {
    "action": "hired",
    "group": ["gender", "land"],
    "feedback": "right",
    "features": ["age"],
    "nominal": ["land"],
    "score": "chance",
    "time": "day",
    "window": 50,
    "limits": {"SP": -0.1},
    "reservoir": 50,
    **LIGHT,
}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 300
    return pd.DataFrame(
        {
            "day": pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.permutation(n), "D"),
            "hired": rng.choice(["yes", "no"], n),
            "gender": rng.choice(["Männer", "Frauen"], n),
            "land": rng.choice(["NA", "BE"], n),
            "right": rng.choice([1.0, 0.0, np.nan], n),
            "age": rng.integers(18, 65, n),
            "chance": rng.random(n).round(3),
        }
    )


@pytest.fixture(scope="module")
def expected(frame):
    return audit(frame, **ASKED).to_dict()


def as_dict(frame):
    return {name: frame[name].to_numpy() for name in frame}


@pytest.mark.parametrize(
    "convert", [as_dict, pl.from_pandas, pa.Table.from_pandas, lambda f: f.astype({"land": "category"})]
)
def test_tables_of_all_kinds_are_read_alike(frame, expected, convert):
    assert audit(convert(frame), **ASKED).to_dict() == expected


def csv(encoding="utf-8", **options):
    return lambda frame, path: path.write_bytes(frame.to_csv(index=False, **options).encode(encoding))


def zipped(frame, path):
    path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))


@pytest.mark.parametrize(
    ("name", "write", "said"),
    [
        ("a.csv", csv(), None),
        ("a.csv", csv("utf-8-sig"), None),
        ("a.csv", csv(sep=";"), None),
        ("a.csv", csv("utf-16"), None),
        ("a.csv", csv("cp1252"), "a.csv is not UTF-8; it was read as cp1252."),
        ("a.csv", csv(sep=";", decimal=","), None),
        ("a.tsv", csv(sep="\t"), None),
        ("a.txt", csv(sep="|", lineterminator="\r\n"), None),
        ("a.csv", csv(quoting=1), None),
        ("a.csv.gz", zipped, None),
        ("a.parquet", lambda frame, path: frame.to_parquet(path), None),
        ("a.jsonl", lambda frame, path: frame.to_json(path, orient="records", lines=True, date_format="iso"), None),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 12 else "",
)
def test_files_of_all_kinds_are_read_alike(frame, expected, tmp_path, name, write, said):
    write(frame, tmp_path / name)
    found = audit_file(tmp_path / name, **ASKED).to_dict()
    if said is not None:
        found["warnings"].remove(said)
    assert found == expected


def test_chunks_do_not_matter(frame, expected, tmp_path, monkeypatch):
    from sb3_fair.audit import chunks

    monkeypatch.setattr(chunks, "BLOCK", 1000)
    monkeypatch.setattr(chunks, "CHUNK", 7)
    for name, write in (
        ("a.csv", csv()),
        ("a.jsonl", lambda f, p: f.to_json(p, orient="records", lines=True, date_format="iso")),
    ):
        write(frame, tmp_path / name)
        assert audit_file(tmp_path / name, **ASKED).to_dict() == expected
    assert audit(frame, **ASKED).to_dict() == expected


GOOD = "hired,gender,age,right,p,day\nyes,m,30,1,.5,2025-01-01\nno,f,40,0,.5,2025-01-02\nyes,f,50,1,.5,2025-01-03\n"


@pytest.mark.parametrize(
    ("text", "asked", "message"),
    [
        (GOOD, {"action": "hird"}, "no column 'hird' (did you mean 'hired'?)"),
        (GOOD, {"group": "sex"}, "no column 'sex'"),
        (GOOD, {"group": []}, "group must name at least one column"),
        (GOOD, {"group": ["gender", "gender"]}, "must not repeat"),
        (GOOD, {"group": "hired"}, "group must not be the column of the action"),
        (GOOD.replace(",f,", ",m,"), {}, "group must have at least two different values to compare, but 'gender'"),
        (GOOD, {"features": "gender"}, "'gender' must hold finite numbers, got 'm' in rows 1, 2, 3"),
        (GOOD.replace("40", "4o"), {"features": "age"}, "'age' must hold finite numbers, got '4o' in row 2"),
        (GOOD.replace("40", "inf"), {"features": "age"}, "'age' must hold finite numbers, got inf in row 2"),
        (GOOD.replace(".5", "1.5"), {"features": "age", "score": "p"}, "in [0, 1], but 'p' is 1.5 in rows 1, 2, 3"),
        (GOOD, {"score": "p"}, "features must be given with score"),
        (GOOD, {"favourable": 1}, "favourable must be one or more of the values of 'hired', 'yes', 'no', got '1'"),
        (GOOD, {"favourable": "ye"}, "got 'ye' (did you mean 'yes'?)"),
        (GOOD, {"action": "age", "group": "gender"}, "favourable must say which values of 'age'"),
        (GOOD.replace("2025-01-02", "2.1.25"), {"time": "day"}, "dates such as 2026-01-31, got '2.1.25' in row 2"),
        (GOOD.replace("2025-01-02", "7"), {"time": "day"}, "numbers or dates, not both, got numbers in row 2"),
        (GOOD.replace("-01-01", "").replace("2025-01-02", "x"), {"time": "day"}, "2026-01-31, got 'x' in row 2"),
        (GOOD, {"feedback": "age"}, "deserving must say which values of"),
        (
            "denied,gender,qualified\n0,m,1\n1,f,0\n",
            {"action": "denied", "favourable": "0", "feedback": "qualified"},
            "deserving must say which values of 'qualified' are meant, some of '1', '0': as '0' is favourable",
        ),
        (GOOD, {"notions": ["EO"]}, "notion 'EO' needs feedback"),
        (GOOD, {"notions": ["IF"]}, "notion 'IF' needs features"),
        (GOOD, {"notions": ["SPP"]}, "got 'SPP' (did you mean 'SP'?)"),
        (GOOD, {"limits": {"EO": -0.1}}, "limits must be about notions of the audit"),
        (GOOD, {"limits": {"SP": 0.1}}, "limit of SP must be in [-1, 0]"),
        (GOOD, {"limits": {"SP@age": -0.1}}, "limits must be about 'gender', got 'SP@age'"),
        (GOOD, {"reward": "age"}, "reward must be given with stakeholder or propensity"),
        (GOOD, {"window": 0}, "window must be a positive integer"),
        (GOOD, {"delimiter": ",,"}, "delimiter must be one character"),
        (GOOD, {"encoding": "utf-9"}, "unknown encoding"),
        (GOOD + "yes,f\n", {}, "cannot be read"),
        ("", {}, "is empty"),
        ("\n\n", {}, "is empty"),
        ("hired,gender\n", {}, "at least one row"),
        ("hired,gender,hired\n1,f,0\n", {}, "must have one column 'hired', got 2"),
        ("hired,gender\n,f\n,m\n", {}, "action must be known for some rows"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, text, asked, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises((ValueError, TypeError)) as error:
        audit_file(tmp_path / "a.csv", **{"action": "hired", "group": "gender", **LIGHT, **asked})
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xlsx", b"PK", "must end in one of"),
        ("a.parquet", b"no parquet", "cannot be read"),
        ("a.jsonl", b'[{"hired": 1}]', "one JSON object per line"),
        ("a.jsonl", b'{"hired": 1, "gender": "f"}\n{"hired": ', "cannot be read from line"),
        ("a.jsonl", b'{"hired": 1, "gender": "f"}\n{"hired": 0, "gender": 2}\n', "cannot be read from line"),
        ("a.jsonl", b'{"hired": 1, "gender": "f", "gender": "m"}\n', "specified twice"),
        ("a.jsonl", b'{"hired": 1, "gender": "f"}\n5\n', "changed from object to number"),
        ("a.csv.gz", gzip.compress(b"hired,gender\n1,f\n0,m\n", mtime=0)[:-20], "a.csv.gz cannot be read: Truncated"),
        ("a.jsonl.gz", b"no gzip", "a.jsonl.gz cannot be read"),
        ("a.json", b'{\n"hired": [1, 0],\n"gender": ["f", "m"]\n}', "'gender' must hold single values, got list"),
    ],
)
def test_damaged_files_are_refused_in_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        audit_file(tmp_path / name, action="hired", group="gender")


@pytest.mark.parametrize("table", [3, "decisions.csv", [1, 2], None])
def test_what_is_no_table_is_refused(table):
    with pytest.raises(TypeError, match="table must be a DataFrame of pandas or polars"):
        audit(table, action="hired", group="gender")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"hired": [1, 0], "gender": ["f"]}, "all columns must have the same length"),
        ({"hired": [[1, 0], [0, 1]], "gender": ["f", "m"]}, "'hired' must hold single values"),
        ({"hired": [1, 0], "gender": pa.array([[1], [2]])}, r"'gender' must hold single values, got list<item: int64>"),
        ({"hired": pa.array([{"a": 1}] * 2), "gender": ["f", "m"]}, "'hired' must hold single values, got struct"),
        ({"hired": np.eye(2), "gender": ["f", "m"]}, r"'hired' must have shape \(rows,\)"),
        ({"hired": [], "gender": []}, "at least one row"),
        (pd.DataFrame([[1, "f", 0], [0, "m", 1]], columns=["hired", "gender", "hired"]), "(?i)unique|one column"),
        (pd.DataFrame({0: [1, 0], 1: ["f", "m"]}), "no column 'gender': it has '0', '1'"),
    ],
)
def test_tables_that_do_not_fit_are_refused(table, message):
    with pytest.raises(ValueError, match=message) as error:
        audit(table, action="hired", group="gender", **LIGHT)
    assert "\n" not in str(error.value)


def test_nullable_types_of_pandas_and_times_with_zones_are_read():
    days = pd.date_range("2025-01-01", periods=4, tz="Europe/Brussels")
    table = pd.DataFrame(
        {
            "hired": pd.array([True, False, None, True], dtype="boolean"),
            "gender": pd.Categorical(["f", "m", "m", None]),
            "right": pd.array([1, 0, 1, None], dtype="Int64"),
            "day": days,
        }
    )
    found = audit(table, action="hired", group="gender", feedback="right", time="day", window=1, **LIGHT)
    assert {group.group: group.n for group in found.groups} == {"f": 1, "m": 1}
    assert found.series[0].times[0] == "2024-12-31 23:00:00"


def test_no_row_is_dropped_silently():
    table = {
        "hired": ["yes", "no", None, "yes", "no", "yes"],
        "gender": ["m", "f", "m", "", "f", "m"],
        "age": [30, None, 31, 32, 40, 50],
        "day": [1, 2, 3, 4, 5, float("nan")],
    }
    found = audit(table, action="hired", group="gender", features="age", time="day", window=2, **LIGHT)
    assert "1 row without 'hired' is not counted as decisions (row 3)." in found.warnings
    assert "1 row without 'gender' is in none of its groups (row 4)." in found.warnings
    assert "1 row without 'age' is left out of individual notions (row 2)." in found.warnings
    assert "1 row without 'day' is left out of the course over time (row 6)." in found.warnings
    assert found.about["decisions"] == 5
    assert [group.n for group in found.groups] == [2, 2]


@pytest.mark.parametrize("values", [[True, False], [2, 1], [2.5, 1.0]])
def test_labels_are_in_the_order_they_are_met_in_whatever_their_type(tmp_path, values):
    frame = pd.DataFrame({"hired": np.tile([1, 0, 0], 4), "group": np.repeat(values, 6)})
    frame.to_csv(tmp_path / "log.csv", index=False)
    asked = {"action": "hired", "group": "group", **LIGHT}
    first, *_ = expected = [group.group for group in audit_file(tmp_path / "log.csv", **asked).groups]
    assert first == frame.group.astype(str)[0].lower()
    for table in (frame, as_dict(frame), pl.from_pandas(frame), frame.astype({"group": object})):
        assert [group.group for group in audit(table, **asked).groups] == expected


def test_labels_are_the_same_whatever_their_type():
    kinds = [[1, 0, 1, 0], [1.0, 0.0, 1.0, 0.0], ["1.0", "0.0", "1", "0 "], [True, False, True, False]]
    kinds += [["True", "False", "true", "FALSE"], ["True", "false", True, False]]
    values = [
        audit({"a": kind, "g": ["m", "m", "f ", "f"]}, action="a", group="g", favourable=kind[0], **LIGHT).value("SP")
        for kind in kinds
    ]
    assert values == [0] * len(kinds)
    (said,) = (
        w for w in audit({"a": [1, 0], "g": ["M", "m"]}, action="a", group="g", **LIGHT).warnings if "taken" in w
    )
    assert said == "'g' has 'M' and 'm', which are taken for two different values."


@pytest.mark.parametrize(
    ("actions", "feedback", "asked", "deserving"),
    [
        ([1, 0], [1, 0], {}, "1"),
        (["deny", "grant"], ["deny", "grant"], {"favourable": "grant"}, "grant"),
        (["deny", "grant"], [1, 0], {"favourable": "grant"}, "1"),
        ([2, 0], [2, 0], {"favourable": 0}, "0"),
        ([1, 0], [1, 0], {"favourable": 0, "deserving": 0}, "0"),
        ([1, 0], [1, 0], {"favourable": 0, "deserving": 1}, "1"),
    ],
)
def test_feedback_is_read_as_decisions_or_as_deserving_says(actions, feedback, asked, deserving):
    table = {"action": actions, "gender": ["m", "f"], "right": feedback}
    found = audit(table, action="action", group="gender", feedback="right", **asked, **LIGHT)
    assert found.about["deserving"] == [deserving]


def test_a_mark_at_the_beginning_is_no_part_of_a_name(frame, expected, tmp_path):
    csv("utf-8-sig")(frame, tmp_path / "a.csv")
    for encoding in ("utf-8", "UTF8", "utf-8-sig"):
        assert audit_file(tmp_path / "a.csv", encoding=encoding, **ASKED).to_dict() == expected


def test_whole_numbers_have_no_point_whatever_the_decimal_sign(tmp_path):
    for one, nothing in (("1", "0"), ("1.0", "0.0"), ("1,0", "0,0")):
        (tmp_path / "a.csv").write_text(f"hired;gender;day\n{one};m;0,5\n{nothing};f;1\n;f;2.5\n")
        found = audit_file(tmp_path / "a.csv", action="hired", group="gender", time="day", window=1, **LIGHT)
        assert found.about["favourable"] == ["1"] and found.value("SP") == -1
        assert found.series[0].times == ["0.5", "1"]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("known", [slice(0, 20), slice(40, 60), slice(20, 40)])
def test_times_may_be_missing_in_whole_chunks(tmp_path, monkeypatch, name, known):
    from sb3_fair.audit import chunks

    days = pd.Series([""] * 60)
    days[known] = [f"2025-01-{1 + i % 28:02d}" for i in range(20)]
    table = pd.DataFrame({"hired": [1, 0, 0] * 20, "gender": ["f", "m"] * 30, "day": days})
    write = {"a.csv": csv(), "a.jsonl": lambda f, p: f.to_json(p, orient="records", lines=True)}[name]
    write(table, tmp_path / name)
    asked = {"action": "hired", "group": "gender", "time": "day", "window": 5, **LIGHT}
    whole = audit(table, **asked)
    assert whole.series[0].times[-1] == "2025-01-20"
    monkeypatch.setattr(chunks, "BLOCK", 100)
    assert audit_file(tmp_path / name, **asked).to_dict() == whole.to_dict()
    table["day"] = (
        ["7" if row < 20 else day for row, day in enumerate(days)] if known.start else ["2025-01-01"] * 59 + [8]
    )
    write(table, tmp_path / name)
    with pytest.raises(ValueError, match=r"'day' must hold numbers or dates, not both, got numbers in row"):
        audit_file(tmp_path / name, **asked)


def test_a_column_of_json_that_nobody_asked_for_may_hold_anything(tmp_path):
    rows = [{"hired": i % 2, "gender": "fm"[i // 9 % 2], "other": [3, "3", {"a": [1]}, None][i % 4]} for i in range(40)]
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines[:20], "", *lines[20:]]))
    found = audit_file(tmp_path / "a.jsonl", action="hired", group="gender", **LIGHT)
    plain = [{name: row[name] for name in ("hired", "gender")} for row in rows]
    assert found.to_dict() == audit(pa.Table.from_pylist(plain), action="hired", group="gender", **LIGHT).to_dict()
    with pytest.raises(ValueError, match="has no column 'sex': it has 'hired', 'gender', 'other'"):
        audit_file(tmp_path / "a.jsonl", action="hired", group="sex")
    with pytest.raises(ValueError, match=r"cannot be read from line 1 on: .*\(/other\) changed from number to string"):
        audit_file(tmp_path / "a.jsonl", action="hired", group="other")


def test_a_mixed_column_of_json_is_read_where_its_lines_are_far_apart(tmp_path, monkeypatch):
    from sb3_fair.audit import chunks

    monkeypatch.setattr(chunks, "BLOCK", 64)
    rows = [{"hired": i % 2, "gender": "f" if i < 9 else 2} for i in range(20)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = audit_file(tmp_path / "a.jsonl", action="hired", group="gender", **LIGHT)
    assert {group.group: group.n for group in found.groups} == {"f": 9, "2": 11}


def test_numbers_among_words_are_counted():
    found = audit({"a": [1, 0] * 30, "g": ["m", 1, "f", 2, 2, "f"] * 10}, action="a", group="g", **LIGHT)
    assert "'g' mixes numbers and words: 30 rows have a number, such as 1." in found.warnings
    plain = audit({"a": [1, 0] * 30, "g": [3, "4.0", 3] * 20}, action="a", group="g", **LIGHT)
    assert not any("mixes" in text for text in plain.warnings)


@pytest.mark.parametrize("block", [64, 2**20])
def test_texts_of_json_that_look_like_times_stay_texts(tmp_path, monkeypatch, block):
    from sb3_fair.audit import chunks

    monkeypatch.setattr(chunks, "BLOCK", block)
    cohorts = ["2025-01-01", "2026-01-01"] * 9 + ["unknown"]
    rows = [{"hired": i % 2, "cohort": cohort} for i, cohort in enumerate(cohorts)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows[: -1 if block > 64 else None])))
    found = {group.group: group.n for group in audit_file(tmp_path / "a.jsonl", action="hired", group="cohort").groups}
    assert found == {"2025-01-01": 9, "2026-01-01": 9} | ({"unknown": 1} if block == 64 else {})


def test_keys_of_json_may_come_late(tmp_path, monkeypatch):
    from sb3_fair.audit import chunks

    monkeypatch.setattr(chunks, "BLOCK", 64)
    rows = [{"hired": i % 2, "gender": "fm"[i // 2 % 2], **({"right": 1} if i > 20 else {})} for i in range(40)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = {"action": "hired", "group": "gender", **LIGHT}
    found = audit_file(tmp_path / "a.jsonl", feedback="right", **asked)
    assert sum(group.deserving.people for group in found.groups) == 19
    with pytest.raises(ValueError, match=r"a.jsonl has no column 'righ' .*: it has 'hired', 'gender', 'right'"):
        audit_file(tmp_path / "a.jsonl", features="righ", **asked)


def test_labels_of_arrow_may_be_as_many_as_their_small_indices_allow():
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(range(128), pa.int8()), pa.array([f"{name}{i}" for i in range(128)]))
        for name in "ab"
    ]
    for values, count in ((chunks[0], 128), (pa.chunked_array(chunks), 256)):
        assert len(audit({"a": [1, 0] * (count // 2), "g": values}, action="a", group="g", **LIGHT).groups) == count


@pytest.mark.parametrize("convert", [list, pa.array])
@pytest.mark.parametrize(
    ("moments", "shown"),
    [
        (["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-05:00"], "10000-01-01 04:59:59"),
        (["2025-01-01T00:00:00Z", "2026-01-01 02:00:00+01:00"], "2026-01-01 01:00:00"),
        ([1767360000123, 1767360000456], "1767360000456"),
        ([0.5, 1.25], "1.25"),
        ([2**60, 2**60 + 2**30], "1152921505680588800"),
        ([np.datetime64(1, "ns"), np.datetime64(10**9 + 1, "ns")], "1970-01-01 00:00:01"),
    ],
)
def test_times_may_be_far_away_or_finer_than_shown(convert, moments, shown):
    table = {"a": [1, 0], "g": ["f", "m"], "t": convert(moments)}
    assert audit(table, action="a", group="g", time="t", window=1, **LIGHT).series[0].times[-1] == shown


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_times_that_nothing_can_show_are_refused(unit):
    table = {"a": [1, 0], "g": ["f", "m"], "t": pa.array([0, 2**62 if unit == "ms" else 2**44], pa.timestamp(unit))}
    with pytest.raises(ValueError, match=r"'t' must hold numbers or dates .* out of range: .* in row 2"):
        audit(table, action="a", group="g", time="t", **LIGHT)
