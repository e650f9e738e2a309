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
    assert frame["t_s"].tolist() == pytest.approx([1790000000.54, 1790000001.12], abs=1e-6)
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
    assert jtl(path, stamp="end")["t_s"].tolist() == pytest.approx([1790000001.0], abs=1e-6)
    assert jtl(path, stamp="end")["start_s"].tolist() == pytest.approx([1790000000.88], abs=1e-6)


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


FULL = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,"
    "grpThreads,allThreads,URL,Latency,IdleTime,Connect"
)
"""What JMeter 5 writes by default."""


def sample(start: int, elapsed: int, label: str, thread: str = "Users 1-1", message: str = "OK", idle: int = 0) -> str:
    begin = 1790000000000 + start
    return f"{begin},{elapsed},{label},200,{message},{thread},text,true,,9,9,2,2,http://shop/,5,{idle},1"


def test_redirects_and_embedded_files_are_parts_of_their_sample(tmp_path):
    """JMeter writes sub-results beside their sample unless jmeter.save.saveservice.subresults is false."""
    lines = []
    for page in range(20):
        lines += [
            sample(1000 * page, 100, "Home"),
            sample(1000 * page, 40, "Home-0"),
            sample(1000 * page + 40, 60, "Home-1"),
            sample(1000 * page + 40, 60, "Home-1-0"),
            sample(1000 * page + 100, 0, "Home-2"),  # from a cache
            sample(1000 * page + 101, 200, "Story"),
            sample(1000 * page + 101, 200, "Story-0"),  # all of it
        ]
    frame = jtl(write(tmp_path, FULL, *lines))
    assert frame.loc[~frame["part"], "interaction"].value_counts().to_dict() == {"Home": 20, "Story": 20}


def without_threads(lines):
    at = FULL.split(",").index("threadName")
    return [",".join(field for i, field in enumerate(line.split(",")) if i != at) for line in [FULL, *lines]]


@pytest.mark.parametrize("stamp", ["start", "end"])
def test_parts_show_by_their_names_where_threads_have_none(tmp_path, stamp):
    """Two users at once, who are not told apart."""
    lines = []
    for page in range(20):
        for begin in (1000 * page, 1000 * page + 30):
            late = 1 if stamp == "end" else 0
            lines += [
                sample(begin + 100 * late, 100, "Home"),
                sample(begin + 40 * late, 40, "Home-0"),
                sample(begin + 40 + 60 * late, 60, "Home-1"),
                sample(begin + 40 + 60 * late, 60, "Home-1-0"),
                sample(begin + 100, 0, "Home-2"),
                sample(begin + 101 + 200 * late, 200, "Story"),
            ]
    frame = jtl(write(tmp_path, *without_threads(lines)), stamp=stamp)
    assert frame.loc[~frame["part"], "interaction"].value_counts().to_dict() == {"Home": 40, "Story": 40}
    assert not frame.attrs["threads_told"]


def test_samples_that_merely_have_numbers_are_interactions(tmp_path):
    """Where threads have no names: steps of a script, all begun while other users wait for the first one."""
    lines = []
    for page in range(20):
        lines += [
            sample(100 * page, 500, "Buy"),
            sample(100 * page + 7, 20, "Buy-0"),
            sample(100 * page + 27, 5, "Buy-1"),
        ]
    assert not jtl(write(tmp_path, *without_threads(lines)))["part"].any()
    assert not jtl(write(tmp_path, *without_threads(sample(100 * n, 50, f"Item-{n % 9}") for n in range(20))))[
        "part"
    ].any()


@pytest.mark.parametrize("pause", [0, 300])
def test_a_controller_without_its_message_contains_its_samples(tmp_path, pause):
    """jmeter.save.saveservice.response_message=false; a timer between the samples is in the controller's IdleTime."""
    lines = []
    for order in range(20):
        begin = 5000 * order
        lines += [
            sample(begin, 100, "Cart", message=""),
            sample(begin + 100 + pause, 200, "Pay", message=""),
            sample(begin, 300, "Order", message="", idle=pause),
        ]
    frame = jtl(write(tmp_path, FULL, *lines))
    assert frame.loc[~frame["part"], "interaction"].unique().tolist() == ["Order"]
    assert frame.loc[~frame["part"], "response_time_ms"].tolist() == [300.0] * 20


@pytest.mark.parametrize("stamp", ["start", "end"])
def test_a_transaction_ends_after_its_pauses(tmp_path, stamp):
    message = '"Number of samples in transaction : 2, number of failing samples : 0"'
    frame = jtl(
        write(tmp_path, FULL, sample(1000 * (stamp == "end"), 300, "Order", message=message, idle=700)), stamp=stamp
    )
    assert frame["start_s"].tolist() == pytest.approx([1790000000.0], abs=1e-6)
    assert frame["t_s"].tolist() == pytest.approx([1790000001.0], abs=1e-6)
    assert frame["response_time_ms"].tolist() == [300.0]


def test_samples_of_several_threads_of_one_name_are_all_interactions(tmp_path):
    """Files of two JMeters put together, without Hostname: some samples lie within others by chance."""
    lines = [sample(300 * n, 400, "Home") for n in range(20)] + [sample(300 * n + 10, 20, "Story") for n in range(20)]
    frame = jtl(write(tmp_path, FULL, *lines))
    assert not frame["part"].any()
    assert not frame.attrs["threads_told"]
    parts = [sample(300 * n, 100, f"Home-{part}") for n in range(20) for part in range(2)]
    frame = jtl(write(tmp_path, FULL, *lines, *parts))  # told by their numbers
    assert frame.loc[~frame["part"], "interaction"].value_counts().to_dict() == {"Home": 20, "Story": 20}


def test_transactions_of_several_threads_of_one_name_are_all_interactions(tmp_path):
    """Of two JMeters: one is within the other's by chance."""
    summed = '"Number of samples in transaction : 2, number of failing samples : 0"'
    lines = [sample(300 * n, 400, "Order", message=summed) for n in range(20)]
    lines += [sample(300 * n + 110, 20, "Pay", message=summed) for n in range(20)]
    assert jtl(write(tmp_path, FULL, *lines))["transaction"].all()


def test_numbered_samples_of_which_more_begin_than_there_are_outer_ones_are_interactions(tmp_path):
    """Stamps of whole seconds: all that begins in a second begins with all others."""
    lines = [sample(1000 * second, 1000, label) for second in range(20) for label in ("Buy", "Buy-0", "Buy-0")]
    assert not jtl(write(tmp_path, *without_threads(lines)))["part"].any()


def test_threads_that_overlap_by_a_millisecond_now_and_then_are_told_apart(tmp_path):
    lines = [sample(300 * n, 300 + (n == 7), "Home") for n in range(60)]
    frame = jtl(write(tmp_path, FULL, *lines))
    assert frame.attrs["threads_told"]
    assert not frame["part"].any()


def test_hosts_have_threads_of_their_own(tmp_path):
    lines = [sample(300 * n, 200, "Home") + ",a" for n in range(20)]
    lines += [sample(300 * n + 10, 20, "Story") + ",b" for n in range(20)]
    assert not jtl(write(tmp_path, FULL + ",Hostname", *lines))["part"].any()


def test_a_sample_that_takes_no_time_is_not_part_of_the_next(tmp_path):
    lines = []
    for n in range(20):
        lines += [sample(1000 * n, 0, "Script"), sample(1000 * n, 100, "Home"), sample(1000 * n + 100, 0, "Log")]
    assert not jtl(write(tmp_path, FULL, *lines))["part"].any()


def test_a_line_that_is_there_twice_is_no_part_of_itself(tmp_path):
    """It would go unnoticed; so Little's law shows it."""
    lines = [sample(1000 * n, 100, "Home") for n in range(20)]
    assert not jtl(write(tmp_path, FULL, *lines, *lines))["part"].any()


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
        (
            [f"{HEADER},SampleCount", f"{ROWS[0]},1", f"{ROWS[0]},57"],
            ":3: SampleCount is 57.0, expected 1: .*StrippedBatch",
        ),
        ([], "empty|missing"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path, lines, message):
    with pytest.raises(DataError, match=message):
        jtl(write(tmp_path, *lines))
