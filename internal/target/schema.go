package target

import _ "embed"

//go:embed target.schema.json
var schema []byte

// Schema returns the JSON Schema of target files.
func Schema() []byte { return append([]byte(nil), schema...) }
