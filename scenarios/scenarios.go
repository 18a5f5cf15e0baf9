// Package scenarios holds the scenarios that ship with the program, one folder each, and nothing else.
package scenarios

import "embed"

// FS holds every shipped scenario as NAME/test.yml with its job and parameter files.
//
//go:embed */test.yml */*.fio */*.parm
var FS embed.FS
