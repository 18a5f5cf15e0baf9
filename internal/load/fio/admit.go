package fio

import (
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/load/program"
)

// admit checks every device that the jobs write to. Block devices are held from then on, and fio receives the inherited
// descriptor instead of the name, which may refer to another device by now.
func (in *instance) admit() error {
	w := in.workload
	in.workload.Devices = slices.Clone(w.Devices)
	for i, d := range w.Devices {
		written := func(e extent.Extent) bool { return e.Device == d.Name && e.Writes }
		if d.Held || !in.compiled.uses[d.Name] || !slices.ContainsFunc(in.compiled.plan.Extents, written) {
			continue
		}
		file, err := in.guard.Admit(d.Path, d.Consent)
		if err != nil {
			return fmt.Errorf("prepare workload %q: device %q: %w", w.Name, d.Name, err)
		}
		if file == nil {
			continue
		}
		in.workload.Devices[i].Path = program.Inherited(len(in.held))
		in.held = append(in.held, file)
	}
	return nil
}
