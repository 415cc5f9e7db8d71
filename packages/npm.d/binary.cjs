// Finds the program in the package for this platform, which is an optional dependency.
"use strict";

/** Returns the path of the program, or throws an error that says what to do. */
function binaryPath() {
  const name = `toolq-${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/bin/toolq`);
  } catch {
    throw new Error(
      `the package ${name} isn't installed: there is none for this platform, or npm was told to leave out optional dependencies`,
    );
  }
}

module.exports = { binaryPath };
