"""Documents by address: `qmd://{+path}`. There is no listing; documents are discovered by searching."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.errors import CommonplaceError
from commonplace.model import JSON
from commonplace.qmd.tools.naming import AmbiguousName, Excluded, NoDocument, locate
from commonplace.qmd.tools.reading import MIME_TYPE, Contexts, commented, read, shown
from commonplace.tools.profile import Resources
from commonplace.tools.tool import Call

TEMPLATE: Mapping[str, JSON] = {
    "uriTemplate": "qmd://{+path}",
    "name": "document",
    "title": "QMD Document",
    "description": "A markdown document from your QMD knowledge base. Use search tools to discover documents.",
    "mimeType": MIME_TYPE,
}


def content(call: Call, uri: str) -> Mapping[str, JSON]:
    """Return a document with its lines numbered. Errors carry the address and similar names."""
    try:
        located = locate(call.space, uri)
        item = read(call.space, located.name)
    except (NoDocument, AmbiguousName, Excluded) as error:
        error.details = {"uri": uri, "suggestions": list(error.suggestions)}
        raise
    except CommonplaceError as error:
        error.details = {**error.details, "uri": uri}
        raise
    text = shown(item.body or "", located.first or 1, located.lines, numbered=True).text
    context = Contexts(call.space).of(item.parent, item.key)
    return {
        "uri": uri,
        "name": located.name.file,
        "title": item.title,
        "mimeType": MIME_TYPE,
        "text": commented(context, text),
    }


RESOURCES = Resources(read=content, templates=(TEMPLATE,))
