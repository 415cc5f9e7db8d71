// Draws what a terminal shows, with its colors, as SVG: tmux capture-pane -e -p | node terminal.mjs COLUMNS > picture.svg.
import { readFileSync } from "node:fs";

const columns = Number(process.argv[2]);
const [cell, row, margin] = [8.43, 19, 14];
const lines = readFileSync(0, "utf8").trimEnd().split("\n");
const classes = { 1: "bold", 2: "dim", 31: "red", 32: "green", 33: "yellow", 36: "cyan" };
const text = (part) => part.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);

function spans(line) {
  let style = new Set();
  return line.split(/(\x1b\[[\d;]*m)/).map((part) => {
    const codes = /^\x1b\[([\d;]*)m$/.exec(part);
    if (!codes) return part && `<tspan class="${[...style].join(" ")}">${text(part)}</tspan>`;
    for (const code of codes[1].split(";").map(Number)) {
      if (code === 0) style = new Set();
      if (code === 39) style = new Set([...style].filter((name) => name === "bold" || name === "dim"));
      if (code === 22) style = new Set([...style].filter((name) => name !== "bold" && name !== "dim"));
      if (classes[code]) style.add(classes[code]);
    }
    return "";
  }).join("").replaceAll('<tspan class="">', "<tspan>");
}

const width = Math.ceil(columns * cell + 2 * margin);
const height = lines.length * row + 2 * margin;
const body = lines.map((line, n) => `<text x="${margin}" y="${margin + row * (n + 0.75)}">${spans(line)}</text>`);
console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<style>
rect { fill: #f6f8fa; stroke: #d0d7de; } text { fill: #1f2328; font: 14px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; }
.bold { font-weight: bold; } .dim { fill: #57606a; } .red { fill: #b3261e; } .green { fill: #2d7d46; } .yellow { fill: #9a6700; } .cyan { fill: #0550ae; }
@media (prefers-color-scheme: dark) {
  rect { fill: #161b22; stroke: #30363d; } text { fill: #e6edf3; }
  .dim { fill: #9da7b1; } .red { fill: #ff7b72; } .green { fill: #56d364; } .yellow { fill: #e3b341; } .cyan { fill: #79c0ff; }
}
</style>
<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="6"/>
${body.join("\n")}
</svg>`);
