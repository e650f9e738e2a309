"""JTL files as others have them."""

import pandas as pd
import pytest
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.jmeter import jtl

HEADER = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,bytes,grpThreads,allThreads,Latency"
ROWS = [
    "1790000001000,120,Home,200,OK,Users 1-1,true,512,2,2,100",
    '1790000000500,40,"Search, all",500,"no, sorry",Users 1-2,false,99,2,2,30',
]


def write(folder, *lines, name="run.jtl"):
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def test_columns_by_name_rows_by_completion(tmp_path):
    frame = jtl(write(tmp_path, HEADER, *ROWS))
    assert frame["interaction"].tolist() == ["Search, all", "Home"]
    assert frame["t_s"].tolist() == pytest.approx([1790000000.54, 1790000001.12])
    assert frame["ok"].tolist() == [False, True]
    assert frame["threads"].tolist() == [2, 2]
    assert not frame["transaction"].any()


def test_any_order_any_delimiter_and_only_what_is_needed(tmp_path):
    path = write(tmp_path, "success;label;elapsed;timeStamp", "TRUE;Home;120;1790000001000")
    frame = jtl(path)
    assert frame["response_time_ms"].tolist() == [120]
    assert frame["threads"].isna().all()
    assert frame["bytes"].isna().all()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_quoted_names_of_columns(tmp_path, delimiter):
    rows = [["timeStamp", "elapsed", "label", "success"], ["1790000001000", "120", "Home", "true"]]
    plain = write(tmp_path, *(delimiter.join(row) for row in rows), name="plain.jtl")
    quoted = write(tmp_path, *(delimiter.join(f'"{field}"' for field in row) for row in rows))
    pd.testing.assert_frame_equal(jtl(quoted), jtl(plain))


def test_a_time_stamp_of_the_end(tmp_path):
    path = write(tmp_path, HEADER, ROWS[0])
    assert jtl(path, stamp="end")["t_s"].tolist() == pytest.approx([1790000001.0])
    assert jtl(path, stamp="end")["start_s"].tolist() == pytest.approx([1790000000.88])


def test_a_transaction_within_another_one_is_no_interaction(tmp_path):
    """One user pays within the order, another one after it; a third one's order is all payment."""
    summed = '"Number of samples in transaction : 2, number of failing samples : 0"'
    lines = [
        f"{start},{elapsed},{label},200,{summed},user {user},true"
        for start, elapsed, label, user in [
            (1790000000100, 300, "Pay", 1),
            (1790000000000, 500, "Order", 1),
            (1790000000000, 500, "Order", 2),
            (1790000000500, 300, "Pay", 2),
            (1790000000000, 400, "Pay", 3),
            (1790000000000, 400, "Order", 3),
        ]
    ]
    file = tmp_path / "nested.jtl"
    header = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success"
    file.write_text("\n".join([header, *lines]) + "\n")
    kept = jtl(file).query("transaction")
    assert sorted(kept["interaction"]) == ["Order", "Order", "Order", "Pay"]
    assert kept.loc[kept["interaction"] == "Pay", "response_time_ms"].tolist() == [300.0]
    file.write_text(file.read_text().replace("threadName", "something"))
    assert jtl(file)["transaction"].all(), "without names of threads nobody knows"


def test_transactions_are_marked(tmp_path):
    sum_up = '1790000000000,900,Buy,200,"Number of samples in transaction : 2, number of failing samples : 0"'
    frame = jtl(write(tmp_path, HEADER, f"{sum_up},Users 1-1,true,9,2,2,0", *ROWS))
    assert frame.set_index("interaction")["transaction"].to_dict() == {"Search, all": False, "Buy": True, "Home": False}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['<?xml version="1.0" encoding="UTF-8"?>', '<testResults version="1.2">'], "XML; expected a CSV JTL"),
        (ROWS, ":1: no header with the names of the columns"),
        (["elapsed,label,success", "1,a,true"], ":1: column 'timeStamp' is missing"),
        (["timeStamp,label,success", "1,a,true"], ":1: column 'elapsed' is missing"),
        ([HEADER, ROWS[0], ROWS[0].replace(",true,", ",maybe,")], ":3: success is maybe, expected true or false"),
        ([HEADER, ROWS[0].replace(",120,", ",-5,")], ":2: elapsed is -5"),
        ([HEADER, ROWS[0].replace("1790000001000", "2026/11/21 18:13:00")], ":2: timeStamp is '2026/11/21 18:13:00'"),
        ([HEADER, ROWS[0] + ",more"], ":2: 12 fields, the header has 11"),
        ([], "empty|missing"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path, lines, message):
    with pytest.raises(DataError, match=message):
        jtl(write(tmp_path, *lines))
