import { accessSync, constants, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join, resolve } from "node:path";
import { BinaryNotFoundError } from "./errors.js";

/**
 * Returns the path of the toolq program: that of the package for this platform, else the one that the variable `TOOLQ_BINARY` names, else
 * the first on `PATH`.
 *
 * @throws BinaryNotFoundError if there is none.
 */
export function findBinary(): string {
  const installed = installedBinary();
  if (installed !== undefined) return installed;
  const named = process.env["TOOLQ_BINARY"];
  if (named !== undefined && named !== "") {
    const path = resolve(named);
    if (isProgram(path)) return path;
    throw new BinaryNotFoundError(
      `TOOLQ_BINARY is ${JSON.stringify(named)}, which is not a program: name the toolq program, or unset the variable`,
    );
  }
  for (const directory of (process.env["PATH"] ?? "").split(delimiter)) {
    const path = join(directory, "toolq");
    if (directory !== "" && isProgram(path)) return resolve(path);
  }
  throw new BinaryNotFoundError(
    "no toolq program: not in the package for this platform, not in TOOLQ_BINARY, and not on PATH. " +
      "Install toolq with its optional dependencies, set TOOLQ_BINARY, or pass { binary }",
  );
}

function installedBinary(): string | undefined {
  try {
    const manifest = createRequire(import.meta.url).resolve(`toolq-${process.platform}-${process.arch}/package.json`);
    const path = join(dirname(manifest), "bin", "toolq");
    return isProgram(path) ? path : undefined;
  } catch {
    return undefined; // The package for this platform isn't installed.
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
