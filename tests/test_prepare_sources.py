"""How clips are listed: every layout, what it is taken for, and what is ambiguous."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from clips import prepared, refused, save, speech

from myxtts.errors import UserError
from myxtts.prepare import recognise
from myxtts.prepare.lines import LONGEST_LINE, read_cells, read_lines

Rows = list[tuple[str, str, str, str]]


def rows_of(data: Path, **settings: Any) -> Rows:
    table = prepared(data, **settings).table
    columns = [table[name].to_pylist() for name in ("source", "text", "speaker", "language")]
    return list(zip(*columns, strict=True))


def clips(root: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        save(root / name, speech(0.6, number))
    return root


def test_ljspeech_with_mark_crlf_quotes_and_endings_in_ids(tmp_path: Path) -> None:
    data = clips(tmp_path / "LJ", "wavs/a.wav", "wavs/b.wav", "wavs/c.d.wav")
    lines = (
        '\ufeffa|He said "no" to 3.|He said "no" to three.\r\nb.wav|Two columns.\r\n\r\nc.d|x|\r\n'
    )
    (data / "metadata.csv").write_bytes(lines.encode())
    assert rows_of(data) == [
        ("wavs/a.wav", 'He said "no" to three.', "LJ", "en"),
        ("wavs/b.wav", "Two columns.", "LJ", "en"),
        ("wavs/c.d.wav", "x", "LJ", "en"),
    ]
    table = prepared(data).table
    assert table["id"].to_pylist() == ["a", "b", "c.d"]


def test_ljspeech_may_name_speaker_and_language(tmp_path: Path) -> None:
    data = clips(tmp_path / "data", "wavs/a.wav", "wavs/b.wav")
    (data / "metadata.csv").write_text("a|x|x|Ann|en\nb|y|y|Reza|fa_IR\n")
    found = [row[2:] for row in rows_of(data, language=None)]
    assert found == [("Ann", "en"), ("Reza", "fa")]


def test_vctk_takes_the_first_microphone_and_refuses_the_second(tmp_path: Path) -> None:
    names = [f"wav48_silence_trimmed/p225/p225_001_mic{n}.flac" for n in (1, 2)]
    data = clips(tmp_path / "data", *names, "wav48_silence_trimmed/p226/p226_001_mic1.flac")
    for speaker in ("p225", "p226"):
        (data / "txt" / speaker).mkdir(parents=True)
        (data / "txt" / speaker / f"{speaker}_001.txt").write_text("Please call Stella.\n")
    (data / "txt/p226/p226_002.txt").write_text("No sound.")
    found = rows_of(data)
    assert [row[2] for row in found] == ["p225", "p226"]
    rules = [(row["rule"], row["id"]) for row in refused(prepared(data).folder)]
    assert rules == [("duplicate_id", "p225/p225_001"), ("missing", "p226/p226_002")]


def test_common_voice_reads_validated_and_its_clips(tmp_path: Path) -> None:
    data = tmp_path / "data"
    save(data / "clips/a.mp3", speech(), subtype="MPEG_LAYER_III")
    header = "client_id\tpath\tsentence\tup_votes\tlocale\n"
    (data / "validated.tsv").write_text(header + 'x1\ta.mp3\tSaid "hi\t2\tfa\n')
    (data / "train.tsv").write_text(header)
    assert recognise(data).format == "commonvoice"
    assert rows_of(data, language=None) == [("clips/a.mp3", 'Said "hi', "x1", "fa")]


def test_a_plain_folder_reads_the_text_beside_each_clip(tmp_path: Path) -> None:
    data = clips(tmp_path / "data", "ann/a.wav", "ann/b.wav", "c.wav", "d.wav")
    for name in ("ann/a.txt", "ann/b.lab", "c.txt", "gone.txt", "README.txt"):
        (data / name).write_text(f"Text\nof {name[0]}.")
    assert [row[:3] for row in rows_of(data)] == [
        ("ann/a.wav", "Text of a.", "ann"),
        ("ann/b.wav", "Text of a.", "ann"),
        ("c.wav", "Text of c.", "data"),
    ]
    found = [(row["rule"], row["source"]) for row in refused(prepared(data).folder)]
    assert found == [("missing", "gone.wav"), ("untranscribed", "d.wav")]


ROWS: list[dict[str, Any]] = [
    {"audio_path": "w/a.wav", "sentence": 'One, "two"\nthree', "speaker_id": 7, "lang": "en"},
    {"audio_path": "w/b.wav", "sentence": "سلام", "speaker_id": 8, "lang": "fa"},
]


def as_csv(separator: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        quoted = separator in ",;"
        lines = [separator.join(ROWS[0])]
        for row in ROWS:
            cells = [str(cell) for cell in row.values()]
            cells = ['"' + c.replace('"', '""') + '"' for c in cells] if quoted else cells
            lines.append(separator.join(cells))
        text = "\n".join(lines)
        path.write_text(text if quoted else text.replace('"two"\n', '"two" '), encoding="utf-8")

    return write


def as_json_lines(path: Path) -> None:
    path.write_text("\n".join(json.dumps(row) for row in ROWS), encoding="utf-8")


def as_parquet(path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("list.csv", as_csv(",")),
        ("list.csv", as_csv(";")),
        ("list.csv", as_csv("|")),
        ("list.tsv", as_csv("\t")),
        ("list.jsonl", as_json_lines),
        ("list.parquet", as_parquet),
    ],
)
def test_a_list_with_named_columns_is_read_in_every_form(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    data = clips(tmp_path / "data", "w/a.wav", "w/b.wav")
    write(data / name)
    said: list[str] = []
    first, second = rows_of(data, language=None, said=said)
    assert first[1].split() == ["One,", '"two"', "three"]
    assert (first[2:], second[1:]) == (("7", "en"), ("سلام", "8", "fa"))
    assert "read as table" in said[0]
    assert "text from 'sentence'" in said[0]


def test_a_list_that_is_named_itself_leaves_the_other_clips_alone(tmp_path: Path) -> None:
    data = clips(tmp_path / "data", "a.wav", "b.wav")
    (data / "some.csv").write_text("audio,text\na.wav,Words.\n")
    manifest = prepared(data / "some.csv", tmp_path / "out")
    assert len(manifest.table) == 1
    assert refused(manifest.folder) == []


@pytest.mark.parametrize(
    ("files", "words", "remedy"),
    [
        ({"metadata.csv": "a|x\n", "a.txt": "x"}, "ljspeech", "--format ljspeech or --format fol"),
        ({"t.csv": "audio,text\n", "u.csv": "audio,text\n"}, "2 ways", "name the list itself"),
        ({"readme.md": "x"}, "no clips were found", "a .txt or .lab beside each clip"),
        ({"t.csv": "sound,words\n"}, "no clips were found", "looked for"),
    ],
)
def test_what_is_not_clear_is_an_error_that_says_what_to_write(
    tmp_path: Path, files: dict[str, str], words: str, remedy: str
) -> None:
    data = clips(tmp_path / "data", "a.wav")
    for name, text in files.items():
        (data / name).write_text(text)
    with pytest.raises(UserError, match=words) as caught:
        recognise(data)
    assert remedy in caught.value.remedy


def test_format_settles_what_is_ambiguous_and_is_an_error_where_it_does_not_fit(
    tmp_path: Path,
) -> None:
    data = clips(tmp_path / "data", "a.wav")
    (data / "metadata.csv").write_text("a|From the list.\n")
    (data / "a.txt").write_text("From the file.")
    assert rows_of(data, format="folder")[0][1] == "From the file."
    with pytest.raises(UserError, match="in the format vctk"):
        recognise(data, "vctk")


def test_clips_without_a_language_are_an_error_that_names_the_flag(tmp_path: Path) -> None:
    data = clips(tmp_path / "data", "wavs/a.wav")
    (data / "metadata.csv").write_text("a|Words.\n")
    with pytest.raises(UserError, match="in which language") as caught:
        prepared(data, language=None)
    assert "--language en" in caught.value.remedy


def test_a_list_in_another_encoding_is_told_by_name(tmp_path: Path) -> None:
    data = clips(tmp_path / "data", "wavs/a.wav")
    (data / "metadata.csv").write_bytes("a|Words.\n".encode("utf-16"))
    with pytest.raises(UserError, match=r"metadata.csv is written in UTF-16") as caught:
        recognise(data)
    assert caught.value.remedy == "save it as UTF-8"


def test_lines_are_read_however_long_and_broken_they_are(tmp_path: Path) -> None:
    good = b"good|line\n"
    lines = [good, b"a" * (LONGEST_LINE * 3) + b"\n", b"\xff|x\n", b"a\0b|x\n", good]
    (tmp_path / "list").write_bytes(b"".join(lines))
    read = [(line.number, line.text, line.fault) for line in read_lines(tmp_path / "list")]
    assert read == [
        (1, "good|line", ""),
        (2, "", "longer than 65536 bytes"),
        (3, "", "not UTF-8 at byte 1"),
        (4, "", "a NUL character at 2"),
        (5, "good|line", ""),
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[1]",
        b"null",
        b"[" * 20_000,
        b'{"audio": "a.wav"}',
        b'{"audio": ["a.wav"], "text": "x"}',
        b'{"audio": "a.wav", "text": 1.5}',
        b'{"audio": "a.wav", "text": "\\ud800"}',
        b'{"audio": "a\\u0000.wav", "text": "x"}',
        b'{"audio": "", "text": "x"}',
        b'{"audio": "a.wav", "text": ' + b"9" * 5000 + b"}",
        b"\xff{}",
    ],
)
def test_a_json_line_that_is_no_clip_is_refused_by_its_number(tmp_path: Path, line: bytes) -> None:
    data = clips(tmp_path / "data", "a.wav")
    good = b'{"audio": "a.wav", "text": "Words."}'
    (data / "list.jsonl").write_bytes(b"\n".join([good, line, b""]))
    manifest = prepared(data / "list.jsonl", tmp_path / "out")
    (row,) = refused(manifest.folder)
    assert (row["rule"], row["line"], len(manifest.table)) == ("line", "2", 1)


def test_a_quote_that_never_closes_costs_its_own_line_only(tmp_path: Path) -> None:
    lines = ['a,"open'] + [f"b{n},x" for n in range(40)] + ['c,"two\nlines"', "d,x"]
    (tmp_path / "list").write_text("\n".join(lines))
    cells = list(read_cells(tmp_path / "list", ","))
    assert [line.number for line, _ in cells if line.fault] == [1]
    assert [found for line, found in cells if not line.fault][-2:] == [
        ["c", "two\nlines"],
        ["d", "x"],
    ]
    assert len(cells) == 43
