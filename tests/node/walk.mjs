// Connects with one of the TypeScript clients, looks something up, and prints what it saw as one JSON object.
//
//   node walk.mjs sdk    legacy  URL
//   node walk.mjs client modern  COMMAND ARGUMENT...
//
// `sdk` is @modelcontextprotocol/sdk, which knows only the handshake (legacy); `client` is @modelcontextprotocol/client,
// which knows both eras. A single target is an address, several are a command.

const [library, era, ...target] = process.argv.slice(2);

async function load() {
  if (library === "sdk") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    return { Client, StreamableHTTPClientTransport, StdioClientTransport };
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  return { Client, StreamableHTTPClientTransport, StdioClientTransport };
}

const { Client, StreamableHTTPClientTransport, StdioClientTransport } = await load();
const options = era === "modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {};
const client = new Client({ name: "walk", version: "1.0.0" }, options);
const [command, ...args] = target;
const transport =
  args.length === 0
    ? new StreamableHTTPClientTransport(new URL(command))
    : new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });

// Only some transports want to know the version that was agreed on; here all are told, so that it can be printed.
let agreed;
const tell = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  agreed = version;
  tell?.(version);
};

await client.connect(transport);
const seen = { server: client.getServerVersion(), instructions: client.getInstructions() };
seen.protocol = client.getNegotiatedProtocolVersion?.() ?? agreed;
seen.tools = (await client.listTools()).tools;
// The client checks structuredContent against the schema it has just listed, and throws where they disagree.
seen.search = await client.callTool({ name: "search", arguments: { query: "how hot for oolong" } });
seen.fetch = await client.callTool({ name: "fetch", arguments: { uri: "notes://tea" } });
const thrown = (error) => ({ thrown: error.code, message: error.message });
seen.missing = await client.callTool({ name: "fetch", arguments: { uri: "notes://nothing" } }).catch(thrown);
seen.unknown = await client.callTool({ name: "frobnicate", arguments: {} }).catch(thrown);
await client.close();
console.log(JSON.stringify(seen));
