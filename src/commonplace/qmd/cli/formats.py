"""Output formats of hits and documents: cli, json, csv, md, xml, files."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import click

from commonplace.cli.common import painted
from commonplace.model import JSON

FORMATS = ("cli", "json", "csv", "md", "xml", "files")
NONE_FOUND = "No results found."
NONE_ABOVE = "No results found above minimum score threshold."
_ILLEGAL = "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""The characters that XML cannot have. Compiled when needed, which takes longer than most searches."""

_ENTITIES = {ord(mark): name for mark, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\r", "&#13;"))}
_IN_ATTRIBUTES = {**_ENTITIES, ord('"'): "&quot;", ord("\n"): "&#10;", ord("\t"): "&#9;"}
_RULE = "=" * 60


class UnknownFormat(click.ClickException):
    """The error that --format has a value the command does not know."""

    exit_code = 1

    def __init__(self, given: str) -> None:
        super().__init__(f"Unknown --format value: {given}")

    def show(self, file: Any = None) -> None:
        click.echo(self.message, err=True)


def print_as_it_is(text: str) -> None:
    """Print results with all their characters: click would drop escape sequences when the output is piped."""
    click.echo(text, nl=False, color=True)


class PrintedHit(NamedTuple):
    """A result of a search, ready to be printed. `text` is its snippet, or its body where `full`."""

    docid: str
    score: float
    """Unrounded."""
    file: str
    line: int
    title: str
    context: str | None
    text: str
    full: bool = False
    explain: dict[str, JSON] | None = None

    @property
    def rounded(self) -> float:
        """The score to two decimals, half up."""
        return int(self.score * 100 + 0.5) / 100


class PrintedDocument(NamedTuple):
    """A document ready to be printed; `reason` says why its body is not."""

    docid: str
    file: str
    title: str
    context: str | None
    body: str = ""
    reason: str | None = None


def format_options(*formats: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds `--format F`, `--json` and so on; the last one given counts."""

    def known(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
        if value is not None and value not in formats:
            raise UnknownFormat(value)
        return value

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed(formats):
            if name != "cli":
                help = f"The same as --format {name}."
                command = click.option(f"--{name}", "format", flag_value=name, help=help)(command)
        help = f"One of {', '.join(formats)}."
        return click.option("--format", "format", metavar="F", callback=known, help=help)(command)

    return add


def as_json(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def hits(found: Sequence[PrintedHit], format: str, *, above: bool = False) -> str:
    """Return all hits in one format. `above` says that there were some, all below the minimum score."""
    if not found and format == "cli":
        return f"{NONE_ABOVE if above else NONE_FOUND}\n"
    return _HITS[format](found)


def documents(found: Sequence[PrintedDocument], format: str) -> str:
    """Return the documents of `multi-get` in one format."""
    return _DOCUMENTS[format](found)


# hits


def _cli_hits(found: Sequence[PrintedHit]) -> str:
    return "\n\n\n".join(map(_cli_hit, found)) + "\n"


def _cli_hit(hit: PrintedHit) -> str:
    head = [
        f"{painted(f'{hit.file}:{hit.line}', fg='cyan')} {painted(hit.docid, dim=True)}",
        f"Title: {painted(hit.title, bold=True)}",
        *([f"Context: {hit.context}"] if hit.context else []),
        f"Score: {round(100 * hit.rounded)}%",
        *(_explained(hit.explain) if hit.explain else []),
    ]
    return "\n".join([*head, "", hit.text.rstrip("\n")])


def _explained(explain: dict[str, JSON]) -> list[str]:
    rrf, reranked = explain["rrf"], explain["rerankScore"]
    said = "no" if reranked is None else f"{reranked:.4f}"
    return [
        f"Explain: retrieval {explain['retrievalScore']:.4f}, rerank {said}, blended {explain['blendedScore']:.4f}",
        f"  RRF: rank {rrf['rank']}, {rrf['baseScore']:.4f} + {rrf['topRankBonus']:.4f} = {rrf['totalScore']:.4f}",
        *(
            f"  {one['source']} {one['queryType']}: rank {one['rank']}, weight {one['weight']}, "
            f"score {one['backendScore']:.4f}, adds {one['rrfContribution']:.4f}: {one['query']}"
            for one in rrf["contributions"]
        ),
    ]


def _json_hits(found: Sequence[PrintedHit]) -> str:
    return as_json([_record(hit) for hit in found])


def _record(hit: PrintedHit) -> dict[str, JSON]:
    record: dict[str, JSON] = {
        "docid": hit.docid,
        "score": hit.rounded,
        "file": hit.file,
        "line": hit.line,
        "title": hit.title,
        **({"context": hit.context} if hit.context else {}),
        "body" if hit.full else "snippet": hit.text,
    }
    return {**record, "explain": hit.explain} if hit.explain else record


def _csv_hits(found: Sequence[PrintedHit]) -> str:
    rows = ([hit.docid, f"{hit.score:.4f}", hit.file, hit.title, hit.context, hit.line, hit.text] for hit in found)
    return _csv(("docid", "score", "file", "title", "context", "line", "snippet"), rows)


def _md_hits(found: Sequence[PrintedHit]) -> str:
    return "".join(_md_hit(hit) for hit in found)


def _md_hit(hit: PrintedHit) -> str:
    head = ["---", f"# {_one_line(hit.title)}", "", f"**file:** {hit.file}", f"**docid:** {hit.docid}"]
    if hit.context:
        head.append(f"**context:** {hit.context}")
    return "\n".join([*head, "", hit.text.rstrip("\n")]) + "\n"


def _xml_hits(found: Sequence[PrintedHit]) -> str:
    return f"<results>{''.join(map(_xml_hit, found))}</results>\n"


def _xml_hit(hit: PrintedHit) -> str:
    attributes = {
        "docid": hit.docid,
        "name": hit.file,
        "title": hit.title,
        "context": hit.context,
        "score": f"{hit.rounded:.2f}",
        "line": str(hit.line),
    }
    said = "".join(f' {name}="{_attribute(value)}"' for name, value in attributes.items() if value is not None)
    return f"<file{said}>{_text(hit.text)}</file>"


def _files_hits(found: Sequence[PrintedHit]) -> str:
    return "".join(_row(hit.docid, f"{hit.rounded:.2f}", hit.file, context=hit.context) for hit in found)


# documents


def _cli_documents(found: Sequence[PrintedDocument]) -> str:
    return "".join(f"\n{_RULE}\nFile: {painted(one.file, fg='cyan')}\n{_RULE}\n\n{_cli_body(one)}\n" for one in found)


def _cli_body(document: PrintedDocument) -> str:
    if document.reason is not None:
        return f"[SKIPPED: {document.reason}]"
    above = f"Folder Context: {document.context}\n---\n\n" if document.context else ""
    return above + document.body.rstrip("\n")


def _json_documents(found: Sequence[PrintedDocument]) -> str:
    return as_json([record(one) for one in found])


def record(document: PrintedDocument) -> dict[str, JSON]:
    """Return a document as a JSON object."""
    text: dict[str, JSON] = (
        {"body": document.body} if document.reason is None else {"skipped": True, "reason": document.reason}
    )
    context = {"context": document.context} if document.context else {}
    return {"file": document.file, "docid": document.docid, "title": document.title, **context, **text}


def _csv_documents(found: Sequence[PrintedDocument]) -> str:
    rows = (
        [one.docid, one.file, one.title, one.context, "false" if one.reason is None else "true", one.reason or one.body]
        for one in found
    )
    return _csv(("docid", "file", "title", "context", "skipped", "body"), rows)


def _md_documents(found: Sequence[PrintedDocument]) -> str:
    return "".join(map(_md_document, found))


def _md_document(document: PrintedDocument) -> str:
    parts = [f"## {document.file}", f"**Title:** {document.title}"]
    if document.context:
        parts.append(f"**Context:** {document.context}")
    if document.reason is not None:
        parts.append(f"> {document.reason}")
    else:
        longest = max((len(run) for run in re.findall("`+", document.body)), default=0)
        fence = "`" * max(3, longest + 1)
        parts.append(f"{fence}\n{document.body.rstrip(chr(10))}\n{fence}")
    return "\n\n".join(parts) + "\n\n"


def _xml_documents(found: Sequence[PrintedDocument]) -> str:
    return f"<documents>{''.join(map(xml_document, found))}</documents>\n"


def xml_document(document: PrintedDocument) -> str:
    """Return a document as one XML element."""
    parts = {"file": document.file, "title": document.title, "context": document.context}
    if document.reason is None:
        parts["body"] = document.body
    else:
        parts |= {"skipped": "true", "reason": document.reason}
    inner = "".join(f"<{name}>{_text(value)}</{name}>" for name, value in parts.items() if value is not None)
    return f'<document docid="{_attribute(document.docid)}">{inner}</document>'


def _files_documents(found: Sequence[PrintedDocument]) -> str:
    return "".join(
        _row(one.docid, one.file, context=one.context, last=None if one.reason is None else "[SKIPPED]")
        for one in found
    )


# one document, as `get` prints it


def one_document(document: PrintedDocument, format: str) -> str:
    """Return the document of `get` in one format."""
    if format == "json":
        return as_json(record(document))
    if format == "xml":
        return f"{xml_document(document)}\n"
    if format == "md":
        return _md_one(document)
    header = f"{painted(document.file, fg='cyan')}  {painted(document.docid, dim=True)}\n"
    context = f"Folder Context: {document.context}\n" if document.context else ""
    return f"{header}{context}---\n\n{document.body.rstrip(chr(10))}\n"


def _md_one(document: PrintedDocument) -> str:
    head = [f"# {_one_line(document.title)}", "", f"**file:** {document.file}", f"**docid:** {document.docid}"]
    if document.context:
        head.append(f"**context:** {document.context}")
    return "\n".join([*head, "", document.body.rstrip("\n")]) + "\n"


# escapes


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    import csv

    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(header)
    writer.writerows(["" if value is None else value for value in row] for row in rows)
    return table.getvalue()


def _row(*fields: str, context: str | None, last: str | None = None) -> str:
    """Return a row of CSV with its line end; the context is always in quotes."""
    quoted = [f'"{field}"' if re.search('[,"\r\n]', field) else field for field in map(_doubled, fields)]
    quoted += [f'"{_doubled(context)}"'] if context else []
    return ",".join([*quoted, *([last] if last else [])]) + "\n"


def _doubled(field: str) -> str:
    return field.replace('"', '""')


def _text(value: str) -> str:
    return _escaped(value, _ENTITIES)


def _attribute(value: str) -> str:
    return _escaped(value, _IN_ATTRIBUTES)


def _escaped(value: str, entities: dict[int, str]) -> str:
    return re.sub(_ILLEGAL, "", value).translate(entities)


def _one_line(text: str) -> str:
    return " ".join(text.split())


_HITS: dict[str, Callable[[Sequence[PrintedHit]], str]] = {
    "cli": _cli_hits,
    "json": _json_hits,
    "csv": _csv_hits,
    "md": _md_hits,
    "xml": _xml_hits,
    "files": _files_hits,
}
_DOCUMENTS: dict[str, Callable[[Sequence[PrintedDocument]], str]] = {
    "cli": _cli_documents,
    "json": _json_documents,
    "csv": _csv_documents,
    "md": _md_documents,
    "xml": _xml_documents,
    "files": _files_documents,
}
