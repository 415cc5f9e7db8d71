// Removes from a package.json what isn't needed to compile: keep_compiler.cjs FILE.
"use strict";
const { readFileSync, writeFileSync } = require("node:fs");

const file = process.argv[2];
const manifest = JSON.parse(readFileSync(file, "utf8"));
const isNeeded = ([name]) => ["typescript", "@types/node"].includes(name);
manifest.devDependencies = Object.fromEntries(Object.entries(manifest.devDependencies).filter(isNeeded));
writeFileSync(file, JSON.stringify(manifest));
