"""`rookery puffin`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rookery.cli.app import run
from rookery.puffin import DELETION_VECTOR_V1, THETA_V1, Blob, Writer, open_puffin
from rookery.sketch.blob_types import HLL_V1
from tests.cli.conftest import Rookery
from tests.samples import (
    DATA_FILE,
    UNKNOWN_PAYLOAD,
    UNKNOWN_TYPE,
    hll_payload,
    write_sample,
    write_with_bad_blob,
)


class TestInspect:
    def test_table(self, rookery: Rookery, sample: Path) -> None:
        code, out, err = rookery("puffin", "inspect", sample)
        assert (code, err) == (0, "")
        lines = [" ".join(line.split()) for line in out.splitlines()]
        assert lines[0].startswith(f"{sample} ")
        assert lines[1] == "blob type field size offset codec contents"
        first = (
            f"0 {THETA_V1} 7 8.0 kB 4 zstd ndv ",
            f"1 {DELETION_VECTOR_V1} 2147483645 {_extent(sample, 1)} – cardinality 3; ",
            f"2 {UNKNOWN_TYPE} 1, 2 {_extent(sample, 2)} zstd ",
        )
        for line, start in zip(lines[2:5], first, strict=True):
            assert line.startswith(start)
        assert lines[5].startswith("footer: ")
        for part in (
            "note: a sample",
            "1,000 exactly",
            "cardinality 3",
            "4,000,000,000",
            "snapshot 11",
            "k v",
        ):
            assert part in out

    def test_nothing_is_cut_in_a_pipe(self, rookery: Rookery, sample: Path) -> None:
        assert DATA_FILE in rookery("puffin", "inspect", sample)[1]

    def test_json(self, rookery: Rookery, sample: Path) -> None:
        code, out, err = rookery("puffin", "inspect", sample, "--output", "json")
        assert (code, err) == (0, "")
        view = json.loads(out)
        assert view["file"] == str(sample)
        assert view["blobs"][0]["summary"]["ndv"] == {
            "value": 1000,
            "low": 1000,
            "high": 1000,
            "kind": "exact",
        }
        assert view["blobs"][1]["summary"]["data_file"] == DATA_FILE
        assert view["blobs"][2]["metadata"]["fields"] == [1, 2]
        assert view["blobs"][2]["summary"] is None

    def test_hll(self, rookery: Rookery, tmp_path: Path) -> None:
        path = tmp_path / "hll.puffin"
        with Writer(path) as writer:
            writer.add(Blob(HLL_V1, hll_payload(300), (7,), 11, 3, properties={"ndv": "300"}))
        code, out, err = rookery("puffin", "inspect", path)
        assert (code, err) == (0, "")
        assert "ndv about 300, between 300 and 300" in out
        assert "registers 4,096; kind HLL_8; mode SET" in out
        assert "snapshot 11" in out
        assert rookery("puffin", "verify", path)[0] == 0

    def test_compressed_footer(self, rookery: Rookery, tmp_path: Path) -> None:
        path = write_sample(tmp_path / "lz4.puffin", compress_footer=True)
        out = rookery("puffin", "inspect", path)[1]
        assert any(line.startswith("footer: ") and line.endswith(", LZ4") for line in out.splitlines())

    def test_file_url(self, rookery: Rookery, sample: Path) -> None:
        assert rookery("puffin", "inspect", f"file://{sample}")[0] == 0

    @pytest.mark.parametrize("output", ["text", "json"])
    def test_bad_blob_is_shown_and_exits_with_1(self, rookery: Rookery, tmp_path: Path, output: str) -> None:
        code, out, err = rookery(
            "puffin", "inspect", write_with_bad_blob(tmp_path / "bad.puffin"), "--output", output
        )
        assert (code, err) == (1, "")
        assert "expected" in out
        assert UNKNOWN_TYPE in out

    def test_what_a_file_says_does_not_steer_the_terminal(self, rookery: Rookery, tmp_path: Path) -> None:
        path = tmp_path / "sly.puffin"
        with Writer(path, properties={"a\x1b[2J": "b\nforged line\x07"}) as writer:
            writer.add(Blob("type\x1b]0;title\x07", b"", properties={"[bold]k[/]": ":fire: [red]v"}))
        code, out, _ = rookery("puffin", "inspect", path)
        assert code == 0
        assert not set(out) & {"\x1b", "\x07", "\r"}
        assert "\nforged" not in out
        assert "[bold]k[/] :fire: [red]v" in out


def _extent(path: Path, number: int) -> str:
    with open_puffin(path) as reader:
        blob = reader.blob(number)
    size = f"{blob.length} bytes" if blob.length < 1000 else f"{blob.length / 1000:.1f} kB"
    return f"{size} {blob.offset:,}"


class TestCat:
    def test_payload_byte_for_byte(self, sample: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        assert run(["puffin", "cat", str(sample), "--blob", "2"]) == 0
        out, err = capfdbinary.readouterr()
        assert (out, err) == (UNKNOWN_PAYLOAD, b"")

    def test_stored(self, sample: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        assert run(["puffin", "cat", str(sample), "--blob", "2", "--stored"]) == 0
        with open_puffin(sample) as reader:
            assert capfdbinary.readouterr().out == reader.read_stored(reader.blob(2))

    def test_empty_payload(self, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        with Writer(tmp_path / "a.puffin") as writer:
            writer.add(Blob("empty", b""))
        assert run(["puffin", "cat", str(tmp_path / "a.puffin"), "--blob", "0"]) == 0
        assert capfdbinary.readouterr().out == b""

    @pytest.mark.parametrize("number", ["3", "-1", "99999999999999999999"])
    def test_no_such_blob(self, rookery: Rookery, sample: Path, number: str) -> None:
        code, out, err = rookery("puffin", "cat", sample, "--blob", number)
        assert (code, out) == (2, "")
        assert err == f"error: {sample} has no blob {number}\nhint: it has 3: 0 to 2\n"

    def test_no_blob_at_all(self, rookery: Rookery, tmp_path: Path) -> None:
        Writer(tmp_path / "none.puffin").finish()
        code, _, err = rookery("puffin", "cat", tmp_path / "none.puffin", "--blob", 0)
        assert code == 2
        assert err.endswith("hint: it has none\n")

    def test_corrupt_blob(self, rookery: Rookery, tmp_path: Path) -> None:
        bad = write_with_bad_blob(tmp_path / "bad.puffin")
        code, out, err = rookery("puffin", "cat", bad, "--blob", 1)
        assert (code, out) == (2, "")
        assert err.startswith(f"error: {bad}, byte ")
        assert err.count("\n") <= 2


class TestVerify:
    def test_good(self, rookery: Rookery, sample: Path) -> None:
        code, out, err = rookery("puffin", "verify", sample)
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert lines[0] == str(sample)
        assert lines[-1] == f"{len(lines) - 2} checks, 0 findings"
        assert "✗" not in out

    def test_bad(self, rookery: Rookery, tmp_path: Path) -> None:
        code, out, err = rookery("puffin", "verify", write_with_bad_blob(tmp_path / "bad.puffin"))
        assert (code, err) == (1, "")
        assert out.count("✗") == 2
        assert out.splitlines()[-1].endswith("2 findings")

    def test_json(self, rookery: Rookery, tmp_path: Path) -> None:
        bad = write_with_bad_blob(tmp_path / "bad.puffin")
        code, out, _ = rookery("--output", "json", "puffin", "verify", bad)
        assert code == 1
        report = json.loads(out)
        assert [check["outcome"] for check in report["checks"]].count("finding") == 2
        assert report["file"] == str(bad)

    @pytest.mark.parametrize("data", [b"", b"PFA1", b"PFA1" * 10, bytes(100)])
    def test_something_else(self, rookery: Rookery, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "x").write_bytes(data)
        code, out, _ = rookery("puffin", "verify", tmp_path / "x")
        assert code == 1
        assert "✗  file  opens as a Puffin file" in out


class TestCopy:
    def test_report(self, rookery: Rookery, sample: Path, tmp_path: Path) -> None:
        code, out, err = rookery("puffin", "copy", sample, tmp_path / "out")
        assert (code, err) == (0, "")
        assert out.startswith(f"{tmp_path / 'out'}  3 of 3 blobs, ")
        assert (tmp_path / "out").read_bytes() == sample.read_bytes()

    def test_json(self, rookery: Rookery, sample: Path, tmp_path: Path) -> None:
        code, out, _ = rookery("puffin", "copy", sample, tmp_path / "out", "--output", "json")
        assert code == 0
        report = json.loads(out)
        assert (report["blobs_in"], report["blobs_out"]) == (3, 3)
        assert report["bytes_out"] == (tmp_path / "out").stat().st_size

    @pytest.mark.parametrize(
        ("options", "types"),
        [
            (["--blob", "0", "--blob", "1"], [THETA_V1, DELETION_VECTOR_V1]),
            (["--type", UNKNOWN_TYPE], [UNKNOWN_TYPE]),
            (["--type", UNKNOWN_TYPE, "--type", THETA_V1], [THETA_V1, UNKNOWN_TYPE]),
            (["--drop", UNKNOWN_TYPE, "--drop", THETA_V1], [DELETION_VECTOR_V1]),
            (["--drop", "no-such-type"], [THETA_V1, DELETION_VECTOR_V1, UNKNOWN_TYPE]),
        ],
    )
    def test_selection(
        self, rookery: Rookery, sample: Path, tmp_path: Path, options: list[str], types: list[str]
    ) -> None:
        assert rookery("puffin", "copy", sample, tmp_path / "out", *options)[0] == 0
        with open_puffin(tmp_path / "out") as reader:
            assert [blob.type for blob in reader.metadata.blobs] == types

    @pytest.mark.parametrize("codec", ["keep", "none", "zstd", "lz4"])
    def test_codec(self, rookery: Rookery, sample: Path, tmp_path: Path, codec: str) -> None:
        assert rookery("puffin", "copy", sample, tmp_path / "out", "--codec", codec)[0] == 0
        with open_puffin(tmp_path / "out") as reader:
            stated = {"keep": "zstd", "none": None}.get(codec, codec)
            assert [blob.codec for blob in reader.metadata.blobs] == [stated, None, stated]

    def test_compressed_footer(self, rookery: Rookery, sample: Path, tmp_path: Path) -> None:
        assert rookery("puffin", "copy", sample, tmp_path / "out", "--compress-footer")[0] == 0
        with open_puffin(tmp_path / "out") as reader:
            assert reader.tail.flags == 1

    def test_overwrite(self, rookery: Rookery, sample: Path, tmp_path: Path) -> None:
        (tmp_path / "out").write_bytes(b"old")
        code, out, err = rookery("puffin", "copy", sample, tmp_path / "out")
        assert (code, out) == (2, "")
        assert "exists already" in err
        assert (tmp_path / "out").read_bytes() == b"old"
        assert rookery("puffin", "copy", sample, tmp_path / "out", "--overwrite")[0] == 0
        assert (tmp_path / "out").read_bytes() == sample.read_bytes()

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--codec", "gzip"], "unknown codec 'gzip'"),
            (["--blob", "3"], "there is no blob 3"),
            (["--blob", "x"], "valid integer"),
        ],
    )
    def test_wrong_options(
        self, rookery: Rookery, sample: Path, tmp_path: Path, options: list[str], said: str
    ) -> None:
        code, out, err = rookery("puffin", "copy", sample, tmp_path / "out", *options)
        assert (code, out) == (2, "")
        assert said in err
        assert not (tmp_path / "out").exists()

    def test_corrupt_blob_leaves_nothing(self, rookery: Rookery, tmp_path: Path) -> None:
        bad = write_with_bad_blob(tmp_path / "bad.puffin")
        assert rookery("puffin", "copy", bad, tmp_path / "out", "--codec", "none")[0] == 2
        assert [path.name for path in tmp_path.iterdir()] == ["bad.puffin"]


@pytest.mark.parametrize("size", [100, 200_000])
@pytest.mark.parametrize(
    ("head", "tail", "said"),
    [
        (b"PAR1", b"PAR1", "this is a Parquet file"),
        (b"PARE", b"PARE", "this is an encrypted Parquet file"),
    ],
)
def test_files_of_other_formats_are_named(
    rookery: Rookery, tmp_path: Path, size: int, head: bytes, tail: bytes, said: str
) -> None:
    (tmp_path / "x").write_bytes(head + bytes(size) + tail)
    for command in (["inspect"], ["cat", "--blob", "0"], ["copy", tmp_path / "out"]):
        code, out, err = rookery("puffin", command[0], tmp_path / "x", *command[1:])
        assert (code, out) == (2, "")
        assert said in err
        assert "hint: name a Puffin file" in err
    code, out, _ = rookery("puffin", "verify", tmp_path / "x")
    assert (code, said in out) == (1, True)


def test_an_avro_file_is_named(rookery: Rookery, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"Obj\x01" + bytes(100))
    code, _, err = rookery("puffin", "inspect", tmp_path / "x")
    assert (code, "this is an Avro file" in err) == (2, True)


def test_http_without_its_extra() -> None:
    script = (
        "import sys; sys.modules['aiohttp'] = None\n"
        "from rookery.cli.app import run\n"
        "sys.exit(run(['puffin', 'inspect', 'http://127.0.0.1:1/a.puffin']))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.splitlines()[1] == "hint: pip install 'rookery[http]'"
