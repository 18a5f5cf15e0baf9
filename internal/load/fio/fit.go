package fio

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob/region"
	"github.com/braggdev/bragg/internal/load"
)

// fit compares the jobs with the actual devices. fio would replace a file that is too small for its job by a larger one;
// here that is an error.
func (c *compiled) fit(w load.Workload) error {
	sizes := map[string]int64{}
	for _, d := range w.Devices {
		if !c.uses[d.Name] {
			continue
		}
		n, err := sizeOf(d.Path)
		if err != nil {
			return fmt.Errorf("prepare workload %q: device %q: %w", w.Name, d.Name, err)
		}
		sizes[d.Name] = n
	}
	for _, e := range c.plan.Extents {
		if n := sizes[e.Device]; e.Offset+e.Length > n {
			return &diag.Error{
				Code: "device-too-small", Exit: diag.ExitUnavailable,
				Message: fmt.Sprintf("prepare workload %q: device %q has %d bytes, the job uses it up to %d",
					w.Name, e.Device, n, e.Offset+e.Length),
			}
		}
	}
	c.file = region.FitFiles(c.file, func(name string) (int64, bool) { n, ok := sizes[name]; return n, ok })
	return nil
}

// measured returns w with the actual sizes of the devices. Devices that cannot be opened are reported by fit.
func measured(w load.Workload) load.Workload {
	w.Devices = slices.Clone(w.Devices)
	for i := range w.Devices {
		if n, err := sizeOf(w.Devices[i].Path); err == nil {
			w.Devices[i].ActualBytes = n
		}
	}
	return w
}

// sizeOf returns the size of a regular file or a block device.
func sizeOf(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	n, err := f.Seek(0, io.SeekEnd)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return n, err
}
