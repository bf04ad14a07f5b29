"""Files of the formats that are not text, made by code: small, and real in shape."""

from __future__ import annotations

import base64
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commonplace.ingest.imports.import_file import ImportFile, Remarks

GOLDEN = Path(__file__).parent / "golden"


def source_of(data: bytes, name: str, *beside: str) -> ImportFile:
    """A file that is in memory only."""
    return ImportFile(name, f"/there/{name}", len(data), lambda: io.BytesIO(data), frozenset({name, *beside}))


def remarks(name: str = "file") -> Remarks:
    return Remarks(name)


def png_chunk(kind: bytes, body: bytes, crc: int | None = None) -> bytes:
    crc = zlib.crc32(kind + body) if crc is None else crc
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", crc)


def png(*chunks: bytes) -> bytes:
    """One red pixel, and whatever chunks before its end."""
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + png_chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
        + b"".join(chunks)
        + png_chunk(b"IEND", b"")
    )


def packed(card: Any) -> bytes:
    return base64.b64encode(json.dumps(card).encode())


def text_chunk(keyword: str, text: bytes) -> bytes:
    return png_chunk(b"tEXt", keyword.encode() + b"\0" + text)


def packed_chunk(keyword: str, text: bytes) -> bytes:
    return png_chunk(b"zTXt", keyword.encode() + b"\0\0" + zlib.compress(text))


def international_chunk(keyword: str, text: bytes, *, compressed: bool) -> bytes:
    body = zlib.compress(text) if compressed else text
    return png_chunk(b"iTXt", keyword.encode() + b"\0" + bytes([compressed, 0]) + b"en\0word\0" + body)


def webp(*chunks: tuple[bytes, bytes]) -> bytes:
    body = b"".join(kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2) for kind, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def exif(comment: bytes, order: str = "<") -> bytes:
    """A TIFF header, a first directory that points to the Exif one, and there the user's comment."""
    mark = b"II*\0" if order == "<" else b"MM\0*"
    first = struct.pack(f"{order}HHHII", 1, 0x8769, 4, 1, 26) + b"\0\0\0\0"
    second = struct.pack(f"{order}HHHII", 1, 0x9286, 7, len(comment), 44) + b"\0\0\0\0"
    return mark + struct.pack(f"{order}I", 8) + first + second + comment


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


_CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
  <rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>"""
_PACKAGE = """<?xml version="1.0"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">
  <metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
    <dc:identifier id="id">urn:uuid:1</dc:identifier><dc:title>A Book of Tea</dc:title>
    <dc:creator>Kakuzo</dc:creator><dc:language>en</dc:language><dc:date>1906-05-01</dc:date>
  </metadata>
  <manifest>
    <item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
    <item id="a" href="a-last.xhtml" media-type="application/xhtml+xml"/>
    <item id="b" href="text/b%20first.xhtml" media-type="application/xhtml+xml"/>
    <item id="css" href="style.css" media-type="text/css"/>
  </manifest>
  <spine><itemref idref="b"/><itemref idref="a"/></spine>
</package>"""


def epub(**more: str | bytes) -> bytes:
    """Two chapters whose order in the spine is not that of their names."""
    page = '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><body>{}</body></html>'
    files: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": _CONTAINER,
        "OEBPS/book.opf": _PACKAGE,
        "OEBPS/nav.xhtml": page.format("<nav><a>First</a></nav>"),
        "OEBPS/a-last.xhtml": page.format("<h1>The Last</h1><p>It is poured.</p>"),
        "OEBPS/text/b first.xhtml": page.format("<h1>The First</h1><p>Water &amp; leaves.</p>"),
    }
    return zipped(files | {name.replace("__", "/"): data for name, data in more.items()})


_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx(body: str | None = None, **more: str | bytes) -> bytes:
    """A title, headings in a localised style, a list, a table, a deletion and a field."""
    paragraphs = body or (
        '<w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr><w:r><w:t>Garden</w:t></w:r></w:p>'
        '<w:p><w:r><w:t>Plant </w:t></w:r><w:r><w:t xml:space="preserve">early</w:t></w:r>'
        "<w:del><w:r><w:delText>late</w:delText></w:r></w:del>"
        "<w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:t>.</w:t></w:r></w:p>"
        '<w:p><w:pPr><w:pStyle w:val="Deep"/></w:pPr><w:r><w:t>Beds</w:t></w:r></w:p>'
        '<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>Peas</w:t></w:r></w:p>'
        '<w:p><w:pPr><w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr>'
        "<w:r><w:t>Sugar</w:t></w:r></w:p>"
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Bed</w:t></w:r></w:p></w:tc><w:tc>"
        "<w:p><w:r><w:t>Crop</w:t></w:r></w:p></w:tc></w:tr>"
        "<w:tr><w:tc><w:p><w:r><w:t>1</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>a|b</w:t></w:r></w:p>"
        "<w:p><w:r><w:t>more</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
        "<w:p><w:r><w:t>End&lt;script&gt;</w:t></w:r></w:p>"
    )
    styles = (
        f'<w:styles {_WORD}><w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Deep"><w:name w:val="My heading"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr>'
        "</w:style></w:styles>"
    )
    core = (
        '<cp:coreProperties xmlns:cp="c" xmlns:dc="d" xmlns:dcterms="t"><dc:title>The Garden Plan</dc:title>'
        "<dc:creator>Mo</dc:creator><dcterms:created>2023-02-01T08:00:00Z</dcterms:created></cp:coreProperties>"
    )
    files: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "word/document.xml": f"<w:document {_WORD}><w:body>{paragraphs}</w:body></w:document>",
        "word/styles.xml": styles,
        "docProps/core.xml": core,
    }
    return zipped(files | {name.replace("__", "/"): data for name, data in more.items()})


def pdf(*pages: str, title: str = "") -> bytes:
    """A page of words each."""
    count = len(pages)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {count} /Kids [{' '.join(f'{4 + 2 * n} 0 R' for n in range(count))}] >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, words in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({words}) Tj ET".encode() if words else b""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    objects.append(f"<< /Title ({title}) /Author (Mo) /CreationDate (D:20230401120000Z) >>".encode())
    made, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    tail = (
        f"trailer << /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{len(made)}\n%%EOF\n"
    )
    return made + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + tail.encode()
