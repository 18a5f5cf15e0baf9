//go:build !linux

package fioreport

import "time"

// Disks is empty: device counters are read on Linux only.
type Disks struct{}

// Add does nothing.
func (d *Disks) Add([]string) {}

// Used returns nothing.
func (d *Disks) Used(time.Duration) []Disk { return nil }
