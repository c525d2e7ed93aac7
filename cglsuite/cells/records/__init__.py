"""Records of cells: fields, schema, tables and verification."""
