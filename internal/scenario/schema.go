package scenario

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schemaText []byte

// Schema returns the JSON Schema (draft 2020-12) of a rendered test.yml, which editors can check and complete with.
func Schema() []byte { return slices.Clone(schemaText) }
