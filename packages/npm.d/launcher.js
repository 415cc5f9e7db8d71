#!/usr/bin/env node
// Starts the program of the package for this platform, and ends as it does.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { binaryPath } = require("./binary.cjs");

let program;
try {
  program = binaryPath();
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exit(71);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends SIGINT and SIGQUIT to both. toolq answers its calls before it ends, so it is waited for.
for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`error: ${program} can't be started: ${error.message}`);
  process.exit(71);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
