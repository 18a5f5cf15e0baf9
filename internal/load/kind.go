package load

import "slices"

// Kind is the registration of a generator: the properties that programs need in addition to its code.
type Kind struct {
	Name      string // as in scenarios and --engine
	Summary   string // one line
	Generator Generator
	// JobFiles: its configuration is a fio job file, whose extents it scales for a rehearsal and whose rates it scales by
	// OptionRateScale. A run uses only one generator of this kind, so that its numbers can be compared, and the first in a
	// list drives workloads without a generator.
	JobFiles bool
	// Servers is whether its loads have servers on another group of VMs, which workloads name.
	Servers Servers
	// Simulation replaces the generator on VMs that exist in memory only, where the machine must not be touched. Nil: the
	// generator itself does no I/O, and runs there too.
	Simulation Generator
}

// Servers is whether workloads of a generator name a group of VMs for their servers.
type Servers int

const (
	ServersNo   Servers = iota // its loads have none
	ServersMay                 // without a group, each VM has its own server; else servers have the data, and prefills run there
	ServersMust                // there is no load without them
)

// Kinds are generators, the default first.
type Kinds []Kind

// Find returns the kind with that name.
func (k Kinds) Find(name string) (Kind, bool) {
	i := slices.IndexFunc(k, func(one Kind) bool { return one.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return k[i], true
}

// RunsJobFiles reports whether there is a kind with that name that runs job files.
func (k Kinds) RunsJobFiles(name string) bool {
	kind, ok := k.Find(name)
	return ok && kind.JobFiles
}

// Default is the name of the generator for workloads without one, "" if no generator runs job files.
func (k Kinds) Default() string {
	for _, kind := range k.OfJobFiles() {
		return kind.Name
	}
	return ""
}

// Names returns all names, in the order of the list.
func (k Kinds) Names() []string {
	names := make([]string, len(k))
	for i := range k {
		names[i] = k[i].Name
	}
	return names
}

// ByName returns the generators by the name that workloads use, in the form that agents need.
func (k Kinds) ByName() map[string]Generator {
	all := map[string]Generator{}
	for _, one := range k {
		all[one.Name] = one.Generator
	}
	return all
}

// OfJobFiles returns the kinds that run fio job files.
func (k Kinds) OfJobFiles() Kinds {
	return slices.DeleteFunc(slices.Clone(k), func(one Kind) bool { return !one.JobFiles })
}
