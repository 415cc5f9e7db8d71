// Writes the package.json of both packages: manifests.cjs DIR VERSION PLATFORM. What packages/typescript/package.json says about the library
// stays as it is.
"use strict";
const { readFileSync, writeFileSync } = require("node:fs");

const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];
const [directory, version, platform] = process.argv.slice(2);
const [os, cpu] = platform.split("-");
// Where the packages are published from; npm compares it with who publishes them.
const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env;
const url = GITHUB_REPOSITORY && `git+${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}.git`;
const shared = { version, license: "MIT OR Apache-2.0", ...(url ? { repository: { type: "git", url } } : {}) };

const write = (name, manifest) =>
  writeFileSync(`${directory}/${name}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`);

write("platform", {
  name: `toolq-${platform}`,
  ...shared,
  description: `The program of the package toolq for ${platform}`,
  os: [os],
  cpu: [cpu],
  ...(os === "linux" ? { libc: ["glibc"] } : {}),
  files: ["bin", "LICENSE-*"],
});

const library = JSON.parse(readFileSync(`${directory}/main/package.json`, "utf8"));
const { scripts, devDependencies, private: _, ...kept } = library;
write("main", {
  name: "toolq",
  description: "Runs a language model's tool calls: checked, in order, with timeouts and a session log",
  ...kept,
  ...shared,
  bin: { toolq: "bin/toolq.cjs" },
  files: ["bin", "dist", "README.md", "LICENSE-*"],
  engines: { node: ">=20" },
  optionalDependencies: Object.fromEntries(PLATFORMS.map((name) => [`toolq-${name}`, version])),
});
