// Package builtin lists the generators of load. It is the only package that knows all of them.
package builtin

import (
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/fio"
	"github.com/braggdev/bragg/internal/load/ioengine"
)

// Entry is one generator.
type Entry struct {
	Name      string // as scenarios and --engine name it
	Summary   string // one line
	Generator load.Generator
}

// Generators returns all of them, the default first.
func Generators() []Entry {
	return []Entry{
		{Name: "native", Summary: "the engine of this program: io_uring or psync, open loop, deterministic", Generator: ioengine.New()},
		{Name: "fio", Summary: "the fio program, where it is installed: all of its options, closed loop", Generator: fio.Generator{}},
	}
}

// ByName returns all of them by the name that workloads use, as agents want them.
func ByName() map[string]load.Generator {
	all := map[string]load.Generator{}
	for _, e := range Generators() {
		all[e.Name] = e.Generator
	}
	return all
}
