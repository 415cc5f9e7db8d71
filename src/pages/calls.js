// Every row is in the page already. This script filters the rows, moves between them, and shows the details of one.

const calls = JSON.parse(document.getElementById("data").textContent);
const rows = Array.from(document.querySelectorAll("li"), (item) => {
  const call = calls[item.id.slice("call-".length)];
  const text = call.rows.map((row) => row[1]).join("\n") + "\n" + call.tool;
  const states = call.retried ? [call.state, "retried"] : [call.state];
  return { item, call, states, tool: call.tool, text: text.toLowerCase() };
});
const byItem = new Map(rows.map((row) => [row.item, row]));
const details = document.getElementById("details");

function element(name, text) {
  const made = document.createElement(name);
  // Never innerHTML: what a tool wrote is text.
  made.textContent = text;
  return made;
}

function showDetails(item) {
  const row = byItem.get(item);
  if (!row) return;
  const list = document.createElement("dl");
  for (const [label, text] of row.call.rows) {
    list.append(element("dt", label), element("dd", text));
  }
  details.replaceChildren(element("h2", row.call.tool), list);
}

/** Moves the focus from a row to another one of those that `matches` some states. */
function move(from, step, states = "li") {
  const visible = rows.filter((row) => !row.item.hidden && (row.item === from || row.item.matches(states)));
  const at = visible.findIndex((row) => row.item === from);
  const next = visible[Math.min(Math.max(at + step, 0), visible.length - 1)];
  if (next) next.item.firstElementChild.focus();
}

document.addEventListener("mouseover", (event) => {
  const item = event.target.closest("li");
  // A call that was chosen with the keyboard or by a click stays until the focus moves.
  if (item && !document.activeElement.closest("li")) showDetails(item);
});
document.addEventListener("focusin", (event) => {
  const item = event.target.closest("li");
  if (item) showDetails(item);
});
document.addEventListener("keydown", (event) => {
  if (event.target.closest("form")) return;
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity };
  const step = steps[event.key];
  if (step && !event.ctrlKey && !event.altKey && !event.metaKey) {
    move(document.activeElement.closest("li"), step);
    event.preventDefault();
  }
  if (event.key.toLowerCase() === "f" && !event.ctrlKey && !event.altKey && !event.metaKey) {
    move(document.activeElement.closest("li"), event.shiftKey ? -1 : 1, ".failed, .rejected, .doubt, .unfinished");
  }
  if (event.key === "Escape") document.activeElement.blur();
});

// A page that follows a log is loaded again while somebody reads it. What they chose is kept meanwhile.
const form = document.getElementById("filter");
const kept = takeKept();
for (const name of kept ? ["tool", "state", "text"] : []) {
  // Somebody may have gone on before this script did.
  if (form[name].value === "") form[name].value = kept[name];
}
installFilter(rows, "call");
const chosen = kept ? kept.chosen : location.hash.slice(1);
if (chosen) document.getElementById(chosen)?.querySelector("a")?.focus();
if (kept) scrollTo(0, kept.scrollY);
if (kept?.isTyping) form.text.focus();

if (document.querySelector("meta[http-equiv=refresh]")) addEventListener("pagehide", () => {
  const active = document.activeElement;
  const [tool, state, text] = [form.tool.value, form.state.value, form.text.value];
  const choice = { tool, state, text, scrollY, chosen: active.closest("li")?.id, isTyping: active === form.text };
  try {
    sessionStorage.setItem(location.pathname, JSON.stringify(choice));
  } catch {
    // Some browsers store nothing for files. Then a choice lasts until the page is loaded again.
  }
});

function takeKept() {
  try {
    const stored = JSON.parse(sessionStorage.getItem(location.pathname));
    sessionStorage.removeItem(location.pathname);
    return stored;
  } catch {
    return null;
  }
}
