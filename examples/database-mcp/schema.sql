CREATE TABLE products (sku TEXT PRIMARY KEY, name TEXT NOT NULL, stock INTEGER NOT NULL CHECK (stock >= 0));
CREATE TABLE orders (number TEXT PRIMARY KEY, sku TEXT NOT NULL REFERENCES products, count INTEGER NOT NULL);
INSERT INTO products VALUES ('A-1', 'kettle', 12), ('B-2', 'teapot', 3);
