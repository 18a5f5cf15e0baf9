package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/unit"
)

// Footprint is the space that a run takes on the target's storage.
type Footprint struct {
	VMs           int   `json:"vms"`
	TouchedBytes  int64 `json:"touched_bytes"`  // of all VMs: distinct bytes that loads touch, clones included
	SnapshotBytes int64 `json:"snapshot_bytes"` // bound of what snapshots add
	DiskBytes     int64 `json:"disk_bytes"`     // nominal size of all data disks
	// WrittenBytes bounds the bytes that all loads write; -1 if some write as fast as the storage allows.
	WrittenBytes int64 `json:"written_bytes"`
	// WrittenKnownBytes is the known part of it. WrittenFreely is for how long, in total, loads write as fast as the storage
	// allows; WrittenForever is set if some do so until they are stopped.
	WrittenKnownBytes int64         `json:"written_known_bytes"`
	WrittenFreely     time.Duration `json:"written_freely_ns,omitempty"`
	WrittenForever    bool          `json:"written_forever,omitempty"`
	// WrittenLastingBytes and WrittenLastingFreely are added at most if loads of a rehearsal last over steps (Lasting).
	WrittenLastingBytes  int64         `json:"written_lasting_bytes,omitempty"`
	WrittenLastingFreely time.Duration `json:"written_lasting_freely_ns,omitempty"`
	BoundBytes           int64         `json:"bound_bytes,omitempty"` // of a rehearsal
	// Replication is how many copies of each byte the storage keeps; 0 counts as 1.
	Replication int `json:"replication_factor,omitempty"`
}

// Written describes how much loads write at most.
func (f Footprint) Written() string {
	text := f.writtenInTime()
	switch {
	case f.WrittenLastingFreely > 0:
		return fmt.Sprintf("%s; worst case +%s of load if steps overrun their estimate", text, unit.FormatDuration(f.WrittenLastingFreely))
	case f.WrittenLastingBytes > 0:
		return fmt.Sprintf("%s; worst case +%s if steps overrun their estimate", text, unit.FormatBytes(f.WrittenLastingBytes))
	}
	return text
}

// writtenInTime is Written for loads that end as planned.
func (f Footprint) writtenInTime() string {
	known := unit.FormatBytes(f.WrittenKnownBytes)
	switch {
	case f.WrittenBytes == 0:
		return "nothing"
	case f.WrittenBytes > 0:
		return "up to " + known
	case f.WrittenForever:
		return "at least " + known + "; the rest is limited only by time and device"
	}
	return fmt.Sprintf("%s + unthrottled writes for %s (≈%s at 1 GB/s)", known,
		unit.FormatDuration(f.WrittenFreely), strings.TrimSuffix(unit.FormatRate(f.WrittenFreely.Seconds()*1e9), "/s"))
}

// Bytes returns the storage that the run takes at most, as its VMs see it.
func (f Footprint) Bytes() int64 { return f.TouchedBytes + f.SnapshotBytes }

// StoredBytes returns Bytes with all copies that the storage keeps.
func (f Footprint) StoredBytes() int64 { return f.Bytes() * int64(max(1, f.Replication)) }

// Copies mentions the copies that a size includes.
func (f Footprint) Copies() string {
	if f.Replication <= 1 {
		return ""
	}
	return fmt.Sprintf(" (%d copies of %s)", f.Replication, unit.FormatBytes(f.Bytes()))
}
