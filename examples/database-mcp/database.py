#!/usr/bin/env python3
"""The database behind the tools: database.py create | query | order NUMBER SKU COUNT. A query comes on stdin."""

import json
import pathlib
import sqlite3
import sys

HERE = pathlib.Path(__file__).resolve().parent
FILE = HERE / "shop.db"
ALLOWED_IN_QUERIES = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)


def query(sql):
    # Twice read-only: the file is opened so, and no other statement or file is allowed.
    database = sqlite3.connect(f"{FILE.as_uri()}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    database.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in ALLOWED_IN_QUERIES else sqlite3.SQLITE_DENY)
    return [dict(row) for row in database.execute(sql).fetchmany(1000)]


def order(number, sku, count):
    # Both changes or none.
    with sqlite3.connect(FILE) as database:
        database.execute("PRAGMA foreign_keys = ON")
        database.execute("INSERT INTO orders VALUES (?, ?, ?)", (number, sku, count))
        database.execute("UPDATE products SET stock = stock - ? WHERE sku = ?", (count, sku))
    return {"ordered": number}


try:
    if sys.argv[1] == "create":
        sqlite3.connect(FILE).executescript((HERE / "schema.sql").read_text())
    elif sys.argv[1] == "query":
        print(json.dumps(query(sys.stdin.read())))
    else:
        print(json.dumps(order(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
except sqlite3.Error as error:
    sys.exit(f"database: {error}")
