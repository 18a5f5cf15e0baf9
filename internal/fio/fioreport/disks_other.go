//go:build !linux

package fioreport

import "time"

// Disks watches nothing: only Linux is asked for counters of devices.
type Disks struct{}

// Add does nothing.
func (d *Disks) Add([]string) {}

// Used returns nothing.
func (d *Disks) Used(time.Duration) []Disk { return nil }
