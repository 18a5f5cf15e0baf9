package scenario

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schemaText []byte

// Schema returns the JSON Schema (draft 2020-12) of a rendered test.yml, which editors use to check and complete it.
func Schema() []byte { return slices.Clone(schemaText) }
