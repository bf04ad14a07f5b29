"""The recorded calls, a script for each profile; each begins with what the ones before it wrote."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from contents import CUES, STOCK
from recorder import Recorder

from commonplace.kinds.tables.drawer import TableDrawer
from commonplace.kinds.tables.tools.types import bound_tool

IMAGE = {"data": base64.b64encode(b"picture").decode(), "mime_type": "image/png"}
QUESTIONS = (
    "fencing tokens", "cold proof", "how hot for oolong", "restore", "Wasserleitung", '"two minutes"',
    "locks -clocks", "boler repaired", "zzqx", "def retry",
)  # fmt: skip


def commonplace(call: Recorder) -> None:
    """The default profile, which also writes what the later scripts find."""
    tool = "commonplace"
    call(tool, "remember", text="Anna is allergic to peanuts.", kind="memory", tags=["guests"])
    call(tool, "remember", text="# Boiler\n\nServiced each May.", key="boiler", title="Boiler", metadata={"cost": 120})
    call(tool, "remember", text="The boiler takes type B filters.", kind="memory", supersedes="memory://1")
    call(tool, "remember", text="")
    for question in QUESTIONS:
        for mode in ("auto", "lexical", "semantic", "hybrid"):
            call(tool, "search", query=question, mode=mode, limit=5, explain=mode == "auto")
    call(tool, "search", query="boiler", detail="passages", rerank=True)
    call(tool, "search", query="boiler", kinds=["note"], tags=["guests"])
    call(tool, "search", query="tea", path="kitchen", collections=["vault"])
    call(tool, "search", query="tokens", where=[{"key": "rating", "operator": "gte", "value": 7}])
    call(tool, "search", query="the water", limit=1)
    call(tool, "search", query="tea", limit=0)
    call(tool, "search", query="tea", cursor="nonsense")
    call(tool, "search", query="tea", colour="red")
    call(tool, "search")
    for uri in ("notes://boiler", "memory://1", "vault/ops/locks.md", "vault/ops/locks.md#clocks", "notes://none"):
        call(tool, "fetch", uri=uri)
    call(tool, "fetch", uri="vault/code/retry.py", from_line=4, max_tokens=30)
    call(tool, "fetch", uri=["notes://boiler", "memory://1"], max_tokens=40)
    for at in (None, "document", "document/vault", "note", "memory", "vault/ops/locks.md", "nowhere"):
        call(tool, "browse", **({"at": at} if at else {}))
    call(tool, "related", uri="vault/kitchen/tea.md", limit=3)
    call(tool, "revise", uri="notes://boiler", text="# Boiler\n\nServiced each June.", expected_version=1)
    call(tool, "revise", uri="notes://boiler", metadata_patch={"cost": 130}, expected_version=1)
    call(tool, "revise", uri="notes://boiler")
    call(tool, "forget", uri="notes://boiler", dry_run=True)
    call(tool, "forget", uri="notes://none")
    call(tool, "status")


def memory(call: Recorder) -> None:
    """The surface that stands for mcp-context-server."""
    for nr, (source, text) in enumerate(
        [("user", "How do we rotate the keys?"), ("agent", "Keys rotate every ninety days."), ("user", "Who does it?")]
    ):
        call("memory", "store_context", thread_id="keys", source=source, text=text, tags=["ops"], metadata={"nr": nr})
    call("memory", "store_context", thread_id="art", source="user", text="A picture.", images=[IMAGE])
    call("memory", "store_context", thread_id="keys", source="user", text="Who does it?", ttl_seconds=3600)
    call("memory", "store_context", thread_id="", source="user", text="x")
    call("memory", "store_context", thread_id="keys", source="nobody", text="x")
    entries = [{"thread_id": "batch", "source": "agent", "text": f"Entry {n} about rotas."} for n in range(3)]
    call("memory", "store_context_batch", entries=entries)
    call("memory", "store_context_batch", entries=[*entries[:1], {"thread_id": "batch"}], atomic=False)
    call("memory", "search_context", thread_id="keys", explain_query=True)
    call("memory", "search_context", tags=["ops"], limit=1)
    call("memory", "search_context", metadata={"nr": 1})
    call("memory", "search_context", metadata_filters=[{"key": "nr", "operator": "gte", "value": 1}])
    call("memory", "search_context", metadata_filters=[{"key": "nr", "operator": "like", "value": 1}])
    call("memory", "search_context", content_type="multimodal", include_images=False)
    for mode in ("match", "prefix", "phrase", "boolean"):
        call("memory", "fts_search_context", query="keys rotate", mode=mode, highlight=True)
    call("memory", "semantic_search_context", query="when are secrets exchanged", limit=3)
    call("memory", "hybrid_search_context", query="who rotates keys", limit=3, explain_query=True)
    call("memory", "hybrid_search_context", query="rotas", rrf_k=10, limit=2, offset=1)
    call("memory", "update_context", context_id=5, text="Keys rotate every sixty days.", tags=["ops", "new"])
    call("memory", "update_context", context_id=5, metadata_patch={"nr": None}, expected_version=1)
    call("memory", "update_context", context_id=999, text="x")
    call("memory", "update_context_batch", updates=[{"context_id": 4, "metadata": {"a": 1}}, {"context_id": 999}])
    call("memory", "get_context_by_ids", context_ids=[4, 5, 999], include_history=True)
    call("memory", "list_threads")
    call("memory", "get_statistics")
    call("memory", "delete_context", thread_id="batch", dry_run=True)
    call("memory", "delete_context", context_ids=[4])
    call("memory", "delete_context")
    call("memory", "delete_context_batch", thread_ids=["batch"])


def qmd(call: Recorder) -> None:
    """The surface that stands for qmd."""
    for question in QUESTIONS:
        call("qmd", "search", query=question, explain=True)
        call("qmd", "vsearch", query=question, limit=3)
        call("qmd", "query", query=question, rerank=False, explain=True)
    call("qmd", "query", searches=[{"type": "lex", "query": "boiler"}, {"type": "vec", "query": "heating"}], limit=3)
    call("qmd", "query", searches=[{"type": "lex", "query": "boiler"}, {"type": "hyde", "query": "A boiler heats."}])
    call("qmd", "search", query="tea", collection="nowhere")
    call("qmd", "get", file="vault/kitchen/tea.md")
    call("qmd", "get", file="kitchen/tea.md:3", maxLines=2, lineNumbers=True)
    call("qmd", "get", file="missing.md")
    call("qmd", "multi_get", pattern="vault/kitchen/*.md", maxLines=3)
    call("qmd", "multi_get", pattern="nothing*.md")
    call("qmd", "status")


def knowledge(call: Recorder) -> None:
    """Notes, media, chats, characters and prompts."""
    k = "knowledge"
    call(
        k, "notes.create", title="Tides", content="The sea rises twice a day.\n\n## Moon\n\nIt pulls.", note_id="tides"
    )
    call(k, "notes.create", title="Tides", content="Again.", note_id="tides")
    call(k, "notes.update", note_id="tides", tags=["sea"], expected_version=1)
    call(k, "notes.update", note_id="tides", title="x", expected_version=1)
    media = call(k, "media.create", title="Lecture", media_type="video", cues=CUES, author="Ada", tags=["sea"])
    call(k, "media.update", media_id=media["meta"]["id"], url="https://example.org/tides")
    hero = call(k, "characters.create", name="Marlow", description="A captain of few words.", tags=["sea"])
    call(k, "characters.update", character_id=hero["meta"]["id"], personality="Patient.")
    messages = [{"sender": "user", "content": "When is high tide?"}, {"sender": "assistant", "content": "At noon."}]
    chat = call(k, "chats.create", title="Harbour", character_id=hero["meta"]["id"], messages=messages)
    call(k, "chats.append", conversation_id=chat["meta"]["id"], messages=[{"sender": "user", "content": "Thank you."}])
    call(k, "chats.update", conversation_id=chat["meta"]["id"], tags=["sea"])
    prompt = call(k, "prompts.create", name="Navigator", system_prompt="You know the sea.", user_prompt="Ask: {{q}}")
    call(k, "prompts.update", prompt_id_or_name="Navigator", keywords=["sea"])
    for reader in (k, "research"):
        for question in ("tide", "moon pulls the sea", "captain", "zzqx", '"high tide"'):
            call(reader, "search", query=question)
            for kind in ("notes", "media", "chats", "characters", "prompts", "knowledge"):
                call(reader, f"{kind}.search", query=question, limit=3)
        call(reader, "fetch", id="note:tides")
        call(reader, "fetch", id="note:none")
    call(k, "knowledge.search", query="sea", order_by="recent", sources=["notes", "media"])
    call(k, "chats.search", query="noon", sender="assistant", by="message")
    call(k, "notes.get", note_id="tides", retrieval={"mode": "full"})
    call(k, "notes.get", note_id="tides", retrieval={"mode": "chunk", "query": "moon"})
    call(k, "media.get", media_id=media["meta"]["id"], retrieval={"mode": "snippet"})
    call(k, "media.transcript", media_id=media["meta"]["id"], format="srt")
    call(k, "media.transcript", media_id=media["meta"]["id"], from_ms=5000, include_timestamps=False)
    call(k, "chats.get", conversation_id=chat["meta"]["id"], page=1, page_size=2)
    call(k, "characters.get", character_id=hero["meta"]["id"])
    call(k, "prompts.get", prompt_id_or_name="Navigator")
    call(k, "prompts.get", prompt_id_or_name="None")
    call(k, "knowledge.get", source="notes", id="tides")
    call(k, "knowledge.get", id="nothing")
    call(k, "notes.delete", note_id="tides", expected_version=9)
    call(k, "notes.delete", note_id="tides")
    call(k, "media.delete", media_id=media["meta"]["id"])
    call(k, "chats.delete", conversation_id=chat["meta"]["id"])
    call(k, "characters.delete", character_id=hero["meta"]["id"])
    call(k, "prompts.delete", prompt_id_or_name=prompt["meta"]["id"])


def tables(call: Recorder) -> None:
    """Projects, tables, tools bound to places in them, and instances."""
    t = "tables"
    project = call(t, "project_create", name="shop", description="What we sell.")
    project_id = project["project"]["project_id"]
    call(t, "project_create", name="shop")
    call(t, "project_list")
    table = call(t, "table_create", project_id=project_id, name="stock", data=STOCK, searchable=True)
    table_id = table["table"]["table_id"]
    call(t, "table_get", table_id=table_id, json_path="/products/0")
    call(t, "table_get", table_id=table_id, json_path="/nowhere")
    call(t, "table_list", project_id=project_id)
    call(t, "table_update", table_id=table_id, json_path="/opening/sun", data="closed")
    call(t, "table_update", table_id=table_id, json_path="/opening", data={}, expected_version=1)
    call(
        t,
        "table_import",
        table_id=table_id,
        content="sku,name\nD4,Cup\n",
        format="csv",
        mode="append",
        json_path="/products",
    )
    call(t, "table_import", table_id=table_id, content="{", format="json")
    tool_ids = _bound(call, table_id)
    call(t, "tool_update", tool_id=tool_ids["preview"], description="The first rows.")
    call(t, "tool_list", table_id=table_id)
    instance = call(t, "instance_create", name="front", tool_ids=[tool_ids["preview"]])
    instance_id = instance["instance"]["instance_id"]
    call(t, "instance_bind", instance_id=instance_id, tool_ids=[tool_ids["search"]])
    call(t, "instance_unbind", instance_id=instance_id, tool_ids=[tool_ids["search"]])
    call(t, "instance_update", instance_id=instance_id, description="At the counter.")
    call(t, "instance_list")
    call(t, "search_cleanup", dry_run=True)
    call(t, "instance_delete", instance_id=instance_id)
    call(t, "tool_delete", tool_id=tool_ids["select"])
    call(t, "project_delete", project_id=project_id)
    call(t, "table_delete", table_id=table_id)
    call(t, "project_delete", project_id=project_id, force=True)


BOUND_CALLS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "get_data_schema": ({},),
    "get_all_data": ({},),
    "query_data": ({"query": "[?price > `20`].name"}, {"query": "[["}),
    "preview": ({"keys": ["name", "price"], "limit": 2},),
    "select": ({"field": "sku", "keys": ["B2"]}, {"field": "nope", "keys": [1]}),
    "search": ({"query": "kettle"}, {"query": "keeps warm"}, {"query": "cut a crusty loaf"}),
    "create": ({"elements": [{"content": {"sku": "E5", "name": "Spoon"}}]},),
    "update": ({"updates": [{"key": 0, "content": {"sku": "A1", "name": "Kettle", "price": 35}}]},),
    "delete": ({"keys": [4]}, {"keys": [99]}),
}


def _bound(call: Recorder, table_id: str) -> dict[str, str]:
    """Create a tool of each type, wait for the index and call each; return their ids by type."""
    tool_ids = {}
    for kind in BOUND_CALLS:
        made = call("tables", "tool_create", table_id=table_id, type=kind, name=f"stock_{kind}", json_path="/products")
        tool_ids[kind] = made["tool"]["tool_id"]
    call("tables", "tool_create", table_id=table_id, type="poem", name="x")
    _index(call)
    call("tables", "search_reindex", table_id=table_id)
    _index(call)
    call("tables", "search_status", table_id=table_id)
    rows = {row.id: row for row in call.library.store.drawer(TableDrawer).tools()}
    for kind, calls in BOUND_CALLS.items():
        for arguments in calls:
            call.carry_out("tables", bound_tool(rows[tool_ids[kind]]), arguments)
    return tool_ids


def _index(call: Recorder) -> None:
    """Do the work that table writes have left, to its end."""
    while call.library.tables.jobs.step():
        pass


def documents(call: Recorder) -> None:
    """A documentation base."""
    d = "documents_"
    place = {"collection": "vault", "document": "ops/locks.md"}
    call("documents", d + "list_collections")
    call("documents", d + "list_documents", collection="vault", limit=3)
    call("documents", d + "list_documents", collection="none")
    call("documents", d + "get_document", **place)
    call("documents", d + "get_document", collection="vault", document="none.md")
    call("documents", d + "get_outline", **place, maxDepth=1)
    call("documents", d + "get_section", **place, section="Clocks")
    call("documents", d + "get_section", **place, section="None")
    for question in QUESTIONS:
        call("documents", d + "search", query=question, limit=3)
        call("documents", d + "search", query=question, limit=3, hybridSearch=False)
    call("documents", d + "search", query="tea", rerank=True, maxDistance=0.9)
    call("documents", d + "search_batch", queries=["tea", "locks"], limit=2)
    call("documents", d + "find_related", **place, limit=2)


SCRIPTS: Mapping[str, Callable[[Recorder], None]] = {
    "commonplace": commonplace,
    "memory": memory,
    "qmd": qmd,
    "knowledge": knowledge,
    "tables": tables,
    "documents": documents,
}

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("search", "fencing tokens", "--json"),
    ("search", "zzqx", "--json"),
    ("query", "how hot for oolong", "--json"),
    ("get", "vault/kitchen/tea.md"),
    ("get", "vault/none.md"),
    ("get", "vault/ops/locks.md", "--section", "clocks"),
    ("outline", "vault/ops/locks.md"),
    ("related", "vault/kitchen/tea.md"),
    ("status",),
    ("collections", "list", "--json"),
    ("doctor",),
    ("call", "search", '{"query": "tea"}'),
    ("call", "search", "{}"),
    ("call", "none", "{}"),
    ("add", "/nowhere/at/all"),
    ("collections", "remove", "none"),
    ("qmd", "search", "fencing tokens"),
    ("qmd", "search", "fencing tokens", "--json"),
    ("qmd", "search", "tea", "--files"),
    ("qmd", "search", "tea", "--csv"),
    ("qmd", "query", "how hot for oolong", "--md"),
    ("qmd", "vsearch", "renew a lease", "--json"),
    ("qmd", "get", "vault/kitchen/tea.md"),
    ("qmd", "get", "none.md"),
    ("qmd", "multi-get", "vault/kitchen/*.md", "-l", "2"),
    ("qmd", "ls"),
    ("qmd", "ls", "vault"),
    ("qmd", "collection", "list"),
    ("qmd", "context", "list"),
)

REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/healthz", None),
    ("POST", "/api/v1/tools/search", {"query": "fencing tokens"}),
    ("POST", "/api/v1/tools/search", {}),
    ("POST", "/api/v1/tools/none", {}),
    ("POST", "/api/v1/tools/fetch", {"uri": "vault/kitchen/tea.md"}),
    ("POST", "/api/v1/tools/fetch", {"uri": "notes://none"}),
    ("POST", "/api/v1/tools/remember", {"text": "Writing is off."}),
    ("POST", "/api/v1/tools/documents_search", {"query": "cold proof", "limit": 2}),
    ("POST", "/api/v1/tools/hybrid_search_context", {"query": "keys", "limit": 2}),
    ("POST", "/api/v1/tools/notes.search", {"query": "boiler"}),
    ("POST", "/api/v1/tools/project_list", {}),
    ("POST", "/qmd/query", {"searches": [{"type": "lex", "query": "tokens"}]}),
    ("GET", "/qmd/health", None),
    ("GET", "/nothing", None),
)
